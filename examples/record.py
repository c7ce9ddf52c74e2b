"""Record the demo session: run real commands on a sample project, keep what they print as an agent sees it.

    python examples/record.py [OUTPUT]

Needs git, gcc, make, curl, sqlite3, ps and a package index; node is used when it is there. Everything runs in
a temporary folder, with an environment of its own. What would tell where it was recorded (paths, host, ports,
index) is rewritten, and the recording is refused if any of it is left. The result is a Chat Completions
message list in JSON, zstd-compressed: the session that `turngate demo` passes through the gate.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

HERE = Path(__file__).parent
OUTPUT = HERE.parent / "src" / "turngate" / "data" / "demo_session.json.zst"
SHOWN_ROOT = "/home/user/project"
SHOWN_PORT = "8000"
AUTHORS = (("Ada Example", "ada@example.org"), ("Sam Example", "sam@example.org"))
MAX_COMPRESSED_BYTES = 400_000
#: Programs whose steps are left out where they are missing.
OPTIONAL = ("node",)
SYSTEM = "You are a coding agent with a terminal. Work step by step; say what you found."
TASK = (
    "The shop project fails its tests, the native part does not build, and last night's worker run had "
    "failures. Find out what is wrong and propose a plan. Check, too, whether our dependencies install."
)


@dataclass(frozen=True, slots=True)
class Step:
    """One tool call of the session."""

    said: str
    """What the agent says before it."""
    tool: str
    """Its tool; `WRAPPERS` says how that tool words its result."""
    command: str
    """The shell command that really runs, in the project folder; `PORT` stands for the API's port."""


T, B = "terminal", "bash"
STEPS = (
    Step("Let me look around first.", T, "ls -la"),
    Step("", T, "git log --oneline"),
    Step("What changed recently, and where?", B, "git log --stat -n 25"),
    Step("Pricing is where most fixes landed.", "read_file", "cat -n shop/pricing.py"),
    Step("", B, "git blame shop/pricing.py"),
    Step("The catalogue change is large; which prices moved?", T, "git show HEAD~2"),
    Step("", T, "git diff HEAD~9 HEAD"),
    Step("", B, "git log -p -n 6 -- shop tests"),
    Step(
        "Now the dependencies, in a fresh environment.",
        T,
        "python -m pip install requests rich pytest mypy ruff",
    ),
    Step("", B, "python -m pip install 'requests==2.31.0' 'urllib3==2.9.9'"),
    Step("", T, "python -m pip install --dry-run 'pytest==8.0.0' 'pluggy<1.3'"),
    Step("", B, "python -m pip list"),
    Step("", T, "python -m pip list --format=json"),
    Step("", B, "python -m pip show -f rich"),
    Step("", T, "python -m pip download -v --no-cache-dir --dest wheels sqlite-utils"),
    Step("Tests.", T, "python -m pytest -v -p no:cacheprovider"),
    Step("", B, "python -m pytest -q --tb=long -p no:cacheprovider tests/test_pricing.py"),
    Step("", T, "python -m pytest -x -q -p no:cacheprovider tests/test_inventory.py"),
    Step("", B, "python -m unittest -v tests.test_report"),
    Step("Types and style.", T, "python -m mypy --strict --no-incremental shop"),
    Step("", T, "python -m ruff check --no-cache shop tests"),
    Step("", B, "python -m ruff check --no-cache --output-format=json shop"),
    Step("The native part.", T, "make -C native"),
    Step("", B, "gcc -Wall -Wextra -fanalyzer -fsyntax-only native/stock.c"),
    Step("", T, "python -m compileall -f shop scripts"),
    Step("Last night's run, replayed.", B, "python -m shop.worker --orders 640 | tee worker.log"),
    Step("", T, "grep -n -E 'WARNING|ERROR|Traceback' worker.log"),
    Step("", B, "tail -n 120 worker.log"),
    Step("", T, "python -m shop.worker --orders 90"),
    Step("The warehouse copy.", B, "python -m shop.sync"),
    Step("Is the API healthy?", T, "curl -si http://127.0.0.1:PORT/health"),
    Step("", "http_get", "curl -s http://127.0.0.1:PORT/orders?limit=240"),
    Step("Order 10163 is disputed.", "http_get", "curl -s http://127.0.0.1:PORT/orders/10163"),
    Step("", T, "curl -s http://127.0.0.1:PORT/events"),
    Step("", "http_get", "curl -s http://127.0.0.1:PORT/orders.html"),
    Step("", B, "curl -sv http://127.0.0.1:PORT/orders/99999"),
    Step(
        "The database behind it.",
        T,
        "python -c \"from shop.report import fill; fill('shop.db')\"; ls -l shop.db",
    ),
    Step("", B, "sqlite3 -header -column shop.db 'select * from orders where quantity > 2'"),
    Step("", T, "sqlite3 -csv -header shop.db 'select * from orders' | tee orders.csv"),
    Step("", B, "python -m shop.report 13"),
    Step("", T, "python -m shop.report 3"),
    Step("", B, "python -m cProfile -s cumtime -m shop.report 3"),
    Step("Where do we use decimals elsewhere?", "search_files", "grep -rnI -i decimal shop tests scripts"),
    Step(
        "",
        B,
        "cd .venv/lib/python*/site-packages && grep -rn 'def __init__' rich requests",
    ),
    Step("", T, "grep -rn -w Decimal LIB/json LIB/statistics.py LIB/fractions.py LIB/numbers.py"),
    Step("", B, "ls -lR LIB/email LIB/json LIB/asyncio LIB/concurrent LIB/http"),
    Step("", T, "find .venv -name '*.py' -size +24k"),
    Step("What fills the disk?", B, "du -a .venv/lib | sort -n | tail -n 160"),
    Step("", T, "ps -o pid,stat,rss,etimes,args -p WORKERS"),
    Step("", B, "python -X importtime -c 'import shop.server'"),
    Step("", T, "python -m dis shop/inventory.py"),
    Step("", B, "node -e \"require('./shop/missing.js')\""),
    Step("", T, "git status --short --ignored && git stash list"),
)
CLOSING = (
    "Summary: splitting totals loses cents, low() and negative stock ignore reservations, month 0 passes, "
    "stock.c has one hard error and a conflicting prototype, two orders hit the gateway timeout."
)

