# SPDX-License-Identifier: Apache-2.0
"""A paced file that held its pace in every second shows by itself that other programs did not reach it."""

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from storqual.run import read_batch
from storqual_core.turns.derive import derive, kept_pace
from tests.support.simulated_campaign import plan
from tests.support.synthetic_shape import primitives, spooled_launch

SUITE = Path(__file__).with_suffix(".suite").read_text(encoding="utf-8")
LOADED = {"stat_user_ticks": 500}
"""Another program takes more than one processor."""


def block_of(folder: Path, suite: str = SUITE, paced: dict[str, Any] | None = None) -> dict[str, Any]:
    drive = {
        "file": str(folder / "targets" / "file"),
        "size": "64MiB",
        "claim": True,
        **({"paced": paced} if paced else {}),
    }
    adapters = {"files": {"model": "files", "drives": [drive]}}
    hosts = {"b1": {"storqual_kind": "local", "storqual_state_dir": str(folder), "storqual_adapters": adapters}}
    return read_batch(plan(folder, hosts=hosts, suite=suite), "s01-b01")


def launched(block: dict[str, Any], series: list[float], **counted: int) -> dict[str, Any]:
    counts = primitives("read", sum(series) / len(series), 3.0, asked=3.0, size=4096, outstanding=1)
    line = spooled_launch(block, 0, "2026-11-26T10:00:00Z", series, {**counts, **counted})
    return dict(line)


@pytest.mark.parametrize(
    ("series", "is_suspect"),
    [
        ([200.0, 200.0, 200.0], False),
        ([197.0, 201.0, 203.0], False),
        ([200.0, 190.0, 210.0], True),
        ([200.0, 200.0, 150.0], True),
        ([210.0, 210.0, 210.0], True),
    ],
)
def test_what_held_its_pace_in_every_second_is_not_suspect(
    tmp_path: Path, series: list[float], is_suspect: bool
) -> None:
    block = block_of(tmp_path, paced={"iops": 200})
    sample = launched(block, series, **LOADED)["sample"]
    assert bool(sample["suspect"]) is is_suspect, sample["suspect"]
    told = sample.get("suspect_but_rates", [])
    assert bool(told) is not is_suspect
    assert all("programs beside fio used" in text for text in [*told, *sample["suspect"]])
    quiet = launched(block, series)["sample"]
    assert (quiet["suspect"], quiet.get("suspect_but_rates", [])) == ([], [])


@pytest.mark.parametrize("suite", [SUITE, SUITE.replace("rw: randread,", "rw: randread, rate_iops: 200,")])
def test_a_file_without_a_pace_or_with_the_workloads_own_rate_is_suspect_as_ever(tmp_path: Path, suite: str) -> None:
    paced = None if suite == SUITE else {"iops": 200}
    sample = launched(block_of(tmp_path, suite, paced), [200.0, 200.0, 200.0], **LOADED)["sample"]
    assert len(sample["suspect"]) == 1


def test_of_a_mixture_each_way_has_a_rate_so_the_sum_shows_no_pace(tmp_path: Path) -> None:
    suite = SUITE.replace("rw: randread,", "rw: randrw, rwmixread: 70,")
    assert "paced_iops" not in block_of(tmp_path, suite, {"iops": 200})["turns"][0]["request"]


def test_only_another_load_is_forgiven(tmp_path: Path) -> None:
    block = block_of(tmp_path, paced={"iops": 200})
    line = spooled_launch(
        block,
        0,
        "2026-11-26T10:00:00Z",
        [200.0, 200.0, 200.0],
        {**primitives("read", 200.0, 3.0, asked=3.0, size=4096, outstanding=1), **LOADED},
        ["kernel log: a reset"],
    )
    assert line["sample"]["suspect"] == ["kernel log: a reset"]


def test_it_is_derived_from_the_launch_alone(tmp_path: Path) -> None:
    line = launched(block_of(tmp_path, paced={"iops": 200}), [200.0, 200.0, 200.0], **LOADED)
    texts = {name: gzip.decompress(base64.b64decode(data)).decode() for name, data in line["artifacts"].items()}
    (record,) = [json.loads(text) for name, text in texts.items() if name.endswith(".launch.gz")]
    assert derive(record, texts)["suspect"] == []
    record["iops_logs"] = [record["iops_logs"][0].replace("2000, 200", "2000, 120")]
    assert len(derive(record, texts)["suspect"]) == 1


def test_seconds_that_were_not_logged_show_nothing() -> None:
    assert kept_pace([200.0, 200.0], 200, 2.0)
    assert not kept_pace([200.0], 200, 2.0)
    assert not kept_pace([], 200, 0.5)
    assert kept_pace([11.0, 13.0], 12, 2.0), "one I/O more or less is all that a slow pace shows"
    assert not kept_pace([10.0, 14.0], 12, 2.0)
