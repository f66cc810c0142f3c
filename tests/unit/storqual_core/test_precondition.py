# SPDX-License-Identifier: Apache-2.0
"""Drives are brought to a known state before the first launch, each stage once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from storqual_core.block_file import parse_block
from storqual_core.block_targets import Place
from storqual_core.command import Completed
from storqual_core.errors import BadInputError, GuardRefusalError, ToolError
from storqual_core.fio_job import FioTarget
from storqual_core.purge import discard, format_drive
from tests.unit.storqual_core.fake_fio import block_text, job, launch, result
from tests.unit.storqual_core.test_block_run import Bench

STEADY = {
    "fio": {"rw": "randwrite", "bs": 4096, "iodepth": 32, "runtime_s": 1.0, "ramp_s": 0.0},
    "volume": 0.0,
    "rounds": 3,
}
ASK: dict[str, Any] = {"purge": "discard", "consent": [], "fill": {"bs": 131072, "times": 2}, "steady": STEADY}


def stages(path: Path) -> list[str]:
    """The stages in a spool."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [line["stage"] for line in lines if line["kind"] == "precondition"]


def reports(path: Path) -> dict[str, Any]:
    """Their reports."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {line["stage"]: line["report"] for line in lines if line["kind"] == "precondition"}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A bench whose fio writes."""
    found = Bench(tmp_path)
    (tmp_path / "out").write_text(result(job(drive="d0", way="write", ios=5000)), encoding="utf-8")
    return found


def test_purge_fill_and_rounds_come_before_the_first_launch(bench: Bench) -> None:
    """In this order; the fill is sequential over the whole target, the rounds are the suite's load."""
    block = bench.block(launch(0), precondition=ASK)
    assert block.writes
    assert bench.run(block).outcome == "done"
    assert stages(block.spool) == ["purge", "fill", "steady"]
    first, second = bench.fio_calls[:2]
    assert "--rw=write --bs=131072" in first
    assert "--loops=2" in first
    assert "--rw=randwrite" in second
    assert len(bench.fio_calls) == 1 + 3 + 1
    found = reports(block.spool)
    assert found["fill"]["bytes"] == 5000 * 4096
    assert found["steady"]["rounds"] == 3
    assert found["steady"]["steady"] is False
    assert found["purge"]["d0"].startswith("not purged: a file")


def test_stages_that_were_done_are_not_repeated(bench: Bench) -> None:
    """Stopped in the rounds, the block goes on with them."""
    block = bench.block(launch(0), precondition=ASK)
    asked = iter([False] * 4)
    assert bench.run(block, stopping=lambda: next(asked, True)).outcome == "stopped"
    done = stages(block.spool)
    calls = len(bench.fio_calls)
    assert bench.run(block).outcome == "done"
    assert stages(block.spool) == ["purge", "fill", "steady"]
    assert done[:2] == ["purge", "fill"]
    assert not any("--loops" in call for call in bench.fio_calls[calls:])


def test_a_fill_that_fails_stops_the_block(bench: Bench) -> None:
    """Nothing is measured on a drive in an unknown state."""
    (bench.folder / "out").write_text(result(job(drive="d0", way="write", error=5)), encoding="utf-8")
    block = bench.block(launch(0), precondition=ASK)
    end = bench.run(block)
    assert end.outcome == "stopped"
    assert "the fill ended io_error" in end.message
    assert stages(block.spool) == ["purge"]


