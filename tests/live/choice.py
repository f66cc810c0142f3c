# SPDX-License-Identifier: Apache-2.0
"""The choice itself: what each test rests on, what changed since it passed, and what fits into a budget.

Eight minutes go round: the tests that passed longest ago, those without a pass on record first, and among
equals others with each commit, so that a machine which cannot keep the record goes round all the same. What is left
is for what changed: a test that a change touches directly first, one that imports what was changed second.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

DIRECT, IMPORTED, IN_TURN = 0, 1, 2
SETUP_S = 120.0
"""What powering a bench on costs, once a file."""
ALWAYS_S = 8 * 60.0
"""So much is chosen in turn, whatever changed: else one room that changes often would have all the time."""


@dataclass(frozen=True)
class About:
    """What a file of tests is about: modules of the library, paths of the repository, seconds of one test."""

    modules: tuple[str, ...]
    paths: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class Passed:
    """The commit at which a test passed last, and the seconds it took."""

    commit: str
    seconds: float


@dataclass(frozen=True)
class Chosen:
    """A test with the reason and the seconds that it is expected to take."""

    test: str
    reason: str
    seconds: float


def file_of(module: str) -> str:
    """Where a module, or the folder of a package, lies in the repository, without a suffix."""
    root = "library/module_utils/" if module.partition(".")[0] == "storqual_core" else "library/"
    return root + module.replace(".", "/")


def touches(changed: str, stem: str) -> bool:
    """Whether a changed file is the module or path `stem`, or lies in it."""
    return changed in (stem, f"{stem}.py") or PurePosixPath(stem) in PurePosixPath(changed).parents


def nearness(test_file: str, about: About, imports: Callable[[str], Sequence[str]], changed: Sequence[str]) -> int:
    """How near the changed files are to what a file of tests is about; `imports` are the modules below one."""
    own = [test_file, *about.paths, *map(file_of, about.modules)]
    if any(touches(one, stem) for one in changed for stem in own):
        return DIRECT
    below = {file_of(name) + ending for module in about.modules for name in imports(module) for ending in _ENDINGS}
    return IMPORTED if below.intersection(changed) else IN_TURN


_ENDINGS = (".py", "/__init__.py")
_REASONS = {DIRECT: "what it is about was changed", IMPORTED: "something below was changed"}


def choose(
    tests: Sequence[str],
    abouts: Mapping[str, About],
    passed: Mapping[str, Passed],
    near: Callable[[str, str], int],
    ages: Mapping[str, int],
    *,
    commit: str,
    budget_s: float,
) -> list[Chosen]:
    """Tests (node ids) for a budget, grouped by file: those in turn up to `ALWAYS_S`, then the nearest.

    The tests of a file come in the order of `tests`, whatever each was chosen for: that is how `make test-long` and
    whoever wrote the file run them.

    `near(file, commit)` says how near to a file what changed since `commit` is (empty: the commit before this one,
    for a test that is not known to have passed), `ages` how many commits ago each one was. One test is chosen in any
    case.
    Raises KeyError for a test of a file that is not in the map.
    """
    never = max(ages.values(), default=0) + 1

    def turn(test: str) -> tuple[int, str]:
        last = passed.get(test)
        age = ages.get(last.commit, never) if last else never
        return -age, hashlib.sha256(f"{commit} {test}".encode()).hexdigest()

    def distance(test: str) -> int:
        file, last = test.partition("::")[0], passed.get(test)
        return near(file, last.commit) if last else min(near(file, ""), IMPORTED)

    oldest = sorted(tests, key=turn)
    distances = {test: distance(test) for test in tests}
    nearest = sorted((test for test in oldest if distances[test] < IN_TURN), key=lambda test: distances[test])
    found: defaultdict[str, dict[str, Chosen]] = defaultdict(dict)
    spent = 0.0
    for listed, limit, reasons in ((oldest, min(budget_s, ALWAYS_S), {}), (nearest, budget_s, _REASONS)):
        for test in listed:
            file = test.partition("::")[0]
            last = passed.get(test)
            cost = (last.seconds if last else abouts[file].seconds) + (0.0 if file in found else SETUP_S)
            if test in found.get(file, ()) or (spent and spent + cost > limit):
                continue
            spent += cost
            reason = reasons.get(distances[test], "its turn") if last else "it is not known to have passed"
            found[file][test] = Chosen(test, reason, cost)
    return [chosen[test] for chosen in found.values() for test in tests if test in chosen]


def record(
    before: Mapping[str, Passed], outcomes: Mapping[str, tuple[bool, float]], tests: Sequence[str], commit: str
) -> dict[str, Passed]:
    """The record after tests ended: `outcomes` are passed or not, and seconds; what is no test any more goes."""
    after = {test: one for test, one in before.items() if test in tests}
    for test, (good, seconds) in outcomes.items():
        if good and test in tests:
            after[test] = Passed(commit, round(seconds, 1))
    return after
