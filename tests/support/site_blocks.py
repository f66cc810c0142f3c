# SPDX-License-Identifier: Apache-2.0
"""The fenced blocks of the documentation site: what they are, how they are run, how the others are checked.

A console block holds commands after `$ ` and below each the lines that it prints; `...` stands for any text of a
line, and alone on a line for any lines. A comment right above a block says where it is run:

- `<!-- run -->`: in the page's own empty folder, in the order of the page; `<!-- run: exit 1 -->` with another code;
- `<!-- example -->`: in a folder with the lab, the drops and the finished run that how-to pages speak of;
- `<!-- files -->`: in a folder where files of this machine stand in for the drives of the page's server;
- `<!-- plan -->`: like `example`, up to the plan: `storqual plan --dry-run` in the place of `storqual qualify`;
- `<!-- bench -->`: in the checkout, on the virtual bench, in the order of the page;
- `<!-- long -->`: the same, for what takes a quarter of an hour;
- `<!-- live: test_paths -->`: by that file of tests/virtual, which measures the same suite on the same bench;
- `<!-- not run: REASON -->`: its programs, options and files are checked. `NOT_RUN` has the reasons.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"

_BLOCK = re.compile(
    r"^(?P<indent> *)(?:<!-- (?P<where>run|example|files|plan|bench|long|live|not run)"
    r"(?:: exit (?P<code>\d+))?(?:: (?P<reason>[a-z_]+))? -->\n(?P=indent))?"
    r"```(?P<language>\w*)(?: title=\"(?P<title>[^\"]+)\")?(?P<other>[^\n]*)\n"
    r"(?P<text>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)

NOT_RUN: Mapping[str, str] = {
    "campaign": "an hour or more on the virtual bench; tests/virtual measures the same limits and methods",
    "settings": "restores settings of drives, which files do not have; tests/unit does so on simulated drives",
    "power": "switches a machine; tests/plays switches a bench that is a file",
    "installation": "changes the packages of this machine; tests/ci installs the wheel elsewhere",
}
"""Why a block is not run, and what runs in its place."""


@dataclass(frozen=True)
class Block:
    """One fenced block of a page; `title` is the file that it shows."""

    page: str
    line: int
    language: str
    title: str
    where: str
    code: int
    reason: str
    text: str

    @property
    def name(self) -> str:
        """Where it is, for a test's id."""
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Command:
    """One command of a console block, and the lines that are shown below it."""

    line: str
    shown: tuple[str, ...]


def pages() -> list[Path]:
    return sorted(DOCS.rglob("*.md"))


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in order. Raises ValueError for a fence of a form that no reader here knows."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["other"].strip():
            raise ValueError(f"{page}:{line}: {match['other'].strip()!r} after the language of a block")
        indent = match["indent"]
        body = "".join(one.removeprefix(indent) for one in match["text"].splitlines(keepends=True))
        name = str(page.relative_to(DOCS))
        found.append(
            Block(
                name,
                line,
                match["language"],
                match["title"] or "",
                match["where"] or "",
                int(match["code"] or 0),
                match["reason"] or "",
                body,
            )
        )
    if len(found) * 2 != len(re.findall(r"^ *```", text, re.MULTILINE)):
        raise ValueError(f"{page}: a fence that is not closed")
    return found


def commands(block: Block) -> Iterator[Command]:
    """The commands of a console block. Raises ValueError when its first line is none."""
    lines = block.text.splitlines()
    while lines:
        first = lines.pop(0)
        if not first.startswith("$ "):
            raise ValueError(f"{block.name}: {first!r} stands before any command")
        words = [first.removeprefix("$ ")]
        while words[-1].endswith("\\"):
            words.append(lines.pop(0))
        shown = []
        while lines and not lines[0].startswith("$ "):
            shown.append(lines.pop(0))
        yield Command("\n".join(words), tuple(shown))


def shows(printed: str, shown: tuple[str, ...]) -> str:
    """The first line of `shown` that was not printed in its place, empty when all were; blanks do not count."""
    rest = [_single(line) for line in printed.splitlines()]
    anywhere = True
    for line in shown:
        if line.strip() == "...":
            anywhere = True
            continue
        if not line.strip():
            continue
        pattern = re.compile(".*".join(re.escape(part.strip()) for part in _single(line).split("...")))
        while rest and not rest[0].strip() and not anywhere:
            rest.pop(0)
        place = next((n for n, told in enumerate(rest if anywhere else rest[:1]) if pattern.fullmatch(told)), None)
        if place is None:
            return line
        del rest[: place + 1]
        anywhere = False
    return ""


def _single(line: str) -> str:
    return " ".join(line.split())