# Edits that become commits: (message, path, old, new). The first commits add the files one by one.
EDITS = (
    ("Give bulk orders ten percent", "shop/pricing.py", "quantity >= 100", "quantity > 99"),
    ("Add Swiss VAT", "shop/pricing.py", '"CH": "0.081"', '"CH": "0.077"'),
    ("Raise Swiss VAT to 8.1 percent", "shop/pricing.py", '"CH": "0.077"', '"CH": "0.081"'),
    ("Log the carrier", "shop/worker.py", "packed carrier", "packed by carrier"),
    ("Shorten the packing line", "shop/worker.py", "packed by carrier", "packed carrier"),
    ("Warn below five pieces", "shop/inventory.py", "below=3", "below=5"),
    ("Report the month's name", "shop/report.py", "str(month)", "calendar.month_name[month]"),
    ("Answer 404 in words", "shop/server.py", '"missing"', '"no such resource"'),
    ("Use >= for bulk orders", "shop/pricing.py", "quantity > 99", "quantity >= 100"),
)
#: What the files hold before the edits above, so that each edit changes something: (path, final, first).
BEFORE = (
    ("shop/pricing.py", '"PL": "0.23"', '"PL": "0.22"'),
    ("shop/inventory.py", "below=5", "below=3"),
    ("shop/report.py", "calendar.month_name[month]", "str(month)"),
    ("shop/server.py", '"no such resource"', '"missing"'),
)


