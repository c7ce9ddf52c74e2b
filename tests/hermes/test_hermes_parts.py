"""The plugin's parts by themselves: results, answers, files, the view, hooks, tools, the smoke test."""

from __future__ import annotations

import inspect
import json
import threading
from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngate import marker
from turngate.errors import RetrieveError
from turngate.gate import Gate
from turngate.hermes import checks, contract, hooks, plugin, smoke, tools
from turngate.hermes.answers import ANSWER_CHARS, fitted, page_chars, spelled
from turngate.hermes.checks import Bench, log_output, shown_id
from turngate.hermes.files import read_confined
from turngate.hermes.host import Host, _of_this_process, fail_open, host, using
from turngate.hermes.result import MARKER_KEY, output_of, with_shown
from turngate.hermes.schemas import NAMES, offered, schema
from turngate.hermes.view import Results, View, view_of
from turngate.settings import DEFAULT_HERMES_TOOLS, HermesSettings, Settings, load
from turngate.tokens import count_exact

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture
def here(tmp_path):
    with Gate.open(settings=Settings(data_dir=tmp_path / "data")) as gate, using(Host(gate)) as host:
        yield Bench(host, tmp_path)


class TestResult:
    @given(st.dictionaries(texts, values, max_size=4), st.text(min_size=1), st.booleans(), texts)
    def test_only_the_output_changes(self, around, output, ascii_only, shown):
        table = around | {"output": output * 200, "exit_code": 1}
        result = json.dumps(table, ensure_ascii=ascii_only)
        found = output_of(result)
        changed = json.loads(with_shown(result, found, shown)) if found.path else None
        if changed is not None:
            key = found.path[0]
            assert found.text == table[key]
            assert changed == json.loads(result) | {key: shown}
            assert list(changed) == list(table)

    @given(st.text())
    def test_any_text_is_its_own_output_or_holds_it(self, text):
        found = output_of(text)
        assert found.path or found.text is text

    def test_the_long_string_is_the_output(self):
        result = json.dumps({"output": "a\nb\n" * 500, "exit_code": 3, "error": None})
        assert output_of(result) == hooks.output_of(result)
        assert output_of(result).path == ("output",)
        assert output_of(result).failed is True

    @pytest.mark.parametrize(
        ("table", "failed"),
        [
            ({"exit_code": 0}, False),
            ({"exit_code": 2}, True),
            ({"exit_code": 1, "exit_code_meaning": "no matches"}, False),
            ({"error": "File not found"}, True),
            ({"error": None}, None),
            ({"content": "x"}, None),
        ],
    )
    def test_a_result_says_whether_the_call_failed(self, table, failed):
        assert output_of(json.dumps(table)).failed is failed

    def test_a_marker_goes_into_an_object_as_its_first_key(self):
        result = json.dumps({"rows": [1, 2], "count": 2})
        shown = '<<<CCR:0123456789abcdef|tool|9|inline>>> 1 of 2 "rows"\n{"rows": [1], "count": 2}'
        table = json.loads(with_shown(result, output_of(result), shown))
        assert list(table) == [MARKER_KEY, "rows", "count"]
        assert table[MARKER_KEY] == shown.split("\n", maxsplit=1)[0]

    def test_what_is_no_object_any_more_stays_as_it_is_shown(self):
        assert with_shown("[1, 2]", output_of("[1, 2]"), "line\n[1]") == "line\n[1]"


class TestAnswers:
    @given(st.text(st.characters(), min_size=1, max_size=50), st.integers(1, 4_000))
    def test_a_page_always_fits_the_hosts_limit(self, piece, times):
        text = piece * times
        page = text[: page_chars(text)]
        assert len(spelled({"found": True, "note": "n" * 200, "text": page})) <= ANSWER_CHARS

    @given(st.text())
    def test_an_answer_can_be_encoded_and_read_back(self, text):
        assert json.loads(spelled({"text": text}).encode()) == {"text": text}

    @given(st.lists(st.text(max_size=5_000), max_size=40))
    def test_items_that_do_not_fit_are_counted(self, items):
        answer = fitted({"found": True, "items": items}, "items")
        assert len(spelled(answer)) <= ANSWER_CHARS
        assert len(answer["items"]) + answer.get("left_off", 0) == len(items)


