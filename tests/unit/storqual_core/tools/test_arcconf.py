# SPDX-License-Identifier: Apache-2.0
"""arcconf: the last line decides."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import arcconf
from storqual_core.tools.capabilities import FirmwareImage, VolumeRequest
from tests.support.replay import Call, Replay

CONFIG = (Path(__file__).parent / "fixtures" / "arcconf" / "getconfig.txt").read_text(encoding="utf-8")
DONE = "\nCommand completed successfully.\n"
LIST = "Controllers found: 1\n   Controller 1:             : Optimal, Slot 8, HBA, SmartX, CSN0001, 500\n" + DONE
TASK = """Controllers found: 1
Logical device Task:
   Logical device                 : 0
   Current operation              : Rebuild
   Percentage complete            : 7
Logical device Task:
   Current operation              : None
"""
READ = [Call("arcconf GETCONFIG 1 AL", CONFIG), Call("arcconf GETSTATUS 1", TASK + DONE)]


def test_a_controller_is_read_with_what_is_under_way() -> None:
    facts = arcconf.read_facts(Replay([Call("arcconf LIST", LIST), *READ]))
    (adapter,) = facts.adapters
    assert (adapter.index, adapter.serial, adapter.pci) == ("1", "CSN0001", "0000:af:00.0")
    assert adapter.firmware == {"firmware": "4.21 (7)", "bios": "4.20 (1)"}
    assert [(drive.position, drive.serial, drive.media) for drive in adapter.drives] == [
        ("0 0", "DSN0001", "HDD"),
        ("0 1", "DSN0002", "SSD"),
    ]
    (volume,) = adapter.volumes
    assert (volume.members, volume.level, volume.strip) == (("0 0", "0 1"), "1", 65536)
    assert (volume.progress, volume.healthy) == ({"rebuild": 7.0}, False)
    assert volume.policies == {"read_policy": "ra", "write_policy": "wt"}
    assert facts.notes == ("a line of another release",)


def test_nothing_under_way_leaves_a_volume_well() -> None:
    replay = Replay([READ[0], Call("arcconf GETSTATUS 1", "Controllers found: 1\n" + DONE)])
    assert [volume.healthy for volume in arcconf.read_volumes(replay, "1")] == [True]


def test_no_controller_is_no_error() -> None:
    assert arcconf.parse_list("Controllers found: 0\n" + DONE) == ()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "The requested feature is not supported on this controller.\n\nCommand aborted.",
            "feature is not supported",
        ),
        ("", "said nothing"),
        (CONFIG[:400], "could not be read"),
    ],
)
def test_what_was_not_completed_is_a_sentence(said: str, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        arcconf.parse_config(said, "1")


def test_an_image_is_written_and_waits_for_a_boot() -> None:
    image = FirmwareImage("/x/as.ufi", "00", "4.30")
    line = "arcconf ROMUPDATE 1 /x/as.ufi NOPROMPT"
    arcconf.download(Replay([Call(line, DONE, rc=1)]), "1", image)
    assert arcconf.activation(Replay([]), "1", image) == "reboot"
    with pytest.raises(ToolError, match="was not taken by controller 1"):
        arcconf.download(Replay([Call(line, "Command aborted.\n")]), "1", image)
    versions = Replay([Call("arcconf GETCONFIG 1 AD", CONFIG)])
    assert arcconf.read_versions(versions, "1")["firmware"] == "4.21 (7)"


def test_a_volume_is_made_and_its_policies_set() -> None:
    line = "arcconf CREATE 1 LOGICALDRIVE NAME scratch STRIPESIZE 64 MAX 1 0 0 0 1 NOPROMPT"
    request = VolumeRequest(level="1", members=("0 0", "0 1"), strip=65536, name="scratch")
    replay = Replay([Call(line, DONE)])
    arcconf.create(replay, "1", request)
    replay.done()
    with pytest.raises(ToolError, match="hot spares of a new volume is not verified"):
        arcconf.create(Replay([]), "1", replace(request, spares=("0 2",)))
    volume = arcconf.parse_config(CONFIG, "1").adapters[0].volumes[0]
    cache = "arcconf SETCACHE 1 LOGICALDRIVE 0 {} noprompt"
    for name, value, mode in (("write_policy", "wb", "wb"), ("read_policy", "nora", "roff")):
        arcconf.set_policy(Replay([Call(cache.format(mode), DONE)]), "1", volume, name, value)
    with pytest.raises(ToolError, match="how arcconf sets io_policy"):
        arcconf.set_policy(Replay([]), "1", volume, "io_policy", "direct")


def test_a_volume_is_deleted_only_with_words_that_the_tool_shows() -> None:
    volume = arcconf.parse_config(CONFIG, "1").adapters[0].volumes[0]
    usage = Call("arcconf DELETE", "Usage: DELETE <Controller#> LOGICALDRIVE <LogDrive#> [noprompt]")
    replay = Replay([usage, Call("arcconf DELETE 1 LOGICALDRIVE 0 NOPROMPT", DONE)])
    arcconf.delete(replay, "1", volume)
    replay.done()
    with pytest.raises(ToolError, match="does not show how a logical drive is deleted"):
        arcconf.delete(Replay([Call("arcconf DELETE", "?")]), "1", volume)


def test_progress_is_that_of_the_volume() -> None:
    volume = arcconf.parse_config(CONFIG, "1").adapters[0].volumes[0]
    assert arcconf.progress(Replay([READ[1]]), "1", volume) == {"rebuild": 7.0}
    assert arcconf.progress(Replay([READ[1]]), "1", replace(volume, id="3")) == {}
