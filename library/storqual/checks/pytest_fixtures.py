# SPDX-License-Identifier: Apache-2.0
"""What hand-written suites get, and how their outcomes become checks of the verdict."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from storqual.bench.ansible_run import ask_benches
from storqual.checks.collected import NO_TEST
from storqual.checks.own import CORRECT
from storqual.inputs import load_inventory
from storqual.run import Check, PlannedPoint, Run, Sample, append_check, append_event, is_signed, read_run
from storqual.run.closing import is_closed
from storqual.run.events import new_check


@cache
def _described(sources: tuple[str, ...]) -> dict[str, Any]:
    benches = load_inventory([Path(source) for source in sources]).benches
    return {name: bench.model_dump(mode="json", exclude_none=True) for name, bench in benches.items()}


def bench_names(sources: tuple[str, ...]) -> list[str]:
    """The benches of an inventory. Raises BadInputError for one that cannot be read."""
    return list(_described(sources))


@cache
def live_bench(sources: tuple[str, ...], name: str) -> dict[str, Any]:
    """What the inventory says of a bench, and under `facts` and `kernel_log` (lines since boot) what it says itself.

    Raises StorqualError when it does not answer.
    """
    answer = ask_benches("facts.yml", sources, limit=name, variables={"look_depths": {}})[name]
    return {**_described(sources)[name], "name": name, "facts": answer["facts"], "kernel_log": answer["kernel_log"]}


_RUN = pytest.StashKey[Run]()
_SAMPLES = pytest.StashKey[tuple[tuple[str, str, str], tuple[Sample, ...]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--storqual-run`: the run that hand-written tests look at; `--storqual-inventory`: benches that answer now."""
    group = parser.getgroup("storqual")
    group.addoption(
        "--storqual-run", type=Path, default=None, help="run directory; outcomes are appended to its checks.jsonl"
    )
    group.addoption("--storqual-own", default="", help="the file of a user's own checks that this process runs")
    group.addoption(
        "--storqual-inventory",
        action="append",
        default=[],
        help="inventory whose benches `bench` asks, without a run",
    )


