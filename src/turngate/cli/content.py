"""`shorten`, `retrieve` and `search`: content in, content out."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from turngate import compress, ingress, store, tokens
from turngate.cli.common import (
    answer,
    count,
    json_option,
    load,
    open_existing,
    print_json,
    session_of_today,
    session_option,
    warn,
    write_bytes,
)
from turngate.errors import StoreError, UnknownContentError
from turngate.gate import Gate
from turngate.ingress import Arrival

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from turngate.cli.app import Given
    from turngate.session import Session
    from turngate.settings import Settings
    from turngate.store import Hit, Original, Retrieved

#: Exit code when the thing asked for failed.
FAILED = 1
#: Lines shown of each hit of a search.
SHOWN_LINES = 6
#: Why a result passed whole, for people, by the reason that `Stats.passed` and `Shortened.reason` give.
PASSED = {
    "disabled": "turngate is switched off (enabled = false)",
    "skipped tool": "results of this tool pass (skip_tools)",
    "small": "it is too short to gain by it, or below threshold_bytes",
    "offloaded by the host": "the host has put it elsewhere already",
    "retrieved": "it was asked back from the store",
    "already a marker": "it stands for stored content already",
    "view": "it is a numbered view of a file, which an edit needs to the letter",
    "no gain": "too little would be saved",
    "store unavailable": "the store could not be reached a moment ago",
}
#: The reason of a result that met a fault; what is known of that is told beside it.
FAULT = "fault"


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
    gives it back. Output that does not pay to shorten comes out as it went in, and stderr says why. With
    --no-store nothing is kept, and there is no marker; what is shown is the same.

    \b
    make test 2>&1 | turngate shorten --args 'make test'
    turngate shorten --no-store build.log
    """  # noqa: D301 - click reads \b as "keep these lines"
    data = _read(file)
    overrides = {"budget": budget} if budget else {}
    text, errors = store.decode(data)
    arrival = Arrival(tool, text, _arguments(arguments), failed, question=question, data=data)
    settings = load(given, **overrides)
    if keep:
        with Gate.open(settings=settings) as gate:
            became = _kept(arrival, gate.session(session))
    else:
        became = _unkept(arrival, settings, errors)
    _show_shortened(data, became, as_json=as_json)
    return FAILED if became.faults else 0


@click.command(short_help="Write the original behind a marker to stdout, byte for byte.")
@click.argument("ref", metavar="HASH")
@click.option("--lines", metavar="A:B", help="Only lines A to B, from 1; either may be left out.")
@click.option("--grep", "pattern", metavar="RE", help="Only lines that match this regular expression.")
@click.option("--context", default=2, show_default=True, type=click.IntRange(0), help="Lines around a match.")
@click.option(
    "--page", type=click.IntRange(1), metavar="N", help="Only page N of it (under 40,000 characters)."
)
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

    What the text itself does not say, such as how many lines match and how many pages there are, goes to
    stderr. Exit code 1 when nothing matches.
    """  # noqa: D301 - click reads \b as "keep these lines"
    part: dict[str, Any] = {"lines": _range(lines), "pattern": pattern, "path": path, "query": query}
    asked = [name for name, value in part.items() if value is not None]
    if len(asked) > 1:
        raise click.UsageError("choose one of --lines, --grep, --json-path and --query")
    with open_existing(given) as gate:
        original = _find(gate.store, ref, session)
        found = None
        if asked or page or expand:
            text = store.expand(original.text, _lookup(gate.store, session)) if expand else original.text
            found = store.select(text, context=context, page=page, **part)
    data = found.text.encode("utf-8", store.decode(original.data)[1]) if found else original.data
    if data and {"pattern", "query"} & set(asked) and not data.endswith(b"\n"):
        # A list of what was found is no piece of the original, so its last line may end as lines do.
        data += b"\n"
    if as_json and output is None:
        print_json(_retrieved(original, found))
    elif output is None:
        write_bytes(data, close_line=found is not None)
    else:
        output.write_bytes(data)
    for remark in _remarks(original, found, ranked=query is not None, told=as_json and output is None):
        warn(remark)
    return 0 if found is None or found.found else FAILED


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

    Of each original that answers, the lines that tell most are shown; those that match are marked with >.

    \b
    turngate search 'gateway timeout'
    """  # noqa: D301 - click reads \b as "keep these lines"
    if session and everywhere:
        raise click.UsageError("choose one of --session and --all")
    with open_existing(given) as gate:
        hits = gate.store.search(query, session=session, limit=limit, all_sessions=session is None)
    answer([asdict(hit) for hit in hits], as_json=as_json, show=lambda: _show_hits(hits))
    if not hits:
        warn(f"nothing found; try fewer or other words{', or --all' if session else ''}")
    return 0 if hits else FAILED