@dataclass
class Place:
    """Where the recording happens, and how it is rewritten."""

    root: Path
    port: str
    workers: list[str] = field(default_factory=list)

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def environ(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PIP_CERT", "SSL_CERT_FILE") if name in os.environ}
        return kept | {
            "PATH": f"{self.project / '.venv' / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.root),
            "USER": "user",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_PROGRESS_BAR": "off",
            "GIT_PAGER": "cat",
            "GIT_CONFIG_NOSYSTEM": "1",
        }

    def library(self) -> str:
        """The standard library's folder of the interpreter that records."""
        return os.__file__.rpartition("/")[0]

    def host(self) -> str:
        """The host's name as it would stand in a prompt or mail address; a bare short one is any word."""
        name = socket.gethostname()
        return name if len(name) > len("devbox") else f"@{name}"

    def real(self, command: str) -> str:
        replaced = command.replace("PORT", self.port).replace("LIB/", f"{self.library()}/")
        return replaced.replace("WORKERS", ",".join(self.workers))

    def shown(self, text: str) -> str:
        """The text as it would have read on a neutral machine."""
        for old, new in (
            (str(self.project.resolve()), SHOWN_ROOT),
            (str(self.project), SHOWN_ROOT),
            (str(self.root.resolve()), "/home/user"),
            (str(self.root), "/home/user"),
            (self.library(), "/usr/lib/python3.11"),
            (sys.base_prefix, "/usr"),
            (f":{self.port}", f":{SHOWN_PORT}"),
            (f"server {self.port}", f"server {SHOWN_PORT}"),
            ("pypi.org", "pypi.example.org"),
            ("files.pythonhosted.org", "files.example.org"),
            (self.host(), "devbox"),
            ("root root", "user user"),
        ):
            text = text.replace(old, new)
        return text

    def leaks(self, text: str) -> list[str]:
        """Passages of the text that would still tell where it was recorded."""
        names = [str(self.root), self.root.name, str(HERE.parent), self.library(), self.host()]
        patterns = [rf"{re.escape(name)}\b" for name in names]
        patterns += [rf":{self.port}\b", r"pypi\.org", r"file:///", r"/opt/", r"https?://[^\s\"'/]*@"]
        return [text[max(0, m.start() - 40) : m.end() + 40] for p in patterns for m in re.finditer(p, text)]


def run(place: Place, command: str, **more: str) -> tuple[str, int]:
    """What the command prints on both streams, and its exit code."""
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {place.real(command)}"],
        cwd=place.project,
        env=place.environ | more,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return place.shown(done.stdout.decode("utf-8", "replace")), done.returncode


def as_json(text: str, code: int) -> str:
    return json.dumps({"output": text, "exit_code": code, "error": None}, ensure_ascii=False)


def as_text(text: str, code: int) -> str:
    return text if code == 0 else f"{text}\n[exit code: {code}]"


def as_matches(text: str, code: int) -> str:
    """The JSON of a search tool, from grep's lines."""
    rows = [line.split(":", 2) for line in text.splitlines()]
    matches = [{"path": path, "line": int(line), "content": content} for path, line, content in rows]
    return json.dumps({"total_count": len(matches), "matches": matches, "exit_code": code})


WRAPPERS: dict[str, Callable[[str, int], str]] = {
    "terminal": as_json,
    "bash": as_text,
    "read_file": as_text,
    "http_get": as_text,
    "search_files": as_matches,
}


def arguments(place: Place, step: Step) -> dict[str, str]:
    command = place.shown(place.real(step.command))
    if step.tool == "read_file":
        return {"path": command.split()[-1]}
    if step.tool == "http_get":
        return {"url": command.split()[-1]}
    if step.tool == "search_files":
        return {"pattern": "decimal", "path": ".", "case": "ignore"}
    return {"command": command}


def messages(place: Place) -> Iterator[dict[str, object]]:
    yield {"role": "system", "content": SYSTEM}
    yield {"role": "user", "content": TASK}
    for number, step in enumerate(STEPS, start=1):
        program = step.command.split()[0]
        if program in OPTIONAL and shutil.which(program, path=place.environ["PATH"]) is None:
            print(f"  {program} is not here: left out", file=sys.stderr)
            continue
        text, code = run(place, step.command)
        content = WRAPPERS[step.tool](text, code)
        print(f"{number:3} {step.tool:12} {len(content):8}  {code:3}  {step.command}", file=sys.stderr)
        call = {"name": step.tool, "arguments": json.dumps(arguments(place, step))}
        identity = f"call_{number:04d}"
        yield {
            "role": "assistant",
            "content": step.said or None,
            "tool_calls": [{"id": identity, "type": "function", "function": call}],
        }
        yield {"role": "tool", "tool_call_id": identity, "content": content}
    yield {"role": "assistant", "content": CLOSING}


def project_files() -> dict[str, str]:
    """Path -> text, from the file beside this one, and a catalogue of 220 rows."""
    parts = re.split(r"^=== (.+)\n", (HERE / "record_project.txt").read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True)) | {"data/catalogue.csv": catalogue(100)}