def run(command: Command, folder: Path, environment: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Run a command in a shell, with the programs of this environment first; its exit code and all it printed."""
    programs = Path(sys.executable).parent
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "ANSIBLE", "STORQUAL"))
    }
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command.line],
        cwd=folder,
        env={
            **kept,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
            "COLUMNS": "200",
            **(environment or {}),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=800,
        check=False,
    )
    return ended.returncode, ended.stdout


def words_of(command: Command) -> list[list[str]]:
    """The simple commands of a line as words: what a pipe or `&&` joins is several."""
    lexer = shlex.shlex(command.line.replace("\\\n", " "), posix=True, punctuation_chars="|&;")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    parts: list[list[str]] = [[]]
    for word in lexer:
        if word and set(word) <= set("|&;"):
            parts.append([])
        else:
            parts[-1].append(word)
    return [part for part in parts if part]


LAB = Path("inventories/room7")
_HOSTS = Path(__file__).with_suffix(".hosts.yml").read_text(encoding="utf-8")
_SUITE = Path(__file__).with_suffix(".suite").read_text(encoding="utf-8")
_PROFILE = "{cells: all, runtime: 1s, ramp: 0s, idle: 0s, launches: 2, pairs: 3, margin: 30%, indifference: 15%}"
_AGAINST_BASELINE = "{metric: iops, against: baseline, required: true, margin: 30%}"
_LIMIT = "{metric: iops, against: absolute, min: 100, required: true}"
_SUITES = {"adapter": _AGAINST_BASELINE, "qla1040-adapters": _LIMIT, "drive-settings": _LIMIT}
_DROPS = ("in_field", "candidate", "build")
_SSH = Path(__file__).with_suffix(".ssh").read_text(encoding="utf-8")
_PROGRAMS = {"ssh": _SSH, "dmesg": "#!/bin/sh\necho 'a bench without a fault'\n"}
_BUDGET = "1m"
"""Hours would be spent where other programs keep this machine busy."""


class Desk:
    """A folder for one page, its environment, and its commands as they are run here."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name, text in _PROGRAMS.items():
            program = folder / "bin" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(text, encoding="utf-8")
            program.chmod(0o755)
        for name, criterion in _SUITES.items():
            suite = folder / "suites" / f"{name}.suite.yml"
            suite.parent.mkdir(exist_ok=True)
            suite.write_text(_SUITE % (name, criterion, _PROFILE, _PROFILE), encoding="utf-8")
        self.furnish()
        here = [str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
        self.environment = {"PATH": os.pathsep.join(here), "STORQUAL_BASELINE": "in_field", "STORQUAL": "storqual"}

    def furnish(self) -> None:
        """The lab as it is before a block; blocks may make their own."""
        for name in _DROPS:
            drop = self._folder / LAB / "drops" / f"{name}.yml"
            drop.parent.mkdir(parents=True, exist_ok=True)
            drop.write_text(f"name: {name}\n", encoding="utf-8")
        (self._folder / LAB / "hosts.yml").write_text(_HOSTS, encoding="utf-8")

    def clear(self) -> None:
        """No lab, for a block that makes one."""
        shutil.rmtree(self._folder / LAB)

    def here(self, command: Command) -> Command:
        """The command with what there is here in the place of what the page names."""
        line = re.sub(r"--budget \w+", f"--budget {_BUDGET}", command.line)
        line = re.sub(r"--resume \S+", lambda _: f"--resume {self._interrupted()}", line)
        if "playbook preflight" in line:
            self._make_files()
        return Command(line, command.shown)

    def _interrupted(self) -> str:
        """A run that was planned, and of which nothing was measured yet."""
        words = f"storqual plan -i {LAB} --baseline in_field --candidate candidate --suite adapter"
        self._run(words)
        return max(path.parent.name for path in (self._folder / "runs").glob("*/run.json"))

    def _make_files(self) -> None:
        """Drives are there before a bench is described; files are made by the preflight of a run."""
        run_of_files = self._interrupted()
        self._run(f"storqual playbook preflight -i {LAB} -e run=runs/{run_of_files}")

    def _run(self, line: str) -> None:
        code, said = run(Command(line, ()), self._folder, self.environment)
        assert code == 0, said

    def commit(self) -> None:
        """A checkout in which a change adds a drop to what `origin/main` has."""
        shutil.copytree(REPOSITORY / "ci", self._folder / "ci")
        added = self._folder / LAB / "drops" / "build.yml"
        kept = added.read_text(encoding="utf-8")
        added.unlink()
        git = ["git", "-c", "user.name=Pat", "-c", "user.email=pat@example.org", "-C", str(self._folder)]
        commit = ["commit", "--quiet", "--all", "--message", "a change"]
        subprocess.run([*git, "init", "--quiet"], check=True)
        subprocess.run([*git, "add", str(LAB), "ci"], check=True)
        subprocess.run([*git, *commit], check=True)
        subprocess.run([*git, "update-ref", "refs/remotes/origin/main", "HEAD"], check=True)
        added.write_text(kept, encoding="utf-8")
        subprocess.run([*git, "add", str(added)], check=True)
        subprocess.run([*git, *commit], check=True)
