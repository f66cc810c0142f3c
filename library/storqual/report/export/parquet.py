# SPDX-License-Identifier: Apache-2.0
"""Launches as a Parquet file, for questions over many runs (DuckDB, pandas); needs the extra `parquet`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storqual.report.export.tables import launch_table
from storqual_core.errors import BadInputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from storqual.report.material import Material

__all__ = ["write_parquet"]


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
