"""What the smoke test checks. A check returns None where all is well, else what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from turngate import marker, tokens
from turngate.errors import RetrieveError
from turngate.hermes import contract, hooks, tools
from turngate.hermes.answers import ANSWER_CHARS
from turngate.hermes.compacting import Request, compact
from turngate.hermes.files import read_confined
from turngate.hermes.gauge import Gauge
from turngate.hermes.host import MAX_BLOCK_BYTES, Host
from turngate.hermes.plugin import HOOKS
from turngate.hermes.schemas import NAMES, offered, schema
from turngate.settings import DEFAULT_HERMES_TOOLS
from turngate.wire import violations

SESSION = "smoke"
ERROR = "ValueError: the spoon is bent"
NEEDLE = "needle-4711 lies here"
SECRET = "ghp_" + "0123456789abcdefghij" * 2  # no real one
MAX_SCHEMA_TOKENS = 400
EXIT_CODE = 3

Said = str | None


@dataclass(frozen=True, slots=True)
class Bench:
    """What a check works on."""

    host: Host
    """A host with a store of its own."""
    folder: Path
    """A temporary folder."""

    def result(self, output: str, *, tool: str = "terminal", session: str = SESSION, call: str = "c1") -> str:
        """What the model sees of a tool's output."""
        result = json.dumps({"output": output, "exit_code": EXIT_CODE, "error": None}, ensure_ascii=False)
        shown = hooks.transform_tool_result(
            tool_name=tool, args={"command": "make"}, result=result, session_id=session, tool_call_id=call
        )
        return result if shown is None else shown

    def ask(self, tool: str, *, session: str = SESSION, **args: Any) -> dict[str, Any]:
        """What one of our tools answers."""
        answer: dict[str, Any] = json.loads(tools.call(f"turngate_{tool}", args, session_id=session))
        return answer

    def block(self, message: Any = "do it", turn: str = "t1") -> str:
        """What is injected into a turn."""
        return hooks.pre_llm_call(session_id=SESSION, turn_id=turn, user_message=message) or ""


