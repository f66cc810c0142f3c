# SPDX-License-Identifier: Apache-2.0
"""A soak ends well only when every drive answered, no counter grew and the kernel said nothing."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.kit.machine import Machine
from storqual_core.provision.firmware.flash import soak

COUNTERS = "sys/block/{}/device/{}"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two drives with their counters, and a kernel log that is a file."""
    for name in ("sda", "sdb"):
        place = tmp_path / "dev" / name
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(bytes(1 << 20))
        for counter in ("ioerr_cnt", "iotmo_cnt"):
            file = tmp_path / COUNTERS.format(name, counter)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("0x7\n")
    (tmp_path / "kmsg").write_text("")
    return tmp_path


def run(root: Path, during: Callable[[], object] = lambda: None) -> str:
    """A soak in which something happens while the drives are read."""

    def sleep(seconds: float) -> None:
        # the first, short sleep is before the evidence begins
        if seconds > 0.2:
            during()
        time.sleep(0.01)

    return soak(Machine(str(root)), ["sda", "sdb"], 9.0, sleep, str(root / "kmsg"))


def test_drives_that_answer_are_counted(root: Path) -> None:
    told = run(root)
    assert told.endswith("reads of 2 drives in 9 s, no error counter grew, nothing in the kernel's log")
    assert int(told.split()[0]) > 1


def test_a_counter_that_grows_is_a_failure(root: Path) -> None:
    counter = root / COUNTERS.format("sdb", "iotmo_cnt")
    with pytest.raises(ToolError, match="the soak failed: sdb: iotmo_cnt grew by 2"):
        run(root, lambda: counter.write_text("0x9\n"))


def test_what_the_kernel_says_is_a_failure(root: Path) -> None:
    line = "2,901,5000000,-;mptscsih: ioc0: attempting task abort! (sc=0000)\n"
    with pytest.raises(ToolError, match=r"the soak failed: kernel log: .*task abort"):
        run(root, lambda: (root / "kmsg").write_text(line))


def test_words_of_a_program_in_the_kernels_log_are_none_of_the_kernels(root: Path) -> None:
    line = "12,901,5000000,-;mptscsih: ioc0: attempting task abort! (sc=0000)\n"
    assert "nothing in the kernel's log" in run(root, lambda: (root / "kmsg").write_text(line))


def test_a_drive_that_is_gone_is_a_failure(root: Path) -> None:
    (root / "dev/sdb").unlink()
    with pytest.raises(ToolError, match="dev/sdb cannot be read"):
        run(root)


def test_a_log_that_cannot_be_read_is_said(root: Path) -> None:
    (root / "kmsg").unlink()
    assert "the kernel's log cannot be read" in run(root)


def test_an_adapter_without_drives_has_nothing_to_read(root: Path) -> None:
    waits: list[float] = []
    assert soak(Machine(str(root)), [], 9.0, waits.append) == "nothing behind it to read"
    assert waits == []
