from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngate import turn
from turngate.turn import (
    append_notes_to_multimodal_content,
    compose_user_api_content,
    drop_stale_api_content,
    extract_api_content_sidecar,
    fence_memory,
    outgoing,
    reanchor_current_turn_user_idx,
    sanitise,
    substitute_api_content,
)

IMAGE = {"type": "image_url", "image_url": {"url": "u"}}


@settings(deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_cleaned_text_can_be_encoded_and_stored_and_cleaning_it_again_changes_nothing(text):
    clean = sanitise(text)
    clean.encode()
    assert "\x00" not in clean
    assert sanitise(clean) is clean
    assert len(clean) <= len(text)


@settings(deadline=None)
@given(st.text())
def test_text_that_is_clean_is_the_same_object(text):
    plain = text.replace("\x00", "")
    assert sanitise(plain) is plain
    parts = [{"type": "text", "text": plain}, IMAGE]
    assert sanitise(parts) is parts


def test_surrogates_that_make_a_pair_become_their_character():
    assert sanitise("\ud83d\ude00 \ud83d") == "\U0001f600 \ufffd"


def test_parts_are_cleaned_in_a_new_list():
    parts = [{"type": "text", "text": "a\x00"}, IMAGE]
    assert sanitise(parts) == [{"type": "text", "text": "a"}, IMAGE]
    assert parts[0]["text"] == "a\x00"


@pytest.mark.parametrize(
    ("content", "memory", "plugin", "sent"),
    [
        ("hi", "", "", None),
        ("hi", "  ", "", None),
        ([IMAGE], "m", "p", None),
        (None, "m", "p", None),
        ("hi", "", "p", "hi\n\np"),
        ("hi", "m", "p", "hi\n\n<memory-context>\nm\n</memory-context>\n\np"),
        ("", "", "p", "\n\np"),
    ],
)
def test_a_user_message_is_composed_of_words_memory_and_what_is_injected(content, memory, plugin, sent):
    assert compose_user_api_content(content, memory, plugin) == sent


@settings(deadline=None)
@given(st.text())
def test_memory_cannot_close_its_own_fence(text):
    assert fence_memory(f"{text}</memory-context>").count("</memory-context>") == 1


@pytest.mark.parametrize(
    ("message", "answer", "content"),
    [
        ({"role": "user", "content": "a", "api_content": "b"}, "b", "b"),
        ({"role": "assistant", "content": "a", "api_content": "b"}, "b", "b"),
        ({"role": "tool", "content": "a", "api_content": "b"}, "b", "a"),
        ({"role": "user", "content": "a", "api_content": ""}, "", "a"),
        ({"role": "user", "content": "a", "api_content": ["b"]}, None, "a"),
        ({"role": "user", "content": "a"}, None, "a"),
    ],
)
def test_a_sidecar_is_sent_in_place_of_the_content_and_never_left_behind(message, answer, content):
    assert substitute_api_content(message) == answer
    assert message["content"] == content
    assert "api_content" not in message


def test_a_stale_sidecar_goes_and_a_good_one_is_read():
    message = {"role": "user", "content": "a", "api_content": "b"}
    assert extract_api_content_sidecar(message) == "b"
    drop_stale_api_content(message)
    assert message == {"role": "user", "content": "a"}
    assert extract_api_content_sidecar(message) is None
    assert extract_api_content_sidecar({"api_content": 3}) is None


def test_notes_become_a_part_of_a_message_with_an_image():
    content = [IMAGE]
    assert append_notes_to_multimodal_content(content, "n")
    assert content == [IMAGE, {"type": "text", "text": "n"}]


@pytest.mark.parametrize(("content", "notes"), [([IMAGE], ""), ("text", "n"), (None, "n"), ((), "n")])
def test_nothing_is_appended_where_there_is_nothing_or_no_list(content, notes):
    before = copy.copy(content)
    assert not append_notes_to_multimodal_content(content, notes)
    assert content == before


def test_what_goes_out_has_no_private_keys_and_the_list_is_as_it_was():
    messages = [{"role": "user", "content": "a", "api_content": "b", "_turn_id": "t"}]
    kept = copy.deepcopy(messages)
    assert outgoing(messages) == [{"role": "user", "content": "b"}]
    assert messages == kept


USER = {"role": "user", "content": "fix it"}
QUOTE = {"role": "user", "content": "Summary: the user wrote 'fix it' and meant the build."}
OTHER = {"role": "user", "content": "todo: 1. test"}
ANSWER = {"role": "assistant", "content": "fix it"}
MERGED = {"role": "user", "content": "Summary: much was said.\n\nfix it"}


@pytest.mark.parametrize(
    ("messages", "index"),
    [
        ([], -1),
        ([ANSWER], -1),
        ([USER], 0),
        ([USER, ANSWER, USER, ANSWER], 2),
        ([USER, ANSWER, OTHER], 0),
        ([QUOTE, ANSWER, USER], 2),
        ([USER, ANSWER, QUOTE], 0),
        ([OTHER, ANSWER, QUOTE], 0),
        ([QUOTE], -1),
        ([MERGED, ANSWER, OTHER], 0),
        ([OTHER, ANSWER], 0),
        ([{"role": "user", "content": [{"type": "text", "text": "fix it"}]}, ANSWER, OTHER], 0),
        ([None, "x", USER], 2),
    ],
)
def test_the_turn_s_message_is_found_again_and_a_summary_that_quotes_it_is_not_taken_for_it(messages, index):
    assert reanchor_current_turn_user_idx(messages, "fix it") == index


def test_the_message_itself_and_a_stamped_copy_go_before_equal_content():
    same = dict(USER)
    assert reanchor_current_turn_user_idx([same, ANSWER, dict(USER)], "fix it", message=same) == 0
    stamped = USER | {"_turn_id": "t"}
    copied = stamped | {"content": "rewritten"}
    assert reanchor_current_turn_user_idx([copied, ANSWER, USER], "fix it", message=stamped) == 0


def test_a_message_of_parts_is_found_by_its_parts():
    parts = [IMAGE, {"type": "text", "text": "what?"}]
    messages = [{"role": "user", "content": list(parts)}, ANSWER, OTHER]
    assert reanchor_current_turn_user_idx(messages, parts) == 0


@pytest.mark.parametrize(
    "name", [name for name in vars(turn) if name.startswith("_") and name[1:] in turn.__all__]
)
def test_the_names_with_an_underscore_are_the_same_functions(name):
    assert getattr(turn, name) is getattr(turn, name[1:])


def test_the_underscored_names_of_the_seed_are_there():
    assert turn._compression_made_progress
    assert turn._should_run_preflight_estimate
