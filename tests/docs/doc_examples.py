"""Run the examples of the documentation as a reader would, and say what they print.

A ``console`` block holds ``$ command`` lines, each followed by what it prints. What a ``python`` block prints
stands in the ``text`` block behind it. A page's examples run in order, in a fresh folder that is home, too.

    python tests/docs/doc_examples.py       # write what they print now into the pages
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
#: What a README's table of the demo begins with.
DEMO_HEAD = "call "
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NEXT = "\x1e"


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page."""

    language: str
    body: str
    #: Where the body stands in the page.
    span: tuple[int, int]


def blocks(text: str) -> list[Block]:
    return [Block(found[1], found[2], found.span(2)) for found in _FENCE.finditer(text)]


def current(text: str) -> str:
    """The page with what its examples print now."""
    parts, at = [], 0
    for block, body in zip(blocks(text), _bodies(blocks(text)), strict=True):
        parts += [text[at : block.span[0]], body]
        at = block.span[1]
    return "".join([*parts, text[at:]])


def _bodies(found: list[Block]) -> Iterator[str]:
    """The body of each block as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        printed = iter(_python([block.body for block in found if block.language == "python"], folder))
        expected = None
        for block in found:
            yield _body(block, expected, folder)
            expected = next(printed) if block.language == "python" else None


def _body(block: Block, expected: str | None, folder: str) -> str:
    """The same of one block; `expected` is what the Python block before it printed."""
    if block.language == "console":
        return _console(block.body, folder)
    if block.language == "text" and expected is not None:
        return expected
    if block.language == "text" and block.body.startswith(DEMO_HEAD):
        return _demo(block.body, folder)
    return block.body


def _console(body: str, folder: str) -> str:
    commands = [line for line in body.splitlines() if line.startswith("$ ")]
    return "".join(
        f"{command}\n{_whole_lines(_run(['bash', '-c', command[2:]], folder))}" for command in commands
    )


def _python(bodies: list[str], folder: str) -> list[str]:
    """What each of a page's blocks prints; they share one process and its names."""
    if not bodies:
        return []
    program = f"\nprint({_NEXT!r}, end='')\n".join(bodies)
    done = _run([sys.executable, "-W", "error", "-c", program], folder, must_succeed=True)
    return [_whole_lines(part) for part in done.split(_NEXT)]


def _demo(body: str, folder: str) -> str:
    """The lines of the block as the demo prints them now; a line of `…` stands for those left out."""
    lines = [line.rstrip() for line in _run(["turngate", "demo"], folder).splitlines()]
    wanted = [_name(line) for line in body.splitlines()]
    found = {_name(line): line for line in lines}
    return "".join(f"{found.get(name, name)}\n" for name in wanted)


def _name(line: str) -> str:
    """What stays the same of a line of the demo when its figures change."""
    if line.startswith("round trip"):
        return "round trip"
    return "results" if " tool results, " in line else re.split(r" {2,}", line)[0]


def _run(command: list[str], folder: str, *, must_succeed: bool = False) -> str:
    """Both streams of a command that runs in `folder`, without settings from outside."""
    outside = {
        name: value for name, value in os.environ.items() if not name.startswith(("TURNGATE_", "XDG_"))
    }
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=folder,
        env=outside | {"HOME": folder, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=60,
    )
    output = done.stdout.decode()
    if must_succeed and done.returncode:
        raise AssertionError(output)
    return output


def _whole_lines(text: str) -> str:
    return text if text.endswith("\n") or not text else text + "\n"


def main() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        new = current(text)
        if new != text:
            page.write_text(new, encoding="utf-8")
            sys.stdout.write(f"wrote {page.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
