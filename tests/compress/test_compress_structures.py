"""Structures within texts: what a rule of its own keeps in view, and what it hides."""

import base64
import json
import random

import pytest
from bench import faithful

from turngate.compress import shorten


def blob(size: int, seed: int = 3) -> str:
    return base64.b64encode(random.Random(seed).randbytes(size)).decode()


def wrapped_at(width: int, text: str) -> list[str]:
    return [text[at : at + width] for at in range(0, len(text), width)]


def shortened(text: str, **hints):
    result = shorten(text, **hints)
    assert result.changed, result.reason
    assert faithful.check(text, result.text, kind=result.kind) == []
    return result


BLOBS = {
    "in one line": lambda: [blob(30_000)],
    "at 64 columns": lambda: wrapped_at(64, blob(30_000)),
    "at 76 columns": lambda: wrapped_at(76, blob(30_000)),
    "inside a tag": lambda: [f'<img src="data:image/png;base64,{blob(30_000)}" alt="chart of sales">'],
}


@pytest.mark.parametrize("lines", BLOBS.values(), ids=BLOBS)
def test_of_a_blob_only_its_ends_are_shown_and_the_text_around_it_is(lines):
    rows = lines()
    before = [f"saved {word} to the disk" for word in ("amber", "basil", "cedar")]
    after = [f"sent {word} by mail" for word in ("delta", "ember", "fable")]
    shown = shortened("\n".join([*before, *rows, *after])).text
    assert len(shown) < 2_000
    assert all(line in shown for line in (*before, *after))
    assert rows[0][:60] in shown
    assert rows[-1][-20:] in shown


def test_a_list_of_long_paths_is_no_blob():
    rng = random.Random(5)
    names = ["".join(rng.choices("ghijklmnopqrstuvwxyz", k=9)) for _ in range(300)]
    paths = [f"/srv/packages/{name}/share/documents/{name[::-1]}/licences/texts" for name in names]
    assert shortened("\n".join(paths)).kept > 60


def test_a_blob_in_a_json_string_leaves_room_for_other_values():
    rows = [{"id": n, "image": blob(900, n), "note": f"number {n * 7919}"} for n in range(60)]
    shown = shortened(json.dumps(rows)).text
    assert sum(f"number {n * 7919}" in shown for n in range(60)) >= 30
    assert blob(900, 0)[:64] in shown
    assert blob(900, 0)[:70] not in shown


def tool(n: int) -> dict[str, object]:
    rng = random.Random(n)
    word = lambda: "".join(rng.choices("aeioubdgklmnprst", k=7))  # noqa: E731 - three letters of code
    fields = {word(): {"type": "string", "description": f"The {word()} of the {word()}."} for _ in range(6)}
    return {
        "name": f"{word()}_{word()}",
        "description": f"Finds the {word()} of a {word()}.",
        "inputSchema": {"type": "object", "properties": fields, "required": list(fields)[:2]},
    }


LISTINGS = {
    "of a server": lambda tools: json.dumps({"tools": tools}, indent=2),
    "a tool a line": lambda tools: "\n".join(map(json.dumps, tools)),
    "of functions": lambda tools: json.dumps(
        [
            {"type": "function", "function": {"parameters": schema, "name": name, "description": description}}
            for name, description, schema in map(dict.values, tools)
        ]
    ),
}


@pytest.mark.parametrize("listing", LISTINGS.values(), ids=LISTINGS)
def test_of_a_listing_of_tools_every_name_and_description_is_in_view(listing):
    tools = [tool(n) for n in range(60)]
    shown = shortened(listing(tools)).text
    assert [t["name"] for t in tools if f'"{t["name"]}"' not in shown] == []
    assert [t["name"] for t in tools if t["description"] not in shown] == []