class TestFiles:
    @pytest.mark.parametrize("path", ["../out.txt", "/etc/hostname", "link", "folder", "missing", "a\0b"])
    def test_only_files_below_the_folder_are_read(self, tmp_path, path):
        root = tmp_path / "root"
        (root / "folder").mkdir(parents=True)
        (tmp_path / "out.txt").write_text("outside")
        (root / "link").symlink_to(tmp_path / "out.txt")
        with pytest.raises(RetrieveError):
            read_confined(path, root)

    def test_a_link_inside_the_folder_is_followed(self, tmp_path):
        (tmp_path / "a.txt").write_text("hello")
        (tmp_path / "b.txt").symlink_to(tmp_path / "a.txt")
        assert read_confined("b.txt", tmp_path) == "hello"


class TestView:
    MARKED = "<<<CCR:0123456789abcdef|tool|9|inline>>> 1 of 2"

    def test_a_request_that_goes_on_loses_nothing(self):
        first = [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]
        more = [*first, {"role": "tool", "content": self.MARKED}]
        assert not view_of(first).lost_to(view_of(more))
        assert view_of(more).markers == {"0123456789abcdef"}

    def test_a_cache_mark_is_no_change(self):
        plain = view_of([{"role": "user", "content": "b"}])
        blocks = [{"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}}]
        assert plain == view_of([{"role": "user", "content": blocks}])

    def test_a_marker_that_left_is_a_loss(self):
        before = view_of([{"role": "user", "content": "b"}, {"role": "tool", "content": self.MARKED}])
        assert before.lost_to(
            view_of([{"role": "user", "content": "b"}, {"role": "tool", "content": "pruned"}])
        )
        assert before.lost_to(view_of([{"role": "user", "content": "b"}]))
        assert not View().lost_to(before)


class TestHooks:
    @pytest.mark.parametrize("name", [*plugin.HOOKS, *plugin.TERMINAL_HOOKS])
    def test_a_hook_takes_every_keyword_of_the_host_and_none_is_required(self, name):
        signature = inspect.signature(getattr(hooks, name))
        signature.bind()
        signature.bind(**dict.fromkeys((*contract.KEYWORDS[name], *contract.ADDED.get(name, ()), "unknown")))
        taken = {name for name, known in signature.parameters.items() if known.kind is known.KEYWORD_ONLY}
        assert taken <= {*contract.KEYWORDS[name], *contract.ADDED.get(name, ())}

    @given(
        st.dictionaries(
            st.sampled_from(sorted({key for keys in contract.KEYWORDS.values() for key in keys})), values
        )
    )
    @settings(max_examples=60)
    def test_no_hook_ever_raises(self, keywords):
        for name in (*plugin.HOOKS, *plugin.TERMINAL_HOOKS):
            getattr(hooks, name)(**keywords | {"session_id": ""})

    def test_the_terminal_hook_returns_the_output_unchanged(self, here):
        output = log_output()
        assert hooks.transform_terminal_output(command="make", output=output, returncode=2) is output
        assert hooks.transform_terminal_output() == ""

    def test_the_terminal_hook_shortens_where_that_is_set_and_leaves_no_secret(self, tmp_path):
        known = Settings(data_dir=tmp_path, hermes=HermesSettings(shorten_in_terminal=True))
        output = f"token={checks.SECRET}\n{log_output()}"
        with Gate.open(settings=known) as gate, using(Host(gate)):
            hooks.pre_tool_call(session_id="s", tool_call_id="c")
            shown = hooks.transform_terminal_output(command="make", output=output, returncode=0)
            assert shown.startswith("<<<CCR:")
            assert checks.SECRET not in gate.session("s").original(shown_id(shown)).text
            hooks.pre_tool_call(session_id="s", tool_call_id="")
            assert hooks.transform_terminal_output(command="make", output=output, returncode=0) is output

    def test_an_exit_code_that_only_the_terminal_hook_saw_counts(self, here):
        hooks.transform_terminal_output(command="make", output="x", returncode=1)
        hooks.transform_tool_result(tool_name="terminal", result="boom", session_id="s", tool_call_id="c")
        (event,) = here.host.gate.session("s").flow.state().events
        assert not event.ok

    def test_a_conversation_that_goes_on_under_a_new_id_keeps_its_markers(self, here):
        ref = shown_id(here.result(log_output(), session="old"))
        hooks.pre_api_request(
            session_id="new", task_id="t", turn_id="old:t:12345678", request_messages=[{"role": "user"}]
        )
        assert here.ask("retrieve", hash=ref, session="new")["found"]
        assert not here.ask("retrieve", hash=ref, session="other")["found"]

    def test_what_the_host_took_out_of_view_opens_an_epoch(self, here):
        message = {"role": "tool", "content": here.result(log_output())}
        user = {"role": "user", "content": "go"}
        for request in ([user, message], [user, message, user], [user]):
            hooks.pre_api_request(session_id=checks.SESSION, request_messages=request)
        assert here.host.talk(checks.SESSION).rewrites == 1
        assert here.host.gate.session(checks.SESSION).flow.state().epoch == 1

    def test_a_turn_is_counted_once_and_by_us(self, here):
        for turn in ("s:t:aaaaaaaa", "s:t:aaaaaaaa", "s:t:bbbbbbbb"):
            hooks.pre_llm_call(session_id="s", turn_id=turn, user_message="go")
        assert here.host.gate.session("s").turn == 2

    def test_many_threads_leave_each_result_with_its_own_marker(self, here):
        shown = {}

        def work(number):
            output = f"{log_output()}\nthread {number}"
            ref = shown_id(here.result(output, session=f"s{number % 3}"))
            shown[number] = (ref, output)

        with_host = host()

        def run(number):
            with using(with_host):
                work(number)

        threads = [threading.Thread(target=run, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({ref for ref, _ in shown.values()}) == 12
        for number, (ref, output) in shown.items():
            assert here.host.gate.session(f"s{number % 3}").original(ref).text == output

    def test_a_fault_is_counted_and_nothing_is_raised(self, here):
        @fail_open
        def hook():
            raise RuntimeError("boom")

        assert hook() is None
        assert hook() is None
        assert here.host.faults == {"hook: RuntimeError": 2}


class TestTools:
    def test_the_schemas_offered_by_default_take_at_most_400_tokens(self):
        schemas = [{"type": "function", "function": each} for each in offered(DEFAULT_HERMES_TOOLS)]
        assert [each["function"]["name"] for each in schemas] == ["turngate_retrieve", "turngate_search"]
        assert count_exact(json.dumps(schemas)) <= 400

    @pytest.mark.parametrize("name", NAMES)
    def test_schemas_are_closed_and_begin_with_a_short_sentence(self, name):
        made = schema(name)
        assert made["parameters"]["additionalProperties"] is False
        assert len(made["description"].split(". ")[0]) < 60
        assert name in tools.TOOLS

    def test_the_setting_chooses(self):
        assert [each["name"] for each in offered(("stats", "nothing"))] == ["turngate_stats"]
        assert len(offered(("all",))) == len(NAMES) == len(tools.TOOLS)

    @pytest.mark.parametrize("name", [name for name in NAMES if name != "test"])
    def test_a_tool_answers_json_whatever_it_is_asked(self, here, name):
        for args in (
            None,
            {},
            {"hash": 3, "lines": "x", "names": [1], "paths": "nope", "query": "", "page": 99},
        ):
            assert isinstance(json.loads(tools.call(f"turngate_{name}", args, session_id="s")), dict)
        assert not here.host.faults

    def test_each_tool_tells_what_it_is_there_for(self, here, monkeypatch):
        monkeypatch.chdir(here.folder)
        (here.folder / "a.py").write_text("x = 1\n" * 400)
        ref = shown_id(here.result(log_output(900)))
        assert checks.ERROR in here.ask("retrieve", hash=ref, pattern="spoon")["text"]
        assert here.ask("retrieve", path="a.py", lines="1-2")["text"] == "x = 1\nx = 1\n"
        assert here.ask("retrieve", hash=ref, lines=[2, 3])["lines"] == "2-3"
        stored = here.ask("compress", content="hello " * 50, type="note")
        assert here.ask("retrieve", hash=stored["hash"])["text"] == "hello " * 50
        assert stored["marker"].startswith(f"<<<CCR:{stored['hash']}|context|")
        nested = here.ask("compress", content=f"see <<<CCR:{ref}|tool|9|inline>>> there")["hash"]
        assert checks.NEEDLE in here.ask("retrieve", hash=nested, expand=True, pattern="needle")["text"]
        assert here.ask("retrieve", hash=nested)["total_lines"] == 1
        assert ref in here.ask("catalog")["shortened"][0]
        assert here.ask("catalog", mode="toc")["shortened"] == 1
        assert here.ask("history")["calls"][0] == {
            "turn": 0,
            "call": "terminal: make",
            "ok": False,
            "error": checks.ERROR,
        }
        assert here.ask("stats")["session"]["total"]["shortened"] == 1
        (fetched,) = here.ask("prefetch", paths=["a.py"])["files"]
        assert here.ask("retrieve", hash=fetched["hash"], lines="1")["text"] == "x = 1\n"
        assert here.ask("prefetch_status")["loaded"] == ["turngate_prefetch: a.py"]
        assert here.ask("reclassify", hash=ref)["kinds"][0]["is"] in {"log", "text", "test"}
        assert "explore" in here.ask("directive", action="list")["available"]
        assert here.ask("directive", action="swap", names=["explore"])["active"] == ["explore"]
        assert "no action" in here.ask("directive", action="burn")["error"]
        hooks.transform_tool_result(
            tool_name="write_file",
            args={"path": "b.py"},
            result='{"ok": 1}',
            session_id=checks.SESSION,
            tool_call_id="c",
        )
        assert here.ask("files")["files"][0] == {
            "path": "b.py",
            "read": False,
            "written": True,
            "stale": False,
        }


class TestPlugin:
    class Context:
        def __init__(self):
            self.hooks, self.tools, self.commands = [], [], []

        def register_hook(self, name, callback):
            self.hooks.append(name)

        def register_tool(self, **tool):
            self.tools.append(tool["name"])

        def register_command(self, name, *_):
            self.commands.append(name)

    def test_the_manifest_lists_what_is_registered(self, tmp_path, monkeypatch):
        monkeypatch.setenv("TURNGATE_CONFIG", str(tmp_path / "none.toml"))
        context = self.Context()
        plugin.register(context)
        text = plugin_yaml()
        assert listed(text, "provides_hooks") == context.hooks
        assert listed(text, "provides_tools") == context.tools
        assert "\nkind: standalone\n" in text
        assert context.commands == ["turngate"]

    def test_every_registered_hook_and_tool_exists(self):
        assert all(callable(getattr(hooks, name)) for name in (*plugin.HOOKS, *plugin.TERMINAL_HOOKS))


def test_the_block_never_grows_so_large_that_the_host_puts_it_into_a_file(tmp_path, monkeypatch):
    monkeypatch.setenv("TURNGATE_FLOW_BUDGET_CHARS", "50000")
    monkeypatch.setenv("TURNGATE_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TURNGATE_PROMPTS_SESSION_INJECT", "a word or two\n" * 4_000)
    with using(_of_this_process.__wrapped__()):
        block = hooks.pre_llm_call(session_id="s", turn_id="t", user_message="go")
    assert 9_000 < len(block.encode()) < 10_000


def test_the_smoke_test_is_a_tool(here):
    report = json.loads(tools.call("turngate_test", {"mode": "quick"}, session_id="s"))
    assert (report["ok"], report["mode"]) == (True, "quick")
    assert report["checks"] >= 9


def plugin_yaml():
    return files("turngate").joinpath("hermes/plugin.yaml").read_text()


def listed(text, key):
    block = text.split(f"{key}:\n")[1]
    names = []
    for line in block.splitlines():
        if not line.startswith("  - "):
            break
        names.append(line[4:])
    return names


class TestSmoke:
    @pytest.mark.parametrize(
        ("mode", "least"), [("quick", 9), ("full", 13), ("matrix", 36), ("pipeline", 20)]
    )
    def test_a_mode_runs_its_checks_and_all_succeed(self, mode, least):
        report = smoke.run(mode)
        assert report.ok, report.as_dict()["failed"]
        assert len(report.outcomes) >= least

    @pytest.mark.parametrize("said", [False, "no", 0, True, ""])
    def test_a_check_that_returns_anything_but_none_fails(self, said):
        assert not smoke.attempt("check", lambda _: said).ok

    def test_a_check_that_raises_or_leaves_a_fault_fails(self):
        def fault(bench):
            bench.host.fault("hook", ValueError())

        assert not smoke.attempt("check", lambda _: 1 / 0).ok
        assert not smoke.attempt("check", fault).ok

    @pytest.mark.parametrize(
        "check", [*checks.QUICK, *checks.FULL, *checks.ALWAYS], ids=lambda check: check.__name__
    )
    def test_every_check_can_fail(self, check, monkeypatch):
        """With the plugin's doors shut, or wide open, no check says that all is well."""
        shut = dict.fromkeys(("transform_tool_result", "pre_llm_call"), lambda **_: None)
        for name, hook in shut.items():
            monkeypatch.setattr(hooks, name, hook)
        with_all = smoke.attempt(check.__name__, check)
        monkeypatch.undo()
        monkeypatch.setattr(
            hooks, "transform_tool_result", lambda *, result="", **_: f"<<<CCR:{'0' * 16}|tool|1|inline>>>"
        )
        monkeypatch.setattr(hooks, "pre_llm_call", lambda **_: "x" * 20_000)
        monkeypatch.setattr(checks, "read_confined", lambda *_: "")
        monkeypatch.setattr(checks, "compact", lambda *_: None)
        monkeypatch.setattr(checks, "offered", lambda _: [schema("retrieve")] * 9)
        monkeypatch.setattr(hooks, "on_session_start", lambda *, session_id="": None)
        wide = smoke.attempt(check.__name__, check)
        assert not (with_all.ok and wide.ok)

    def test_the_pipeline_tells_what_went_wrong_since_the_last_run(self, tmp_path, monkeypatch):
        file = tmp_path / smoke.RESULTS_FILE
        monkeypatch.setattr(smoke, "_RUNS", smoke._RUNS | {"pipeline": lambda: [smoke.Outcome("a", ok=True)]})
        assert smoke.run("pipeline", file).regressed == ()
        monkeypatch.setattr(
            smoke, "_RUNS", smoke._RUNS | {"pipeline": lambda: [smoke.Outcome("a", ok=False)]}
        )
        assert smoke.run("pipeline", file).regressed == ("a",)
        assert smoke.run("pipeline", file).regressed == ()


def test_every_setting_of_the_plugin_can_come_from_the_environment():
    known = load(
        environ={"TURNGATE_CONTEXT_ENGINE": "1", "TURNGATE_HERMES_TOOLS": "...,stats", "TURNGATE_CONFIG": ""}
    )
    assert known.context_engine
    assert known.hermes.tools == ("retrieve", "search", "stats")


class TestResultsInView:
    """A result is shown by reference only to those that the last request had in view as they were shown."""

    FILE = "".join(f"    x_{n} = compute(x_{n - 1}, {n * 37 % 101})\n" for n in range(1, 81))

    def read(self, call):
        result = json.dumps({"content": self.FILE, "total_lines": 80})
        shown = hooks.transform_tool_result(
            tool_name="read_file", args={"path": "a.py"}, result=result, session_id="s", tool_call_id=call
        )
        return result if shown is None else shown

    def request(self, **contents):
        messages = [
            {"role": "tool", "tool_call_id": call, "content": text} for call, text in contents.items()
        ]
        hooks.pre_api_request(session_id="s", request_messages=[{"role": "user", "content": "go"}, *messages])

    def test_a_file_that_stands_in_the_last_request_is_named(self, here):
        first = self.read("c1")
        assert json.loads(first)["content"] == self.FILE
        self.request(c1=first)
        again = json.loads(self.read("c2"))
        assert marker.parse(again["content"]).get("of") == "c1"
        assert again["total_lines"] == 80

    def test_one_that_the_host_has_cleared_or_dropped_is_shown_anew(self, here):
        self.request(c1=self.read("c1"))
        self.request(c1="[cleared]")
        assert json.loads(self.read("c2"))["content"] == self.FILE
        self.request()
        assert json.loads(self.read("c3"))["content"] == self.FILE

    def test_of_calls_that_run_side_by_side_none_is_named(self, here):
        self.request()
        assert self.read("c1") == self.read("c2")

    def test_of_an_object_an_object_is_left(self, here):
        result = json.dumps({"rows": [{"id": n, "name": f"row {n}"} for n in range(18)]})
        call = {"tool_name": "web", "args": {}, "result": result, "session_id": "s"}
        assert hooks.transform_tool_result(**call, tool_call_id="c1") is None
        self.request(c1=result)
        shown = json.loads(hooks.transform_tool_result(**call, tool_call_id="c2"))
        assert marker.parse(shown[MARKER_KEY]).mode == "same"
        assert Results([{"role": "tool", "tool_call_id": "c1", "content": result}])["c1"] == result
