"""`turngate demo`, and the recording it plays."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from turngate.cli import demo as demo_module


@pytest.fixture(scope="module")
def recording():
    return demo_module.load_recording()


class TestRecording:
    def test_it_has_at_least_forty_results_each_with_its_call(self, recording):
        results = list(demo_module.recorded_results(recording))
        assert len(results) >= 40
        assert all(json.loads(result.args) for result in results)

    def test_it_does_not_say_where_it_was_recorded(self, recording):
        text = json.dumps(recording)
        assert not re.findall(r"/tmp/turngate-record|/root/|/work/|file:///|https?://[^\s\"/]*@", text)


class TestDemo:
    def test_it_shows_each_result_totals_and_an_identical_round_trip(self, run, data_dir, recording):
        done = run("demo")
        assert done.code == 0
        assert re.search(r"^round trip: [0-9a-f]{16} \d+ bytes identical$", done.text, re.MULTILINE)
        count = len(list(demo_module.recorded_results(recording)))
        assert f"{count} tool results" in done.text
        assert "estimates" in done.text
        assert "net of markers" in done.text
        assert len(done.text.splitlines()) > count
        assert not data_dir.exists()

    def test_it_compares_the_policies_and_writes_a_report_where_it_says(self, run, tmp_path):
        done = run("demo", "--html", tmp_path / "r.html")
        assert f"report: {tmp_path}/r.html" in done.text.splitlines()
        assert "demo session" in (tmp_path / "r.html").read_text()
        assert all(f"\n{policy} " in done.text for policy in ("none", "head-tail", "mask", "turngate"))

    def test_the_report_goes_to_the_folder_for_temporary_files(self, run, tmp_path, monkeypatch):
        monkeypatch.setattr(demo_module.tempfile, "tempdir", str(tmp_path))
        report = Path(run("demo", "--json").json["report"])
        assert report.parent == tmp_path
        assert "demo session" in report.read_text()

    def test_json_has_the_same(self, run):
        value = run("demo", "--json").json
        assert value["policies"]["turngate"]["breaks"] == 0
        assert value["policies"]["turngate"]["providers"]["anthropic"]["share_above_none"] < 0
        assert value["round_trip"]["identical"] is True
        assert value["total"]["faults"] == {}
        rows = value["results"]
        assert sum(row["tokens_before"] for row in rows) == value["total"]["total"]["tokens_before"]
        assert sum(row["tokens_after"] for row in rows) == value["total"]["total"]["tokens_after"]

    @pytest.mark.parametrize(
        ("preview", "hidden"),
        [
            ("42 of 1,204 lines", "1,162 of 1,204 lines"),
            ("3 of 3 values, 62 of 452 lines", "390 of 452 lines"),
            ("6 of 6 lines", ""),
            ("", ""),
        ],
    )
    def test_what_is_hidden_is_read_from_the_marker(self, preview, hidden):
        assert demo_module._hidden(preview) == hidden

    def test_a_result_that_comes_back_changed_fails(self, run, monkeypatch):
        monkeypatch.setattr(demo_module.store, "to_bytes", lambda text: text.encode() + b"!")
        done = run("demo")
        assert done.code == 1
        assert "DIFFERENT" in done.text
