"""The programs that `bench.crash` and `bench.concurrency` start: they write to a store and say what they did.

python -m bench.writers crash PATH SEED COLLIDE
python -m bench.writers load PATH SEED COLLIDE SECONDS THREADS
"""

from __future__ import annotations

import hashlib
import random
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from turngate.settings import StoreSettings
from turngate.store import SqliteStore, short_hash

if TYPE_CHECKING:
    from turngate.store import ShortHash

#: What one writer cannot hold for longer than; 8 processes on a slow disk wait for each other.
BUSY_MS = 30_000


def colliding(data: bytes, length: int) -> str:
    """A short hash with 8 values per length below 64: nearly every content meets a taken id."""
    value = hashlib.sha256(data).hexdigest()
    return value if length >= 64 else value[0].translate(str.maketrans("89abcdef", "01234567")) * length


def hasher(name: str) -> ShortHash:
    return colliding if name == "collide" else short_hash


def content(seed: int, number: int) -> bytes:
    """Reproducible from its number; a few are the same for every seed, so that writers meet."""
    if number % 10 == 0:
        seed = 0
    chance = random.Random(f"{seed}/{number}")
    size = int(chance.paretovariate(1.1) * 300) % 60_000
    words = chance.choices(
        [b"error", b"line\n", b"worker", b"\xff\x00", b"0x1f", chance.randbytes(12)], k=size // 6
    )
    return b"%d/%d " % (seed, number) + b" ".join(words)


def open_store(path: str, collide: str) -> SqliteStore:
    return SqliteStore(Path(path), StoreSettings(busy_timeout_ms=BUSY_MS), short_hash=hasher(collide))


def crash(path: str, seed: str, collide: str) -> None:
    """Write until killed; each id is said only when the store answered."""
    store = open_store(path, collide)
    number = 0
    while True:
        stored = store.put(content(int(seed), number), session=f"s{seed}", turn=number)
        sys.stdout.write(f"{number} {stored.id}\n")
        sys.stdout.flush()
        if number % 7 == 3:
            store.search("worker error", session=f"s{seed}", limit=3)
        number += 1


def load(path: str, seed: str, collide: str, seconds: str, threads: str) -> None:
    """Write and read from several threads for a while; says each id, and each error."""
    store = open_store(path, collide)
    end = time.monotonic() + float(seconds)
    said = threading.Lock()

    def run(thread: int) -> None:
        mine, chance, own = [], random.Random(f"{seed}/{thread}"), int(seed) * 100 + thread
        try:
            number = 0
            while time.monotonic() < end:
                data = content(own, number)
                stored = store.put(data, session=f"s{own}", turn=number)
                mine.append((number, stored.id))
                back, ref = chance.choice(mine)
                assert store.get(ref, session=f"s{own}").data == content(own, back), f"{ref}: other bytes"
                if number % 25 == 24:
                    store.search("worker 0x1f", session=f"s{own}", limit=2)
                number += 1
        except Exception as error:  # noqa: BLE001 - whatever it is, the parent must count it
            with said:
                sys.stdout.write(f"error {type(error).__name__}: {error}\n")
        with said:
            sys.stdout.writelines(f"{own} {number} {ref}\n" for number, ref in mine)
            sys.stdout.flush()

    running = [threading.Thread(target=run, args=(number,)) for number in range(int(threads))]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    store.close()


if __name__ == "__main__":
    {"crash": crash, "load": load}[sys.argv[1]](*sys.argv[2:])
