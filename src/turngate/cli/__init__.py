"""The `turngate` command. A module per group of commands; each is imported when one of its commands runs."""

from turngate.cli.app import main

__all__ = ["main"]
