"""`shorten`, `retrieve` and `search`: content in, content out."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from turngate import compress, ingress, store, tokens
from turngate.cli.common import (
    answer,
    json_option,
    load,
    open_existing,
    open_gate,
    print_json,
    session_of_today,
    session_option,
    warn,
    write_bytes,
)
from turngate.errors import StoreError, UnknownContentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from turngate.cli.app import Given
    from turngate.store import Hit, Original, Retrieved

#: Exit code when the thing asked for failed.
FAILED = 1
#: Matching lines shown of each hit of a search.
SHOWN_LINES = 6


@click.command(short_help="Shorten a tool's output as the gate would.")
@click.argument("file", default="-", type=click.Path(allow_dash=True))
@click.option("--tool", default="terminal", show_default=True, help="The tool that the output came from.")
@click.option("--args", "arguments", default="", help='Its arguments, e.g. \'{"command": "make test"}\'.')
@click.option("--failed", is_flag=True, default=None, help="The call failed.")
@click.option("--question", help="What is wanted; words of it weigh in what stays in view.")
@click.option("--budget", type=click.Choice(["default", "wide"]), help="How much stays in view.")
@click.option("--store/--no-store", "keep", default=True, show_default=True, help="Keep the original.")
@click.option(
    "--session", default=session_of_today, show_default="cli-DATE", help="The session that it belongs to."
)
@json_option
@click.pass_obj
def shorten(
    given: Given,
    *,
    file: str,
    tool: str,
    arguments: str,
    failed: bool | None,
    question: str | None,
    budget: str | None,
    keep: bool,
    session: str,
    as_json: bool,
) -> int:
    """Shorten a tool's output, read from FILE or standard input, as the gate would.

    What is hidden is stored first, and the first line of the answer is its marker: `turngate retrieve HASH`
    gives it back. Output that does not pay to shorten comes out as it went in. With --no-store nothing is
    kept, and there is no marker.

    \b
    make test 2>&1 | turngate shorten --args 'make test'
    turngate shorten --no-store build.log
    """  # noqa: D301 - click reads \b as "keep these lines"
    data = _read(file)
    overrides = {"budget": budget} if budget else {}
    call: dict[str, Any] = {"args": _arguments(arguments), "failed": failed, "question": question}
    if not keep:
        settings = load(given, **overrides)
        text, errors = store.decode(data)
        short = compress.shorten(text, tool=tool, budget=settings.budget, **call)
        _show_shortened(data, short.text.encode("utf-8", errors) if short.changed else data, as_json=as_json)
        return 0
    with open_gate(given, **overrides) as gate:
        here = gate.session(session)
        shown = here.tool_bytes(name=tool, data=data, **call)
        faults = here.stats().faults
    _show_shortened(data, shown, as_json=as_json)
    for name in faults:
        warn(f"not shortened, {name}: {here.last_fault or 'a fault of turngate; please report it'}")
    return FAILED if faults else 0


@click.command(short_help="Write the original behind a marker to stdout, byte for byte.")
@click.argument("ref", metavar="HASH")
@click.option("--lines", metavar="A:B", help="Only lines A to B, from 1; either may be left out.")
@click.option("--grep", "pattern", metavar="RE", help="Only lines that match this regular expression.")
@click.option("--context", default=2, show_default=True, type=click.IntRange(0), help="Lines around a match.")
@click.option("--page", type=click.IntRange(1), metavar="N", help="Only page N (under 40,000 characters).")
@click.option(
    "--json-path", "path", metavar="P", help="Only this value of a JSON text, e.g. '$.items[0].id'."
)
@click.option("--query", metavar="Q", help="Only the passages that best answer these words.")
@click.option("--expand", is_flag=True, help="Resolve markers inside the original, up to five levels.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file instead.")
@session_option
@json_option
@click.pass_obj
def retrieve(
    given: Given,
    *,
    ref: str,
    lines: str | None,
    pattern: str | None,
    context: int,
    page: int | None,
    path: str | None,
    query: str | None,
    expand: bool,
    output: Path | None,
    session: str | None,
    as_json: bool,
) -> int:
    """Write the original behind a marker to stdout, byte for byte, or the part of it that is asked for.

    HASH is the id in a marker, a full SHA-256, or a whole marker in quotes.

    \b
    turngate retrieve 9f86d081884c7d65
    turngate retrieve 9f86d081884c7d65 --lines 41:80
    turngate retrieve 9f86d081884c7d65 --grep 'error|warning' --context 5
    """  # noqa: D301 - click reads \b as "keep these lines"
    part: dict[str, Any] = {
        "lines": _range(lines),
        "pattern": pattern,
        "page": page,
        "path": path,
        "query": query,
    }
    asked = [name for name, value in part.items() if value is not None]
    if len(asked) > 1:
        raise click.UsageError("choose one of --lines, --grep, --page, --json-path and --query")
    with open_existing(given) as gate:
        original = _find(gate.store, ref, session)
        if not asked and not expand:
            data, found = original.data, None
        else:
            text = store.expand(original.text, _lookup(gate.store, session)) if expand else original.text
            found = store.select(text, context=context, **part) if asked else store.whole(text)
            data = found.text.encode("utf-8", store.decode(original.data)[1])
    if as_json and output is None:
        print_json(_retrieved(original, found))
    elif output is None:
        write_bytes(data)
    else:
        output.write_bytes(data)
    if original.redacted:
        warn(store.REDACTED_NOTE)
    return 0


@click.command(short_help="Search the stored originals.")
@click.argument("query")
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 1000), help="Most hits shown.")
@session_option
@click.option("--all", "everywhere", is_flag=True, help="All sessions; the default here.")
@json_option
@click.pass_obj
def search(
    given: Given, *, query: str, limit: int, session: str | None, everywhere: bool, as_json: bool
) -> int:
    """Search the stored originals for the words of QUERY, best answers first.

    \b
    turngate search 'gateway timeout'
    """  # noqa: D301 - click reads \b as "keep these lines"
    if session and everywhere:
        raise click.UsageError("choose one of --session and --all")
    with open_existing(given) as gate:
        hits = gate.store.search(query, session=session, limit=limit, all_sessions=session is None)
    answer([asdict(hit) for hit in hits], as_json=as_json, show=lambda: _show_hits(hits))
    if not hits:
        warn("nothing found; try fewer or other words, or --all")
    return 0 if hits else FAILED


def _read(file: str) -> bytes:
    return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()


def _arguments(text: str) -> dict[str, Any] | str | None:
    """Arguments as a mapping where they are JSON; any other text is taken for the command."""
    if not text:
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return {"command": text}
    return value if isinstance(value, dict) else {"command": text}


def _show_shortened(data: bytes, shown: bytes, *, as_json: bool) -> None:
    if not as_json:
        write_bytes(shown)
        return
    text = store.to_text(shown)
    print_json(
        {
            "text": text,
            "shortened": shown != data,
            "bytes_before": len(data),
            "bytes_after": len(shown),
            "tokens_before": tokens.estimate(data),
            "tokens_after": tokens.estimate(shown),
            "tokens_are_estimates": True,
        }
    )


def _range(lines: str | None) -> tuple[int, int] | None:
    """``A:B``, ``A:``, ``:B`` or ``A``."""
    if lines is None:
        return None
    found = re.fullmatch(r"(\d*)(:?)(\d*)", lines)
    if not found or not (found[1] or found[3]):
        raise click.UsageError(f"--lines {lines!r} is not a range; write it as 41:80, 41: or :80")
    first = int(found[1] or 1)
    return first, int(found[3]) if found[3] else (sys.maxsize if found[2] else first)


def _find(originals: store.Store, ref: str, session: str | None) -> Original:
    wanted = ingress.reference(ref)
    try:
        return originals.get(wanted, session=session)
    except UnknownContentError as error:
        raise UnknownContentError(
            f"no original has the id {wanted[:64]!r}; copy the whole id from a marker, or use search"
        ) from error


def _lookup(originals: store.Store, session: str | None) -> Callable[[str], str | None]:
    def lookup(ref: str) -> str | None:
        try:
            return originals.get(ref, session=session).text
        except StoreError:
            return None

    return lookup


def _retrieved(original: Original, found: Retrieved | None) -> dict[str, Any]:
    about = {
        "id": original.id,
        "sha256": original.sha256,
        "size_bytes": len(original.data),
        "kind": original.kind,
        "tool": original.tool,
        "redacted": original.redacted,
    }
    return about | (asdict(found) if found else {"text": original.text})


def _show_hits(hits: list[Hit]) -> None:
    for hit in hits:
        click.secho(hit.id, fg="green", nl=False)
        click.echo(
            f"  {hit.kind or 'text'} from {hit.tool or 'unknown'}, {hit.total_lines:,} lines, {hit.session}"
        )
        for number, line in hit.lines[:SHOWN_LINES]:
            click.echo(f"  {number:>7}  {_printable(line)}")


def _printable(line: str) -> str:
    """A stored line without what could steer a terminal."""
    return "".join(char if char.isprintable() or char == "\t" else "�" for char in line)
