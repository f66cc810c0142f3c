# SPDX-License-Identifier: Apache-2.0
"""A program on a held drive: lent, stamped again, its hang recovered, and what is put right after a reset."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storqual_core.guard import hold
from storqual_core.guard.signatures import Ledger
from storqual_core.kit.errors import BadInputError, GuardRefusalError, MissingToolError, ToolError
from storqual_core.turns import foreign_program, spool
from storqual_core.turns.batch_file import parse_batch
from storqual_core.turns.bench_faults import ACTS
from storqual_core.turns.foreign_program import ProgramRun, filled, run_foreign
from storqual_core.turns.main import main
from storqual_core.turns.requests import ProgramRequest
from storqual_core.turns.spool import Spool, Stream
from storqual_core.turns.subject import TurnSubject
from tests.support.bad_states import ext4
from tests.support.batches import drive_batch
from tests.support.bench_tree import SIZE, STATE, BenchTree, claim

DRIVE = claim().id


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BenchTree:
    """One adapter with the claimed empty drive sda; drives answer unless a test says otherwise."""
    monkeypatch.setattr(foreign_program, "_answers", lambda _node: True)
    return BenchTree(tmp_path / "bench").adapter().scsi("sda")


def batch_text(state_dir: object = STATE, **changes: Any) -> str:
    fields = {name: getattr(claim(), name) for name in ("wwn", "serial", "vendor", "model", "size")}
    return json.dumps(drive_batch("program", state_dir, claims={DRIVE: fields}, **changes))


@pytest.fixture(autouse=True)
def streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where streams lie, in place of `/run`."""
    monkeypatch.setattr(spool, "STREAMS", tmp_path / "streams")
    return tmp_path / "streams"


def run(tree: BenchTree, **changes: Any) -> dict[str, list[dict[str, Any]]]:
    """Run what is asked; the lines of the stream by kind."""
    batch = parse_batch(batch_text(**changes))
    batch.spool.unlink(missing_ok=True)
    lines_of = Spool(batch.spool, durable=False)
    stream = Stream(lines_of)
    subject = TurnSubject(batch, stream, tree.machine)
    assert isinstance(subject.turn.request, ProgramRequest)
    try:
        ProgramRun(subject, subject.turn.request).run()
    finally:
        stream.close()
        lines_of.close()
    lines: dict[str, list[dict[str, Any]]] = {}
    for text in batch.spool.read_text(encoding="ascii").splitlines():
        line = json.loads(text)
        lines.setdefault(line["kind"], []).append(line)
    return lines


def refused(tree: BenchTree) -> list[str]:
    found = hold.check([claim()], purpose="write", state_dir=STATE, machine=tree.machine)
    return [str(one) for one in found]


def lent(tree: BenchTree) -> frozenset[str]:
    return Ledger.read(tree.machine.path(STATE)).lent


OVERWRITE = "dd if=/dev/urandom of={drive} bs=1M count=2 conv=notrunc 2>/dev/null; echo over {sg}; exit 3"


def test_a_program_overwrites_the_drive_and_the_drive_is_stamped_again(tree: BenchTree, tmp_path: Path) -> None:
    lines = run(tree, words=["sh", "-c", OVERWRITE])
    assert "".join(line["text"] for line in lines["output"]) == "over /dev/sg0\n"
    assert (lines["ended"][0]["status"], lines["ended"][0]["hung"]) == (3, False)
    assert (refused(tree), lent(tree)) == ([], frozenset())
    assert "stuck" not in lines
    with (tree.root / "dev/sda").open("rb") as drive:
        drive.seek(1 << 20)
        assert any(drive.read(4096))


def test_results_in_a_file_are_sent_and_a_missing_file_is_said(tree: BenchTree, tmp_path: Path) -> None:
    lines = run(tree, words=["sh", "-c", "echo '<a/>' > {out}/r.xml"], report="r.xml")
    assert (lines["report"][0]["text"], lines["report"][0]["problem"]) == ("<a/>\n", "")
    lines = run(tree, report="r.xml")
    assert (lines["report"][0]["text"], lines["report"][0]["problem"]) == ("", "r.xml: No such file or directory")
    assert not list(tmp_path.rglob("*.out.d"))


def test_a_program_that_hangs_is_killed_and_the_drive_answers(tree: BenchTree, tmp_path: Path) -> None:
    lines = run(tree, words=["sleep", "600"], limit_s=0.3)
    assert lines["ended"][0]["hung"]
    assert lines["recovered"][0]["how"] == "killed"
    assert lent(tree) == frozenset()


