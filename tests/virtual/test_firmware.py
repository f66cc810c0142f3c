# SPDX-License-Identifier: Apache-2.0
"""Firmware on the virtual bench: WRITE BUFFER to a real SCSI device, and NVMe as far as the emulated drive goes.

The SCSI device is the kernel's scsi_debug: it takes every segment and tells that its microcode has been changed, and
keeps its revision, so these tests change that for it while the image goes in. QEMU's NVMe controller tells its
firmware slots and takes no image; that it is refused before anything is sent is what can be shown with it.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.live_bench import Bench, powered_bench

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(3600)]

REVISION = "/sys/module/scsi_debug/parameters/inq_rev"
SIZE = 32768
# what a flash could change on the bench: the drive's own word for its revision, and what storqual keeps
LOOK = Path(__file__).with_suffix(".look").read_text(encoding="utf-8")
# the drive's own part: when the image begins to come in, it runs it
PLAY = Path(__file__).with_suffix(".play").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A bench of our own with a scsi_debug drive of revision 0190 that its inventory claims."""
    with powered_bench("firmware", tmp_path_factory.mktemp("firmware")) as found:
        (found.drops / "drive").write_text(found.add_debug_drive("inq_rev=0190"))
        yield found


def image(bench: Bench, version: str) -> str:
    """A firmware image, as an entry of a drop."""
    path = bench.drops / f"fw-{version}.bin"
    path.write_bytes(version.encode() * (SIZE // 4))
    return json.dumps(
        {"file": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "version": version}
    )


def drop(bench: Bench, version: str, back: str, more: str = "activation: none", tool: str = "sg_write_buffer") -> str:
    """A drop with firmware for one drive."""
    adapter = "debug" if tool == "sg_write_buffer" else "nvme"
    entry = image(bench, version)[1:-1]
    return (
        f"firmware: {{on: {{adapter: {adapter}}}, tool: {tool}, {entry}, rollback: {image(bench, back)}, {more}}}\n"
    )


def provision(bench: Bench, manifest: str, *words: str, consent: bool = True) -> Any:
    """Play it, with consent for the drive."""
    allowed = ["-e", f"consent={(bench.drops / 'drive').read_text()[-8:]}"] if consent else []
    return bench.provision(manifest, "-v", *allowed, *words)


def play_the_drive(bench: Bench, revision: str) -> None:
    """The drive runs another revision as soon as its image comes in."""
    bench.ask(PLAY.format(revision=revision, file=REVISION))


def test_check_mode_shows_the_drift_and_touches_nothing(bench: Bench) -> None:
    before = bench.ask(LOOK)
    played = provision(bench, drop(bench, "0191", "0190"), "--check", "--diff", consent=False)
    assert played.code == 1, played.output
    assert "firmware.firmware: 0190, declared 0191" in played.output
    assert bench.ask(LOOK) == before


@pytest.mark.parametrize(
    ("versions", "more", "consent", "code", "words"),
    [
        (("0191", "0190"), "activation: none", False, 4, "there is no consent to it"),
        (("0191", "0180"), "activation: none", True, 2, "there is no image of 0190 to go back to"),
        (("0189", "0190"), "activation: none", True, 2, "which is newer than 0189"),
        (("0191", "0190"), "from: ['0188']", True, 2, "0191 may replace only 0188"),
    ],
    ids=["consent", "way back", "older", "from"],
)
def test_what_is_not_safe_is_refused_before_a_segment_is_sent(
    bench: Bench, versions: tuple[str, str], more: str, consent: bool, code: int, words: str
) -> None:
    before = bench.ask(LOOK)
    played = provision(bench, drop(bench, *versions, more), consent=consent)
    assert played.code == code, played.output
    assert words in " ".join(played.output.split())
    assert bench.ask(LOOK) == before


def test_a_drive_that_keeps_its_version_is_a_failure_that_the_next_run_ends(bench: Bench) -> None:
    played = provision(bench, drop(bench, "0191", "0190"))
    assert played.code == 2, played.output
    told = " ".join(played.output.split())
    assert "8 segments, 32768 bytes transferred" in told
    assert "it says that its microcode has been changed" in told
    assert "0191 was written and it runs 0190" in told
    assert '"phase":"downloading"' in bench.ask("cat /var/lib/storqual/firmware.json")


def test_an_image_goes_in_once_and_is_put_back(bench: Bench) -> None:
    play_the_drive(bench, "0191")
    first = provision(bench, drop(bench, "0191", "0190"))
    assert first.code == 0, first.output
    told = " ".join(first.output.split())
    assert "it says that its microcode has been changed" in told
    assert "reads of 1 drive in 30 s, no error counter grew, nothing in the kernel's log" in told
    assert "Product revision level: 0191" in bench.ask(LOOK)
    assert bench.ask("cat /var/lib/storqual/firmware.json").count("downloading") == 0

    again = provision(bench, drop(bench, "0191", "0190"), consent=False)
    assert (again.code, again.changed) == (0, 0), again.output

    play_the_drive(bench, "0190")
    restored = bench.play("restore.yml")
    assert restored.code == 0, restored.output
    assert "Product revision level: 0190" in bench.ask(LOOK)
    assert "saved.json" not in bench.ask(LOOK)


def test_an_nvme_controller_that_takes_no_firmware_is_refused_before_anything_is_sent(bench: Bench) -> None:
    identify = json.loads(bench.ask("nvme id-ctrl /dev/nvme0 --output-format=json"))
    revision = identify["fr"].strip()
    assert identify["oacs"] & 4 == 0
    assert "afi" in bench.ask("nvme fw-log /dev/nvme0 --output-format=json")
    before = bench.ask(LOOK)
    manifest = drop(bench, "999.0", revision, "activation: reset", tool="nvme")
    played = provision(bench, manifest)
    assert played.code == 2, played.output
    assert "do not offer Firmware Commit and Image Download" in " ".join(played.output.split())
    assert bench.ask(LOOK) == before
