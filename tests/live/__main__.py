# SPDX-License-Identifier: Apache-2.0
"""Long live tests by what changed: choose some, and keep at which commit each passed.

python -m tests.live choose --minutes 20            # node ids, a line each, for pytest; reasons on standard error
python -m tests.live record bench.xml               # from a JUnit file into tests/live/passed.json

`make test` does both. Who works on a checkout commits passed.json with the change; a pipeline cannot, and goes round
by its commit instead. A result counts for HEAD only when no tracked file differs from it.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

from ruamel.yaml import YAML

from tests.live.choice import About, Passed, choose, nearness, record

TREE = Path(__file__).resolve().parents[2]
MAP = Path(__file__).with_name("map.yml")
PASSED = Path(__file__).with_name("passed.json")


def read_map(path: Path = MAP) -> dict[str, About]:
    data = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    return {
        name: About(tuple(entry["modules"]), tuple(entry["paths"]), 60.0 * entry["minutes"])
        for name, entry in data.items()
    }


def read_passed(path: Path = PASSED) -> dict[str, Passed]:
    return {test: Passed(**one) for test, one in json.loads(path.read_text(encoding="utf-8")).items()}


def outcomes_of(junit: Path) -> dict[str, tuple[bool, float]]:
    """Whether each test of a JUnit file (family xunit1) passed, and its seconds; a skipped one is not there."""
    found = {}
    for case in ElementTree.parse(junit).iter("testcase"):  # noqa: S314 - pytest wrote it
        bad = case.find("failure") is not None or case.find("error") is not None
        if case.find("skipped") is None and case.get("file"):
            found[f"{case.get('file')}::{case.get('name')}"] = (not bad, float(case.get("time") or 0))
    return found


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=TREE, capture_output=True, text=True, check=False).stdout.strip()


@cache
def _changed_since(commit: str) -> tuple[str, ...] | None:
    """The files that differ from a commit, also those not committed; None for a commit that is not known here."""
    known = subprocess.run(
        ["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=TREE, capture_output=True, check=False
    )
    return tuple(_git("diff", "--name-only", commit).splitlines()) if known.returncode == 0 else None


def _collected() -> list[str]:
    argv = [sys.executable, "-m", "pytest", *read_map(), "-m", "long", "--collect-only", "-q"]
    printed = subprocess.run(argv, cwd=TREE, capture_output=True, text=True, check=False).stdout
    return [line for line in printed.splitlines() if line.startswith("tests/") and "::" in line]


def candidates(tests: Sequence[str], passed: Mapping[str, Passed], *, new: bool) -> list[str]:
    """Tests to choose from: one that has never passed says nothing of a change and waits for `make test-long`."""
    return [test for test in tests if new or test in passed]


def _choose(minutes: float, *, new: bool) -> int:
    import grimp  # noqa: PLC0415 - only a choice needs it

    graph = grimp.build_graph("storqual", "storqual_core", cache_dir=None)

    @cache
    def imports(module: str) -> tuple[str, ...]:
        package = bool(graph.find_children(module))
        return tuple(graph.find_upstream_modules(module, as_package=package))

    abouts, passed, head = read_map(), read_passed(), _git("rev-parse", "HEAD")

    @cache
    def near(file: str, commit: str) -> int:
        changed = _changed_since(commit or "HEAD~1")
        return nearness(file, abouts[file], imports, changed if changed is not None else (file,))

    commits = {one.commit for one in passed.values()}
    ages = {
        commit: int(_git("rev-list", "--count", f"{commit}..HEAD") or 0)
        for commit in commits
        if _changed_since(commit) is not None
    }
    chosen = choose(
        candidates(_collected(), passed, new=new), abouts, passed, near, ages, commit=head, budget_s=60 * minutes
    )
    for one in chosen:
        print(f"long: {one.test} ({one.seconds / 60:.0f} min): {one.reason}", file=sys.stderr)
        print(one.test)
    return 0 if chosen else 1


def _record(junit: Path) -> int:
    changed = [line for line in _git("status", "--porcelain", "-uno").splitlines() if PASSED.name not in line]
    if changed:
        print(f"not recorded: {len(changed)} files differ from the commit that these tests would stand for")
        return 0
    after = record(read_passed(), outcomes_of(junit), _collected(), _git("rev-parse", "HEAD"))
    text = json.dumps({test: asdict(after[test]) for test in sorted(after)}, indent=1)
    PASSED.write_text(f"{text}\n", encoding="utf-8")
    print(f"{len(after)} long tests are known to have passed: commit {PASSED.relative_to(TREE)} with the change")
    return 0


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    choice = commands.add_parser("choose")
    choice.add_argument("--minutes", type=float, required=True)
    choice.add_argument("--new", action="store_true", help="also tests that are not known to have passed")
    commands.add_parser("record").add_argument("junit", type=Path)
    options = parser.parse_args(arguments)
    return _choose(options.minutes, new=options.new) if options.command == "choose" else _record(options.junit)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
