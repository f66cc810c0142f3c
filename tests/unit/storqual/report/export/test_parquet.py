# SPDX-License-Identifier: Apache-2.0
"""Tests of the Parquet export: the same launches as the CSV, typed."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

import pytest

from storqual.report.export import samples_csv, write_parquet
from storqual.report.material import read_material
from storqual_core.kit.errors import BadInputError


def test_the_columns_are_those_of_the_csv_with_the_run_in_front(runs: dict[str, Path], tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra `parquet` is not installed")
    material = read_material(runs["fail"])
    write_parquet(material, tmp_path / "samples.parquet")
    table = parquet.read_table(tmp_path / "samples.parquet")
    rows = list(csv.DictReader(io.StringIO(samples_csv(material), newline="")))
    assert table.column_names == ["run", *rows[0]]
    assert set(table["run"].to_pylist()) == {material.run.name}
    assert [str(value) for value in table["iops"].to_pylist()] == [row["iops"] for row in rows]
    assert [str(value) for value in table["bs"].to_pylist()] == [row["bs"] for row in rows]
    assert table["launch"].to_pylist() == [row["launch"] for row in rows]


def test_without_the_extra_it_says_what_to_install(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(BadInputError, match=r"pip install 'storqual\[parquet\]'"):
        write_parquet(read_material(runs["pass"]), tmp_path / "samples.parquet")
    assert not (tmp_path / "samples.parquet").exists()
