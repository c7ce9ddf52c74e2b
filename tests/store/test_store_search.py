from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngate.settings import StoreSettings
from turngate.store import best_lines, line_count, render_hits, split_lines, to_bytes

LOG = "\n".join(f"2025-03-04 10:00:{n % 60:02d} INFO worker-{n} finished batch {n * 7}" for n in range(3_000))
ODD = "2025-03-04 10:31:07 ERROR ledger mismatch: 1048.30 against 1048.03 in src/app/ledger.py:88"


def with_line(text, line, at):
    lines = split_lines(text)
    return "\n".join((*lines[:at], line, *lines[at:]))


def shown(hits):
    return [text for hit in hits for _, text in hit.lines]


@pytest.mark.parametrize(
    "question",
    [
        "Why did the ledgers mismatch?",
        "what is wrong in src/app/ledger.py?",
        "`1048.30 against ____`",
        "ledger.py:88",
        'what follows "ERROR ledger mismatch:"',
    ],
)
def test_a_question_in_plain_words_brings_the_line_first(store, question):
    store.put(to_bytes(with_line(LOG, ODD, 1_700)), session="s", turn=4, tool="bash", kind="log")
    [hit] = store.search(question, session="s")
    assert (hit.turn, hit.tool, hit.kind, hit.total_lines) == (4, "bash", "log", 3_001)
    assert (1_701, ODD) in hit.lines[:10]
    assert ODD in render_hits([hit])


@given(at=st.integers(0, 2_999), tail=st.booleans())
@settings(max_examples=10, deadline=None)
def test_lines_carry_their_own_numbers(tmp_path_factory, at, tail):
    from turngate.store import SqliteStore  # noqa: PLC0415

    store = SqliteStore(tmp_path_factory.mktemp("s") / "s.db")
    text = with_line(LOG, ODD, at) + "\n" * tail
    store.put(to_bytes(text), session="s")
    [hit] = store.search("ledger mismatch", session="s")
    lines = split_lines(text)
    for number, shown_line in hit.lines:
        assert lines[number - 1].startswith(shown_line.removesuffix("…")), "the last one may be cut"
    assert (at + 1, ODD) in hit.lines
    store.close()


@given(
    at=st.integers(0, 2_999), word=st.sampled_from(["ledger mismatch", "'1048.30 against'", "ledger.py:88"])
)
@settings(max_examples=10, deadline=None)
def test_the_line_that_has_all_words_is_named_as_the_match(tmp_path_factory, at, word):
    from turngate.store import SqliteStore  # noqa: PLC0415

    store = SqliteStore(tmp_path_factory.mktemp("s") / "s.db")
    store.put(to_bytes(with_line(LOG, ODD, at)), session="s")
    [hit] = store.search(word, session="s")
    store.close()
    assert hit.matches == ((at + 1, 1.0),)
    assert f"; {at + 1} matches]" in render_hits([hit])
    for count in (1, 3, 6):
        [run] = best_lines(hit, count)
        assert (at + 1, ODD) in run
        assert len(run) == min(count, len(hit.lines))
        assert abs(run[0][0] - at - 1) <= count


def test_of_few_lines_the_matching_ones_come_before_their_neighbours(store):
    text = with_line(with_line(LOG, ODD, 100), ODD, 2_000)
    store.put(to_bytes(text), session="s")
    [hit] = store.search("ledger mismatch", session="s")
    assert {number for number, _ in hit.matches} == {101, 2_001}
    assert sorted(run[0][0] for run in best_lines(hit, 2)) == [101, 2_001]
    assert best_lines(replace(hit, matches=()), 3) == [list(hit.lines[:3])]
    assert best_lines(replace(hit, lines=()), 3) == []


def test_the_weaker_a_match_is_the_smaller_is_the_share_that_it_says(store):
    store.put(to_bytes(with_line(LOG, "the ledger is old", 40)), session="s")
    [hit] = store.search("ledger mismatch zebra", session="s")
    assert hit.matches[0][0] == 41
    assert 0 < hit.matches[0][1] < 0.5


@pytest.mark.parametrize(
    "query",
    ["ledger mismatch", "`1048.30 against ____`", "worker-1613", "occurrence #30 of `finished batch`"],
)
def test_an_exact_answer_is_not_filled_up_with_weak_passages(store, query):
    store.put(to_bytes(with_line(LOG, ODD, 1_700)), session="s")
    store.put(to_bytes("\n".join(f"the ledger of worker number {n}" for n in range(900))), session="s")
    hits = store.search(query, session="s")
    assert len(hits) == 1
    assert len(render_hits(hits)) < 1_200


