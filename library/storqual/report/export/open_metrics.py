# SPDX-License-Identifier: Apache-2.0
"""A verdict as OpenMetrics text, for a dashboard that watches drops over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storqual.base.text import visible_text
from storqual.report.criterion import read_criteria
from storqual.report.words import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from storqual.report.material import Material


_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_FAMILIES = {
    "storqual_run": ("info", "What was compared."),
    "storqual_run_exit_code": ("gauge", "The gate: 0 pass, 1 fail, 2 could not be judged."),
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
