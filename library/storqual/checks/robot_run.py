# SPDX-License-Identifier: Apache-2.0
"""Start Robot Framework in a process of its own; what its tests found becomes checks of the run.

Tests may be bound: tags `suite:<pattern>` and `workload:<pattern>` say of which runs a test is one.
"""

import re
import subprocess
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from robot.api import ExecutionResult, ResultVisitor, SuiteVisitor
from robot.errors import DataError
from robot.running import TestSuite

from storqual.base import child
from storqual.base.files import suites_folder
from storqual.checks.own import CORRECT, planned_checks, robot_argv, run_in_folder
from storqual.run import Run, append_check, append_event, read_run
from storqual_core.kit.durable import checked_name
from storqual_core.kit.errors import BadInputError, StorqualError

_BROKEN = re.compile(
    r"(?:[A-Za-z_]\w*(?:Error|Exception|Expired)|Several failures occurred:\n\n1\) \w+Error): "
    r"|(?:Parent )?[Ss]uite setup failed|Setup failed|No keyword with name|Variable '|Test timeout"
    r"|Keyword '.*' expected"
)
"""How a message begins that is no assertion: Robot names every exception class but AssertionError in front."""
_UNDECIDED = "UndecidedError: "

_NO_DETAILS = "it holds; Robot's log has its steps"
_MOST = 3
"""Lines of a message that a check's reason keeps; the log keeps all."""


@dataclass(frozen=True)
class RobotCheck:
    """One test: `<suite file>::<test>`, its outcome and why."""

    id: str
    outcome: str
    reason: str
    adapter: str | None
    point: str | None

    def to_json(self, bench: str) -> dict[str, Any]:
        subject = {"bench": bench, "adapter": self.adapter, "point": self.point}
        line: dict[str, Any] = {"id": self.id, "outcome": self.outcome, "reason": self.reason, "source": "robot"}
        if self.outcome == "SKIPPED":
            # what does not apply to this bench is no requirement of this run
            line["required"] = False
        return {**line, **{name: value for name, value in subject.items() if value}}


def read_checks(output: Path) -> tuple[RobotCheck, ...]:
    """The tests of an output.xml in order. Raises StorqualError when it is none."""
    try:
        result = ExecutionResult(str(output))
    except DataError as problem:
        raise StorqualError(f"{output}: found no output of Robot Framework ({problem})") from None
    return tuple(check_of(test) for test in _tests(result))


def _tests(result: Any) -> Iterator[Any]:  # noqa: ANN401 - Robot Framework's result model
    tests: list[Any] = []

    class Gather(ResultVisitor):  # type: ignore[misc] # untyped base
        def visit_test(self, test: Any) -> None:  # noqa: ANN401 - as above
            tests.append(test)

    result.visit(Gather())
    return iter(tests)


def check_of(test: Any) -> RobotCheck:  # noqa: ANN401 - Robot Framework's result model
    """One test's check; tags `adapter:<alias>` and `point:<name>` say what it is about."""
    message = str(test.message).strip()
    outcome = {"PASS": "PASS", "SKIP": "SKIPPED"}.get(test.status, "FAIL")
    if outcome == "FAIL" and message.startswith(_UNDECIDED):
        outcome = "INCONCLUSIVE"
    elif outcome == "FAIL" and _BROKEN.match(message):
        outcome = "ERROR"
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    more = [f"and {len(lines) - _MOST} more in Robot's log"] if len(lines) > _MOST else []
    reason = "; ".join([*lines[:_MOST], *more])
    return RobotCheck(
        id=f"{Path(str(test.source)).name}::{test.name}",
        outcome=outcome,
        reason=reason.removeprefix("NotJudgedError: ").removeprefix(_UNDECIDED) or _NO_DETAILS,
        adapter=_tagged(test, "adapter:"),
        point=_tagged(test, "point:"),
    )


def _tagged(test: Any, prefix: str) -> str | None:  # noqa: ANN401 - as above
    return next((str(tag)[len(prefix) :] for tag in test.tags if str(tag).lower().startswith(prefix)), None)