def test_a_drive_that_does_not_answer_is_removed_and_scanned_for(
    tree: BenchTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([False, True])
    monkeypatch.setattr(foreign_program, "_answers", lambda _node: next(answers))
    way(monkeypatch, lambda _aim, tell: tell("drive_back", "it is there"))
    lines = run(tree, words=["sleep", "600"], limit_s=0.3)
    assert lines["recovered"][0]["how"] == "scanned"
    assert "stuck" not in lines
    assert (refused(tree), lent(tree)) == ([], frozenset())


def way(monkeypatch: pytest.MonkeyPatch, bring: Callable[..., None]) -> None:
    monkeypatch.setattr(foreign_program, "ACTS", {**ACTS, "sysfs_delete": bring})


def test_a_drive_that_never_answers_is_stuck_and_known_as_lent_after_a_reset(
    tree: BenchTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_program, "_answers", lambda _node: False)
    way(monkeypatch, lambda _aim, _tell: None)
    lines = run(tree, words=["sh", "-c", OVERWRITE])
    assert "the bench needs a reset" in lines["stuck"][0]["text"]
    tree.fill("sda", -(1 << 20), b"\xa5" * (1 << 20))
    # the data of a program that never ended is nobody's; a file system may be somebody's
    assert (refused(tree), lent(tree)) == ([], {DRIVE})
    monkeypatch.setattr(foreign_program, "_answers", lambda _node: True)
    assert "program" not in run(tree, part="reclaim")
    assert (refused(tree), lent(tree)) == ([], frozenset())
    assert (tree.root / "dev/sda").stat().st_size == SIZE


def test_a_file_system_on_a_drive_that_was_lent_is_refused(tree: BenchTree) -> None:
    Ledger.read(tree.machine.path(STATE)).lending(DRIVE)
    ext4(tree)
    assert "it holds a file system (ext4 labelled data)" in refused(tree)[0]


def test_data_on_a_drive_that_was_never_lent_is_refused_and_nothing_runs(tree: BenchTree, tmp_path: Path) -> None:
    tree.fill("sda", 4096, b"precious")
    with pytest.raises(GuardRefusalError, match="holds data of an unknown kind"):
        run(tree, words=["sh", "-c", f"touch {tmp_path}/ran"])
    assert not (tmp_path / "ran").exists()
    assert lent(tree) == frozenset()


def test_placeholders_are_filled_and_one_without_a_value_is_told() -> None:
    values = {"drive": "/dev/sda", "sg": "", "out": "/run/x", "checkout": ""}
    assert filled(("a", "--d={drive}", "{out}/{out}"), values) == ["a", "--d=/dev/sda", "/run/x//run/x"]
    with pytest.raises(BadInputError) as wrong:
        filled(("{sg}", "{checkout}/check", "{drive}"), values)
    assert wrong.value.problems == [
        "{checkout}: found none on this bench, expected one",
        "{sg}: found none on this bench, expected one",
    ]


@pytest.mark.parametrize("change", [{"reads_as": "tap"}, {"limit_s": "x"}, {"pci": 3}, {"words": None}])
def test_a_wrong_program_is_refused_before_anything_is_touched(
    tmp_path: Path, streams: Path, change: dict[str, Any]
) -> None:
    path = tmp_path / "batch.json"
    path.write_text(batch_text(tmp_path, **change), encoding="utf-8")
    assert main(["run", str(path)]) == 3
    assert not streams.exists()


def test_a_program_whose_drive_is_not_there_is_refused_and_told_in_the_stream(tmp_path: Path) -> None:
    path = tmp_path / "batch.json"
    path.write_text(batch_text(tmp_path), encoding="utf-8")
    assert main(["run", str(path)]) == 4
    lines = parse_batch(path.read_text(encoding="utf-8")).spool.read_text(encoding="ascii").splitlines()
    assert [json.loads(line).get("outcome") for line in lines] == [None, "refused"]


pytestmark = pytest.mark.slow


def test_both_outputs_are_told_in_order_and_the_status_is_kept() -> None:
    told: list[str] = []
    ended = run_foreign(["sh", "-c", "echo a; echo b >&2; printf c; exit 3"], limit_s=20, tell=told.append)
    assert ("".join(told), ended.status, ended.hung, ended.stuck, ended.cut) == ("a\nb\nc", 3, False, False, 0)


def test_output_before_a_hang_is_told_and_the_whole_group_is_killed(tmp_path: Path) -> None:
    told: list[str] = []
    script = f"trap '' TERM; echo begun; sleep 600 & echo $! > {tmp_path}/child; wait; sleep 600"
    began = time.monotonic()
    ended = run_foreign(["sh", "-c", script], limit_s=0.5, tell=told.append)
    assert (ended.hung, ended.stuck, ended.status) == (True, False, -9)
    assert "".join(told) == "begun\n"
    assert time.monotonic() - began < 25
    child = int((tmp_path / "child").read_text(encoding="ascii"))
    assert not running(child)


def test_what_a_program_leaves_behind_is_killed_and_not_waited_for(tmp_path: Path) -> None:
    began = time.monotonic()
    ended = run_foreign(["sh", "-c", f"sleep 600 & echo $! > {tmp_path}/child"], limit_s=60)
    assert (ended.status, ended.hung) == (0, False)
    assert time.monotonic() - began < 20
    assert not running(int((tmp_path / "child").read_text(encoding="ascii")))


def running(process: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_bytes_that_are_no_text_and_characters_in_two_pieces_are_told() -> None:
    told: list[str] = []
    code = "import os,time; os.write(1, b'\\xc3'); time.sleep(0.3); os.write(1, b'\\xa4\\xff')"
    run_foreign([sys.executable, "-c", code], limit_s=20, tell=told.append)
    assert "".join(told) == "\u00e4\ufffd"


def test_output_beyond_the_most_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_program, "MOST_OUTPUT", 10)
    told: list[str] = []
    ended = run_foreign(["printf", "0123456789abc"], limit_s=20, tell=told.append)
    assert ("".join(told), ended.cut) == ("0123456789", 3)


def test_a_program_that_is_not_there_or_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(MissingToolError, match="no-such-program"):
        run_foreign(["no-such-program-here"], limit_s=1)
    plain = tmp_path / "plain"
    plain.write_text("x", encoding="ascii")
    plain.chmod(0o700)
    with pytest.raises(ToolError, match="cannot be started"):
        run_foreign([str(plain)], limit_s=1)