def test_where_words_alone_tell_little_more_is_shown(store):
    store.put(to_bytes(with_line(LOG, ODD, 1_700)), session="s")
    hits = store.search("which worker's ledger was blamed for the mismatch on tuesday?", session="s")
    assert len(render_hits(hits)) > 4_000


def test_a_json_path_is_answered_by_its_value_alone_in_every_content_that_has_it(store):
    for tail in ("", ', "other": "value name item"'):
        rows = ",".join(f'{{"id": {n}, "name": "item {n}"}}' for n in range(900))
        store.put(f'{{"items": [{rows}]{tail}}}'.encode(), session="s")
    hits = store.search("What is the value at $.items[17].name?", session="s")
    assert [[text.strip("…") for _, text in hit.lines] for hit in hits] == [['"item 17"']] * 2
    assert [hit.matches for hit in hits] == [((1, 1.0),)] * 2


def test_what_is_cut_for_want_of_room_still_has_the_match(store):
    wide = [f"{n} " + "x" * 400 for n in range(200)]
    store.put(to_bytes("\n".join([*wide[:100], "needle", *wide[100:]])), session="s")
    for limit in (300, 600, 1_500):
        assert "needle" in shown(store.search("needle", session="s", limit_chars=limit))


def test_answers_stay_within_the_characters_asked_for(store):
    for number in range(5):
        store.put(to_bytes(with_line(LOG, ODD, number)), session="s")
    store.put(to_bytes("ledger " * 400_000), session="s")
    for limit in (500, 8_000, 30_000):
        hits = store.search("ledger mismatch", session="s", limit_chars=limit)
        assert hits
        assert len("\n".join(shown(hits))) <= limit
        assert len(render_hits(hits, limit)) <= limit
        assert ODD in shown(hits)


def test_the_end_is_shown_when_the_end_is_asked_for(store):
    store.put(to_bytes(LOG + "\nall 3000 batches done"), session="s")
    [hit] = store.search("What is the last line?", session="s")
    assert (3_001, "all 3000 batches done") in hit.lines[:12]


def test_a_json_path_is_answered_by_its_value(store):
    rows = ",".join(f'{{"id": {n}, "name": "item {n}"}}' for n in range(5_000))
    store.put(f'{{"items": [{rows}]}}'.encode(), session="s")
    [hit] = store.search("What is the value at $.items[3217].name?", session="s")
    assert "item 3217" in hit.lines[0][1]


def test_an_occurrence_is_counted(store):
    lines = [f"error: unused\n  --> file{n}.rs:{n}" for n in range(400)]
    store.put("\n".join(lines).encode(), session="s")
    [hit] = store.search("Where is `error: unused` reported, occurrence #321?", session="s")
    assert "  --> file320.rs:320" in shown([hit])[:4]


@pytest.mark.parametrize(
    ("question", "row"),
    [
        ("Which city has the largest population?", '"City, the 17th",990017'),
        ("the lowest population value", "City 400,-3"),
        ("smallest Population density", None),
    ],
)
def test_an_extreme_of_a_column_brings_its_row(store, question, row):
    rows = [f"City {n},{100_000 + n}" for n in range(2_000)]
    rows[17], rows[400], rows[900] = '"City, the 17th",990017', "City 400,-3", '"' + "x" * 200_000
    store.put("\n".join(["City,Population", *rows]).encode(), session="s")
    [hit] = store.search(question, session="s")
    assert row is None or row in [text for _, text in hit.lines[:10]]


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("前言\n数据库连接失败:超时\n结束", "连接失败"),
        ("はじめ\nデータベース接続に失敗しました\nおわり", "接続に失敗"),
        ("начало\nОшибка соединения с базой\nконец", "ошибка соединения"),
        ("a\nÜBERGRÖSSE erreicht\nb", "übergröße übergrösse"),
    ],
)
def test_other_scripts_are_found_too(store, text, question):
    store.put(to_bytes("unrelated text"), session="s")
    wanted = store.put(to_bytes(text), session="s")
    assert store.search(question, session="s")[0].id == wanted.id


