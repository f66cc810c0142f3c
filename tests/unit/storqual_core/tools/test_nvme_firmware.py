# SPDX-License-Identifier: Apache-2.0
"""nvme-cli: what a controller can do, and an image that does not take the running one's slot."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.kit.errors import ToolError
from storqual_core.tools import nvme as tool
from storqual_core.tools.capabilities import FirmwareImage
from tests.support.replay import Call, Replay

DEVICE = "/dev/nvme0"
IMAGE = FirmwareImage("/x/fw.bin", "00", "B2", activation="reset")
DOWN = Call(f"nvme fw-download {DEVICE} --fw=/x/fw.bin", "Firmware download success\n")


def controller(*, oacs: int = 0x4, slots: int = 3, read_only: bool = True, at_once: bool = True) -> Call:
    """Identify Controller."""
    body = {"fr": "A1      ", "oacs": oacs, "frmw": slots << 1 | read_only | at_once << 4}
    return Call(f"nvme id-ctrl {DEVICE} --output-format=json", json.dumps(body))


def slots(active: int = 1, following: int = 0, **more: Any) -> Call:
    """The firmware slot log."""
    body = {"Active Firmware Slot (afi)": active | following << 4, "Firmware Rev Slot 1": "16688 (A1      )", **more}
    return Call(f"nvme fw-log {DEVICE} --output-format=json", json.dumps({"nvme0": body}))


def commit(slot: int, action: int, said: str = "Success committing firmware action:1 slot:3\n", rc: int = 0) -> Call:
    """Firmware Commit."""
    return Call(f"nvme fw-commit {DEVICE} --slot={slot} --action={action}", said, rc=rc)


def test_the_image_goes_beside_the_running_one() -> None:
    replay = Replay([slots(), controller(), DOWN, commit(3, 1)])
    (seen,) = tool.download(replay, DEVICE, IMAGE)
    assert "committed to slot 3 (Success committing firmware" in seen
    replay.done()
    replay = Replay([slots(active=3), controller(), DOWN, commit(2, 1)])
    tool.download(replay, DEVICE, IMAGE)
    replay = Replay([slots(), controller(slots=1, read_only=False), DOWN, commit(1, 3)])
    tool.download(replay, DEVICE, FirmwareImage("/x/fw.bin", "00", "B2", activation="none"))
    replay.done()


@pytest.mark.parametrize(
    ("calls", "image", "words"),
    [
        ([slots(), controller(), Call(DOWN.line, rc=1)], IMAGE, "did not accept /x/fw.bin"),
        ([slots(), controller(), DOWN, commit(3, 1, "", 7)], IMAGE, "did not commit /x/fw.bin to slot 3"),
        ([slots(), controller(), DOWN, commit(3, 1, "odd\n")], IMAGE, "did not commit /x/fw.bin to slot 3: odd"),
    ],
)
def test_what_cannot_be_is_a_sentence(calls: list[Call], image: FirmwareImage, words: str) -> None:
    replay = Replay(list(calls))
    with pytest.raises(ToolError, match=words):
        tool.download(replay, DEVICE, image)
    replay.done()


@pytest.mark.parametrize(
    ("able", "activation", "words"),
    [
        (controller(oacs=0), "reset", "takes no firmware"),
        (controller(slots=1), "reset", "no firmware slot that may be written"),
        (controller(at_once=False), "none", "declare `activation: reset`"),
    ],
    ids=["commands", "slots", "reset"],
)
def test_what_a_controller_cannot_do_is_told_before_anything_is_sent(able: Call, activation: str, words: str) -> None:
    """Its Identify data say so."""
    image = FirmwareImage("/x", "00", "B2", activation=activation)
    (told,) = tool.firmware_objections(Replay([able]), DEVICE, image)
    assert words in told
    assert tool.firmware_objections(Replay([controller()]), DEVICE, image) == ()


def test_what_waits_for_a_reset_is_told() -> None:
    look = [controller(), slots(following=2, **{"Firmware Rev Slot 2": "B2"})]
    assert tool.read_versions(Replay(look), DEVICE) == {"firmware": "A1", "firmware.pending": "B2"}
    assert tool.read_versions(Replay([controller(), slots(following=1)]), DEVICE) == {"firmware": "A1"}
    assert tool.read_versions(Replay([controller(), slots(following=3)]), DEVICE)["firmware.pending"] == "slot 3"


def test_a_reset_starts_the_image() -> None:
    assert tool.activation(Replay([controller()]), DEVICE, IMAGE) == "reset"
    assert (
        tool.activation(Replay([controller()]), DEVICE, FirmwareImage("/x", "00", "A1", activation="reset")) == "none"
    )
    assert tool.activation(Replay([]), DEVICE, FirmwareImage("/x", "00", "B2")) == "none"
    tool.activate(Replay([Call(f"nvme reset {DEVICE}")]), DEVICE, IMAGE)
    with pytest.raises(ToolError, match="could not be reset to start B2"):
        tool.activate(Replay([Call(f"nvme reset {DEVICE}", rc=1)]), DEVICE, IMAGE)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["fr", "oacs", "frmw", "nvme0"]) | st.text(), inner)
    ),
    max_leaves=8,
)


@given(json_values.map(json.dumps) | st.text())
def test_other_output_is_a_sentence(text: str) -> None:
    for parse in (tool.parse_controller, tool.parse_slots):
        try:
            parse(text)
        except ToolError:
            continue


def test_slots_that_are_counted_from_nought_are_those_from_one() -> None:
    """As the first releases printed them, with the empty ones."""
    body = {"Active Firmware Slot (afi)": 2, "Firmware Rev Slot 0": "1 (OLD)", "Firmware Rev Slot 1": "2 (NEW)"}
    empty = {"Firmware Rev Slot 2": "0 ()", "Firmware Rev Slot 3": "0 (........)"}
    slots = tool.parse_slots(json.dumps({"nvme0": {**body, **empty}}))
    assert (slots.active, dict(slots.revisions)) == (2, {1: "OLD", 2: "NEW"})
