# SPDX-License-Identifier: Apache-2.0
"""Start pytest in a process of its own: hand-written checks before the judge, the log after it."""

import json
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from storqual.base.files import suites_folder
from storqual.base.text import xml_text
from storqual.checks.own import CORRECT, planned_checks, pytest_argv, run_in_folder
from storqual.judge.outcome import used_waivers, with_waivers
from storqual.report.criterion import is_accepted, named_cases, waived_by, worst_of
from storqual.run import append_check, append_event, read_run
from storqual.run.files import read_lines, read_object
from storqual.run.layout import CHECKS
from storqual_core.kit.errors import StorqualError

_LIMIT_S = 1800
_NO_TESTS = 5
"""pytest's status where all tests of a file are bound to other suites."""
_CRASHED = (3, 4)
"""pytest's own statuses for an internal error and for wrong use; failing tests (1) and no tests (5) are answers."""


def run_checks(run: Path, suites: Sequence[Path] | None = None, *, only: Collection[str] | None = None) -> int:
    """Run the hand-written tests of `suites` over `run`; the number of checks added.

    By default they are the project's own and those that the run was planned with, of which `only` names some. A test
    is one file: no conftest.py, no package and no settings of its folder are read. Each file that is not the
    project's has a process of its own, so that a broken one takes no other with it. Outcomes go to checks.jsonl;
    failing tests are no error here. Raises StorqualError when pytest itself breaks at the project's.
    """
    before = sum(1 for _ in read_lines(run, CHECKS))
    words = ["--storqual-run", str(run.resolve())]
    user_files: dict[str, bytes] = {}
    if suites is not None:
        files = {path.name: path.read_bytes() for path in suites}
    else:
        shipped = sorted(suites_folder().glob("test_*.py")) if only is None else ()
        files = {path.name: path.read_bytes() for path in shipped}
        user_files = planned_checks(read_run(run), ".py", only)
    if files:
        _pytest(run, files, words, "hand-written checks")
    for name, data in user_files.items():
        had = sum(1 for _ in read_lines(run, CHECKS))
        reason = f"{name}: it ended pytest before any of its tests had an outcome; {CORRECT}"
        try:
            ended = _pytest(run, {name: data}, [*words, "--storqual-own", name], f"check {name}")
            if ended == _NO_TESTS or sum(1 for _ in read_lines(run, CHECKS)) > had:
                continue
        except StorqualError as problem:
            reason = f"{problem}; {CORRECT}"
        append_check(run, {"id": name, "outcome": "ERROR", "reason": reason, "source": "pytest"})
    return sum(1 for _ in read_lines(run, CHECKS)) - before


def publish_log(run: Path) -> Path:
    """Write pytest.html and junit.xml of a judged run; returns the path of pytest.html.

    Raises StorqualError when pytest itself breaks; a failing verdict is none of its business.
    """
    page, junit = (run.resolve() / name for name in ("pytest.html", "junit.xml"))
    words = [f"--html={page}", "--self-contained-html", f"--junit-xml={junit}", "-o", "junit_suite_name=storqual"]
    _pytest(run, {"verdict.json": (run / "verdict.json").read_bytes()}, words, "log")
    return run / "pytest.html"


def _pytest(run: Path, files: Mapping[str, bytes], words: Sequence[str], what: str) -> int:
    """Run pytest on copies of `files`; its exit status. Raises StorqualError when it breaks or does not end."""
    try:
        ended = run_in_folder([*pytest_argv(), *sorted(files), *words], files, limit_s=_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise StorqualError(f"pytest ({what}) did not end within {_LIMIT_S} s") from None
    if ended.returncode in _CRASHED or ended.returncode < 0:
        output = (ended.stdout + ended.stderr).strip().splitlines() or ["no message"]
        append_event(run, "note", {"text": f"pytest ({what}) ended with {ended.returncode}"})
        raise StorqualError(f"pytest ({what}) ended with {ended.returncode}: {output[-1]}")
    return int(ended.returncode)


_PROPERTIES = (
    "outcome",
    "metric",
    "unit",
    "candidate",
    "reference",
    "shift_percent",
    "ci95_percent",
    "margin_percent",
    "detectable_percent",
    "samples",
    "sessions",
    "bench",
    "adapter",
    "point",
)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.name != "verdict.json":
        return None
    collector: pytest.Collector = VerdictFile.from_parent(parent, path=file_path)
    return collector


class VerdictFile(pytest.File):
    """One verdict.json."""

    def collect(self) -> Iterator[pytest.Item]:
        verdict = read_object(self.path.parent, self.path.name)
        criteria = verdict["criteria"]
        accepted = with_waivers(used_waivers(criteria))
        # JUnit has no outcome of a run: each of its lines says what the run rests on
        run_outcome = f"{verdict.get('outcome')} {accepted}" if accepted else ""
        for name, members in named_cases(criteria):
            yield VerdictItem.from_parent(self, name=name, criteria=members, run_outcome=run_outcome)


class VerdictItem(pytest.Item):
    """One criterion at one point, or all points of a workload."""

    def __init__(self, *, criteria: Sequence[Mapping[str, Any]], run_outcome: str, **rest: Any) -> None:  # noqa: ANN401 - pytest's own
        super().__init__(**rest)
        self.criteria = criteria
        worst = worst_of(criteria)
        self.outcome = str(worst["outcome"])
        self.worst = worst
        if len(criteria) == 1:
            for name in _PROPERTIES:
                if worst.get(name) is not None:
                    self.user_properties.append((name, xml_text(_plain(worst[name]))))
        else:
            self.user_properties.append(("criteria", str(len(criteria))))
            self.user_properties.append(("outcome", self.outcome))
        if run_outcome:
            self.user_properties.append(("run_outcome", xml_text(run_outcome)))
        if is_accepted(criteria):
            self.user_properties.append(("waiver", _accepted(worst["waiver"])))
            self.add_marker(pytest.mark.xfail(reason=_accepted(worst["waiver"]), strict=True))

    def setup(self) -> None:
        """End here what could not be judged, and what was not to be."""
        if self.outcome in ("ERROR", "INCONCLUSIVE"):
            # in setup, so that JUnit shows an error and not a failure
            pytest.fail(self._sentence(), pytrace=False)
        if self.outcome == "SKIPPED":
            pytest.skip(self._sentence())

    def runtest(self) -> None:
        if self.outcome == "FAIL":
            pytest.fail(self._sentence(), pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name

    def _sentence(self) -> str:
        reasons = [entry for entry in self.criteria if entry["outcome"] == self.outcome]
        first = f"{self.outcome}: {self.worst.get('reason') or 'no reason was given'}"
        more = f" (and {len(reasons) - 1} more of {len(self.criteria)})" if len(reasons) > 1 else ""
        return xml_text(first + more)


def _accepted(waiver: Mapping[str, Any]) -> str:
    """Who accepted a failure, until when, and why: `waived by J. Ortega until 2027-03-31: known (BUG-4711)`."""
    why = f"{waiver.get('reason')} ({waiver.get('reference')})"
    return xml_text(f"{waived_by(waiver)}: {why}")


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


@pytest.hookimpl(optionalhook=True)
def pytest_html_report_title(report: Any) -> None:  # noqa: ANN401 - pytest-html publishes no types
    """A title without a device's words."""
    report.title = "storqual: the engineers' log"


@pytest.hookimpl(optionalhook=True)
def pytest_html_results_summary(prefix: list[str]) -> None:
    prefix.append("<p>One line per criterion and point. The verdict to sign by is report.html beside this file.</p>")
