# SPDX-License-Identifier: Apache-2.0
"""Criteria and launches as CSV (RFC 4180, UTF-8): every cell is text or a number and no spreadsheet runs it."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from storqual.base.text import csv_cell
from storqual.report.axes import levels
from storqual.report.criterion import read_criteria
from storqual_core.kit.errors import BadInputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from storqual.report.material import Material


_CRITERIA = (
    "id", "bench", "adapter", "point", "metric", "unit", "better", "against", "required", "outcome", "reference",
    "candidate", "shift_percent", "ci95_low_percent", "ci95_high_percent", "margin_percent", "detectable_percent",
    "baseline_launches", "candidate_launches", "baseline_sessions", "candidate_sessions", "reason", "waiver_owner",
    "waiver_expiry",
)  # fmt: skip
_LAUNCH = ("launch", "bench", "adapter", "point", "arm", "session", "n", "start", "runtime_s", "status")


def criteria_csv(material: Material) -> str:
    """One line per criterion and point."""
    rows: list[list[object]] = []
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
            + [*counts, row.text("reason"), waiver.get("owner"), waiver.get("expiry")]
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


if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from storqual.report.material import Material


def write_parquet(material: Material, path: Path) -> None:
    """Write the columns of `samples_csv`, typed, the run's name in front. Raises BadInputError without pyarrow."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra: 160 MB that nobody else needs
        from pyarrow import parquet as pq  # noqa: PLC0415
    except ImportError:
        raise BadInputError(["parquet needs pyarrow: pip install 'storqual[parquet]'"]) from None
    heads, rows = launch_table(material)
    columns = {head: _column([row[number] for row in rows]) for number, head in enumerate(heads)}
    run = {"run": [material.run.name] * len(rows)}
    pq.write_table(pa.table({**run, **columns}), path, compression="zstd")


def _column(values: Sequence[object]) -> list[object]:
    """Numbers as they are; a column that holds any text is text."""
    if all(value is None or isinstance(value, int | float) for value in values):
        return [float(value) if isinstance(value, float) else value for value in values]
    return [None if value is None else str(value) for value in values]
