# SPDX-License-Identifier: Apache-2.0
"""Load curves on the page."""

from __future__ import annotations

import json
from pathlib import Path

from storqual.judge.verdict import judge_run
from storqual.report.build import pages_of, render
from storqual.report.material import read_material
from storqual.report.parts.point import load_charts
from storqual_core.turns.latency_cap import LoadStep
from tests.support.make_run import make_run
from tests.support.synthetic_shape import POINTS


def test_both_arms_have_their_curve_with_its_table(tmp_path: Path) -> None:
    """A plateau of 4000 IOPS, response times from 1 to 8 ms; points without a search have no such picture."""
    path = make_run(tmp_path, adapters=("sym",))
    lines = []
    for text in (path / "samples.jsonl").read_text(encoding="utf-8").splitlines():
        sample = json.loads(text)
        if sample["point"] == POINTS[1]:
            steps = [(1, 1000, 1.0), (4, 4000, 1.0), (16, 4000, 4.0), (32, 4000, 8.0)]
            sample["primitives"] |= {
                "load_steps": [
                    {"load": n, "ios": ios, "runtime_ns": 10**9, "lat_sum_ns": int(ios * ms * 1e6), "bins": {}}
                    for n, ios, ms in steps
                ],
                "load_share_ppm": 0,
                "load_cap_ns": 5_000_000,
            }
        lines.append(json.dumps(sample, separators=(",", ":")))
    (path / "samples.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    judge_run(path)
    material = read_material(path)
    charts = {key[2]: load_charts(data, "x") for key, data in material.points.items()}
    assert [chart.title for chart in charts[POINTS[1]]] == ["IOPS against load", "Response time against IOPS"]
    table = charts[POINTS[1]][0].table
    assert table.heads[0] == "Load"
    assert [[str(cell) for cell in row] for row in table.rows] == [
        ["1", "1,000", "1", "1,000", "1"],
        ["4", "4,000", "1", "4,000", "1"],
        ["16", "4,000", "4", "4,000", "4"],
        ["32", "4,000", "8", "4,000", "8"],
    ]
    assert charts[POINTS[0]] == ()
    page = render(dict(pages_of(material))["report.html"])
    assert page.count("Response time against IOPS") >= 1


def test_a_plateau_is_drawn_over_rates_from_zero(tmp_path: Path) -> None:
    path = make_run(tmp_path, adapters=("sym",))
    judge_run(path)
    material = read_material(path)
    steps = [LoadStep(1, 99.9, 10e6), *(LoadStep(load, 96.6, load * 10.3e6) for load in (10, 12, 14, 20))]
    point = next(iter(material.points.values()))
    point.loads["candidate"] = steps
    load, response = (str(chart.picture) for chart in load_charts(point, "x"))
    assert ">0</text>" in response
    assert "96.6" not in response
    assert ">10</text>" in load
    assert ">12</text>" not in load
