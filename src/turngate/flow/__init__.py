"""The one place that composes what is injected into a turn."""
