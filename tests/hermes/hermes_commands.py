"""The packaged session's commands, as programs that print what the real ones printed when it was recorded."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

from turngate.cli.demo import load_recording, recorded_results

_EXIT = re.compile(r"\n?\[exit code: (\d+)\]\s*\Z")
#: Programs that the host itself runs in the same shell keep their own meaning with other arguments.
_PROGRAM = """\
#!{python}
import json, os, sys
known = json.load(open({table!r}))
name = os.path.basename(sys.argv[0])
said = known.get(json.dumps([name, *sys.argv[1:]]))
if said is None:
    os.execv("/usr/bin/" + name, [name, *sys.argv[1:]])
sys.stdout.write(said[0])
sys.stdout.flush()
sys.exit(said[1])
"""


def recorded():
    """(command, output, exit code) of every recorded call that is one program's, in the session's order.

    A program whose output is also written to a file counts; what fetched a page is `curl` here.
    """
    for result in recorded_results(load_recording()):
        args = json.loads(result.args)
        command = args.get("command") or (f"curl -s '{args['url']}'" if "url" in args else "")
        if command and _is_one_program(command.partition(" | tee ")[0]):
            text, code = _output(result.text)
            yield command, text, code


def install(user: Path, folder: Path) -> list[str]:
    """Put the programs into `folder`, and into the way of the shells of `user`; the commands."""
    commands = list(recorded())
    folder.mkdir(parents=True)
    table = folder / "recorded.json"
    words = {c: shlex.split(c.partition(" | tee ")[0]) for c, _, _ in commands}
    table.write_text(json.dumps({json.dumps(words[c]): [text, code] for c, text, code in commands}))
    for name in {argv[0] for argv in words.values()}:
        program = folder / name
        program.write_text(_PROGRAM.format(python=sys.executable, table=str(table)))
        program.chmod(0o755)
    for profile in (".bash_profile", ".bashrc", ".profile"):
        (user / profile).write_text(f"export PATH={shlex.quote(str(folder))}:$PATH\n")
    return [command for command, _, _ in commands]


def _is_one_program(command: str) -> bool:
    """Whether a shell would run it as it stands: nothing outside of quotes means anything to it."""
    words = shlex.shlex(command, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", command)
    return not any(set(word) <= set("|;&<>()") for word in words) and not set(bare) & set("*$`")


def _output(text: str) -> tuple[str, int]:
    try:
        table = json.loads(text)
        return table["output"], int(table["exit_code"])
    except (ValueError, KeyError, TypeError):
        found = _EXIT.search(text)
        return (text[: found.start()], int(found[1])) if found else (text, 0)