def log_output(lines: int = 3_000) -> str:
    """A long output with an error and something to search for in it."""
    rows = [f"step {number}: nothing of note ({number * 7919 % 1009})" for number in range(lines)]
    rows[lines // 3], rows[lines // 2] = NEEDLE, ERROR
    return "\n".join(rows)


def shown_id(result: str) -> str:
    """The marker's id in what the model sees, or ""."""
    found = marker.find_all(result)
    return found[0].hash if found else ""


def shortens_a_result(bench: Bench) -> Said:
    """A long output becomes short, and the rest of the host's JSON stays."""
    output = log_output()
    shown = json.loads(bench.result(output))
    if not shown["output"].startswith("<<<CCR:") or len(shown["output"]) > len(output) // 2:
        return "a long terminal output was not shortened"
    return None if shown["exit_code"] == EXIT_CODE and "error" in shown else "the result lost its shape"


def keeps_errors_in_view(bench: Bench) -> Said:
    """The line that says what failed stays."""
    return None if ERROR in bench.result(log_output()) else "the error line is hidden"


def gives_all_of_it_back(bench: Bench) -> Said:
    """Page by page, the original comes back byte for byte."""
    output = log_output()
    ref, text, number = shown_id(bench.result(output)), "", 0
    while True:
        number += 1
        answer = bench.ask("retrieve", hash=ref, page=number)
        text += answer.get("text", "")
        if not answer["found"] or number >= int(answer.get("page", "1 of 1").split(" of ")[1]):
            return None if text == output else f"{len(text)} of {len(output)} characters came back, or others"


def gives_lines_back(bench: Bench) -> Said:
    """A range of lines comes back byte for byte."""
    output = log_output()
    answer = bench.ask("retrieve", hash=shown_id(bench.result(output)), lines="10-12")
    wanted = "\n".join(output.split("\n")[9:12]) + "\n"
    return None if answer["text"] == wanted else f"lines 10-12 came back as {answer['text']!r}"


def answers_below_the_hosts_limit(bench: Bench) -> Said:
    """Even where every character is six in JSON."""
    ref = shown_id(bench.result("\x01" * 90_000 + "\n" + log_output()))
    if not ref:
        return "the result was not shortened"
    size = len(tools.call("turngate_retrieve", {"hash": ref}, session_id=SESSION))
    return None if size <= ANSWER_CHARS else f"an answer has {size} characters"


def leaves_what_was_retrieved(bench: Bench) -> Said:
    """What our own tools answer passes whole, under whatever name it comes by."""
    answer = tools.call(
        "turngate_retrieve", {"hash": shown_id(bench.result(log_output()))}, session_id=SESSION
    )
    for name in (*(schema(name)["name"] for name in NAMES), "headroom_retrieve", "aphrodite_retrieve"):
        said = hooks.transform_tool_result(
            tool_name=name, result=answer, session_id=SESSION, tool_call_id="c2"
        )
        if said is not None:
            return f"an answer of {name} was shortened"
    return None


def leaves_files_and_scripts(bench: Bench) -> Said:
    """Files that are read, and answers to a script's calls, pass whole."""
    output = log_output()
    if shown_id(bench.result(output, tool="read_file")):
        return "read_file was shortened"
    return "a call inside a script was shortened" if shown_id(bench.result(output, call="")) else None


def finds_what_is_hidden(bench: Bench) -> Said:
    """A search leads to a line that is not in view."""
    bench.result(log_output())
    hits = bench.ask("search", query="needle-4711")["hits"]
    return None if hits and NEEDLE in hits[0]["lines"] else "the search found nothing"


def injects_once(bench: Bench) -> Said:
    """The first turn says how markers work; the next has nothing new to say."""
    first, same, second = bench.block(), bench.block(), bench.block(turn="t2")
    if "turngate_retrieve" not in first or len(first.encode()) > MAX_BLOCK_BYTES:
        return f"the first turn's block has {len(first)} characters: {first[:80]!r}"
    return None if not same and not second else "a block came twice"


def bears_all_keywords(_: Bench) -> Said:
    """Every hook takes what the host hands over, nothing at all, and what nobody knows yet."""
    for name in (*HOOKS, "pre_tool_call"):
        hook = getattr(hooks, name)
        everything = dict.fromkeys((*contract.KEYWORDS[name], *contract.ADDED.get(name, ()), "future"))
        # Bound here, since a hook lets no exception out.
        signature(hook).bind(**everything)
        hook()
        hook(**everything)
    return None


def keeps_json_json(_: Bench) -> Said:
    """A result that is one large object stays one."""
    rows = [
        {"id": number, "name": f"user {number}", "mail": f"{number}@example.org"} for number in range(800)
    ]
    result = json.dumps({"rows": rows, "count": len(rows)})
    shown = hooks.transform_tool_result(tool_name="web", result=result, session_id=SESSION, tool_call_id="c1")
    if shown is None:
        return "a large object was not shortened"
    parsed = json.loads(shown)
    return None if parsed["count"] == len(rows) and shown_id(shown) else "the object lost its shape"


def offers_little(_: Bench) -> Said:
    """The tools offered by default cost few tokens, and their schemas are closed."""
    schemas = offered(DEFAULT_HERMES_TOOLS)
    if any(each["parameters"]["additionalProperties"] is not False for each in schemas):
        return "a schema is open"
    size = tokens.estimate(json.dumps(schemas))
    return None if size <= MAX_SCHEMA_TOKENS else f"the schemas take about {size} tokens"


def keeps_families_apart(bench: Bench) -> Said:
    """A subagent sees what its parent saw, and nobody else does."""
    ref = shown_id(bench.result(log_output()))
    hooks.subagent_start(child_session_id="child", parent_session_id=SESSION)
    if not bench.ask("retrieve", hash=ref, session="child")["found"]:
        return "a subagent cannot read what its parent saw"
    return "a stranger can read it" if bench.ask("retrieve", hash=ref, session="stranger")["found"] else None


def survives_a_broken_store(bench: Bench) -> Said:
    """Where nothing can be stored, the original passes."""
    place = bench.host.gate.path.parent
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("a file where a folder should be")
    return "a result was shortened and not stored" if shown_id(bench.result(log_output())) else None


def can_be_switched_off(bench: Bench) -> Said:
    """`/turngate off` lets results pass, and `on` shortens again."""
    bench.host.switch(SESSION, on=False)
    off = shown_id(bench.result(log_output()))
    bench.host.switch(SESSION, on=True)
    return None if not off and shown_id(bench.result(log_output())) else "the switch does nothing"


def stays_in_the_folder(bench: Bench) -> Said:
    """Files outside of the working folder are not read, nor through a link."""
    root = bench.folder / "work"
    root.mkdir()
    (bench.folder / "secret.txt").write_text("secret")
    (root / "link.txt").symlink_to(bench.folder / "secret.txt")
    for path in ("../secret.txt", str(bench.folder / "secret.txt"), "link.txt"):
        try:
            read_confined(path, root)
        except RetrieveError:
            continue
        return f"{path} was read"
    return None


def waits_after_an_image(bench: Bench) -> Said:
    """What the host would drop beside an image comes with the next text."""
    image = bench.block([{"type": "image_url"}])
    return None if not image and bench.block(turn="t2") else "the block was lost with an image"


def compacts_a_full_window(bench: Bench) -> Said:
    """A history that is too long becomes one that a provider accepts, and what went comes back."""
    history: list[dict[str, Any]] = [{"role": "user", "content": "find the fault"}]
    for number in range(30):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}
        history += [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"step {number} of many\n" * 40},
        ]
    gauge = Gauge(limit_tokens=3_000)
    gauge.is_full(gauge.limit_tokens)
    outcome = compact(bench.host, SESSION, history, gauge, Request())
    if outcome is None or len(outcome.messages) >= len(history):
        return "nothing was won"
    if violations(outcome.messages, "chat"):
        return "a provider would refuse the new history"
    answer = bench.ask("retrieve", hash=outcome.notice.marker, pattern="step 1 of many")
    return None if answer["found"] and "step 1 of many" in answer["text"] else "what went does not come back"


