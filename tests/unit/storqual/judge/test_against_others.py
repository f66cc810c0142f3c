# SPDX-License-Identifier: Apache-2.0
"""Criteria against a limit, against the other adapters of a bench, and against a straight line."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from storqual.judge import against_others
from storqual.judge.question import Unit
from storqual.judge.verdict import judge_run
from tests.support.judged_run import QUIET, judged, suite_with
from tests.support.make_run import make_run


def _limited(tmp_path: Path, limit: float, noise: float) -> list[dict[str, Any]]:
    unlimited = judged(tmp_path / "free", design="interleaved", launches=4, noise=noise)["criteria"]
    means = [entry["candidate"] for entry in unlimited if entry["metric"] == "iops"]
    criterion = f"{{id: floor, metric: iops, against: absolute, min: {limit * min(means):.3f}}}"
    entries = judged(tmp_path, design="interleaved", launches=4, noise=noise, suite=suite_with(criterion))["criteria"]
    return [entry for entry in entries if entry["id"] == "floor"]


def test_an_absolute_limit_just_above_the_mean_is_not_broken_while_the_interval_reaches_it(tmp_path: Path) -> None:
    assert {entry["outcome"] for entry in _limited(tmp_path, 1.005, 0.02)} <= {"INCONCLUSIVE", "PASS"}
    assert any(entry["outcome"] == "INCONCLUSIVE" for entry in _limited(tmp_path / "again", 1.005, 0.02))


def test_an_absolute_limit_far_above_every_launch_is_broken(tmp_path: Path) -> None:
    assert any(entry["outcome"] == "FAIL" for entry in _limited(tmp_path, 1.5, 0.02))


def test_one_launch_with_an_error_breaks_a_limit_of_none(tmp_path: Path) -> None:
    suite = suite_with("{id: errors, metric: io_errors_per_tb, against: absolute, max: 0}")
    path = make_run(tmp_path, design="interleaved", launches=4, suite=suite, **QUIET)
    lines = [json.loads(line) for line in (path / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    broken = next(line for line in lines if line["arm"] == "candidate")
    broken["primitives"]["fio_errors"] = 1
    (path / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    entries = {
        (entry["adapter"], entry["point"]): entry["outcome"]
        for entry in judge_run(path)["criteria"]
        if entry["id"] == "errors"
    }
    assert entries.pop((broken["adapter"], broken["point"])) == "FAIL"
    assert set(entries.values()) == {"PASS"}


ERRORS = "{id: limit, metric: io_errors_per_tb, against: absolute, max: %s}"
WAIVER = "- {criterion: limit, owner: qa, reason: known, reference: HBA-1, expiry: 2099-12-31, max_loss: %s}\n"


def _waived(tmp_path: Path, criterion: str, max_loss: str) -> tuple[int, int]:
    """How many failures of a criterion there are, and how many of them a waiver with `max_loss` accepts."""
    suite = suite_with(criterion)
    path = make_run(tmp_path / "runs", design="interleaved", launches=4, suite=suite, **QUIET)
    waivers = tmp_path / "waivers.yml"
    waivers.write_text(WAIVER % max_loss, encoding="utf-8")
    failed = [entry for entry in judge_run(path, waivers=waivers)["criteria"] if entry["outcome"] == "FAIL"]
    return len(failed), sum(entry["waiver"] is not None for entry in failed)


def test_a_latency_many_times_its_limit_is_not_accepted_at_a_small_loss(tmp_path: Path) -> None:
    criterion = "{id: limit, metric: latency_mean_us, against: absolute, max: 1}"
    assert _waived(tmp_path / "small", criterion, "1%")[1] == 0
    failed, accepted = _waived(tmp_path / "large", criterion, "10000000%")
    assert failed == accepted > 0


def test_of_two_limits_the_loss_is_to_the_one_that_was_broken(tmp_path: Path) -> None:
    criterion = "{id: limit, metric: iops, against: absolute, min: 0.001, max: 0.01}"
    assert _waived(tmp_path, criterion, "10000%")[1] == 0


def test_a_launch_beyond_a_limit_of_a_count_is_held_to_max_loss(tmp_path: Path) -> None:
    """The mean of the launches may well be within the limit that one launch broke."""
    path = make_run(tmp_path, design="interleaved", launches=8, suite=suite_with(ERRORS % "0"), **QUIET)
    lines = [json.loads(line) for line in (path / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    next(line for line in lines if line["arm"] == "candidate")["primitives"]["fio_errors"] = 9
    (path / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (none,) = (entry for entry in judge_run(path)["criteria"] if entry["outcome"] == "FAIL")
    worst = none["candidate"] * none["samples"]["candidate"]
    for limit, max_loss, accepted in ((0, "1000000%", False), (worst / 3, "1%", False), (worst / 3, "201%", True)):
        suite, waivers = tmp_path / "other.suite.yml", tmp_path / "waivers.yml"
        suite.write_text(suite_with(ERRORS % limit), encoding="utf-8")
        waivers.write_text(WAIVER % max_loss, encoding="utf-8")
        (failed,) = (e for e in judge_run(path, suite=suite, waivers=waivers)["criteria"] if e["outcome"] == "FAIL")
        assert bool(failed["waiver"]) is accepted
        assert limit == 0 or failed["candidate"] < limit


def test_the_document_that_states_a_limit_is_in_the_verdict(tmp_path: Path) -> None:
    criterion = "{id: floor, metric: iops, against: absolute, min: 1, source: 'contract 7, section <3>'}"
    verdict = judged(tmp_path, design="interleaved", launches=4, suite=suite_with("{metric: iops}", criterion))
    entries = verdict["criteria"]
    assert {entry["reference_source"] for entry in entries if entry["id"] == "floor"} == {"contract 7, section <3>"}
    assert {entry["reference_source"] for entry in entries if entry["id"] == "iops"} == {""}


PEER_STATES = (("good", "ok"), ("refused", "refused"), ("killed", "killed"), ("short", "short"))
PEERS = suite_with("{metric: iops}", "{id: peers, metric: iops, against: peers, margin: 8%, indifference: 2%}")


def test_an_adapter_is_compared_with_its_peers(tmp_path: Path) -> None:
    slow = {"sym": 0.0, "mpt": 0.0, "mega": 0.0}
    path = make_run(tmp_path, suite=PEERS, adapters=tuple(slow), sessions=8, **QUIET)
    lines = [json.loads(line) for line in (path / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    for line in lines:
        if line["adapter"] == "sym":
            line["primitives"]["read_ios"] = int(0.8 * line["primitives"].get("read_ios", 0))
            if "write_ios" in line["primitives"]:
                line["primitives"]["write_ios"] = int(0.8 * line["primitives"]["write_ios"])
    (path / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    entries = [entry for entry in judge_run(path)["criteria"] if entry["id"] == "peers"]
    assert {entry["outcome"] for entry in entries if entry["adapter"] == "sym"} == {"FAIL"}
    assert {entry["outcome"] for entry in entries if entry["adapter"] != "sym"} == {"PASS"}


def test_peers_of_wild_launches_have_no_interval(tmp_path: Path) -> None:
    """One that would reach a hundredfold to either side is not printed; the outcome says what is lacking."""
    path = make_run(tmp_path, suite=PEERS, adapters=("sym", "mpt"), sessions=4, **QUIET)
    lines = [json.loads(line) for line in (path / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    first = next(line["session"] for line in lines if line["arm"] == "candidate")
    for line in lines:
        for name in ("read_ios", "write_ios"):
            if line["adapter"] == "sym" and line["session"] == first and name in line["primitives"]:
                line["primitives"][name] *= 1000
    (path / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    entries = [entry for entry in judge_run(path)["criteria"] if entry["id"] == "peers"]
    wild = [entry for entry in entries if "too much" in entry["reason"]]
    assert wild
    assert {(entry["outcome"], entry["ci95_percent"]) for entry in wild} == {("INCONCLUSIVE", None)}
    assert wild[0]["reason"].startswith("2 sessions of ")


def peer_entries(run: Path) -> list[dict[str, Any]]:
    return [entry for entry in judge_run(run)["criteria"] if entry["id"] == "peers"]


def test_what_a_boot_does_to_all_of_them_is_no_difference(tmp_path: Path) -> None:
    """Boots that move every adapter by 10 % are taken out: adapters are compared boot by boot."""
    run = make_run(tmp_path, suite=PEERS, sessions=8, session_effect=0.1, **QUIET)
    entries = peer_entries(run)
    assert {(entry["outcome"], entry["unit_of_inference"]) for entry in entries} == {("PASS", "session")}
    assert all(entry["ci95_percent"][1] - entry["ci95_percent"][0] < 3 for entry in entries)


def test_in_one_session_they_are_compared_launch_by_launch(tmp_path: Path) -> None:
    entries = peer_entries(make_run(tmp_path, suite=PEERS, design="interleaved", launches=4, **QUIET))
    assert {(entry["outcome"], entry["unit_of_inference"]) for entry in entries} == {("PASS", "launch")}


@pytest.mark.parametrize("reads", [None, 0], ids=["not counted", "none"])
def test_a_peer_without_a_value_is_left_out(tmp_path: Path, reads: int | None) -> None:
    run = make_run(tmp_path, suite=PEERS, adapters=("sym", "mpt", "mega"), sessions=8, **QUIET)
    lines = [json.loads(line) for line in (run / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    for line in lines:
        for name in ("read_ios", "write_ios"):
            if line["adapter"] == "mega" and line["primitives"].pop(name, None) is not None and reads is not None:
                line["primitives"][name] = reads
    (run / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    entries = [entry for entry in peer_entries(run) if entry["adapter"] != "mega"]
    assert {entry["outcome"] for entry in entries} == {"PASS"}
    assert not any("mega" in entry["reason"] for entry in entries)


def test_an_adapter_with_a_launch_that_did_not_run_as_asked_is_no_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where its other launches would give a percentile together."""
    monkeypatch.setattr(
        against_others, "units_of", lambda launches, _metric: [Unit("s01", 100.0, "fio")] * len(launches)
    )
    launches = {name: [SimpleNamespace(status=status), SimpleNamespace(status="ok")] for name, status in PEER_STATES}
    peers = [(name, SimpleNamespace(of=lambda _arm, own=own: own)) for name, own in launches.items()]
    question: Any = SimpleNamespace(peers=peers)
    assert list(against_others._others(question, cast("Any", None))) == ["good"]