def _read(file: str) -> bytes:
    if file != "-":
        return Path(file).read_bytes()
    if sys.stdin.isatty():
        warn("reading standard input; end it with Ctrl-D, or name a FILE")
    return sys.stdin.buffer.read()


@dataclass(frozen=True, slots=True)
class _Became:
    """What became of a tool's output."""

    shown: bytes
    #: Why it passed whole; empty when it was shortened.
    passed: str
    #: What went wrong, for people.
    faults: tuple[str, ...] = ()


def _kept(arrival: Arrival, session: Session) -> _Became:
    """Through the gate: what is hidden is stored."""
    data = arrival.stored_form()
    shown = session.tool_bytes(
        name=arrival.name, data=data, args=arrival.args, failed=arrival.failed, question=arrival.question
    )
    stats = session.stats()
    what = session.last_fault or "a fault of turngate; please report it"
    return _Became(shown, next(iter(stats.passed), ""), tuple(f"{name}: {what}" for name in stats.faults))


def _unkept(arrival: Arrival, settings: Settings, errors: str) -> _Became:
    """As the gate does, without a store; `errors` is how its text becomes bytes again."""
    data = arrival.stored_form()
    passed = ingress.passes(arrival, settings)
    if passed:
        return _Became(data, passed)
    short = compress.shorten(
        arrival.text,
        tool=arrival.name,
        args=arrival.args,
        failed=arrival.failed,
        question=arrival.question,
        budget=settings.budget,
        least_chars=None if settings.threshold_bytes is None else 0,
    )
    if short.reason.startswith(FAULT):
        name = short.reason.removeprefix(f"{FAULT}: ")
        return _Became(data, FAULT, (f"{name}: a fault of turngate; please report it",))
    return _Became(short.text.encode("utf-8", errors) if short.changed else data, short.reason)


def _arguments(text: str) -> dict[str, Any] | str | None:
    """Arguments as a mapping where they are JSON; any other text is taken for the command."""
    if not text:
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return {"command": text}
    return value if isinstance(value, dict) else {"command": text}


def _show_shortened(data: bytes, became: _Became, *, as_json: bool) -> None:
    shown, passed = became.shown, became.passed
    for fault in became.faults:
        warn(f"{'not shortened' if passed else 'shortened, but'}, {fault}")
    if not as_json:
        write_bytes(shown, close_line=True)
        if passed and not became.faults:
            warn(f"passed whole: {PASSED.get(passed, passed)}")
        return
    print_json(
        {
            "text": store.to_text(shown),
            "shortened": shown != data,
            "passed": passed,
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


def _remarks(original: Original, found: Retrieved | None, *, ranked: bool, told: bool) -> Iterator[str]:
    """What a reader must know beside the text.

    Of `ranked` passages the number of pages is not known before the last; `told` when JSON has said the rest.
    """
    if original.redacted:
        yield store.REDACTED_NOTE
    if found is None or told:
        return
    if found.note:
        yield found.note
    if found.page < found.pages:
        known = "" if ranked else f" of {found.pages:,}"
        yield f"page {found.page:,}{known}; go on with --page {found.page + 1}"
    elif found.pages > 1:
        yield f"page {found.page:,} of {found.pages:,}, the last"


def _show_hits(hits: list[Hit]) -> None:
    for hit in hits:
        origin = (f"{hit.kind or 'text'} from {hit.tool or 'unknown'}", count(hit.total_lines, "line"))
        click.secho(hit.id, fg="green", nl=False)
        click.echo(f"  {', '.join((*origin, hit.session))}")
        matching = {number for number, _ in hit.matches}
        for number, line in chain.from_iterable(store.best_lines(hit, SHOWN_LINES)):
            sign = ">" if number in matching else " "
            click.echo(f"{sign} {number:>7}  {_printable(line)}")


def _printable(line: str) -> str:
    """A stored line without what could steer a terminal."""
    return "".join(char if char.isprintable() or char == "\t" else "�" for char in line)
