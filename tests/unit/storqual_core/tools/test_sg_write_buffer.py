# SPDX-License-Identifier: Apache-2.0
"""sg_write_buffer: every segment, a unit attention in the middle, the drive's word at the end."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.kit.errors import ToolError
from storqual_core.tools import sg_write_buffer as tool
from storqual_core.tools.capabilities import FirmwareImage
from tests.support.replay import Call, Replay

SG = "/dev/sg3"
TURS = f"sg_turs --verbose {SG}"
CHANGED = "Fixed format, current; Sense key: Unit Attention\nAdditional sense: Microcode has been changed\n"
INQ = " Vendor identification: LINUX\n Product identification: scsi_debug\n Product revision level: 0191\n"


@pytest.fixture
def image(tmp_path: Path) -> FirmwareImage:
    path = tmp_path / "fw.bin"
    path.write_bytes(b"x" * (2 * tool.SEGMENT + 512))
    return FirmwareImage(str(path), "00", "0192", activation="reset")


def segments(image: FirmwareImage, mode: str = "dmc_offs_defer") -> list[str]:
    words = f"sg_write_buffer --verbose --mode={mode}"
    return [
        f"{words} --offset={offset} --skip={offset} --length={length} --in={image.path} {SG}"
        for offset, length in ((0, 4096), (4096, 4096), (8192, 512))
    ]


def at_once(image: FirmwareImage) -> FirmwareImage:
    """The same, started by its last segment."""
    return FirmwareImage(image.path, "00", "0192", activation="none")


def test_every_segment_is_transferred_and_saved_for_later(image: FirmwareImage) -> None:
    replay = Replay([Call(line) for line in segments(image)])
    assert tool.download(replay, SG, image) == (f"{SG}: 3 segments, 8704 bytes transferred",)
    replay.done()


def test_a_segment_that_met_a_unit_attention_is_given_again(image: FirmwareImage) -> None:
    one, two, three = segments(image, "dmc_offs_save")
    calls = [
        Call(one),
        Call(two, stderr=CHANGED, rc=6),
        Call(two),
        Call(three),
        Call(TURS, stderr=CHANGED, rc=6),
        Call(TURS),
    ]
    replay = Replay(calls)
    assert tool.download(replay, SG, at_once(image))[-1] == f"{SG}: it says that its microcode has been changed"
    replay.done()


def test_a_refused_segment_says_how_far_it_came(image: FirmwareImage) -> None:
    one, two, _ = segments(image)
    with pytest.raises(ToolError, match=r"took 4096 of 8704 bytes .*illegal request.*bad field"):
        tool.download(Replay([Call(one), Call(two, stderr="bad field\n", rc=5)]), SG, image)
    with pytest.raises(ToolError, match="took 0 of 8704 bytes"):
        tool.download(Replay([Call(one, rc=6)] * 3), SG, image)


def test_an_image_of_odd_length_is_refused(tmp_path: Path) -> None:
    for size in (0, 511):
        (tmp_path / "x").write_bytes(b"x" * size)
        with pytest.raises(ToolError, match=f"has {size} bytes"):
            tool.download(Replay([]), SG, FirmwareImage(str(tmp_path / "x"), "00", "1"))


def test_a_drive_is_told_to_start_the_image_and_says_that_it_did(image: FirmwareImage) -> None:
    start = Call(f"sg_write_buffer --verbose --mode=activate_mc {SG}")
    replay = Replay([start, Call(TURS, stderr=CHANGED, rc=6), Call(TURS)])
    tool.activate(replay, SG, image)
    replay.done()
    silent = Replay([start, Call(TURS), Call(f"sg_inq {SG}", INQ)])
    with pytest.raises(ToolError, match="did not say that its microcode changed, and it does not run 0192"):
        tool.activate(silent, SG, image)
    with pytest.raises(ToolError, match="did not start the image 0192"):
        tool.activate(Replay([Call(start.line, rc=5)]), SG, image)


def test_a_drive_that_does_not_come_back_is_given_up(image: FirmwareImage, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(tool.time, "monotonic", lambda: now[0])

    def sleep(seconds: float) -> None:
        now[0] += 20 * seconds

    monkeypatch.setattr(tool.time, "sleep", sleep)
    calls = [Call(f"sg_write_buffer --verbose --mode=activate_mc {SG}"), *[Call(TURS, rc=2)] * 4]
    with pytest.raises(ToolError, match="is not ready 60 s after it was given 0192"):
        tool.activate(Replay(calls), SG, image)


def test_the_revision_is_asked_of_the_drive(image: FirmwareImage) -> None:
    """The kernel shows what it read when it found the drive."""
    look = Call(f"sg_inq {SG}", INQ)
    assert tool.read_versions(Replay([look]), SG) == {"firmware": "0191"}
    assert tool.activation(Replay([look]), SG, image) == "reset"
    assert (
        tool.activation(
            Replay([Call(look.line, rc=6), look]), SG, FirmwareImage("x", "00", "0191", activation="reset")
        )
        == "none"
    )
    assert tool.activation(Replay([]), SG, at_once(image)) == "none"


@given(st.text())
def test_other_text_is_a_sentence(text: str) -> None:
    try:
        tool.parse_revision(text)
    except ToolError:
        return
    assert "Product revision level:" in text


def test_both_ways_of_saying_it_are_understood() -> None:
    """3Fh/01h and 3Fh/16h."""
    for words in ("Microcode has been changed", "Microcode has been changed without reset"):
        assert tool.changed_microcode(f"Additional sense: {words}")
    assert not tool.changed_microcode("Additional sense: Power on, reset, or bus device reset occurred")
