# SPDX-License-Identifier: Apache-2.0
"""Tests of the evidence of a point: latencies, load curves, what limits it, and how it is measured again."""

import json
import shlex
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest

from storqual.base.figures import DASH, ShownNumber
from storqual.judge.verdict import judge_run
from storqual.report import build_report
from storqual.report.build import pages_of, render
from storqual.report.criterion import read_criteria
from storqual.report.material import Material, read_material
from storqual.report.parts.curves import launch_strip, overlay_chart, overview
from storqual.report.parts.point import PointLimit, Repeat, latency_charts, limits_of_points, load_charts, repeats_of
from storqual.run import PlannedPoint, sha256_of
from storqual.run.measurements import PointData
from storqual.study.findings import Overlay
from storqual.study.points import PointLine, StudyPoint
from storqual_core.turns.fio_job import launch_seed
from storqual_core.turns.launch import LoadStep
from tests.support.batches import launch_turn
from tests.support.judged_reports import QUICK, judged
from tests.support.make_run import make_run
from tests.support.synthetic_shape import POINTS

POINT = PlannedPoint("lab", "hba", "rand_read[bs=4k]", "rand_read", {"bs": 4096}, ("0x5",), {}, "")


def data(**arms: dict[int, int]) -> PointData:
    point = PointData(POINT)
    for arm, bins in arms.items():
        point.bins[arm, "read"] = bins
    return point


def table(**arms: dict[int, int]) -> dict[str, tuple[ShownNumber | str, ...]]:
    chart = latency_charts(data(**arms), "p0")[-1]
    assert chart.beside is not None
    return {str(row[0]): row[1:] for row in chart.beside.rows}


def spread(shift: int, number: int) -> dict[int, int]:
    return {1_000_000 + shift + 1000 * step: number for step in range(100)}


def test_a_percentile_is_not_printed_where_the_counts_cannot_support_it() -> None:
    rows = table(baseline=spread(0, 11), candidate=spread(0, 11))
    assert [str(cell) for cell in rows["p99.9"]] == [DASH] * 5
    assert str(rows["p99"][0]) != DASH
    assert [str(cell) for cell in rows["I/Os"][:2]] == ["1,100", "1,100"]


def test_a_difference_of_percentiles_has_an_interval_around_it() -> None:
    same = table(baseline=spread(0, 100), candidate=spread(0, 100))["p50"]
    assert str(same[2]) == "0\u00a0ns"
    low, high = same[3:]
    assert isinstance(low, ShownNumber)
    assert isinstance(high, ShownNumber)
    assert (low.value or 0) < 0 < (high.value or 0)
    slower = table(baseline=spread(0, 100), candidate=spread(50_000, 100))["p50"]
    assert str(slower[2]) == "+50\u00a0µs"
    assert str(slower[3]).startswith("+4")


def test_the_tail_is_drawn_where_there_is_one() -> None:
    titles = [chart.title for chart in latency_charts(data(baseline=spread(0, 5), candidate=spread(0, 5)), "p0")]
    assert titles == ["Reads that took longer", "Latency of reads"]
    flat = latency_charts(data(baseline={1000: 5}, candidate={1000: 5}), "p0")
    assert [chart.title for chart in flat] == ["Latency of reads"]


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


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = make_run(tmp_path, noise=0.003, points=POINTS, adapters=("sym",))
    judge_run(path)
    return path


def knowing(run: Path, granted: dict[str, Any] | None = None, **adapter: Any) -> Material:
    document = json.loads((run / "run.json").read_text())
    card = document["benches"]["vbench"]["adapters"]["sym"]
    card.update(adapter)
    drives = [{"wwn": drive["id"], **({"virtual": granted} if granted else {})} for drive in card["drives"]]
    data = json.dumps({"vbench": {"adapters": {"sym": {"drives": drives}}}}).encode()
    (run / "inputs" / "inventory.json").write_bytes(data)
    entry = {"file": "inputs/inventory.json", "source": "x", "sha256": sha256_of(data)}
    document["inputs"]["inventory"] = entry
    (run / "run.json").write_text(json.dumps(document))
    return read_material(run)


def at(material: Material, point: str) -> PointLimit:
    return limits_of_points(material)["vbench", "sym", point]


def why(limit: PointLimit) -> str:
    return "".join(map(str, limit.why)).replace("\u202f", " ").replace("\u00a0", " ")


