# SPDX-License-Identifier: Apache-2.0
"""A verdict as pytest items: one per criterion and point, one per workload where there are too many points."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from storqual.base.text import xml_text
from storqual.report.criterion import waived_by
from storqual.run.waived import used_waivers, with_waivers

MOST_ITEMS = 10_000
"""Above it an item stands for a workload: pytest keeps every item in memory, and a reader reads none of them."""

_RANK = ("ERROR", "FAIL", "INCONCLUSIVE", "MARGINAL", "PASS", "SKIPPED")
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
        verdict = json.loads(self.path.read_text(encoding="utf-8"))
        criteria = verdict["criteria"]
        accepted = with_waivers(used_waivers(criteria))
        # JUnit has no outcome of a run: each of its lines says what the run rests on
        told = f"{verdict.get('outcome')} {accepted}" if accepted else ""
        groups = _by_point(criteria) if len(criteria) <= MOST_ITEMS else _by_workload(criteria)
        seen: defaultdict[str, int] = defaultdict(int)
        for name, members in groups:
            seen[name] += 1
            what, at, place = name.partition("@")
            unique = name if seen[name] == 1 else f"{what}#{seen[name]}{at}{place}"
            yield VerdictItem.from_parent(self, name=unique, criteria=members, told=told)


class VerdictItem(pytest.Item):
    """One criterion at one point, or all points of a workload."""

    def __init__(self, *, criteria: Sequence[Mapping[str, Any]], told: str, **rest: Any) -> None:  # noqa: ANN401 - pytest's own
        super().__init__(**rest)
        self.criteria = criteria
        worst = min(criteria, key=lambda entry: _RANK.index(entry["outcome"]))
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
        failed = [entry for entry in criteria if entry["outcome"] == "FAIL"]
        if self.outcome == "FAIL" and all(entry.get("waiver") for entry in failed):
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


def _by_point(criteria: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """Each criterion by itself, called `metric@adapter/point`; the bench in front where there are several."""
    several = len({entry.get("bench") for entry in criteria}) > 1
    for entry in criteria:
        # a check is known by its id: several of them may have no metric, no adapter and no point
        what = entry.get("metric") or entry["id"]
        place = "/".join(str(entry[part]) for part in ("adapter", "point") if entry.get(part))
        bench = f"{entry['bench']}:" if several and entry.get("bench") else ""
        yield _neutral(f"{what}@{bench}{place}" if place or bench else str(what)), [entry]


def _by_workload(criteria: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    groups: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for entry in criteria:
        workload = str(entry.get("point") or "").partition("[")[0]
        what = entry.get("metric") or entry["id"]
        groups[_neutral(f"{what}@{entry.get('adapter') or ''}/{workload}")].append(entry)
    yield from groups.items()


def _neutral(name: str) -> str:
    """A name that is text everywhere: pytest-html writes ids into the page as they are."""
    return "".join(letter if letter.isalnum() or letter in "@/[]=,._-:%# " else "_" for letter in name)


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
