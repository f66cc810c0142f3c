# SPDX-License-Identifier: Apache-2.0
"""Adapters beside each other on one bench: who falls behind the others, and in which unit that is counted."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from storqual.judge import against_others
from storqual.judge.question import Unit
from storqual.judge.verdict import judge_run
from tests.support.judged_run import QUIET, suite_with
from tests.support.make_run import make_run

if TYPE_CHECKING:
    from pathlib import Path

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
    found = [entry for entry in judge_run(path)["criteria"] if entry["id"] == "peers"]
    assert {entry["outcome"] for entry in found if entry["adapter"] == "sym"} == {"FAIL"}
    assert {entry["outcome"] for entry in found if entry["adapter"] != "sym"} == {"PASS"}


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
    found = [entry for entry in judge_run(path)["criteria"] if entry["id"] == "peers"]
    wild = [entry for entry in found if "too much" in entry["reason"]]
    assert wild
    assert {(entry["outcome"], entry["ci95_percent"]) for entry in wild} == {("INCONCLUSIVE", None)}
    assert wild[0]["reason"].startswith("2 sessions of ")


def peer_entries(run: Path) -> list[dict[str, Any]]:
    """The criteria against peers of a judged run."""
    return [entry for entry in judge_run(run)["criteria"] if entry["id"] == "peers"]


def test_what_a_boot_does_to_all_of_them_is_no_difference(tmp_path: Path) -> None:
    """Boots that move every adapter by 10 % are taken out: adapters are compared boot by boot."""
    run = make_run(tmp_path, suite=PEERS, sessions=8, session_effect=0.1, **QUIET)
    found = peer_entries(run)
    assert {(entry["outcome"], entry["unit_of_inference"]) for entry in found} == {("PASS", "session")}
    assert all(entry["ci95_percent"][1] - entry["ci95_percent"][0] < 3 for entry in found)


def test_in_one_session_they_are_compared_launch_by_launch(tmp_path: Path) -> None:
    found = peer_entries(make_run(tmp_path, suite=PEERS, design="interleaved", launches=4, **QUIET))
    assert {(entry["outcome"], entry["unit_of_inference"]) for entry in found} == {("PASS", "launch")}


@pytest.mark.parametrize("reads", [None, 0], ids=["not counted", "none"])
def test_a_peer_without_a_value_is_left_out(tmp_path: Path, reads: int | None) -> None:
    run = make_run(tmp_path, suite=PEERS, adapters=("sym", "mpt", "mega"), sessions=8, **QUIET)
    lines = [json.loads(line) for line in (run / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    for line in lines:
        for name in ("read_ios", "write_ios"):
            if line["adapter"] == "mega" and line["primitives"].pop(name, None) is not None and reads is not None:
                line["primitives"][name] = reads
    (run / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    found = [entry for entry in peer_entries(run) if entry["adapter"] != "mega"]
    assert {entry["outcome"] for entry in found} == {"PASS"}
    assert not any("mega" in entry["reason"] for entry in found)


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
    found = []
    for seed in range(3):
        run = make_run(tmp_path / str(seed), suite=PEERS, adapters=("sym", "mpt"), sessions=4, **noisy)
        found += peer_entries(run)
    assert any(entry["outcome"] == "INCONCLUSIVE" and entry["shift_percent"] > -8 for entry in found)
