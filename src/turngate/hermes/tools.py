"""The tools: what the model can ask turngate for. Answers are JSON; what goes wrong is an answer, too."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

from turngate import asking, marker
from turngate.compress import shorten
from turngate.errors import RetrieveError, TurngateError
from turngate.hermes.answers import fitted, page_chars, part, spelled
from turngate.hermes.files import read_confined
from turngate.hermes.host import current_session, host
from turngate.hermes.schemas import PREFIX
from turngate.marker import Marker
from turngate.store import Original, select, to_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from turngate.session import Session

    Args = Mapping[str, Any]
    Answer = dict[str, Any]

DEFAULT_HITS, MOST_HITS = 5, 20
DEFAULT_EVENTS = 50
#: The tool under whose name prefetched files are stored.
PREFETCH = f"{PREFIX}prefetch"
#: What is behind the markers of a text isn't known before it is had back.
_WORST = "\0"
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,31}")


def call(name: str, args: Any = None, session_id: str = "", **_: Any) -> str:
    """Answer one call of the model's. Never raises."""
    try:
        session = host().gate.session(session_id or current_session() or "hermes")
        return spelled(TOOLS[name.removeprefix(PREFIX)](session, args if isinstance(args, dict) else {}))
    except TurngateError as error:
        return spelled({"found": False, "error": str(error)})
    except Exception as error:  # noqa: BLE001 - the boundary to the host
        host().fault(name, error)
        return spelled({"found": False, "error": f"{name} failed: {type(error).__name__}; go on without it"})


def _retrieve(session: Session, args: Args) -> Answer:
    ref, path = asking.text(args, "hash").strip(), asking.text(args, "path").strip()
    if not ref and not path:
        raise RetrieveError("name the hash of a marker, or the path of a file")
    text = session.original(ref).text if ref else read_confined(path)
    expand = args.get("expand") is True
    read = partial(session.retrieve, ref, path=path or None, expand=expand) if ref else partial(select, text)
    return part(
        read(
            lines=asking.lines(args),
            pattern=asking.text(args, "pattern") or None,
            query=asking.text(args, "query") or None,
            page=asking.number(args, "page", 1),
            page_chars=page_chars(_WORST if expand else text),
        )
    )


def _search(session: Session, args: Args) -> Answer:
    limit = min(MOST_HITS, max(1, asking.number(args, "limit", DEFAULT_HITS)))
    query = asking.text(args, "query")
    hits = [
        {
            "hash": hit.id,
            "tool": hit.tool,
            "turn": hit.turn,
            "total_lines": hit.total_lines,
            "lines": "\n".join(f"{number}: {line}" for number, line in hit.lines),
        }
        for hit in session.search(query, limit=limit)
    ]
    said = {} if hits else {"note": session.miss(query)}
    return fitted({"found": bool(hits), "hits": hits} | said, "hits")


def _compress(session: Session, args: Args) -> Answer:
    content = _content(args)
    if not content:
        raise RetrieveError("there is no content to store")
    short = shorten(content)
    hint = asking.text(args, "type")
    return _stored(session, content, hint if _KIND.fullmatch(hint) else short.kind, f"{PREFIX}compress")


def _stats(session: Session, _: Args) -> Answer:
    here = host()
    talk = here.talk(session.id)
    return {
        "session": session.stats().as_dict(),
        "store": _saved(here.gate.store.stats(session=session.id)),
        "requests": talk.requests,
        "usage": dict(talk.usage),
        "rewritten_by_host": talk.rewrites,
        "faults": dict(here.faults),
    }


def _saved(stats: Any) -> Answer:
    return {"contents": stats.contents, "tokens_saved": stats.saving.tokens, "results": stats.saving.results}


def _catalog(session: Session, args: Args) -> Answer:
    lines = session.flow.catalogue().splitlines()
    if asking.text(args, "mode") == "toc":
        return {"found": bool(lines), "shortened": len(lines), "newest": lines[:10]}
    return fitted({"found": bool(lines), "shortened": lines}, "shortened")


