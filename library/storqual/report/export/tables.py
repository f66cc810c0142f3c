# SPDX-License-Identifier: Apache-2.0
"""Criteria and launches as CSV, a verdict as OpenMetrics: every cell is text or a number."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence

from storqual.base.text import csv_cell, visible_text
from storqual.judge.outcome import listed, used_waivers, with_waivers
from storqual.report.axes import levels
from storqual.report.criterion import OUTCOMES, read_criteria
from storqual.report.material import Material

_CRITERIA = (
    "id", "bench", "adapter", "point", "metric", "unit", "better", "against", "required", "outcome", "reference",
    "candidate", "shift_percent", "ci95_low_percent", "ci95_high_percent", "margin_percent", "detectable_percent",
    "baseline_launches", "candidate_launches", "baseline_sessions", "candidate_sessions", "reason", "waiver_owner",
    "waiver_expiry", "waiver_reference", "waiver_reason", "run_outcome",
)  # fmt: skip
_WAIVER = ("owner", "expiry", "reference", "reason")
_LAUNCH = ("launch", "bench", "adapter", "point", "arm", "session", "n", "start", "runtime_s", "status")


def criteria_csv(material: Material) -> str:
    """One line per criterion and point; the last column is the run's outcome, with the waivers that it rests on."""
    rows: list[list[object]] = []
    used = with_waivers(used_waivers(material.verdict.get("criteria") or ()))
    told = f"{material.verdict.get('outcome')} {used}".strip()
    for row in read_criteria(material.verdict):
        low, high = row.interval()
        waiver = row.fields.get("waiver") or {}
        counts = [
            (row.fields.get(name) or {}).get(arm)
            for name in ("samples", "sessions")
            for arm in ("baseline", "candidate")
        ]
        rows.append(
            [row.fields.get(name) for name in _CRITERIA[:8]]
            + [row.required, row.outcome]
            + [row.number(name) for name in ("reference", "candidate", "shift_percent")]
            + [low, high, row.number("margin_percent"), row.number("detectable_percent")]
            + [*counts, row.text("reason"), *(waiver.get(name) for name in _WAIVER), told]
        )
    return _csv(_CRITERIA, rows)


def samples_csv(material: Material) -> str:
    """One line per launch: where, when, how it ended, its factors, and the metrics that this run was judged by."""
    return _csv(*launch_table(material))


def launch_table(material: Material) -> tuple[list[str], list[list[object]]]:
    """The heads and rows of the table of launches, in the order of time; nothing is rounded or quoted."""
    factors = list(dict.fromkeys(name for data in material.points.values() for name in levels(data.planned)))
    launches = [(data, launch) for data in material.points.values() for launch in data.every()]
    metrics = [name for name in material.metrics if any(one.number(name) is not None for _, one in launches)]
    rows: list[list[object]] = []
    for data, launch in sorted(launches, key=lambda pair: (pair[1].began, pair[1].id)):
        own = levels(data.planned)
        rows.append(
            [launch.id, *data.planned.key, launch.arm, launch.session, launch.n, launch.start]
            + [launch.runtime_s, launch.status]
            + [own.get(name) for name in factors]
            + [launch.number(name) for name in metrics]
            + ["; ".join(launch.suspect), " ".join(raw.sha256 for raw in launch.raw)]
        )
    return [*_LAUNCH, *factors, *metrics, "suspect", "raw_sha256"], rows


def _csv(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([csv_cell(head) for head in heads])
    writer.writerows([csv_cell(cell) for cell in row] for row in rows)
    return out.getvalue()


_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_FAMILIES = {
    "storqual_run": ("info", "What was compared."),
    "storqual_run_exit_code": ("gauge", "The gate: 0 pass, 1 fail, 2 could not be judged."),
    "storqual_run_waivers": ("gauge", "Waivers that the outcome rests on."),
    "storqual_run_points": ("gauge", "Planned points, measured points, points skipped with a reason."),
    "storqual_sectors_written_outside_claims": ("gauge", "Sectors written to disks that no claim covers."),
    "storqual_criterion_outcome": ("stateset", "The outcome of a criterion at a point."),
    "storqual_criterion_value": ("gauge", "The candidate's value in the metric's own unit."),
    "storqual_criterion_shift_percent": ("gauge", "The candidate against its reference; negative is worse."),
}


def open_metrics(material: Material) -> str:
    """The text, with its end mark; texts of devices and drops are label values and nothing else."""
    lines: list[str] = []
    samples: dict[str, list[str]] = {name: [] for name in _FAMILIES}
    for family, name, labels, value in _samples(material):
        samples[family].append(f"{name}{_labels(labels)} {value}")
    for family, found in samples.items():
        if found:
            kind, told = _FAMILIES[family]
            lines += [f"# TYPE {family} {kind}", f"# HELP {family} {told}", *found]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _samples(material: Material) -> Iterator[tuple[str, str, dict[str, str], str]]:
    """Family, name, labels, value."""
    verdict, run = material.verdict, material.run
    own = {"run": run.name}
    drops = {arm: drop.drop for arm, drop in run.arms.items()}
    about = {
        **own,
        **drops,
        "suite": run.suite.name,
        "profile": run.suite.profile,
        "outcome": str(verdict.get("outcome")),
    }
    yield "storqual_run", "storqual_run_info", about, "1"
    yield "storqual_run_exit_code", "storqual_run_exit_code", own, str(verdict.get("exit_code"))
    used = used_waivers(verdict.get("criteria") or ())
    yield "storqual_run_waivers", "storqual_run_waivers", {**own, "waivers": listed(used)}, str(len(used))
    covered = verdict.get("coverage") or {}
    skipped = sum(bool(entry.get("reason")) for entry in covered.get("skipped") or ())
    for state, number in (
        ("planned", covered.get("planned")),
        ("measured", covered.get("measured")),
        ("skipped", skipped),
    ):
        if isinstance(number, int):
            yield "storqual_run_points", "storqual_run_points", {**own, "state": state}, str(number)
    sectors = verdict.get("sectors_written_outside_claims")
    if isinstance(sectors, int):
        name = "storqual_sectors_written_outside_claims"
        yield name, name, own, str(sectors)
    for row in read_criteria(verdict):
        bench, adapter, point = row.key
        where = {
            **own,
            "bench": bench,
            "adapter": adapter,
            "point": point,
            "criterion": row.text("id"),
            "metric": row.text("metric"),
            "required": "true" if row.required else "false",
        }
        family = "storqual_criterion_outcome"
        for word in OUTCOMES:
            yield family, family, {**where, family: word}, "1" if word == row.outcome else "0"
        for field, family in (("candidate", "value"), ("shift_percent", "shift_percent")):
            value = row.number(field)
            if value is not None:
                name = f"storqual_criterion_{family}"
                yield name, name, where, repr(value)


def _labels(labels: Mapping[str, str]) -> str:
    """Labels in braces; backslash, quote and line end are escaped as the format says."""
    shown = (f'{name}="{visible_text(value).translate(_ESCAPES)}"' for name, value in labels.items())
    return "{" + ",".join(shown) + "}"
