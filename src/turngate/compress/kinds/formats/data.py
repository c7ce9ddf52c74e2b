"""What is data rather than a report: changes, logs, listings, tables, and structured or general text."""

from __future__ import annotations

from turngate.compress.kinds.formats.row import Format

_COMMIT = r"""
    commit [0-9a-f]{40}\b
"""
_DIFF = r"""
    diff --(?:git|cc)\s
    @@ -\d+(?:,\d+)? \+\d
    index [0-9a-f]{7,40}\.\.[0-9a-f]{7,40}
    --- [^\s-]
    \+\+\+ \S
"""
_SYSLOG = r"""
    [JFMASOND][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ [^\s:\[]+(?:\[\d+\])?:
"""

CHANGES: tuple[Format, ...] = (
    Format("git-diff", "diff", _DIFF, words="git diff, .diff, .patch, diff"),
    Format("git-show", "diff", _COMMIT + _DIFF, words="git show, git format-patch"),
)
LOGS: tuple[Format, ...] = (
    Format("syslog", "log", _SYSLOG + r"<\d{1,3}>(?:1 )?[A-Z\d]", words="syslog"),
    Format(
        "journald",
        "log",
        _SYSLOG
        + r"""
        -- (?:Logs begin|Journal begins|Boot|Reboot|No entries)
        \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?[+-]\d\d:?\d\d \S+ [^\s:\[]+\[\d+\]:\s
        """,
        words="journalctl",
    ),
    Format("kernel", "log", r"\[ *\d+\.\d{6}\]", words="dmesg"),
    Format(
        "web",
        "log",
        r"""
        [\d.:a-f]++ \S+ \S+ \[\d\d/[A-Z][a-z]{2}/\d{4}:
        \d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[\w+\] \d+#\d+:\s
        \[[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d(?:\.\d+)? \d{4}\]\s
        \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+ (?:GET|POST|PUT|HEAD|DELETE|OPTIONS|PATCH)\s
        #(?:Software|Version|Date|Fields):\s
        """,
        words="access.log, nginx",
    ),
    Format("klog", "log", r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ \S+:\d+\]\s", words="kubectl logs"),
    Format(
        "logcat",
        "log",
        r"""
        \d\d-\d\d \d\d:\d\d:\d\d\.\d+ +\d+ +\d+ [VDIWEFS]\s
        [VDIWEF]/[^\s(]+ *\( *\d+\):\s
        """,
        words="adb, logcat",
    ),
    Format(
        "strace",
        "log",
        r"""
        \d[\d:. ]*+[a-z_]\w*\(.*\) += (?:-?\d|0x|\?)
        """,
        behind=r"\([^)].*\) += (?:-?\d|0x|\?)",
        words="strace, ltrace",
    ),
    Format("logfmt", "log", r"(?:time|ts|t|level|lvl)=\S+\s"),
    Format(
        "compose", "log", r"[a-z][\w.-]*+(?:(?<=[-_]\d) +| {2,})\|\s", words="docker compose, docker-compose"
    ),
)
LISTINGS: tuple[Format, ...] = (
    Format(
        "git-status",
        "listing",
        r"""
        (?:On branch|HEAD detached|Your branch|Changes to be|Changes not|Untracked files|Unmerged paths)\b
        (?:nothing to commit|no changes added|nothing added)\b
        \s+(?:modified|new file|deleted|renamed|both modified|both added|typechange):\s
        \s+\(use "git\s
        \s*(?:\?\?|[MADRCU][MADU]?) [\w"./-]+(?: -> \S+)?$
        """,
        opens=r"""
        (?:On branch|HEAD detached at) \S
        ## \S+(?:\.\.\.|$)
        """,
        words="git status",
    ),
    Format(
        "git-blame",
        "listing",
        r"[\^0-9a-f][0-9a-f]{6,39} (?:\S+ +)?\(.*? \d{4}-\d\d-\d\d .*?\d\)",
        words="git blame",
    ),
    Format(
        "git-log",
        "listing",
        _COMMIT
        + r"""
        (?:Author|Commit|AuthorDate|CommitDate|Date|Merge):\s
        [0-9a-f]{7,12}(?<!\d{7})(?<![a-f]{7}) \S
        [*|][*|\\/ ]*[0-9a-f]{7,12} \S
        \s+\d+ files? changed
        (?:\d+|-)\t(?:\d+|-)\t\S
        """,
        behind=r"\s+\| +(?:\d+ [+-]*|Bin .*)$",
        opens=_COMMIT,
        words="git log, git shortlog, git reflog, git stash",
    ),
    Format(
        "ls",
        "listing",
        r"""
        [-dlcbps][-rwxsStT]{9}[.+@]?\s
        total \d
        [^\s:/]*+/[^\s:]*+:$
        \.{1,2}:$
        """,
        words="ls, ll, dir",
    ),
    Format(
        "tree",
        "listing",
        r"""
        \s*[│├└][│├└\s]*─
        \s*[|`][|`\s]*-- \S
        \d+ director(?:y|ies), \d+ file
        """,
        words="tree, eza",
    ),
    Format(
        "du",
        "listing",
        r"""
        \d+\t[^\t]+$
        \d[\d.]*[KMGTB]\t[^\t]+$
        """,
        words="du",
    ),
    Format("wc", "listing", r"\s*\d+ +(?:\d+ +){0,3}[\w./-]+$", words="wc"),
)
TABLES: tuple[Format, ...] = (
    Format(
        "psql",
        "table",
        r"""
        \s*-+(?:\+-+)+$
        \(\d+ rows?\)$
        """,
        marks=("-+-",),
        words="psql, pgcli, duckdb",
    ),
    Format(
        "mysql",
        "table",
        r"""
        \+-[-+]+\+$
        \d+ rows? in set
        """,
        words="mysql, mariadb, tabulate",
    ),
    Format(
        "box",
        "table",
        r"""
        [┌├└╭╰╞┏┡┗┠][─┬┼┴┐┤┘╮╯═╪╡━┳┓╇┩│┻┛]+$
        [│┃] .*[│┃]$
        """,
        words="sqlite3, rich",
    ),
    Format(
        "ps",
        "table",
        opens=r"\s*(?:USER|UID|PID|F +S)\b.* (?:PID|TTY|CMD|COMMAND|TIME)\b",
        words="ps, top, htop",
    ),
    Format(
        "docker",
        "table",
        opens=r"(?:CONTAINER ID|REPOSITORY|NETWORK ID|DRIVER|IMAGE|IMAGE ID|CONTAINER|VOLUME NAME) {2,}[A-Z]",
        words="docker, podman, crictl",
    ),
    Format(
        "kubectl",
        "table",
        opens=r"(?:NAME|NAMESPACE|LAST SEEN|NODE|TYPE|CURRENT|RESOURCE) {2,}[A-Z]",
        words="kubectl, oc, helm, kubectl get",
    ),
    Format(
        "system",
        "table",
        opens=r"""
        (?:Filesystem|Proto|State|Netid) {1,}[A-Z\d]
        (?:Active Internet|Desired=Unknown|COMMAND +PID)
        \s+total +used +free
        \s*UNIT +LOAD
        """,
        words="df, netstat, ss, lsof, free, systemctl, dpkg",
    ),
    Format("tsv", "table", marks=("\t",), words=".tsv"),
    Format("bars", "table", marks=("|",)),
    Format("csv", "table", marks=(",", ";"), words=".csv"),
)
STRUCTURED: tuple[Format, ...] = (
    Format("notebook", "json", marks=('"cell_type"', '"nbformat"'), words=".ipynb"),
    Format(
        "tool-schemas",
        "json",
        marks=('"inputSchema"', '"input_schema"', '"parameters": {"type', '"parameters":{"type'),
        words="mcp, tools",
    ),
    Format("go-test-json", "json", marks=('"Action":"',), words="go test"),
    Format("sarif", "json", marks=("sarif",), words=".sarif"),
    Format("kubernetes-json", "json", marks=('"apiVersion"',), words="kubectl, kubectl get"),
    Format("cargo-json", "json", r'\{"reason":"(?:compiler-|build-)', words="cargo"),
    Format(
        "json-log",
        "json",
        r"""
        \{.*?"(?:level|lvl|severity|loglevel|levelname|time|timestamp|@timestamp|ts|msg|message|event)":
        """,
        words=".jsonl, .ndjson, .log, logs",
    ),
    Format("junit", "html", marks=("<testsuite", "<testcase"), words="junit, .xml"),
    Format("html", "html", marks=("<html", "<HTML", "<body", "<div"), words="curl, wget, fetch, .html, .htm"),
    Format("xml", "html", marks=("<?xml", "</"), words=".xml, .svg, .plist"),
    Format("markdown", "markdown", marks=("#",), words=".md, .markdown, readme"),
)
GENERAL: tuple[Format, ...] = (
    Format(
        "app",
        "log",
        r"""
        \s*(?:\d{4}[-/.]\d\d[-/.]\d\d[T _]\d\d:|\d\d[/.]\w{2,3}[/.]\d{2,4}[: ]\d\d:|\d\d:\d\d:\d\d[., ])
        \s*(?:\d{6} \d{6}\s|\d{9,13}[. ]|[JFMASOND][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)
        \s*(?:TRACE|DEBUG|INFO|NOTICE|WARN|ERROR|FATAL|CRITICAL)(?:ING)?\b
        [\[(<{"'*|#-]\W?\d{4}[-/.]\d\d[-/.]\d\d[T _]\d\d:
        [\[(<{"'*|#-]\W?(?:\d\d[/.]\w{2,3}[/.]\d{2,4}[: ]\d\d:|\d\d:\d\d:\d\d[., ])
        [\[(<{"'*|#-]\W?(?:TRACE|DEBUG|INFO|NOTICE|WARN|ERROR|FATAL|CRITICAL)(?:ING)?\b
        """,
        words=".log, logs",
    ),
    Format(
        "lint",
        "report",
        r"\[[^\s:\]]++:\d++:\d++\]\s",
        behind=r"""
        :\d++:\d++:? \S
        \(\d++(?:,\d++)?\): +\S
        """,
        words="shellcheck, golangci-lint, rubocop, yamllint, clippy, cpplint",
    ),
    Format(
        "grep",
        "search",
        r"""
        (?![\d\[(])[^\s:-]*+(?:-(?!\d)[^\s:-]*+)*+-\d++[-:]
        \d{1,6}[:-](?!\d)
        --$
        """,
        behind=r"""
        :\d++[:-]
        :(?:(?<=\.[A-Za-z]:)|(?<=\.[A-Za-z]\w:)|(?<=\.[A-Za-z]\w\w:)|(?<=\.[A-Za-z]\w{3}:))\s*\S
        """,
        words="grep, rg, ag, ack, git grep, search, egrep",
    ),
    # A path has no sign but slashes in so long a run.
    Format(
        "base64",
        "text",
        r"[A-Za-z0-9+](?=[A-Za-z/]*+[\d+])[A-Za-z0-9+/]{59,}={0,2}$",
        words="base64, .pem, .b64",
    ),
    Format(
        "find", "listing", r"[^\s:;,(){}=<>/]*+/[^\s:;,(){}=<>]*+$", words="find, fd, git ls, glob, locate"
    ),
    Format(
        "hexdump",
        "text",
        r"""
        [0-9a-f]{7,8}:? +(?:[0-9a-f]{2,4} +){4}
        \s+[0-9a-f]+:\t(?:[0-9a-f]{2} )+
        """,
        words="xxd, hexdump, od, objdump",
    ),
    Format(
        "kubectl-describe",
        "text",
        r"""
        (?:Name|Namespace|Labels|Annotations|Status|Node|Events|Conditions|Containers|Start Time):(?: |$)
        (?:Selector|Priority|QoS Class|Tolerations|Volumes|Service Account|IPs?|Controlled By):(?: |$)
        """,
        words="kubectl describe",
    ),
    Format(
        "yaml",
        "text",
        r"""
        \s*- [\w./"'-]+(?::(?: |$)|$)
        \s*[\w./-]++:(?: |$)
        ---$
        """,
        words=".yaml, .yml, helm template",
    ),
    Format(
        "toml",
        "text",
        r"""
        \[\[?[\w."-]+\]\]?$
        \s*[\w."-]++ ?=(?!=)
        """,
        words=".toml, .ini, .cfg, .conf",
    ),
)