@given(query=st.text(max_size=80) | st.text(st.sampled_from("\"'`*()^:-+{}$.[]_ ORANDNEAR…ab1"), max_size=60))
@settings(max_examples=80, deadline=None)
def test_no_query_is_an_error(shared_store, query):
    assert isinstance(shared_store.search(query, session="s"), list)


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory):
    from turngate.store import SqliteStore  # noqa: PLC0415

    store = SqliteStore(tmp_path_factory.mktemp("s") / "s.db")
    store.put(b'some (odd) text: a1 OR b* AND $.x[0] \xff\n{"a": [1, {"b": null}]}', session="s")
    yield store
    store.close()


def test_search_keeps_to_the_session_unless_told_otherwise(store):
    mine = store.put(b"needle of mine", session="a").id
    theirs = store.put(b"needle of theirs", session="b").id
    assert [hit.id for hit in store.search("needle", session="a")] == [mine]
    assert {hit.id for hit in store.search("needle", session="a", all_sessions=True)} == {mine, theirs}
    assert [hit.session for hit in store.search("needle", session="b")] == ["b"]


def test_what_brought_a_content_about_finds_it(store):
    wanted = store.put(b"3 passed", session="s", call='bash({"command": "pytest tests/wire -x"})')
    store.put(b"error: tests/wire is not a package", session="s", call='bash({"command": "ls"})')
    hits = store.search("What did `pytest tests/wire -x` end with?", session="s")
    assert hits[0].id == wanted.id


def test_writing_does_not_wait_for_the_index_and_searching_fills_it(store):
    store.put(b"needle", session="s")
    assert store.stats().pending == 1
    assert len(store.search("needle", session="s")) == 1
    assert store.stats().pending == 0
    assert store.drain() == 0


def test_a_content_that_cannot_be_indexed_is_found_by_reading_it(make_store):
    store = make_store(StoreSettings(max_bytes=1024**2))
    store.put(b"needle in a store whose limit is reached", session="s")
    store._index._max_bytes = 0
    assert len(store.search("needle", session="s")) == 1
    assert store.stats().pending == 1


def test_a_text_with_too_many_words_to_index_is_searched_to_its_end(store, monkeypatch):
    monkeypatch.setattr("turngate.store.words.MAX_WORDS", 50)
    store.put(to_bytes(with_line(LOG, ODD, 2_900)), session="s")
    assert ODD in shown(store.search("ledger mismatch", session="s"))


def test_secrets_are_neither_found_nor_shown_but_retrieved(store):
    key = "AKIA" + "ABCDEFGH12345678"
    text = f"config\naws_id {key}\nregion eu-central-1\n"
    stored = store.put(text.encode(), session="s", call=f"show {key}")
    assert store.search(key, session="s") == []
    [hit] = store.search("aws region", session="s")
    assert (2, "aws_id [redacted:aws-key]") in hit.lines
    assert store.get(stored.id).text == text
    assert key.encode() not in b"".join(
        call.encode()
        for (call,) in store._connections.maintain(
            lambda conn: conn.execute("SELECT call FROM sighting").fetchall()
        )
    )


def test_a_redactor_that_joins_lines_leaves_numbers_true(make_store):
    store = make_store(redactor=lambda text: text.replace("a\nb", "[x]").replace("secret", "two\nlines"))
    store.put(b"a\nb\nsecret\nneedle\n", session="s")
    [hit] = store.search("needle", session="s")
    assert (4, "needle") in hit.lines
    assert hit.total_lines == 4


def test_with_redaction_on_what_is_stored_is_the_redacted_text(make_store):
    store = make_store(StoreSettings(redact=True))
    text = "password=hunter2hunter2\nrest \udcff"
    stored = store.put(text.encode("utf-8", "surrogateescape"), session="s")
    original = store.get(stored.sha256)
    assert stored.redacted
    assert original.redacted
    assert original.data == b"password=[redacted:assigned]\nrest \xff"
    plain = store.put(b"nothing to hide", session="s")
    assert not plain.redacted
    assert not store.get(plain.id).redacted


def test_huge_lines_and_many_lines_are_searched_in_bounded_pieces(store):
    store.put(b"x" * 3_000_000 + b" needle " + b"y" * 3_000_000, session="s")
    store.put(b"\n" * 1_000_000 + b"needle", session="s")
    hits = store.search("needle", session="s")
    assert {hit.total_lines for hit in hits} == {1, 1_000_001}
    assert all(any("needle" in text for _, text in hit.lines) for hit in hits)
    assert max(line_count(render_hits([hit])) for hit in hits) < 9_000
