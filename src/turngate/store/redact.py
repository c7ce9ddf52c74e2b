"""Secrets in text become ``[redacted:kind]``.

Patterns for the usual shapes of keys. They are there to keep secrets out of the search index (and, with
``store.redact``, off the disk); they are no proof that none is left. Each starts at a literal, looks back for
the start of a word from there (a pattern that starts with a boundary is tried at every character), and
repeats only up to a bound, so that time stays linear.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Secret:
    """A shape of secret."""

    kind: str
    """What stands after ``redacted:``."""
    hints: tuple[str, ...]
    """A text without any of these has no secret of this shape; finding them is cheap. They are lowercase,
    and sought in lowercase text, where the pattern ignores case."""
    source: str
    """A regular expression that matches it; a group ``keep`` is left as it is."""

    @property
    def ignores_case(self) -> bool:
        """Whether its hints are sought in lowercase text."""
        return self.source.startswith("(?i)")

    @property
    def pattern(self) -> re.Pattern[str]:
        """`source`, compiled."""
        return _compiled(self.source)


@cache
def _compiled(source: str) -> re.Pattern[str]:
    """A pattern, compiled when it is first needed: all of them would slow every start."""
    return re.compile(source)


def _secret(kind: str, hints: str, pattern: str) -> Secret:
    return Secret(kind, tuple(hints.split()), pattern)


#: Shapes as their issuers document them: most have a fixed prefix, so that scanners can find them.
SECRETS: tuple[Secret, ...] = (
    _secret(
        "private-key",
        "-----BEGIN",
        r"-----BEGIN (?:[A-Z]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----)){0,20000}+"
        r"(?:-----END (?:[A-Z]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----)?",
    ),
    _secret("aws-key", "AKIA ASIA ABIA ACCA", r"A(?<![\w-]A)(?:KIA|SIA|BIA|CCA)[0-9A-Z]{16}\b"),
    _secret("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_(?<![\w-]gh[pousr]_)[0-9A-Za-z]{30,255}"),
    _secret("github-token", "github_pat_", r"github_pat_(?<![\w-]github_pat_)[0-9A-Za-z_]{30,255}"),
    _secret("gitlab-token", "glpat-", r"glpat-(?<![\w-]glpat-)[0-9A-Za-z_-]{20,64}"),
    _secret("slack-token", "xox", r"xox(?<![\w-]xox)[abeoprs]-[0-9A-Za-z-]{10,250}"),
    _secret("anthropic-key", "sk-ant-", r"sk-ant-(?<![\w-]sk-ant-)[0-9A-Za-z_-]{20,250}"),
    _secret(
        "openai-key",
        "sk-",
        r"sk-(?<![\w-]sk-)(?:proj-|svcacct-|admin-)?(?=[a-zA-Z_-]{0,100}[0-9])[0-9A-Za-z_-]{32,250}",
    ),
    _secret("stripe-key", "k_live_ k_test_", r"\b[rs]k_(?:live|test)_[0-9A-Za-z]{16,250}"),
    _secret("google-key", "AIza", r"AIza(?<![\w-]AIza)[0-9A-Za-z_-]{35}"),
    _secret("google-token", "ya29.", r"ya29\.(?<![\w-]ya29\.)[0-9A-Za-z_-]{20,1000}"),
    _secret("npm-token", "npm_", r"npm_(?<![\w-]npm_)[0-9A-Za-z]{36}\b"),
    _secret(
        "jwt",
        "eyJ",
        r"eyJ(?<![\w-]eyJ)[0-9A-Za-z_-]{10,4000}\.eyJ[0-9A-Za-z_-]{10,8000}\.[0-9A-Za-z_-]{0,2000}",
    ),
    _secret(
        "authorization",
        "bearer basic",
        r"(?i)(?P<keep>\b(?:bearer|basic)[ ])(?=[a-z+/._~-]{0,200}[0-9])[0-9a-z+/._~-]{16,4000}={0,2}",
    ),
    _secret("url-password", "://", r"(?P<keep>://[^\s/:@]{1,100}:)(?!\[redacted)[^\s/@]{3,200}(?=@)"),
    _secret(
        "assigned",
        "passw secret token key credential",
        r"(?i)(?P<keep>(?:password|passwd|secret|token|api_?-?key|access_?-?key|private_?-?key|credential)s?"
        r"[\"']?[ \t]{0,4}[=:][ \t]{0,4}[\"']?)(?!\[redacted)(?=[^\s\"',;]{0,200}[0-9])[^\s\"',;]{6,500}",
    ),
)


def redact(text: str) -> str:
    """`text` with secrets replaced. Line breaks stay, so line numbers stay true."""
    low = text.lower()
    for secret in SECRETS:
        where = low if secret.ignores_case else text
        if any(hint in where for hint in secret.hints):
            text = secret.pattern.sub(lambda found, kind=secret.kind: _replacement(found, kind), text)  # type: ignore[misc]
    return text


def _replacement(found: re.Match[str], kind: str) -> str:
    keep = found.groupdict().get("keep") or ""
    return f"{keep}[redacted:{kind}]" + "\n" * found.group().count("\n")
