"""Texts to shorten: strategies for random ones, and builders of ordinary ones."""

import json
import random

from hypothesis import strategies as st

WORDS = [
    "worker",
    "copied",
    "chunk",
    "done",
    "error",
    "GET",
    "/api/v1/items",
    "ok",
    "ärger",
    "数据",
    "0x7f",
    "=",
    "{",
]
ODD_LINES = [
    "Segmentation fault (core dumped)",
    "undefined reference to `frobnicate'",
    "Killed process 4242 (python)",
    "npm ERR! peer dep missing",
    "SyntaxError: invalid syntax",
    "exit status 137",
    "permission denied",
    "certificate has expired",
    "no space left on device",
    "deadlock detected",
    "HTTP/1.1 503 Service Unavailable",
    "Verbindung abgelehnt",
    "接続が拒否されました",
    "错误:磁盘已满",
    "espace disque insuffisant",
    "temperature exceeds limit",
    "rollback completed",
    "assertion failed: left == right",
    "conexión rechazada por el servidor",
    "отказано в доступе",
    "연결이 거부되었습니다",
    "تعذر الاتصال بالخادم",
    "panic: runtime error: index out of range [5] with length 3",
    "OOMKilled",
    "quota used up, no more writes",
    "checksum mismatch: expected 0a1b2c3d, got 4e5f6071",
]


def log(lines: int, stamp: str = "2026-01-31 08:{m:02}:{s:02} INFO ") -> list[str]:
    """`lines` of a monotone log."""
    return [
        f"{stamp.format(m=i // 60 % 60, s=i % 60)}worker {i % 7} copied chunk {i * 37} in {i % 90} ms"
        for i in range(lines)
    ]


def records(count: int) -> list[dict[str, object]]:
    rng = random.Random(7)
    return [
        {"id": i, "name": f"item-{i}", "state": "ready", "size": rng.randrange(10**6), "tags": ["a", "b"]}
        for i in range(count)
    ]


def wrapped(output: str, code: int = 1) -> str:
    return json.dumps({"output": output, "exit_code": code, "error": None})


_template = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
_line = st.one_of(
    st.tuples(_template, st.integers(0, 10**6)).map(lambda t: f"{t[0]} {t[1]}"),
    _template,
    st.text(max_size=120),
    st.text(alphabet="ab \t\r\x1b[31m]…0–9#", max_size=40),
    st.tuples(_template, st.integers(2, 60)).map(lambda t: t[0] * t[1]),
    st.just(""),
)
#: Texts of many lines, some repeated often enough that shortening pays.
long_texts = st.lists(st.tuples(_line, st.sampled_from([1, 1, 1, 3, 40, 200])), min_size=1, max_size=30).map(
    lambda parts: "\n".join(line for line, times in parts for _ in range(times))
)

_scalar = st.one_of(
    st.sampled_from(["1e400", "-0", "1.10", "123456789012345678901234567890", "true", "null", "0.1"]),
    st.text(max_size=60).map(lambda s: json.dumps(s, ensure_ascii=False)),
    st.text(max_size=60).map(json.dumps),
    st.text(alphabet='…[]#"0123 \\', max_size=20).map(json.dumps),
    st.integers(200, 900).map(lambda n: json.dumps("word \\ \u2028 \U0001f600 " * (n // 10))),
    st.integers(10, 200).map(lambda n: json.dumps("\n".join(log(n)))),
)
_keys = st.one_of(st.sampled_from(["a", "b", "id", "error", "…", "k1234"]), st.text(max_size=6)).map(
    json.dumps
)


def _containers(inner):
    blank = st.sampled_from(["", " ", "\n  "])
    items = st.lists(inner, max_size=25)
    pairs = st.lists(st.tuples(_keys, inner).map(":".join), max_size=8)
    return st.one_of(
        st.tuples(items, blank).map(lambda t: "[" + ("," + t[1]).join(t[0]) + "]"),
        st.tuples(pairs, blank).map(lambda t: "{" + ("," + t[1]).join(t[0]) + "}"),
    )


#: JSON texts as odd as they come: duplicate keys, huge numbers, escapes, look-alikes of our notes.
json_texts = st.recursive(_scalar, _containers, max_leaves=60).flatmap(
    lambda text: st.integers(1, 40).map(lambda n: "[" + ",".join([text] * n) + "]")
)
json_lines = st.lists(st.recursive(_scalar, _containers, max_leaves=6), min_size=2, max_size=40).map(
    lambda rows: "\n".join('{"row":' + row.replace("\n", " ") + "}" for row in rows)
)