def mean(material: Material, point: str, name: str) -> float:
    launches = material.points["vbench", "sym", point].good("candidate")
    return sum(launch.number(name) or 0 for launch in launches) / len(launches)


def test_one_outstanding_io_is_limited_by_its_own_time(run: Path) -> None:
    limit = at(knowing(run), POINTS[0])
    assert limit.what == "latency"
    assert why(limit).startswith("one I/O is outstanding per drive")


def test_drives_that_give_what_they_are_granted_are_the_limit(run: Path) -> None:
    iops = mean(read_material(run), POINTS[1], "iops")
    limit = at(knowing(run, {"iops": round(iops / 4)}), POINTS[1])
    assert (limit.what, why(limit)) == ("emulated drives", "100 % of the IOPS that the emulated drives are granted")


def test_a_link_near_its_rate_is_the_limit(run: Path) -> None:
    rate = mean(read_material(run), POINTS[2], "throughput_mb_s") * 1e6
    limit = at(knowing(run, {"iops": 10**9}, ceiling={"slot": 10 * rate, "link": rate / 0.97}), POINTS[2])
    assert (limit.what, why(limit)) == ("link", "97 % of what the link carries")


def test_where_nothing_is_reached_the_limit_is_not_known(run: Path) -> None:
    iops = mean(read_material(run), POINTS[1], "iops")
    limit = at(knowing(run, {"iops": round(iops / 2)}), POINTS[1])
    assert limit.what == "not known"
    assert "50 % of the IOPS that the emulated drives are granted" in why(limit)
    assert why(limit).endswith("otherwise an emulated bench is limited by the emulator")
    reached = at(knowing(run), POINTS[1])
    assert (reached.what, "granted" in why(reached)) == ("not known", False)


def test_the_report_says_it_in_the_row_of_the_point(run: Path) -> None:
    knowing(run)
    page = build_report(run).read_text(encoding="utf-8")
    assert "limited by: latency</span>" in page
    assert "What limits this point: <b>not known</b> (" in page


def repeated(repeat_run: Path, targets: dict[str, object], **launch: object) -> Repeat:
    material = read_material(repeat_run)
    key, point = next(iter(material.points.items()))
    fio = {"rw": "randread", "bs": 4096, "iodepth": 8, "numjobs": 1, "ioengine": "libaio", "direct": 1}
    entry = {
        "adapter": key[1],
        "point": key[2],
        "n": 1,
        "drives": list(point.planned.drives),
        "fio": {**fio, "runtime_s": 2.0, "ramp_s": 0.5, "rwmixread": None, "zones": False, "options": {}},
        **launch,
    }
    names = dict.fromkeys(("run", "session", "block", "spool"), "s01-b01")
    turns = [launch_turn("s01-b01", {"index": 0, **entry})]
    block = {**names, "bench": key[0], "targets": targets, "turns": turns}
    for old in (repeat_run / "blocks").glob("*.json"):
        old.unlink()
    (repeat_run / "blocks" / "s01-b01.json").write_text(json.dumps(block))
    return repeats_of(material)[key]


@pytest.fixture
def repeat_run(tmp_path: Path) -> Path:
    return judged(tmp_path, points=QUICK[:2], adapters=("sym",))


def read(job: str) -> ConfigParser:
    parser = ConfigParser(interpolation=None)
    parser.read_string(job)
    return parser


def test_the_job_has_engine_seed_options_and_targets_of_the_first_launch(repeat_run: Path) -> None:
    job = read(repeated(repeat_run, {}).job)
    options = job["global"]
    assert [options[name] for name in ("rw", "bs", "iodepth", "ioengine", "direct")] == [
        *("randread", "4096", "8", "libaio", "1")
    ]
    assert options["randseed"] == str(launch_seed(repeat_run.name, QUICK[0], 1))
    assert options["runtime"] == "2000ms"
    assert job["d0"]["filename"].startswith("/dev/disk/by-id/wwn-0x")
    assert "percentile_list" not in options


def test_a_job_that_writes_says_so_first_and_one_that_reads_is_held_to_it(repeat_run: Path) -> None:
    assert repeated(repeat_run, {}).job.startswith("# fio --readonly point.fio")
    fio = {"rw": "write", "bs": 4096, "iodepth": 1, "numjobs": 1, "ioengine": "libaio", "direct": 1, "runtime_s": 1.0}
    assert repeated(repeat_run, {}, fio=fio).job.startswith("# fio point.fio WRITES to its targets")