def catalogue(percent: int) -> str:
    rows = [
        f"SKU-{n:04d},item {n:04d},{(199 + n * 37 % 9000) * percent // 100 / 100:.2f}" for n in range(220)
    ]
    return "sku,name,price\n" + "\n".join(rows) + "\n"


class History:
    """A repository's history: each commit has the next author and a later date."""

    def __init__(self, place: Place) -> None:
        self.place, self.count = place, 0
        self.git("git init -q -b main")

    def git(self, command: str) -> None:
        name, mail = AUTHORS[self.count % len(AUTHORS)]
        when = f"2025-02-{1 + self.count % 28:02d}T09:{self.count:02d}:00+00:00"
        keys = {
            f"GIT_{who}_{what}": value
            for who in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", name), ("EMAIL", mail), ("DATE", when))
        }
        text, code = run(self.place, command, **keys)
        if code:
            raise SystemExit(f"{command}: {text}")

    def commit(self, message: str) -> None:
        self.count += 1
        self.git(f"git add -A && git commit -q -m {json.dumps(message)}")

    def write(self, path: str, text: str, message: str) -> None:
        target = self.place.project / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        self.commit(message)

    def edit(self, message: str, path: str, old: str, new: str) -> None:
        text = (self.place.project / path).read_text()
        if old in text:
            self.write(path, text.replace(old, new, 1), message)


def build_history(place: Place) -> None:
    """About thirty commits: files, edits, one large change of the catalogue with an odd row in it."""
    history, files = History(place), project_files()
    for path, final, first in BEFORE:
        files[path] = files[path].replace(final, first, 1)
    history.write(".gitignore", ".venv/\n__pycache__/\n*.log\n*.db\nwheels/\n", "Start")
    for path, text in files.items():
        history.write(path, text, f"Add {path}")
    for number, (message, path, old, new) in enumerate(EDITS):
        if number == len(EDITS) - 2:
            raised = catalogue(103).replace("SKU-0137,item 0137,", "SKU-0137,item 0137 (withdrawn),0")
            history.write("data/catalogue.csv", raised, "Raise catalogue prices by three percent")
        history.edit(message, path, old, new)


@contextmanager
def running(place: Place) -> Iterator[None]:
    """The API, and eight idle workers to look at, while the session is recorded."""
    python = str(place.project / ".venv" / "bin" / "python")
    api = [python, "-m", "shop.server", place.port]
    idle = [[python, "-c", f"import time; time.sleep(600)  # worker-{n}"] for n in range(8)]
    started = [
        subprocess.Popen(command, cwd=place.project, env=place.environ, stderr=subprocess.DEVNULL)
        for command in (api, *idle)
    ]
    place.workers = [str(process.pid) for process in started]
    time.sleep(2)  # the API listens well before that
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def record(root: Path) -> bytes:
    """The session as JSON bytes."""
    place = Place(root, free_port())
    place.project.mkdir()
    build_history(place)
    subprocess.run([sys.executable, "-m", "venv", place.project / ".venv"], check=True, env=place.environ)
    with running(place):
        session = {
            "id": "demo",
            "source": "turngate: examples/record.py",
            "messages": list(messages(place)),
        }
    text = json.dumps(session, ensure_ascii=False, indent=0)
    if found := place.leaks(text):
        raise SystemExit(f"the recording still has {found[:5]}; nothing was written")
    return text.encode()


def main() -> None:
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else OUTPUT
    with tempfile.TemporaryDirectory(prefix="turngate-record-") as folder:
        data = record(Path(folder))
    packed = zstd.compress(data, level=19)
    if len(packed) > MAX_COMPRESSED_BYTES:
        raise SystemExit(f"{len(packed)} bytes compressed, over {MAX_COMPRESSED_BYTES}; nothing was written")
    output.write_bytes(packed)
    print(f"{output}: {len(data)} bytes, {len(packed)} compressed", file=sys.stderr)


if __name__ == "__main__":
    main()