_LIMIT_S = 3600
_CRASHED = 250
"""Robot Framework's statuses up to 250 count failed tests; above, it could not run."""
FOLDER = "robot"
"""Where a run keeps the logs, one folder per bench."""


@dataclass(frozen=True)
class Target:
    """What the suites are about: a run directory, or inventories whose bench answers now."""

    bench: str
    kind: str = "hardware"
    run: Path | None = None
    inventories: tuple[str, ...] = ()

    @property
    def variables(self) -> tuple[str, ...]:
        return f"RUN:{self.run or ''}", f"INVENTORY:{','.join(self.inventories)}", f"BENCH:{self.bench}"

    @property
    def beside_the_point(self) -> tuple[str, ...]:
        """Tags of tests without an answer here: a run is not asked, a bench has no run, files have no adapter."""
        tags = ("live",) if self.run is not None else ("needs-run",)
        return (*tags, "needs-adapters") if self.kind == "local" else tags


def suite_files(names: Sequence[str]) -> list[Path]:
    """Suites by file, or by the name of one that comes with the project; all of those without a name.

    Raises BadInputError with every name that is neither.
    """
    shipped = {path.stem: path for path in sorted((suites_folder() / FOLDER).glob("*.robot"))}
    files = {name: shipped.get(name, Path(name)) for name in names} if names else shipped
    problems = [
        f"suite {name}: no such file; expected a .robot file or one of {', '.join(shipped)}"
        for name, path in files.items()
        if not path.is_file()
    ]
    if problems:
        raise BadInputError(problems)
    return list(files.values())