def test_an_adapter_passes_by_the_end_of_its_interval_and_not_by_its_estimate(tmp_path: Path) -> None:
    """6 % behind, with boots that differ by several percent: above the margin of 8 % is not shown."""
    noisy = {**QUIET, "noise": 0.05}
    entries = []
    for seed in range(3):
        run = make_run(tmp_path / str(seed), suite=PEERS, adapters=("sym", "mpt"), sessions=4, **noisy)
        entries += peer_entries(run)
    assert any(entry["outcome"] == "INCONCLUSIVE" and entry["shift_percent"] > -8 for entry in entries)


LEVELS = (1, 2, 4, 8)
SUITE = Path(__file__).with_suffix(".suite").read_text(encoding="utf-8")


def verdict(folder: Path, limit: int, knee: float, *, noise: float = 0.004) -> dict[str, Any]:
    """The verdict of a run whose throughput is linear up to `knee` drives and level beyond."""

    def effect(_adapter: str, point: str) -> float:
        drives = int(point.partition("drives=")[2].rstrip("]"))
        return min(drives, knee) / drives - 1

    path = make_run(
        folder,
        adapters=("sym",),
        points=[f"rand_read[drives={level}]" for level in LEVELS],
        suite=SUITE.replace("LIMIT", str(limit)),
        effect=effect,
        sessions=8,
        noise=noise,
    )
    return judge_run(path)


def scales(document: dict[str, Any]) -> dict[str, Any]:
    (scaling_entry,) = (entry for entry in document["criteria"] if entry["id"] == "scales")
    return dict(scaling_entry)


@pytest.mark.parametrize(
    ("limit", "knee", "outcome"), [(4, 8.0, "PASS"), (4, 4.0, "PASS"), (8, 4.0, "FAIL"), (8, 6.0, "FAIL")]
)
def test_linear_as_far_as_asked_passes_and_no_farther(tmp_path: Path, limit: int, knee: float, outcome: str) -> None:
    entry = scales(verdict(tmp_path, limit, knee))
    assert (entry["outcome"], entry["point"]) == (outcome, f"rand_read[drives={limit}]")
    assert entry["against"] == "scaling"
    if outcome == "FAIL":
        assert entry["ci95_percent"][1] < -5


def test_what_noise_hides_is_not_decided(tmp_path: Path) -> None:
    assert scales(verdict(tmp_path, 8, 8.0, noise=0.1))["outcome"] == "INCONCLUSIVE"