def test_a_file_is_named_by_its_path_with_its_size(repeat_run: Path) -> None:
    targets = {"t": {"claim": {"file": "/srv/targets/drive0", "size": 67108864}}}
    job = read(repeated(repeat_run, targets, drives=["t"]).job)
    assert job["d0"]["filename"] == "/srv/targets/drive0"
    assert job["d0"]["size"] == "67108864"


def test_the_command_names_the_point_and_its_adapter(repeat_run: Path) -> None:
    words = shlex.split(repeated(repeat_run, {}).command)
    assert words[:2] == ["storqual", "qualify"]
    assert words[-4:] == ["--adapters", "sym", "--point", QUICK[0]]


def test_a_launch_that_cannot_be_read_has_a_command_and_no_job(repeat_run: Path) -> None:
    repeat = repeated(repeat_run, {}, fio={"rw": "nonsense"})
    assert repeat.job == ""
    assert repeat.command


def line(subject: str, values: dict[int, float]) -> PointLine:
    points = [
        StudyPoint(
            subject,
            "b1",
            "fc0",
            f"ports={at}",
            "iops",
            {"ports": at},
            (),
            {"rw": "read"},
            ("d",),
            at,
            ({"iops": rate},),
        )
        for at, rate in values.items()
    ]
    return PointLine(subject, "iops", "ports", (), tuple(points))


def overlay(ours: dict[int, float], theirs: dict[float, float]) -> Overlay:
    return Overlay("iops", "iops", "ports", (line("fc0", ours),), {"A6826A, p. 2": theirs})


def test_the_published_line_ours_and_their_ratio_are_in_one_picture() -> None:
    chart = overlay_chart(overlay({1: 30000.0, 2: 56000.0, 4: 60000.0}, {1.0: 35530.0, 2.0: 70100.0}), "sp-0")
    assert chart.table is not None
    assert [(str(row[0]), str(row[4]), str(row[5])) for row in chart.table.rows] == [
        ("1 port", "0.8444", "A6826A, p. 2"),
        ("2 ports", "0.7989", "A6826A, p. 2"),
        ("4 ports", DASH, DASH),
    ]
    assert "published" in chart.picture
    assert "fc0" in chart.picture


@pytest.mark.parametrize(("ours", "ticks"), [(30000.0, [0.0]), (30.0, [])], ids=["near", "far-apart"])
def test_curves_that_are_far_apart_stand_on_a_logarithmic_scale(ours: float, ticks: list[float]) -> None:
    chart = overlay_chart(overlay({1: ours, 2: 2 * ours}, {1.0: 35530.0, 2.0: 70100.0}), "sp-0")
    assert (">0</text>" in chart.picture) == bool(ticks)


def test_a_strip_shows_each_launch_and_both_limits(tmp_path: Path) -> None:
    run = judged(tmp_path, points=QUICK[:1], adapters=("sym",), noise=0.002, launches=3)
    verdict = json.loads((run / "verdict.json").read_text())
    verdict["criteria"][0]["indifference_percent"] = 1.0
    (run / "verdict.json").write_text(json.dumps(verdict))
    material = read_material(run)
    (point,) = material.points.values()
    chart = launch_strip(point, read_criteria(material.verdict), "s")
    assert chart is not None
    assert chart.picture.count("<circle") == sum(len(arm) for arm in point.launches.values())
    assert "unacceptable</text>" in chart.picture
    assert ">acceptable</text>" in chart.picture


def test_a_point_without_two_arms_has_no_strip(tmp_path: Path) -> None:
    material = read_material(judged(tmp_path, points=QUICK[:1], adapters=("sym",)))
    point = next(iter(material.points.values()))
    del point.launches["candidate"]
    assert launch_strip(point, read_criteria(material.verdict), "s") is None


def test_many_points_have_an_overview_and_few_have_none(tmp_path: Path) -> None:
    many = read_material(judged(tmp_path / "many", points=QUICK, noise=0.002, effect={"sym": -0.1}))
    chart = overview(many, read_criteria(many.verdict), "o")
    assert chart is not None
    assert chart.picture.count("<circle") == 14
    assert 'class="sh o-fail"' in chart.picture
    assert chart.table is not None
    assert str(chart.table.rows[0][0]).startswith("sym ")
    few = read_material(judged(tmp_path / "few", points=QUICK[:3], noise=0.002))
    assert overview(few, read_criteria(few.verdict), "o") is None
