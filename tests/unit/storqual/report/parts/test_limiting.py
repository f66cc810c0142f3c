# SPDX-License-Identifier: Apache-2.0
"""What limits a point: only what the run knows, with the share that shows it; else that it is not known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from storqual.judge.verdict import judge_run
from storqual.report import build_report
from storqual.report.material import Material, read_material
from storqual.report.parts.point import PointLimit, limits_of_points
from storqual.run import sha256_of
from tests.support.make_run import make_run
from tests.support.synthetic_shape import POINTS


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = make_run(tmp_path, noise=0.003, points=POINTS, adapters=("sym",))
    judge_run(path)
    return path


def knowing(run: Path, granted: dict[str, Any] | None = None, **adapter: Any) -> Material:
    """The run with what its inventory grants each drive, and says of the adapter."""
    document = json.loads((run / "run.json").read_text())
    own = document["benches"]["vbench"]["adapters"]["sym"]
    own.update(adapter)
    drives = [{"wwn": drive["id"], **({"virtual": granted} if granted else {})} for drive in own["drives"]]
    data = json.dumps({"vbench": {"adapters": {"sym": {"drives": drives}}}}).encode()
    (run / "inputs" / "inventory.json").write_bytes(data)
    entry = {"file": "inputs/inventory.json", "source": "x", "sha256": sha256_of(data)}
    document["inputs"]["inventory"] = entry
    (run / "run.json").write_text(json.dumps(document))
    return read_material(run)


def at(material: Material, point: str) -> PointLimit:
    return limits_of_points(material)["vbench", "sym", point]


def why(found: PointLimit) -> str:
    return "".join(map(str, found.why)).replace("\u202f", " ").replace("\u00a0", " ")


def mean(material: Material, point: str, name: str) -> float:
    launches = material.points["vbench", "sym", point].good("candidate")
    return sum(launch.number(name) or 0 for launch in launches) / len(launches)


def test_one_outstanding_io_is_limited_by_its_own_time(run: Path) -> None:
    found = at(knowing(run), POINTS[0])
    assert found.what == "latency"
    assert why(found).startswith("one I/O is outstanding per drive")


def test_drives_that_give_what_they_are_granted_are_the_limit(run: Path) -> None:
    iops = mean(read_material(run), POINTS[1], "iops")
    found = at(knowing(run, {"iops": round(iops / 4)}), POINTS[1])
    assert (found.what, why(found)) == ("emulated drives", "100 % of the IOPS that the emulated drives are granted")


def test_a_link_near_its_rate_is_the_limit(run: Path) -> None:
    rate = mean(read_material(run), POINTS[2], "throughput_mb_s") * 1e6
    found = at(knowing(run, {"iops": 10**9}, ceiling={"slot": 10 * rate, "link": rate / 0.97}), POINTS[2])
    assert (found.what, why(found)) == ("link", "97 % of what the link carries")


def test_where_nothing_is_reached_the_limit_is_not_known(run: Path) -> None:
    iops = mean(read_material(run), POINTS[1], "iops")
    found = at(knowing(run, {"iops": round(iops / 2)}), POINTS[1])
    assert found.what == "not known"
    assert "50 % of the IOPS that the emulated drives are granted" in why(found)
    assert why(found).endswith("otherwise an emulated bench is limited by the emulator")
    known = at(knowing(run), POINTS[1])
    assert (known.what, "granted" in why(known)) == ("not known", False)


def test_the_report_says_it_in_the_row_of_the_point(run: Path) -> None:
    knowing(run)
    page = build_report(run).read_text(encoding="utf-8")
    assert "limited by: latency</span>" in page
    assert "What limits this point: <b>not known</b> (" in page
