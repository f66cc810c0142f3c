# SPDX-License-Identifier: Apache-2.0
"""The kernel's log is read record by record; where it cannot be, the reason is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.host.kernel_log import KernelLog, Record, parse_record, texts


def test_a_record_is_level_number_time_and_text() -> None:
    """Its dictionary is left out; a program's record is told from the kernel's."""
    text = "6,339,5140900,-;NET: Registered PF_INET6\n SUBSYSTEM=net\n DEVICE=n3\n"
    assert parse_record(text) == Record(
        from_kernel=True, level=6, sequence=339, time_us=5140900, text="NET: Registered PF_INET6"
    )
    assert parse_record("13,340,5140999,-;storqual: launch begins") == Record(
        from_kernel=False, level=5, sequence=340, time_us=5140999, text="storqual: launch begins"
    )
    assert texts([Record(from_kernel=True, level=4, sequence=1, time_us=12_000_034, text="x")]) == [
        "[   12.000034] x"
    ]


@given(st.text(max_size=200))
def test_any_text_is_a_record_or_nothing(text: str) -> None:
    record = parse_record(text)
    assert record is None or record.sequence >= 0


def test_what_may_not_be_read_has_a_reason(tmp_path: Path) -> None:
    """A bench without the permission measures all the same, and says so."""
    log = KernelLog(str(tmp_path / "kmsg"))
    log.mark("nobody hears this")
    assert log.read() == []
    assert log.reason == f"the kernel's log cannot be read: {tmp_path}/kmsg: No such file or directory"
    assert log.marker_reason.startswith("no markers in the kernel's log")
    log.close()


def may_write() -> bool:
    """Whether this user may write to the kernel's log."""
    log = KernelLog()
    log.close()
    return not log.reason and not log.marker_reason


@pytest.mark.skipif(not may_write(), reason="this user may not use /dev/kmsg")
def test_a_marker_is_found_again_and_is_not_the_kernels_own() -> None:
    log = KernelLog()
    log.mark("a test's marker")
    records = [record for record in log.read() if "a test's marker" in record.text]
    assert [(record.text, record.from_kernel) for record in records] == [("storqual: a test's marker", False)]
    assert not [record for record in log.read() if "a test's marker" in record.text]
    log.close()
