# SPDX-License-Identifier: Apache-2.0
"""`storqual bench take|release|out|back|status` on a bench that is a folder of this machine."""

import json
import shutil
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from storqual.bench.lease import new_owner
from storqual.inputs import load_inventory
from storqual_core.facts.preflight import Request, examine
from storqual_core.kit.lease import LeaseBook, OutOfServiceError

pytestmark = pytest.mark.plays

REPOSITORY = Path(__file__).resolve().parents[4]
STORQUAL = str(Path(sys.executable).parent / "storqual")
BENCH = "this_machine"


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    folder = tmp_path / "lab" / "inventories" / "local"
    shutil.copytree(REPOSITORY / "inventories" / "local", folder)
    return folder


def state(lab: Path) -> Path:
    return lab.parents[1] / ".cache" / "local"


def called(lab: Path, act: str, *words: str) -> tuple[int, dict[str, Any]]:
    # not in this process: Ansible reads its configuration once in one
    argv = [STORQUAL, "bench", act, "-i", str(lab), "--json", *words]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=lab)
    return ended.returncode, json.loads(ended.stdout or ended.stderr)


def test_a_bench_is_taken_from_a_person_told_to_both_and_given_back(lab: Path) -> None:
    book = LeaseBook(state(lab))
    number = book.reserve(replace(new_owner("soldering", 3600), who="ann")).number
    code, answer = called(lab, "release", BENCH)
    assert code == 2
    assert "ann" in str(answer)
    code, answer = called(lab, "take", BENCH, "--reason", "urgent drop", "--for", "2h")
    assert code == 0
    assert "ann" in answer["former"]
    with pytest.raises(Exception, match="urgent drop"):
        book.refuse_others(number)
    assert book.read().owner == replace(
        new_owner("urgent drop", 7200),
        until=answer["until"],
        since=book.read().owner.since,  # type: ignore[union-attr]
    )
    assert answer["lease"] == f"{book.read().number}@{state(lab)}"
    code, answer = called(lab, "status")
    (row,) = answer["benches"]
    assert "urgent drop" in row["reserved"]
    assert "taken from ann" in row["reserved"]
    assert called(lab, "release", BENCH)[0] == 0
    assert book.read().owner is None


def test_out_of_service_until_its_preflight_passes(lab: Path, tmp_path: Path) -> None:
    adapters = load_inventory([lab]).benches[BENCH].model_dump(mode="json", by_alias=True)["storqual_adapters"]
    made = examine(Request(adapters, kind="local", state_dir=str(state(lab)), stamp=True))
    assert len(made.stamped) == 4
    code, _ = called(lab, "out", BENCH, "--reason", "drive 3 clicks", "--until", "72h")
    assert code == 0
    book = LeaseBook(state(lab))
    out = book.read().out
    assert out is not None
    assert asdict(out)["why"] == "drive 3 clicks"
    with pytest.raises(OutOfServiceError):
        book.reserve(new_owner("x", 60, run="r1"))
    (lab / "group_vars").mkdir()
    told = {"command": ["sh", "-c", f"cat > {tmp_path}/told"], "on": ["bench_lost"]}
    (lab / "group_vars" / "benches.yml").write_text(json.dumps({"storqual_notify": told}), encoding="utf-8")
    argv = [STORQUAL, "qualify", "-i", str(lab), "--runs", str(tmp_path / "runs"), "--baseline", "baseline"]
    argv += ["--candidate", "candidate", "--suite", str(REPOSITORY / "tests" / "plays" / "tiny.suite.yml")]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert ended.returncode == 5, ended.stdout[-2000:]
    assert "drive 3 clicks" in ended.stdout + ended.stderr
    assert json.loads((tmp_path / "told").read_text())["benches_lost"] == [BENCH]
    target = state(lab) / "targets" / "drive0"
    target.rename(tmp_path / "drive0")
    code, _ = called(lab, "back", BENCH)
    assert code != 0
    assert book.read().out is not None
    (tmp_path / "drive0").rename(target)
    code, answer = called(lab, "back", BENCH)
    assert code == 0
    assert "drive 3 clicks" in answer["text"]
    assert book.read().out is None


def test_what_is_no_time_is_told(lab: Path) -> None:
    assert called(lab, "take", BENCH, "--reason", "x", "--for", "soon")[0] == 3
    assert called(lab, "out", BENCH, "--reason", "x", "--until", "soon")[0] == 3
    assert not LeaseBook(state(lab)).read().number