_MARKERS = (
    "points(workload='*', adapter='*', **levels): run a test that uses `point` at these planned points only",
    "suites(*patterns): this check runs for these suites only, such as suites('adapter', 'drive-*')",
    "informative: this check is shown and does not affect the outcome",
    "check_id(name): the check's name in the verdict, instead of file::function",
)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers, read the run once, and have outcomes recorded."""
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)
    path = config.getoption("--storqual-run")
    if path is not None:
        config.stash[_RUN] = read_run(path)
        own_file = str(config.getoption("--storqual-own"))
        config.pluginmanager.register(_Recorder(path, own_file), "storqual-recorder")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for `point` runs at every planned point; one that asks for `bench`, on every bench."""
    recorded = metafunc.config.stash.get(_RUN, None)
    if recorded is None:
        sources = _sources(metafunc.config)
        if sources and "bench" in metafunc.fixturenames and "point" not in metafunc.fixturenames:
            names = bench_names(sources)
            metafunc.parametrize("bench", names, ids=names, indirect=True)
        return
    if "point" in metafunc.fixturenames:
        selects = _selector(metafunc.definition.get_closest_marker("points"))
        points = [planned for planned in recorded.plan.points if not planned.skipped and selects(planned)]
        names = [f"{planned.adapter}/{planned.point}" for planned in points]
        metafunc.parametrize("point", points, ids=names, indirect=True)
    elif "bench" in metafunc.fixturenames:
        metafunc.parametrize("bench", list(recorded.benches), ids=list(recorded.benches), indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out checks of other suites: they are none of this run."""
    recorded = config.stash.get(_RUN, None)
    if recorded is None:
        return
    bound = [item for item in items if not _is_of_suite(item, recorded.suite.name)]
    if bound:
        config.hook.pytest_deselected(items=bound)
        items[:] = [item for item in items if item not in bound]


def _is_of_suite(item: pytest.Item, suite: str) -> bool:
    markers = list(item.iter_markers("suites"))
    return not markers or any(fnmatchcase(suite, str(pattern)) for marker in markers for pattern in marker.args)


def _sources(config: pytest.Config) -> tuple[str, ...]:
    return tuple(config.getoption("--storqual-inventory"))


def _selector(marker: pytest.Mark | None) -> Callable[[PlannedPoint], bool]:
    """What a `points` marker lets through: names are patterns, factors have the level that the point's name says."""
    factors = dict(marker.kwargs) if marker is not None else {}
    workload, adapter = str(factors.pop("workload", "*")), str(factors.pop("adapter", "*"))

    def selects(planned: PlannedPoint) -> bool:
        named = fnmatchcase(planned.workload, workload) and fnmatchcase(planned.adapter, adapter)
        levels = planned.point.partition("[")[2].rstrip("]").split(",")
        return named and all(f"{name}={level}" in levels for name, level in factors.items())

    return selects


@pytest.fixture(scope="session")
def run(request: pytest.FixtureRequest) -> Run:
    """The run: plan, samples, events, what was provisioned."""
    opened = request.config.stash.get(_RUN, None)
    if opened is None:
        pytest.skip("no run was named (--storqual-run)")
    return opened


@pytest.fixture
def point(request: pytest.FixtureRequest) -> PlannedPoint:
    """One point of the plan: bench, adapter, name, workload, factors, drives."""
    planned: PlannedPoint = request.param
    return planned


@pytest.fixture
def baseline(run: Run, point: PlannedPoint, request: pytest.FixtureRequest) -> tuple[Sample, ...]:
    return _samples(run, point, "baseline", request.config.stash)


@pytest.fixture
def candidate(run: Run, point: PlannedPoint, request: pytest.FixtureRequest) -> tuple[Sample, ...]:
    return _samples(run, point, "candidate", request.config.stash)


@pytest.fixture
def bench(request: pytest.FixtureRequest) -> Mapping[str, Any]:
    """One bench with name, kind and adapters; of a run its environment before and after, of an inventory its facts.

    A bench of an inventory is asked now, over the inventory's own connection; nothing on it is changed.
    """
    recorded = request.config.stash.get(_RUN, None)
    if recorded is None:
        sources = _sources(request.config)
        if not sources:
            pytest.skip("no run and no inventory was named (--storqual-run, --storqual-inventory)")
        return live_bench(sources, request.param)
    planned = request.getfixturevalue("point") if "point" in request.fixturenames else None
    name = planned.bench if planned is not None else request.param
    return {"name": name, **recorded.benches[name]}


def _samples(run: Run, point: PlannedPoint, arm: str, stash: pytest.Stash) -> tuple[Sample, ...]:
    """The samples of an arm at a point; those of both arms are held until another point is asked for."""
    stored = stash.get(_SAMPLES, None)
    if stored is None or stored[0] != point.key:
        stored = point.key, tuple(run.samples_at(point))
        stash[_SAMPLES] = stored
    return tuple(sample for sample in stored[1] if sample.arm == arm)


_NO_DETAILS = 'it holds; it records no details (a test can: record_property("looked_at", ...))'


class _Recorder:
    """Append one check per test: a pass, a failure, an error in what it rests on, or a skip with its reason.

    A run that was closed takes no more: then the outcomes are judged beside it. `own_file` is the file whose process
    this is, of a user's own checks.
    """

    def __init__(self, path: Path, own_file: str = "") -> None:
        self._path = path
        self._own_file = own_file
        self._closed = is_signed(path) or is_closed(path)
        self._checks: list[Check] = []
        self._not_collected: list[dict[str, Any]] = []
        self._silent: set[str] = set()

    @pytest.hookimpl
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """One outcome per test, when it is known: in the call, or earlier when there was no call."""
        if call.when == "teardown" or (call.when == "setup" and call.excinfo is None):
            return
        outcome, reason = _outcome(call)
        if outcome == "SKIPPED":
            reason = _without_point(item) or reason
        findings = "; ".join(str(value) for name, value in item.user_properties if name == "looked_at")
        check: dict[str, Any] = {
            "id": _check_id(item),
            "outcome": outcome,
            "reason": reason or findings or _NO_DETAILS,
            "source": "pytest",
            # where its id names another
            **({"file": item.path.name} if item.get_closest_marker("check_id") is not None else {}),
        }
        callspec = getattr(item, "callspec", None)
        parameters = callspec.params if callspec is not None else {}
        planned = parameters.get("point")
        if isinstance(planned, PlannedPoint):
            check.update(bench=planned.bench, adapter=planned.adapter, point=planned.point)
        elif "bench" in parameters:
            check["bench"] = parameters["bench"]
        if item.get_closest_marker("informative") is not None:
            check["required"] = False
        self._add(check)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        silent = {Path(word).name for word in config.args if word.endswith(".py")}
        self._silent = silent - {item.path.name for item in items} - {check["id"] for check in self._not_collected}

    @pytest.hookimpl
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Say which checks there will be, so that one without an outcome is missed; add what cannot be one."""
        planned = Counter(_check_id(item) for item in session.items)
        if planned and not self._closed:
            fields: dict[str, Any] = {"source": "pytest", "checks": dict(planned)}
            if self._own_file:
                fields["file"] = self._own_file
            append_event(self._path, "checks_planned", fields)
        for name in sorted(self._silent):
            self._not_collected.append({"id": name, "outcome": "ERROR", "reason": f"{name} {NO_TEST['.py']}"})
        for check in self._not_collected:
            self._add({**check, "source": "pytest"})

    @pytest.hookimpl
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be read as tests has none of its outcomes; one that skips itself says why."""
        name = Path(report.nodeid).name or "hand-written checks"
        if report.failed:
            message = str(report.longrepr).strip().splitlines()
            self._not_collected.append({"id": name, "outcome": "ERROR", "reason": _where_broken(name, message)})
        elif report.skipped and isinstance(report.longrepr, tuple):
            self._not_collected.append({"id": name, "outcome": "SKIPPED", "reason": str(report.longrepr[2])})

    @pytest.hookimpl
    def pytest_sessionfinish(self) -> None:
        """Outcomes of a run that was closed are no part of it: a judgement of its own is made with them."""
        if self._checks:
            from storqual.judge.verdict import judge_run  # noqa: PLC0415 - needed by few, and slow

            judge_run(self._path, checks=self._checks)

    def _add(self, check: dict[str, Any]) -> None:
        if self._closed:
            self._checks.append(new_check(check))
        else:
            append_check(self._path, check)


def _without_point(item: pytest.Item) -> str:
    """Which points a test asks for that was skipped because the plan has none of them; empty for other skips."""
    callspec = getattr(item, "callspec", None)
    has_point = "point" in getattr(item, "fixturenames", ())
    if not has_point or callspec is None or isinstance(callspec.params.get("point"), PlannedPoint):
        return ""
    marker = item.get_closest_marker("points")
    kwargs = marker.kwargs if marker is not None else {}
    arguments = ", ".join(f"{name}={value!r}" for name, value in kwargs.items())
    return f"no point of this run fits points({arguments})"


def _check_id(item: pytest.Item) -> str:
    """A check's name: without its parameters, a parametrised test's place is in fields of its own."""
    named = item.get_closest_marker("check_id")
    return str(named.args[0]) if named is not None else f"{item.path.name}::{item.name.partition('[')[0]}"


def _where_broken(name: str, message: Sequence[str]) -> str:
    """A line for a file that cannot be collected: which, where in it, why, and what to do."""
    lines = [match[1] for line in message if (match := re.search(rf"{re.escape(name)}\"?(?::|, line )(\d+)", line))]
    why = message[-1].removeprefix("E").strip() if message else "no message"
    return f"{':'.join([name, *lines[-1:]])}: {why}; {CORRECT}"


def _outcome(call: pytest.CallInfo[None]) -> tuple[str, str]:
    if call.excinfo is None:
        return "PASS", ""
    error = call.excinfo.value
    text = str(error).strip().splitlines()
    if isinstance(error, pytest.skip.Exception):
        return "SKIPPED", text[0] if text else "skipped without a reason"
    if call.when == "call" and isinstance(error, AssertionError | pytest.fail.Exception):
        return "FAIL", text[0] if text else "the assertion does not hold"
    return "ERROR", f"{type(error).__name__}: {text[0] if text else 'no message'}"