def engine_can_be_copied(bench: Bench) -> Said:
    """The host takes the engine for one of its own and copies it for each agent."""
    del bench
    engine = import_module("turngate.hermes.engine").TurngateEngine()
    engine.update_model("some-model", 100_000)
    twin = deepcopy(engine)
    host_class = import_module("agent.context_engine").ContextEngine
    if not isinstance(engine, host_class) or engine.name != "turngate":
        return "the host would not take the engine"
    return None if twin.gauge == engine.gauge and twin.threshold_tokens > 0 else "the copy is another"


def passes_everything(bench: Bench) -> Said:
    """Nothing is shortened."""
    return "a result was shortened" if shown_id(bench.result(log_output())) else None


def has_no_orientation(bench: Bench) -> Said:
    """The first turn does not explain markers."""
    return "there is an orientation" if "orientation" in bench.block() else None


def has_no_directives(bench: Bench) -> Said:
    """No standing instruction is injected."""
    return "there are directives" if "[directives" in bench.block() else None


def injects_nothing(bench: Bench) -> Said:
    """There is no block."""
    return "something is injected" if bench.block() else None


def nudges_nothing(bench: Bench) -> Said:
    """The same error over and over brings no nudge."""
    bench.block()
    for _ in range(5):
        bench.result(log_output())
    return "there is a nudge" if "[nudge" in bench.block(turn="t2") else None


def stores_no_secret(bench: Bench) -> Said:
    """A token in an output is not in what comes back."""
    ref = shown_id(bench.result(f"token={SECRET}\n{log_output()}"))
    answer = bench.ask("retrieve", hash=ref, lines="1")
    return None if ref and SECRET not in json.dumps(answer) else "a token was stored"


def stays_retrievable(bench: Bench) -> Said:
    """Whatever is hidden is in the store, whatever the settings."""
    output = log_output()
    ref = shown_id(bench.result(output))
    if not ref:
        return "a long output was not shortened"
    answer = bench.ask("retrieve", hash=ref, lines="1500-1502")
    wanted = output.splitlines(keepends=True)[1499:1502]
    return None if answer.get("text") == "".join(wanted) else "lines do not come back"


def stays_within_the_block(bench: Bench) -> Said:
    """The injected block keeps its limit."""
    size, limit = len(bench.block().encode()), bench.host.settings.flow_budget_chars
    return None if size <= limit else f"the block has {size} bytes of {limit}"


QUICK: tuple[Callable[[Bench], Said], ...] = (
    shortens_a_result,
    keeps_errors_in_view,
    gives_all_of_it_back,
    gives_lines_back,
    answers_below_the_hosts_limit,
    leaves_what_was_retrieved,
    leaves_files_and_scripts,
    finds_what_is_hidden,
    injects_once,
    bears_all_keywords,
)
"""Run in every mode but ``matrix``."""

FULL: tuple[Callable[[Bench], Said], ...] = (
    keeps_json_json,
    offers_little,
    keeps_families_apart,
    survives_a_broken_store,
    can_be_switched_off,
    stays_in_the_folder,
    waits_after_an_image,
    compacts_a_full_window,
)
"""Run besides in ``full`` and ``pipeline``."""

WITH_HOST: tuple[Callable[[Bench], Said], ...] = (engine_can_be_copied,)
"""Run with those where the host is installed beside us."""

ALWAYS: tuple[Callable[[Bench], Said], ...] = (
    shortens_a_result,
    keeps_errors_in_view,
    stays_retrievable,
    stays_within_the_block,
)
"""Must hold under all settings."""