def _history(session: Session, args: Args) -> Answer:
    limit = max(1, asking.number(args, "limit", DEFAULT_EVENTS))
    events = session.flow.state().events[-limit:]
    calls = [
        {"turn": event.turn + 1, "call": event.label, "ok": event.ok}
        | ({"error": event.error} if event.error else {})
        for event in reversed(events)
    ]
    return fitted({"found": bool(calls), "calls": calls}, "calls")


def _files(session: Session, _: Args) -> Answer:
    files = [
        {
            "path": use.path,
            "read": bool(use.read_seq),
            "written": bool(use.wrote_seq),
            "stale": use.stale,
        }
        for use in reversed(session.flow.state().files)
    ]
    return fitted({"found": bool(files), "files": files}, "files")


def _directive(session: Session, args: Args) -> Answer:
    action = asking.text(args, "action")
    if action not in _DIRECTIVE_ACTIONS:
        raise RetrieveError(f"no action {action!r}; there are list, {', '.join(_DIRECTIVE_ACTIONS)}")
    _DIRECTIVE_ACTIONS[action](session, _names(args))
    listing = session.flow.list_directives()
    return {"available": list(listing.available), "active": list(listing.active)}


def _each(method: str) -> Callable[[Session, list[str]], None]:
    def act(session: Session, names: list[str]) -> None:
        for name in names:
            getattr(session.flow, method)(name)

    return act


_DIRECTIVE_ACTIONS: dict[str, Callable[[Session, list[str]], object]] = {
    "list": lambda _session, _names: None,
    "swap": lambda session, names: session.flow.swap_directives(*names),
    "add": _each("add_directive"),
    "load": _each("load_directive"),
    "remove": _each("remove_directive"),
    "reset": lambda session, _names: session.flow.reset_directives(),
}


def _reclassify(session: Session, args: Args) -> Answer:
    ref = asking.text(args, "hash")
    refs = [ref] if ref else [item.id for item in reversed(session.flow.state().items)]
    return fitted({"found": True, "kinds": [_kind(session.original(each)) for each in refs]}, "kinds")


def _kind(original: Original) -> Answer:
    short = shorten(original.text, tool=original.tool)
    return {"hash": original.id, "was": original.kind, "is": short.kind, "preview": short.preview}


def _prefetch(session: Session, args: Args) -> Answer:
    return fitted(
        {"found": True, "files": [_fetched(session, path) for path in _names(args, "paths")]}, "files"
    )


def _fetched(session: Session, path: str) -> Answer:
    """One file's answer; what is wrong with it does not keep the others from being read."""
    try:
        text = read_confined(path)
    except RetrieveError as error:
        return {"path": path, "error": str(error)}
    stored = _stored(session, text, shorten(text).kind, PREFETCH)
    session.event(name=PREFETCH, args={"path": path})
    return {"path": path} | stored


def _prefetch_status(session: Session, _: Args) -> Answer:
    done = [event.label for event in session.flow.state().events if event.tool == PREFETCH]
    return {"loading": [], "loaded": done}


def _test(_: Session, args: Args) -> Answer:
    from turngate.hermes import smoke  # noqa: PLC0415 - nothing else needs it, and it needs this module

    return smoke.run(
        asking.text(args, "mode") or "quick", host().gate.path.with_name(smoke.RESULTS_FILE)
    ).as_dict()


def _stored(session: Session, text: str, kind: str, tool: str) -> Answer:
    """Store a text, and answer with its marker."""
    store = host().gate.store
    stored = store.put(to_bytes(text), session=session.id, turn=store.turn(session.id), kind=kind, tool=tool)
    line = marker.render(Marker(stored.id, "context", stored.size, "token", fields=(("kind", kind),)))
    return {"hash": stored.id, "type": kind, "size": stored.size, "marker": line}


def _content(args: Args) -> str:
    value = args.get("content")
    return value if isinstance(value, str) else ""


def _names(args: Args, key: str = "names") -> list[str]:
    value = args.get(key)
    items = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, str)]


TOOLS: dict[str, Callable[[Session, Args], Answer]] = {
    "retrieve": _retrieve,
    "search": _search,
    "compress": _compress,
    "stats": _stats,
    "catalog": _catalog,
    "history": _history,
    "files": _files,
    "directive": _directive,
    "reclassify": _reclassify,
    "prefetch": _prefetch,
    "prefetch_status": _prefetch_status,
    "test": _test,
}