def test_a_format_without_consent_is_refused_before_anything_is_touched(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the guard, which is asked for a format and gets the block's consent."""
    seen: list[dict[str, Any]] = []

    def refusing(_claims: object, **options: Any) -> Any:
        seen.append(options)
        raise GuardRefusalError(["drive 0x5: nobody consented to it"])

    monkeypatch.setattr("storqual_core.guard.hold", refusing)
    monkeypatch.setattr("storqual_core.block_targets.read_claims", lambda _targets: ())
    block = bench.block(launch(0), precondition={**ASK, "purge": "format", "consent": ["ea71a0"]})
    assert bench.run(block).outcome == "refused"
    assert (seen[0]["purpose"], seen[0]["consent"]) == ("format", ("ea71a0",))
    assert bench.fio_calls == []
    assert not any(words[0] in ("sg_format", "nvme") for words in bench.commands)


@pytest.mark.parametrize(
    "wrong",
    [
        {"purge": "erase"},
        {"fill": {"bs": 1, "times": 2}},
        {"fill": 2},
        {"steady": {**STEADY, "rounds": 0}},
        {"steady": {**STEADY, "fio": {"rw": "nothing"}}},
        {"consent": "all"},
        {"more": 1},
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(tmp_path: Path, wrong: dict[str, Any]) -> None:
    """Before the guard is even asked."""
    with pytest.raises(BadInputError, match="precondition"):
        parse_block(block_text(tmp_path, [launch(0)], precondition={**ASK, **wrong}))


class Tools:
    """Tools that answer by their first word, and what they were asked."""

    def __init__(self, **answers: tuple[int, str, str]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def __call__(self, argv: Sequence[str], *, timeout: float = 0.0) -> Completed:
        """Answer."""
        self.asked.append(" ".join(argv))
        rc, out, err = self.answers.get(argv[0], (0, "", ""))
        if argv[0] == "blkdiscard" and "--force" not in argv:
            rc, err = 0, ""
        return Completed(tuple(argv), rc, out, err, 0.0)


def drive(folder: Path, discards: int) -> tuple[FioTarget, Place]:
    """A drive of a megabyte with guard areas of 64 KiB, on a kernel that discards so much at once."""
    queue = folder / "queue"
    queue.mkdir()
    (queue / "discard_max_bytes").write_text(f"{discards}\n", encoding="ascii")
    (queue / "logical_block_size").write_text("512\n", encoding="ascii")
    return FioTarget("0x5", "/dev/sdz", 65536, 917504), Place(folder, ())


def test_a_discard_leaves_the_guards_areas(tmp_path: Path) -> None:
    """By the kernel where it can; with --force, because we hold the node ourselves."""
    tools = Tools()
    assert discard(*drive(tmp_path, 4096), tools) == "discarded by blkdiscard"
    assert tools.asked == ["blkdiscard --offset=65536 --length=917504 --force /dev/sdz"]


def test_an_old_blkdiscard_is_asked_in_its_own_words(tmp_path: Path) -> None:
    """Before 2.36 it knew no --force, and needed none."""
    tools = Tools(blkdiscard=(1, "", "blkdiscard: unrecognized option '--force'"))
    assert discard(*drive(tmp_path, 4096), tools) == "discarded by blkdiscard"
    assert tools.asked[-1] == "blkdiscard --offset=65536 --length=917504 /dev/sdz"


def test_a_discard_that_fails_is_an_error(tmp_path: Path) -> None:
    """Not a purge that was done."""
    with pytest.raises(ToolError, match="blkdiscard"):
        discard(*drive(tmp_path, 4096), Tools(blkdiscard=(1, "", "BLKDISCARD ioctl failed: Input/output error")))


def test_where_the_kernel_does_not_discard_the_drive_is_asked(tmp_path: Path) -> None:
    """UNMAP, when its page says that it knows it; else nothing is claimed to be purged."""
    says = "  Unmap command supported (LBPU): 1\n"
    tools = Tools(sg_vpd=(0, says, ""))
    assert discard(*drive(tmp_path, 0), tools) == "unmapped by sg_unmap"
    assert tools.asked[-1] == "sg_unmap --force --all=128,65536,1919 /dev/sdz"
    for answer in ((0, says.replace("1\n", "0\n"), ""), (5, "", "illegal request")):
        said = discard(FioTarget("0x5", "/dev/sdz", 65536, 917504), Place(tmp_path, ()), Tools(sg_vpd=answer))
        assert said == "not purged: neither kernel nor drive discards"


def test_formats_are_by_kind_of_drive() -> None:
    """Nobody is there to stop a countdown."""
    tools = Tools()
    assert "nvme format" in format_drive("/dev/nvme0n1", tools)
    assert "sg_format" in format_drive("/dev/sdz", tools)
    assert tools.asked == ["nvme format /dev/nvme0n1 --ses=1 --force", "sg_format --format --quick /dev/sdz"]
