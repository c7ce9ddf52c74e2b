"""What each leaf of a JSON value tells: the first of its path, new and odd values, failures, and position.

Weights as in `score`: fitted on recorded outputs, checked on a half held back. Positions weigh little on
purpose: fact probes favour the head of a document, values drawn evenly don't.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import sqrt

from turngate.compress.leaves import KEY_CHAR_TOKENS, Leaves
from turngate.compress.spelled import Num
from turngate.compress.stems import weigh

FIRST_OF_PATH = 1.0
NEW = 1.5
#: New values of a path on which nearly every value is new.
NEW_AMONG_NEW = 1.5
#: The same where they come in order, as times do.
NEW_IN_SEQUENCE, SEQUENCE_LEAST_CHARS = 0.4, 10
AMONG_NEW_LEAST, AMONG_NEW_LEAST_SHARE = 16, 0.9
REPEATED = -2.0
RARE_PATH = 0.3
ODD = 2.0
BESIDE_ODD = 0.6
ODD_LEAST_VALUES, ODD_MOST_SHARE, ODD_MOST_DISTINCT_SHARE = 8, 0.05, 0.2
ONE_AGAINST_ALL_LEAST = 4
#: A record with rare keys, where nearly all of many records have the same.
ODD_SHAPE = 1.5
SHAPES_LEAST_RECORDS, ODD_SHAPES_MOST_SHARE = 16, 0.1
FORM_LEAST_SHARE = 0.5
FAILURE = 2.0
#: The more messages of failure a path has, the less each tells: by this power of their number.
MANY_FAILURES = 0.25
#: What stands early, steeply falling, and late: without the second the last third of a document would be
#: much less in view than the first, with more of it the head would lose too much.
EARLY, EARLY_POWER = 2.5, 6
LATER = 0.6
POSITION_STEPS = 200
LATE, LATE_SHARE = 0.6, 0.06
RECORD_SHARE = 0.35
MENTIONED = 1.5
#: Keys at the top of a wrapper that say how a command ended.
OUTCOME_KEYS = frozenset(
    {"exit_code", "exitcode", "returncode", "return_code", "status", "success", "ok", "error", "error_type"}
    | {"signal", "timed_out", "is_error"}
)
OUTCOME = 6.0
OUTCOME_MOST_DEPTH, OUTCOMES_MOST = 2, 4
OUTCOME_MOST_CHARS = 300
#: A listing of tools is read to choose one: by name and description, before any parameter. Keys that hold
#: a tool's schema in the Model Context Protocol and in the providers' interfaces.
SCHEMA_KEYS = frozenset({"inputSchema", "input_schema", "parameters", "parametersJsonSchema"})
TOOL = {"name": 10.0, "description": 4.0}

_WORDS = bytes(
    c if c >= 128 or c == 10 or chr(c).isalnum() else 32  # noqa: PLR2004 - ASCII codes
    for c in bytes(range(256)).lower()
)
_LETTERS = bytes(range(65, 91)) + bytes(range(97, 123)) + b" "
#: A string without hexadecimal digits.
_NO_DIGITS = dict.fromkeys(map(ord, "0123456789abcdefABCDEF"))
_NOT_ASCII = bytes(range(128, 256))


def leaf_tokens(leaves: Leaves) -> list[float]:
    """Estimated tokens of each leaf with its key."""
    blob = "\n".join(leaves.spelled).encode("utf-8", "surrogatepass")
    signs = blob.translate(None, _LETTERS + _NOT_ASCII).split(b"\n")
    keys = [KEY_CHAR_TOKENS * len(key) + 1.2 for key in leaves.keys]
    return [
        0.2 * len(text) + 0.42 * len(other) + 1.0 + keys[path]
        for text, other, path in zip(leaves.spelled, signs, leaves.path, strict=True)
    ]


def score_leaves(leaves: Leaves, asked: frozenset[bytes]) -> list[float]:
    """The score of every leaf, before its cost is taken into account."""
    by_path: list[list[int]] = [[] for _ in leaves.keys]
    for index, path in enumerate(leaves.path):
        by_path[path].append(index)
    total = _positions(len(leaves.path))
    odd: set[int] = set()
    for indices in by_path:
        if len(indices) > 1:
            _score_path(leaves, indices, total, odd)
        elif indices:
            total[indices[0]] += FIRST_OF_PATH + NEW + RARE_PATH
    _add_shapes(leaves, total)
    _add_beside_odd(leaves, total, odd)
    _add_failures(leaves, total)
    if asked:
        _add_mentioned(leaves, total, asked)
    _add_outcomes(leaves, total)
    _add_tools(leaves, total)
    return _blend(leaves, total)


def _positions(size: int) -> list[float]:
    steps = [i / POSITION_STEPS for i in range(POSITION_STEPS)]
    worth = [EARLY * (1.0 - place) ** EARLY_POWER + LATER * place**3 for place in steps]
    out = [worth[index * POSITION_STEPS // size] for index in range(size)]
    for index in range(size - max(1, int(LATE_SHARE * size)), size):
        out[index] += LATE
    return out


def _score_path(leaves: Leaves, indices: list[int], total: list[float], odd: set[int]) -> None:
    """The parts of the score that compare the values on one path."""
    values = [leaves.spelled[index] for index in indices]
    size = len(values)
    counts = Counter(values)
    among_new = size >= AMONG_NEW_LEAST and len(counts) >= AMONG_NEW_LEAST_SHARE * size
    new = NEW
    if among_new:
        new = NEW_IN_SEQUENCE if _is_sequence(values) else NEW_AMONG_NEW
    rare = RARE_PATH / size
    seen: set[str] = set()
    for index, value in zip(indices, values, strict=True):
        if value in seen:
            total[index] += REPEATED + rare
        else:
            seen.add(value)
            total[index] += new + rare
    total[indices[0]] += FIRST_OF_PATH
    strange = _odd_values(values, counts)
    if strange:
        odd.update(index for index, value in zip(indices, values, strict=True) if value in strange)


def _is_sequence(values: list[str]) -> bool:
    """Whether the values are as good as counted: times, mostly."""
    length = len(values[0])
    return length >= SEQUENCE_LEAST_CHARS and length == len(values[-1]) and sorted(values) == values


def _odd_values(values: list[str], counts: Counter[str]) -> set[str]:
    """The few values of a path that differ from all others."""
    size = len(values)
    if size >= ONE_AGAINST_ALL_LEAST and len(counts) == 2:  # noqa: PLR2004 - one value and the odd one
        (_, _), (value, count) = counts.most_common(2)
        if count == 1:
            return {value}
    if size < ODD_LEAST_VALUES:
        return set()
    if len(counts) <= ODD_MOST_DISTINCT_SHARE * size:
        return {value for value, count in counts.items() if count <= ODD_MOST_SHARE * size}
    return _odd_forms(counts, size)


def _odd_forms(counts: Counter[str], size: int) -> set[str]:
    """Free texts whose first word and length are rare where one form covers half of the values."""
    forms = {value: (value[: value.find(" ")], len(value).bit_length()) for value in counts if " " in value}
    if len(forms) < FORM_LEAST_SHARE * len(counts):
        return set()
    form_counts = Counter(forms.values())
    if form_counts.most_common(1)[0][1] < FORM_LEAST_SHARE * len(counts):
        return set()
    return {value for value, form in forms.items() if form_counts[form] <= ODD_MOST_SHARE * size}


def _add_beside_odd(leaves: Leaves, total: list[float], odd: set[int]) -> None:
    """The odd values, and something for the scalars of the same records."""
    if not odd:
        return
    records = {leaves.record[index] for index in odd}
    for index, record in enumerate(leaves.record):
        if index in odd:
            total[index] += ODD
        elif record in records:
            total[index] += BESIDE_ODD


def _add_shapes(leaves: Leaves, total: list[float]) -> None:
    """Records with other keys than nearly all have."""
    if leaves.records < SHAPES_LEAST_RECORDS:
        return
    shapes = [0] * leaves.records
    for path, record in zip(leaves.path, leaves.record, strict=True):
        shapes[record] += (path + 7) ** 3  # a sum that few other sets of paths have
    counts = Counter(shapes)
    most = ODD_MOST_SHARE * leaves.records
    rare = {shape for shape, count in counts.items() if count <= most}
    if sum(counts[shape] for shape in rare) > ODD_SHAPES_MOST_SHARE * leaves.records:
        return
    for index, record in enumerate(leaves.record):
        if shapes[record] in rare:
            total[index] += ODD_SHAPE


def _add_failures(leaves: Leaves, total: list[float]) -> None:
    """Strings that tell of a failure: in full for the first of a form, less where they are many."""
    strings = list({text for text in leaves.spelled if not isinstance(text, Num)})
    blob = "\n".join(strings).encode("utf-8", "surrogatepass").translate(_WORDS)
    keys = weigh(set(blob.split())).keys()
    if not keys:
        return
    failing = {
        text for text, row in zip(strings, blob.split(b"\n"), strict=True) if not keys.isdisjoint(row.split())
    }
    hits = [
        (index, path, text)
        for index, (path, text) in enumerate(zip(leaves.path, leaves.spelled, strict=True))
        if text in failing and not isinstance(text, Num)
    ]
    forms = [(path, text.translate(_NO_DIGITS)) for _, path, text in hits]
    counts = Counter(forms)
    distinct = Counter(path for path, _ in counts)
    met: set[tuple[int, str]] = set()
    for (index, path, _), form in zip(hits, forms, strict=True):
        like = 1 if form not in met else counts[form]
        met.add(form)
        total[index] += FAILURE / sqrt(like) / distinct[path] ** MANY_FAILURES


def _add_mentioned(leaves: Leaves, total: list[float], asked: frozenset[bytes]) -> None:
    """Leaves whose key or value the question names."""
    named = {path for path, key in enumerate(leaves.keys) if not asked.isdisjoint(_words(key))}
    for index, path in enumerate(leaves.path):
        if path in named or not asked.isdisjoint(_words(leaves.spelled[index])):
            total[index] += MENTIONED


def _words(text: str) -> Iterable[bytes]:
    return text.encode("utf-8", "surrogatepass").translate(_WORDS).split()


def _add_outcomes(leaves: Leaves, total: list[float]) -> None:
    """How a wrapped command ended is always worth its few tokens."""
    told = {
        path
        for path, key in enumerate(leaves.keys)
        if leaves.depths[path] <= OUTCOME_MOST_DEPTH and key.lower() in OUTCOME_KEYS
    }
    if not told:
        return
    found = [index for index, path in enumerate(leaves.path) if path in told]
    # More of one key are a column of records.
    counts = Counter(leaves.path[index] for index in found)
    for index in found:
        if counts[leaves.path[index]] <= OUTCOMES_MOST and len(leaves.spelled[index]) <= OUTCOME_MOST_CHARS:
            total[index] += OUTCOME


def _add_tools(leaves: Leaves, total: list[float]) -> None:
    """Names and descriptions of tools: of objects that have both, and a schema."""
    keys, parents = leaves.keys, leaves.parents
    if SCHEMA_KEYS.isdisjoint(keys):
        return
    below: dict[int, set[str]] = {}
    for parent, key in zip(parents, keys, strict=True):
        below.setdefault(parent, set()).add(key)
    tools = {
        parents[path]
        for path, key in enumerate(keys)
        if key in SCHEMA_KEYS and "type" in below.get(path, ()) and below[parents[path]].issuperset(TOOL)
    }
    worth = [
        TOOL.get(key, 0.0) if parent in tools else 0.0 for key, parent in zip(keys, parents, strict=True)
    ]
    for index, path in enumerate(leaves.path):
        total[index] += worth[path]


def _blend(leaves: Leaves, total: list[float]) -> list[float]:
    """Each score half its own, half its record's mean, so that what is shown stays readable."""
    sums = [0.0] * leaves.records
    sizes = [0] * leaves.records
    for index, record in enumerate(leaves.record):
        sums[record] += total[index]
        sizes[record] += 1
    means = [RECORD_SHARE * s / n if n else 0.0 for s, n in zip(sums, sizes, strict=True)]
    own = 1.0 - RECORD_SHARE
    return [own * score + means[record] for score, record in zip(total, leaves.record, strict=True)]
