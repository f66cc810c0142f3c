# SPDX-License-Identifier: Apache-2.0
"""What a dying kernel said is found in the console log, and nothing else is."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from storqual.virtual_bench.boot import mark, panic_text, written_since

PANIC = """[    6.1] EXT4-fs (vda): mounted filesystem
[    6.2] VFS: Cannot open root device "storqual-panic" or unknown-block(0,0): error -6
[    6.3] Please append a correct "root=" boot option; here are the available partitions:
[    6.4] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)
[    6.5] CPU: 0 PID: 1 Comm: swapper/0 Not tainted 6.1.0-56-amd64 #1
[    6.6] Call Trace:
[    6.7]  panic+0x118/0x2f4
[    6.8] ---[ end Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0) ]---
[    0.0] Linux version 6.1.0-56-amd64
"""


def test_a_panic_is_told_with_the_trouble_before_it_and_to_its_end() -> None:
    text = panic_text(PANIC)
    assert text.splitlines()[0].endswith("unknown-block(0,0): error -6")
    assert text.splitlines()[-1].endswith("]---")
    assert "mounted filesystem" not in text
    assert "Linux version" not in text


def test_a_panic_that_reboots_before_its_end_is_told_as_far_as_it_goes() -> None:
    """With panic=10 the log may simply stop."""
    cut = PANIC.partition("[    6.7]")[0]
    assert panic_text(cut).splitlines()[-1].endswith("Call Trace:")


def test_the_last_of_two_panics_counts() -> None:
    text = panic_text(PANIC + PANIC.replace("VFS: Unable to mount root fs", "Fatal exception"))
    assert text.count("not syncing") == text.count("Fatal exception") == 2


def test_a_quiet_console_has_no_panic() -> None:
    assert panic_text("[    0.0] Linux version 6.1\nlogin:") == ""


def test_the_log_is_read_from_the_mark_on(tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    assert mark(log) == 0
    assert written_since(log, 0) == ""
    log.write_bytes(b"before\r\n")
    start = mark(log)
    with log.open("ab") as handle:
        handle.write(b"\x1b[0;32m  OK  \x1b[0m after\r\n\x1b[K[*  ] waiting\rdone\r\n")
    assert written_since(log, start) == "  OK   after\ndone\n"


@given(noise=st.binary(max_size=400))
def test_any_bytes_can_be_on_a_console(tmp_path_factory: object, noise: bytes) -> None:
    text = noise.decode("utf-8", "replace")
    assert isinstance(panic_text(text), str)


@given(noise=st.text(max_size=200))
def test_escape_sequences_do_not_hide_a_panic(noise: str) -> None:
    text = f"{noise}\n[ 1.0] Kernel panic - not syncing: Attempted to kill init!\n"
    assert "Attempted to kill init" in panic_text(text)
