"""Token estimates stay near exact counts for every class of content; calibration follows what is reported."""

import base64
import json
import random
import string
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate import tokens
from turngate.errors import TurngateError
from turngate.tokens import Calibration, count_exact, estimate, estimate_media

RNG = random.Random(20)  # one fixed seed: the samples are data
WORDS = [
    "the",
    "a",
    "build",
    "server",
    "request",
    "answer",
    "table",
    "returns",
    "error",
    "when",
    "value",
    "of",
]


def _prose(words: int) -> str:
    return " ".join(RNG.choice(WORDS) for _ in range(words)) + "."


SAMPLES = {
    "prose": _prose(900),
    "code": "def parse(self, text: str) -> int:\n    if not text.strip():\n        return self.default\n"
    * 40,
    "json": json.dumps([{"id": n, "name": f"user{n}", "active": n % 2 == 0} for n in range(200)]),
    "log": "\n".join(f"2026-11-30T08:{n % 60:02}:07Z INFO worker-{n} {_prose(8)}" for n in range(200)),
    "chinese": "系统在处理请求时发生错误,请检查网络连接后重试。" * 40,
    "base64": base64.b64encode(RNG.randbytes(6000)).decode(),
    "hex": RNG.randbytes(3000).hex(),
    "digits": "".join(RNG.choice(string.digits) for _ in range(4000)),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_an_estimate_is_within_a_third_for_each_class_of_content(name):
    exact = count_exact(SAMPLES[name])
    assert abs(estimate(SAMPLES[name]) - exact) <= exact / 3


def test_estimates_are_within_a_fifth_where_agents_spend_their_tokens():
    for name in ("prose", "code", "json", "log"):
        exact = count_exact(SAMPLES[name])
        assert abs(estimate(SAMPLES[name]) - exact) <= exact / 5, name


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_has_an_estimate_between_one_and_its_bytes(text):
    size = len(text.encode("utf-8", "surrogatepass"))
    assert (estimate(text) == 0) == (text == "")
    assert estimate(text) <= 2 * size
    assert estimate(text) >= bool(text)


@given(st.binary(max_size=5000))
def test_any_bytes_have_an_estimate(data):
    assert estimate(data) >= bool(data)


def test_bytes_and_their_text_are_estimated_alike():
    for text in SAMPLES.values():
        assert estimate(text.encode()) == pytest.approx(estimate(text), rel=0.15)


@pytest.mark.parametrize("times", [10, 1000])
def test_an_estimate_grows_with_the_text(times):
    unit = SAMPLES["log"]
    assert estimate(unit * times) == pytest.approx(estimate(unit) * times, rel=0.05)


ratios = st.floats(0.3, 4.0)


@given(ratios, st.lists(st.integers(1_000, 200_000), min_size=1, max_size=20))
def test_with_a_steady_ratio_the_first_report_brings_every_later_estimate_within_three_percent(ratio, sizes):
    calibration = Calibration()
    for size in sizes:
        calibration.observe("m", size, round(size * ratio))
        assert calibration.factor("m") == pytest.approx(ratio, rel=0.03)


@given(ratios, st.integers(1, 10**9))
def test_one_odd_report_moves_a_known_factor_by_less_than_a_tenth(ratio, odd):
    calibration = Calibration()
    calibration.observe("m", 100_000, round(100_000 * ratio))
    known = calibration.factor("m")
    calibration.observe("m", 10_000, odd)
    assert calibration.factor("m") == pytest.approx(known, rel=0.1)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-5, 10**6), st.integers(-5, 10**6))))
def test_calibration_survives_a_trip_through_json_and_stays_usable(reports):
    calibration = Calibration()
    for model, estimated, reported in reports:
        calibration.observe(model, estimated, reported)
    again = Calibration.from_dict(json.loads(json.dumps(calibration.to_dict())))
    assert again == calibration
    assert all(0.2 <= calibration.factor(model) <= 5 for model in "abc")


def test_models_are_calibrated_apart_and_an_unknown_one_is_not_corrected():
    calibration = Calibration()
    calibration.observe("large", 100, 130)
    assert calibration.estimate(SAMPLES["prose"], "large") == round(estimate(SAMPLES["prose"]) * 1.3)
    assert calibration.estimate(SAMPLES["prose"], "small") == estimate(SAMPLES["prose"])


def test_unusable_factors_are_left_out_when_read_back():
    data = {"a": 1.2, "b": float("nan"), "c": -1, "d": "x", "e": 99.0, "f": None}
    assert Calibration.from_dict(data).to_dict() == {"a": 1.2}


def test_the_exact_count_is_that_of_the_vocabulary_also_in_pieces():
    encode = tokens._encoder()
    text = SAMPLES["log"] * 8
    assert len(text) > tokens._EXACT_CHARS
    assert count_exact(text) == len(encode(text))


@pytest.mark.parametrize("text", ["a" * 300_000, "é中😀" * 60_000, "\ud800" * 10, ""])
def test_texts_the_encoder_refuses_at_once_are_counted(text):
    assert (count_exact(text) > 0) == (text != "")


def test_exact_counting_without_its_extra_says_what_to_install(monkeypatch):
    tokens._encoder.cache_clear()
    monkeypatch.setitem(sys.modules, "bpe_openai", None)
    with pytest.raises(TurngateError, match=r"turngate\[tokens\]"):
        count_exact("x")
    tokens._encoder.cache_clear()


def test_media_cost_is_fixed_and_never_that_of_their_encoding():
    assert estimate_media("image", provider="anthropic") == 1600
    assert estimate_media("image") == estimate_media("image", provider="unheard of") == 1600
    assert estimate_media("file", provider="google", pages=3) == 3 * estimate_media("file", provider="google")
    assert estimate_media("audio", provider="anthropic") > 0
    assert estimate_media("hologram") == estimate_media("file")
