"""`python -m bench NAME …`: run one benchmark, or `all`."""

from __future__ import annotations

import importlib
import sys

#: Each is a module of this package with `main(argv)`, which prints its figures and returns an exit code.
BENCHES = {
    "fidelity": "DIR: tokens saved, probes in view, what is found again, faithfulness, speed",
    "even": "DIR: values drawn evenly over each file that are in view, by kind and by third of the file",
    "kinds": "DIR: what outputs are taken for, by folder, and how long it takes to tell",
    "rival": "DIR: the same for headroom-ai and for first-and-last, with the ratios",
    "replay": "DIR: what recorded sessions would have cost, under four arms at four providers",
    "turn": "what the injected block costs in time and in bytes, early and late in a session",
    "prefix": "DIR: what the proxy sends extends what it sent, in four wires and however clients spell it",
    "ledger": "[DIR]: loading a long session, growth on disk; with DIR breaks of the prefix in replay",
    "hermes": "a session of the real Hermes agent with and without the plugin; what its hooks cost",
    "proxy": "what the proxy costs beside a bare relay (--headroom, --soak SECONDS)",
    "tokens": "DIR: error of the token estimate against exact counts",
    "memory": "time and peak memory of shortening logs up to 50 MB",
    "startup": "import and command-line start, size of a core installation",
    "window": "[DIR]: the window on random histories (--cases N), beside peers (--peers N); facts kept",
    "crash": "kill a writer at random points; every marker handed out must resolve",
    "concurrency": "processes and threads on one store; nothing lost, no error",
}
#: What `all` leaves out: it installs another package of half a gigabyte.
ON_REQUEST = {"rival"}
NEED_CORPUS = {"even", "fidelity", "kinds", "prefix", "replay", "rival", "tokens"}
#: These do more with one.
TAKE_CORPUS = NEED_CORPUS | {"ledger", "window"}


def usage() -> str:
    rows = "\n".join(f"  {name:12s} {what}" for name, what in BENCHES.items())
    return (
        f"python -m bench NAME [ARGUMENTS]\n\n{rows}\n  {'all':12s} [DIR]: every one of them, except rival\n"
    )


def run(name: str, argv: list[str]) -> int:
    return int(importlib.import_module(f"bench.{name}").main(argv) or 0)


def run_all(argv: list[str]) -> int:
    names = [name for name in BENCHES if name not in ON_REQUEST and (argv or name not in NEED_CORPUS)]
    codes = []
    for name in names:
        print(f"\n== {name}", flush=True)
        codes.append(run(name, argv if name in TAKE_CORPUS else []))
    return max(codes)


def main() -> int:
    name, argv = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("", [])
    if name == "all":
        return run_all(argv)
    if name in BENCHES:
        return run(name, argv)
    print(usage())
    return 0 if name in {"-h", "--help"} else 2


if __name__ == "__main__":
    sys.exit(main())
