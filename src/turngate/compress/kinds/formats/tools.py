"""What tools report: traces, tests, compilers and linters, packages and infrastructure."""

from __future__ import annotations

from turngate.compress.kinds.formats.row import Format

_PANIC = r"""
    thread '.*' (?:\(\d+\) )?panicked at\s
"""
_SUMMARY_COUNT = r"""
    Found \d+ (?:error|problem|issue|warning)s?\b
"""
_CODE_FRAME = r"""
    \s+\|(?: |$)
"""
_RUST_MESSAGE = r"""
    (?:error|warning)(?:\[[A-Z]\d{4}\])?:\s
"""
_DIAGNOSTIC = r"""
    :\d++:(?:\d++:)? (?:fatal )?(?:error|warning|note|remark):\s
"""
_CARET = (
    r"""
    \s+[~^][~^]*\s*$
"""
    + _CODE_FRAME
)

TRACES: tuple[Format, ...] = (
    Format(
        "python-trace",
        "trace",
        r"""
        Traceback \(most recent call last\)
        \s+File "[^"]+", line \d
        """,
        words="python, python3",
    ),
    Format(
        "java-trace",
        "trace",
        r"""
        Caused by:\s
        Exception in thread\s
        \s+at [\w.$/<>@-]+\((?:\w+\.\w+(?::\d+)?|Native Method|Unknown Source)\)
        \s+\.\.\. \d+ (?:more|common frames)
        """,
        words="java",
    ),
    Format("js-trace", "trace", r"\s+at .*:\d+:\d+\)?$", words="node, deno, bun"),
    Format("dotnet-trace", "trace", r"\s+at [^\s(]++ ?\((?:[^\s(),]++ \w|\))", words="dotnet"),
    Format(
        "go-trace",
        "trace",
        r"""
        goroutine \d+ \[
        \s+/[^\s:]+\.go:\d
        panic:\s
        """,
        words="go run, go",
    ),
    Format(
        "rust-trace",
        "trace",
        _PANIC
        + r"""
        \s+\d+: (?:0x\S+ - )?\S+::
        \s+at /?\S+\.rs:\d
        """,
        words="cargo run",
    ),
    Format(
        "ruby-trace",
        "trace",
        r"""
        \s+(?:from|\d+: from) \S+:\d+:in\s
        """,
        behind=r":\d++:in\s",
        words="ruby, rails",
    ),
    Format("numbered-trace", "trace", r"#\d+ +\S.*(?::\d+\)?|\(\d+\): .*)$", words="php, dart, gdb"),
)
TESTS: tuple[Format, ...] = (
    Format(
        "pytest",
        "report",
        r"""
        =+ .* =+\s*$
        _{3,} .* _{3,}\s*$
        (?:PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (?:\[\d+\] )?\S+\.py\b
        [.FEsxX]+ +\[ *\d+%\]$
        E   \s*\S
        (?:platform|rootdir|plugins|configfile|cachedir)(?:: | \w+ -- )
        (?:collected|collecting)(?: \.\.\.| \d+ items?)
        """,
        behind=r"""
        :(?<=\.py:):\S
        \s(?<=\.py\s)[.FEsxX]+ *(?:\[ *\d+%\])?\s*$
        """,
        words="pytest, py.test, tox, nox",
    ),
    Format(
        "unittest",
        "report",
        r"""
        test\w* \([\w.]+\)
        (?:ERROR|FAIL): test\w* \(
        Ran \d+ tests? in\s
        [.FEsxu]{20,}$
        ={70}$
        -{70}$
        OK(?: \(|$)
        FAILED \((?:failures|errors)=
        """,
        words="unittest, python, python3, manage.py test, runtests.py, trial",
    ),
    Format(
        "go-test",
        "report",
        r"""
        === (?:RUN|PAUSE|CONT|NAME|PASS|FAIL)\s
        \s*--- (?:PASS|FAIL|SKIP|BENCH):\s
        ok +\t\S
        FAIL(?:\t|$)
        PASS$
        \? +\t\S
        [∅✓✖]  \S+
        """,
        words="go test, gotestsum",
    ),
    Format(
        "cargo-test",
        "report",
        _PANIC
        + r"""
        test \S.* \.\.\. (?:ok|FAILED|ignored|bench)
        test result:\s
        running \d+ tests?$
        ---- \S.* stdout ----$
        """,
        words="cargo test, cargo nextest",
    ),
    Format(
        "jest",
        "report",
        r"""
        (?:PASS|FAIL) +(?:\w+ +)?\S+\.[cm]?[jt]sx?\b
        \s*[✓✔✗✘✕×○↓❯●] +\S
        (?:Tests|Test Suites|Snapshots|Test Files):? +\d
        \s+\d+ (?:passing|failing|pending)\b
        """,
        words="jest, vitest, mocha, npm test, test",
    ),
    Format(
        "tap",
        "report",
        r"""
        \s*(?:not ok|ok) \d+\b
        # Subtest:\s
        1\.\.\d+$
        """,
        words="prove, bats, tap",
    ),
    Format(
        "ctest",
        "report",
        r"""
        \s*\d+/\d+ Test +#\d+:\s
        \s+Start +\d+:\s
        """,
        words="ctest",
    ),
)
COMPILERS: tuple[Format, ...] = (
    Format(
        "mypy",
        "report",
        _SUMMARY_COUNT,
        behind=r":(?:(?<=\.py:)|(?<=\.pyi:))\d++:(?:\d++:)? (?:error|note|warning):\s",
        words="mypy, dmypy, pyright",
    ),
    Format(
        "ruff",
        "report",
        _CODE_FRAME
        + _SUMMARY_COUNT
        + r"""
        [A-Z]{1,6}\d{3,4} (?:\[\*\] )?[A-Z`]
        \s*--> \S+\.pyi?:\d+:\d
        \[\*\] \d+ fixable
        """,
        behind=r":\d++:\d++: [A-Z]{1,6}\d+\s",
        words="ruff, flake8, pycodestyle",
    ),
    Format(
        "pylint",
        "report",
        r"""
        \*{8,} Module\s
        Your code has been rated at\s
        """,
        behind=r":\d++:(?:\d++:)? \[?[CRWEFI]\d{4}\b",
        words="pylint",
    ),
    Format(
        "eslint",
        "report",
        r"""
        \s+\d+:\d+ +(?:error|warning)\s
        ✖ \d+ problems?\s
        /[\w./@-]++(?<=\.js|\.ts|jsx|tsx|mjs|cjs|vue)$
        """,
        words="eslint, npm run lint, lint, stylelint",
    ),
    Format(
        "tsc",
        "report",
        _SUMMARY_COUNT
        + r"""
        error TS\d{4,5}:\s
        """,
        behind=r"""
        \(\d++,\d++\): error TS\d
        :\d++:\d++ - error TS\d
        """,
        words="tsc, vue-tsc",
    ),
    Format(
        "rustc",
        "report",
        _RUST_MESSAGE
        + _CODE_FRAME
        + r"""
        \s+--> \S+:\d+:\d
        LL +\|(?: |$)
        \s+(?:= note|= help|note|help):\s
        For more information about this error, try\s
        """,
        words="rustc, cargo check, cargo build, cargo clippy, clippy-driver",
    ),
    Format(
        "cargo",
        "report",
        _RUST_MESSAGE
        + r"""
        \s+(?:Compiling|Checking|Downloaded|Downloading|Updating|Finished|Fresh|Locking|Adding) [`\w(\[]
        \s+(?:Running|Documenting|Doc-tests|Installing|Installed|Packaging) [`\w(\[]
        """,
        words="cargo",
    ),
    Format(
        "javac",
        "report",
        r"""
        \s+(?:symbol|location):\s
        \d+ (?:error|warning)s?$
        Note: (?:\S+\.java|Some input files|Recompile with)\s
        """,
        behind=r":(?<=\.java:|scala:|..\.kt:)\d++:(?:\d++:)? (?:error|warning)\b",
        words="javac, kotlinc, scalac",
    ),
    Format(
        "maven",
        "report",
        r"""
        \[INFO\] (?:-{3}|BUILD|Scanning|Building|Running|Tests run|Total|Finished|Reactor|Down|Install)
        \[(?:ERROR|WARNING)\] \S+\.java:\[\d+,\d+\]
        \[(?:INFO|WARNING|ERROR|DEBUG)\]\s
        (?:Tests run: \d|Running \w+\.[\w.]+$|Download(?:ing|ed)(?: from \S+)?: http)
        > Task :
        BUILD (?:SUCCESS|FAIL)
        \s+\[(?:javac|exec|mkdir|echo|copy|junit|jar|java|delete)\]\s
        """,
        words="mvn, mvnw, gradle, gradlew, ant",
    ),
    Format(
        "msbuild",
        "report",
        r"""
        \s*(?:Project "|Target \w+:|Task "|Time Elapsed\s)
        \s+\d+ (?:Error|Warning)\(s\)
        """,
        opens=r"""
        Build started\s
        MSBuild version\s
        """,
        behind=r"\(\d++(?:,\d++)?\) ?: (?:fatal )?(?:error|warning) \w+\d+ ?:\s",
        words="msbuild, dotnet build, dotnet test, dotnet",
    ),
    Format(
        "gcc",
        "report",
        _CARET
        + r"""
        In file included from\s
        (?:gcc|g\+\+|c\+\+|cc1|cc1plus|collect2)(?:: | -)
        """,
        behind=_DIAGNOSTIC + r": In (?:\w+ )?(?:function|member|constructor|instantiation)",
        words="gcc, g++, cc, c++",
    ),
    Format(
        "clang",
        "report",
        _CARET
        + r"""
        \d+ (?:warning|error)s?(?: and \d+ errors?)? generated\.
        clang(?:\+\+)?(?:-\d+)?(?:: | -)
        """,
        behind=_DIAGNOSTIC,
        words="clang, clang++, clang-tidy, swiftc, xcodebuild",
    ),
    Format(
        "cmake",
        "report",
        r"""
        -- (?:The|Detecting|Check|Looking|Found|Configuring|Generating|Build files|Performing|Could NOT)
        -- (?:Installing|Up-to-date):\s
        CMake (?:Error|Warning|Deprecation)
        \s*\[ *\d+(?:%|/\d+)\]\s
        (?:Scanning dependencies|Consolidate compiler)
        ninja:\s
        """,
        words="cmake, ninja, meson",
    ),
    Format(
        "make",
        "report",
        r"""
        (?:make|gmake|mingw32-make)(?:\[\d+\])?:\s
        (?:gcc|g\+\+|c\+\+|cc|clang|ar|ld|ranlib|strip|install|libtool) -
        /\S+/(?:g?cc|g\+\+|c\+\+|clang|clang\+\+|ar|ld|ranlib|libtool) -
        \s+(?:CC|CXX|LD|AR|AS|GEN|HOSTCC|CCLD|CXXLD|LINK|OBJCOPY) +(?:\[M\] +)?\S
        (?:checking|configure:|config\.status:) \S
        Making \w+ in \S
        /bin/(?:ba)?sh \S*libtool\s
        """,
        words="make, gmake, configure, bazel",
    ),
    Format(
        "actions",
        "report",
        r"""
        ::(?:group|endgroup|error|warning|notice)\b
        ##\[\w+\]
        """,
        words="gh run, act",
    ),
)
PACKAGES: tuple[Format, ...] = (
    Format(
        "pip",
        "report",
        r"""
        \s*(?:Collecting|Downloading|Using cached|Preparing metadata|Installing build|Getting requirements)\s
        \s*(?:Building wheels? for|Created wheel|Stored in|Found existing|Uninstalling|Successfully)\s
        (?:Processing|Obtaining|Installing collected|Requirement already|Looking in|Using pip)\s
        \s+(?:Running command|Link requires|[━╸╺]{8,})
        (?:ERROR|WARNING): (?:Could not|No matching|Cannot install|pip|You are|Running pip|Package|Failed)
        (?:Resolved|Prepared|Installed|Downloaded|Audited|Uninstalled|Built) \d+ packages? in\s
        \s+[+~-] [\w.-]+==
        """,
        words="pip, pip3, uv, poetry, conda, mamba",
    ),
    Format(
        "npm",
        "report",
        r"""
        (?:npm|yarn|pnpm) (?:ERR!|WARN|error|warn|notice|info|http|verb|sill|timing|install)\b
        (?:added|removed|changed|audited) \d+ packages?
        \d+ (?:vulnerabilities|packages are looking for funding)
        found \d+ vulnerabilit
        > \S+@\S+ \w
        (?:Progress: resolved|Packages: [+-]\d|Lockfile is up to date|success Saved)
        \[\d/\d\] (?:Resolving|Fetching|Linking|Building)
        \s*[│├└][─│├└┬ ]* @?[\w./-]+@\d
        """,
        words="npm, yarn, pnpm, bun",
    ),
    Format(
        "apt",
        "report",
        r"""
        (?:Get|Hit|Ign|Err):\d+\s
        (?:Reading package lists|Reading state information|Building dependency tree)
        (?:Selecting previously|Preparing to unpack|Processing triggers|Fetched \d|Need to get|After this)\b
        (?:Unpacking|Setting up|Inst|Conf|Remv) \S+ \(
        The following (?:NEW|additional|packages|extra)
        \d+ upgraded, \d+ newly
        (?:\(\d+/\d+\) Installing|fetch http)
        """,
        behind=r"\sis already the newest version",
        words="apt, apt-get, dnf, yum, apk, brew",
    ),
    Format(
        "docker-build",
        "report",
        r"""
        #\d+ (?:\[|DONE|CACHED|sha256|extracting|exporting|resolve|transferring|ERROR|naming|\d+\.\d)
        Step \d+/\d+ :\s
        \s+=>\s
        \s+---> [0-9a-f]{12}
        [0-9a-f]{12}: (?:Pull|Push|Download|Extract|Verify|Wait|Already|Layer|Mounted|Prepar)
        """,
        words="docker build, docker buildx, docker pull, docker push, podman build",
    ),
    Format(
        "terraform",
        "report",
        r"""
        \s+# \S+ (?:will|must|has|is)\s
        \s*[-+~/]{1,3} (?:resource|data|output)\s
        \s+[-+~] "?[\w.-]+"? +(?:=|\{)
        (?:Plan|Apply complete|Destroy complete)(?:: |!)
        (?:Terraform|OpenTofu) (?:will|used|has|detected)
        """,
        behind=r": (?:Refreshing state|Creating|Creation|Still|Modif\w+|Destr\w+|Reading|Read)\b",
        words="terraform, tofu, pulumi",
    ),
)
