from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.store import redact
from turngate.store.redact import SECRETS

BODY = (
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\nVJTUt9Us8cKjMzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SC6dV\n"
)
#: Made up, in the shape that each issuer documents; joined here so that no scanner takes them for real.
SAMPLES = [
    ("aws-key", "AKIA" + "IOSFODNN7EXAMPLE"),
    ("github-token", "ghp_" + "a1B2" * 9),
    ("github-token", "github_pat_" + "11AAAA0_" * 8),
    ("gitlab-token", "glpat-" + "abc123DEF456ghi789_-"),
    ("slack-token", "xoxb-" + "123456789012-abcdefABCDEF"),
    ("anthropic-key", "sk-ant-" + "api03-" + "aB3_" * 20),
    ("openai-key", "sk-proj-" + "aB3d" * 12),
    ("openai-key", "sk-" + "aB3d" * 12),
    ("stripe-key", "sk_live_" + "a1b2c3d4" * 3),
    ("google-key", "AIza" + "SyA1234567890abcdefghijklmnopqrstuv"),
    ("google-token", "ya29." + "a0AfH6SMBx1234567890"),
    ("npm-token", "npm_" + "a1B2c3" * 6),
    ("jwt", "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0" + ".dozjgNryP4J3jVmNHl0w5N_XgL0"),
    ("private-key", f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}-----END RSA PRIVATE KEY-----"),
    ("private-key", f"-----BEGIN PRIVATE KEY-----\nDEK-Info: AES,0\n\n{BODY}-----END PRIVATE KEY-----"),
    ("private-key", f"-----BEGIN OPENSSH PRIVATE KEY-----\n{BODY}"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "secret"), SAMPLES)
def test_a_key_of_each_shape_is_replaced_and_its_lines_stay(kind, secret):
    text = f"before\nvalue {secret}\nafter"
    clean = redact(text)
    assert f"value [redacted:{kind}]" in clean
    assert not any(part in clean for part in secret.splitlines() if len(part) > 12)
    assert clean.count("\n") == text.count("\n")
    assert clean.startswith("before\n")


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("password=hunter22 next", "password=[redacted:assigned] next"),
        ('{"api_key": "f00ba4-17", "n": 1}', '{"api_key": "[redacted:assigned]", "n": 1}'),
        ("Authorization: Bearer abc123def456ghi789", "Authorization: Bearer [redacted:authorization]"),
        ("postgres://app:s3cretpw@db:5432/x", "postgres://app:[redacted:url-password]@db:5432/x"),
    ],
)
def test_what_names_a_secret_stays_and_the_secret_goes(text, clean):
    assert redact(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "task-force-of-many-people-with-long-names-in-one-word",
        "the token is invalid; the password was wrong",
        "see https://example.com:8080/a@b and user@example.com",
        "basic understanding of bearer bonds",
        "sk-learn and xoxo",
    ],
)
def test_ordinary_text_is_left_alone(text):
    assert redact(text) is text


@given(
    text=st.lists(
        st.sampled_from([*"aZ0 \n-_.:=/@\"'", "sk-", "token=", "eyJ", "://", "ghp_", "a1" * 20])
    ).map("".join)
)
def test_redaction_keeps_line_breaks_and_is_done_after_one_pass(text):
    clean = redact(text)
    assert clean.count("\n") == text.count("\n")
    assert redact(clean) == clean


@pytest.mark.parametrize("secret", SECRETS, ids=lambda secret: secret.kind)
def test_time_grows_with_length_only(secret):
    """A quadratic pattern would need hours for this, not seconds; the suite's timeout is the judge."""
    for hint in secret.hints:
        for filling in ("", "-", "a", "0", " ", ":", "="):
            secret.pattern.sub("", (hint + filling) * 20_000)
            secret.pattern.sub("", (hint.upper() + filling) * 20_000)
    assert time.monotonic() > 0