def run_suites(
    target: Target,
    suites: Sequence[Path],
    output: Path,
    *,
    variables: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> tuple[RobotCheck, ...]:
    """Run the suites and write log.html, report.html, output.xml and xunit.xml to `output`; returns the checks.

    `variables` are the suites' own (`NAME:value`), `exclude` are tags of tests to leave out.
    Raises StorqualError when Robot Framework itself breaks; failing tests are answers.
    """
    output.mkdir(parents=True, exist_ok=True)
    argv = [*robot_argv(), "--outputdir", str(output.resolve()), "--xunit", "xunit.xml"]
    for variable in (*target.variables, *variables):
        argv += ["--variable", variable]
    for tag in (*target.beside_the_point, *exclude):
        argv += ["--exclude", tag]
    if target.run is not None:
        argv += ["--prerunmodifier", _of_run(read_run(target.run))]
    argv += [str(suite.resolve()) for suite in suites]
    try:
        ended = run_in_folder(argv, {}, limit_s=_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise StorqualError(f"Robot Framework did not end within {_LIMIT_S} s") from None
    if ended.returncode > _CRASHED or ended.returncode < 0:
        lines = (ended.stdout + ended.stderr).strip().splitlines() or ["no message"]
        raise StorqualError(f"Robot Framework ended with {ended.returncode}: {lines[0]}")
    return read_checks(output / "output.xml")


def _of_run(run: Run) -> str:
    """What leaves out tests that are bound to other suites or workloads, as an argument of Robot Framework."""
    return ";".join(["storqual.checks.robot_run.OfThisRun", *_bound_to(run)])


def _bound_to(run: Run) -> list[str]:
    return [run.suite.name, *sorted({point.workload for point in run.plan.points if not point.skipped})]


_NO_CHECKS = ("after-verdict", "thresholds", "throttle")
"""Tags of tests that need a verdict, bring thresholds of their own beside the suite's, or a throttle nobody named."""


def _planned(run: Run, targets: Sequence[Target], suites: Sequence[Path]) -> dict[str, int]:
    """The checks that will have an outcome, with their number: those of each bench, by what their tags say.

    Raises StorqualError for a suite that is none.
    """
    counts: Counter[str] = Counter()
    for target in targets:
        try:
            suite = TestSuite.from_file_system(*suites, allow_empty_suite=True)
        except DataError as problem:
            raise StorqualError(f"Robot Framework: {problem}") from None
        suite.visit(OfThisRun(*_bound_to(run)))
        suite.configure(exclude_tags=[*target.beside_the_point, *_NO_CHECKS])
        counts.update(f"{Path(str(test.source)).name}::{test.name}" for test in suite.all_tests)
    return dict(counts)


def publish_suites(run: Path, *, only: Collection[str] | None = None) -> int:
    """Run the project's suites, and those the run was planned with, over a run that was not judged yet.

    Which checks there will be is an event of the run before any of them is run. `only` names files of a user's own,
    which are run again. Returns the number of checks added.
    """
    added = 0
    opened = read_run(run)
    with child.empty_folder() as copies:
        # a suite is one file: no resource, no library and no __init__.robot of its folder is read
        user_files = planned_checks(opened, ".robot", only)
        shipped = {path.name: path.read_bytes() for path in suite_files(())} if only is None else {}
        for name, data in {**shipped, **user_files}.items():
            (copies / name).write_bytes(data)
        targets = [Target(bench, str(entry.get("kind")), run.resolve()) for bench, entry in opened.benches.items()]
        groups = (
            [(name, [copies / name]) for name in user_files]
            if only
            else [("", [*map(copies.joinpath, (*shipped, *user_files))])]
        )
        for file, suites in groups:
            planned = _planned(opened, targets, suites)
            if planned:
                fields = {"source": "robot", "checks": planned, **({"file": file} if file else {})}
                append_event(run, "checks_planned", fields)
            for target in targets:
                logs = run / FOLDER / checked_name(target.bench, "bench")
                if file:
                    logs /= Path(file).stem
                added += _add_checks(target, suites, logs, user_files)
    return added


def _add_checks(target: Target, suites: Sequence[Path], logs: Path, user_files: Collection[str]) -> int:
    """Run suites together; where that breaks, the project's together and each of a user's own alone.

    Returns the number of checks added. Raises StorqualError when Robot Framework breaks at the project's.
    """
    assert target.run is not None  # noqa: S101 - outcomes are added to a run
    users = [suite for suite in suites if suite.name in user_files]
    try:
        checks = [check.to_json(target.bench) for check in run_suites(target, suites, logs, exclude=_NO_CHECKS)]
    except StorqualError as problem:
        if not users:
            raise
        if len(suites) > 1:
            shipped = [suite for suite in suites if suite not in users]
            first = _add_checks(target, shipped, logs, ()) if shipped else 0
            return first + sum(_add_checks(target, [suite], logs / suite.stem, user_files) for suite in users)
        reason = f"{users[0].name}: {problem}; {CORRECT}"
        failed = {"id": users[0].name, "outcome": "ERROR", "reason": reason}
        checks = [{**failed, "source": "robot", "bench": target.bench}]
    for check in checks:
        append_check(target.run, check)
    return len(checks)


class OfThisRun(SuiteVisitor):  # type: ignore[misc] # untyped base
    """Leave out tests of other suites and of workloads that were not planned; a test without such a tag stays."""

    def __init__(self, suite: str, *workloads: str) -> None:
        self._names = {"suite:": (suite,), "workload:": workloads}

    def start_suite(self, suite: TestSuite) -> None:
        """Take the tests out before anything of the file is run."""
        suite.tests = [test for test in suite.tests if self._fits([str(tag) for tag in test.tags])]

    def end_suite(self, suite: TestSuite) -> None:
        """A file of which no test is left is not set up either."""
        suite.suites = [inner for inner in suite.suites if inner.test_count]

    def visit_test(self, test: object) -> None:
        """What a test does is not looked at."""

    def _fits(self, tags: Iterable[str]) -> bool:
        for prefix, names in self._names.items():
            patterns = [tag[len(prefix) :] for tag in tags if tag.lower().startswith(prefix)]
            if patterns and not any(fnmatchcase(name, pattern) for name in names for pattern in patterns):
                return False
        return True
