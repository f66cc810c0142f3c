# SPDX-License-Identifier: Apache-2.0
"""A verdict as pytest items: one per criterion and point, one per workload where there are too many points."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from storqual.base.text import xml_text
from storqual.judge.outcome import used_waivers, with_waivers
from storqual.report.criterion import is_accepted, named_cases, waived_by, worst_of
from storqual.run.files import read_object

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
    """Take a file called verdict.json for what it is."""
    if file_path.name != "verdict.json":
        return None
    collector: pytest.Collector = VerdictFile.from_parent(parent, path=file_path)
    return collector


class VerdictFile(pytest.File):
    """One verdict.json."""

    def collect(self) -> Iterator[pytest.Item]:
        """The items, their names made unique."""
        verdict = read_object(self.path.parent, self.path.name)
        criteria = verdict["criteria"]
        accepted = with_waivers(used_waivers(criteria))
        # JUnit has no outcome of a run: each of its lines says what the run rests on
        told = f"{verdict.get('outcome')} {accepted}" if accepted else ""
        for name, members in named_cases(criteria):
            yield VerdictItem.from_parent(self, name=name, criteria=members, told=told)


class VerdictItem(pytest.Item):
    """One criterion at one point, or all points of a workload."""

    def __init__(self, *, criteria: Sequence[Mapping[str, Any]], told: str, **rest: Any) -> None:  # noqa: ANN401 - pytest's own
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
        if told:
            self.user_properties.append(("run_outcome", xml_text(told)))
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
        """Fail when the criterion failed."""
        if self.outcome == "FAIL":
            pytest.fail(self._sentence(), pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where it stands and what it is called."""
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
    """Say where the verdict is."""
    prefix.append("<p>One line per criterion and point. The verdict to sign by is report.html beside this file.</p>")
