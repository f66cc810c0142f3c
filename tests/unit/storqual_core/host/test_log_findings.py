# SPDX-License-Identifier: Apache-2.0
"""Lines of the kernel's log are sorted into findings; ordinary lines are none."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.host.kernel_log import KINDS, classify, decode_log_info, errors_of, find_all
from tests.support.log_lines import read_all

LINES = read_all()
TROUBLE = [(kind, line) for kind, line in LINES if kind != "none"]
ORDINARY = [line for kind, line in LINES if kind == "none"]


def test_each_kind_is_reported_once_with_its_lines() -> None:
    lines = [line for _, line in reversed(TROUBLE)] * 3 + ORDINARY
    found = find_all(lines)
    errors = errors_of(found)
    assert [finding.kind for finding in errors] == [kind for kind in KINDS if kind in dict(TROUBLE)]
    bug = found[0]
    assert bug.count == 3 * sum(kind == "kernel_bug" for kind, _ in TROUBLE)
    assert len(bug.lines) == 5
    assert bug.sentence().startswith("kernel log: the kernel found a fault in itself: ")
    assert bug.sentence().endswith(f"(and {bug.count - 1} more)")


@given(st.lists(st.sampled_from([line for _, line in TROUBLE] + ORDINARY)))
def test_counts_add_up_and_order_does_not_matter(lines: list[str]) -> None:
    found = find_all(lines)
    assert sum(finding.count for finding in found) == sum(classify(line) is not None for line in lines)
    counts = {(finding.kind, finding.severity): finding.count for finding in found}
    assert counts == {(other.kind, other.severity): other.count for other in find_all(reversed(lines))}


@given(st.text())
def test_any_text_has_at_most_one_kind(text: str) -> None:
    assert classify(text) is None or classify(text) in KINDS
    assert classify("storqual: " + text) is None


@pytest.mark.parametrize(
    "stamp",
    [
        "[  906.104104] ",
        "[  906.104104][  T123] ",
        "<3>[  906.104104] ",
        "[Wed Oct 16 01:13:11 2024] ",
        "Apr  7 21:20:42 bench1 kernel: ",
        "Apr 27 21:20:42 bench1 kernel: [  906.104104] ",
        "2026-11-19T05:18:11.573Z bench1 kernel: ",
        "Jun 20 13:54:03 bench1 kern.warn kernel: ",
        "[    1.277602] bench1 kernel: ",
        "kernel: [  868.435387] ",
        "[Jul 6 09:19] ",
        "[Jul16 09:19] ",
        "[ +10,204216] ",
        "[  906.104104 <    0.000012>] ",
        "2024-05-01T10:11:12,123456+02:00 ",
        "2016-12-12 17:08:32\t",
        "mrt 17 20:55:15 bench1 kernel: ",
        "Okt. 17 20:55:15 bench1 kernel: ",
        "fév 17 20:55:15 bench1 kernel: ",
        "    [  906.104104] ",
        "[92903.774] ",
        "[Mi, 16. Okt 2024, 01:13:11] ",
    ],
)
def test_a_stamp_in_front_of_a_line_is_no_part_of_it(stamp: str) -> None:
    assert classify(stamp + "XFS (sdb1): log mount failed") == "file_system_error"
    assert classify(stamp + "megasas: [ 5]waiting for 1 commands to complete") == "adapter_reset"
    assert classify(stamp + "ixgbe 0000:03:00.0 eth0: Reset adapter") is None
    assert classify(stamp + "storqual: adapter reset") is None


def test_a_log_info_word_is_decoded() -> None:
    line = "mpt3sas_cm0: log_info(0x31110d00): originator(PL), code(0x11), sub_code(0x0d00)"
    assert decode_log_info(line) == "originator PL, code 0x11 (reset), sub-code 0x0d00"
    assert decode_log_info("ioc0: LogInfo(0x30030101)") == (
        "originator IOP, code 0x03 (invalid configuration page), sub-code 0x0101"
    )
    assert decode_log_info("log_info(0x41110d00)") == ""
    assert find_all([line])[0].sentence().endswith("[originator PL, code 0x11 (reset), sub-code 0x0d00]")


def _spent(line: str) -> float:
    start = time.process_time()
    classify(line)
    return time.process_time() - start


@pytest.mark.parametrize("word", ["lpfc ", "hpsa ", "sd ", "1", " ", "[", "a.", "mpt3sas "])
def test_a_line_of_twice_the_length_does_not_take_four_times_as_long(word: str) -> None:
    """What a rule looks at is bounded: the kernel's own lines are, and what else is in a log may have any length."""
    classify("the rules are compiled when they are first needed")
    lines = [(word * length)[:length] for length in (50_000, 100_000)]
    assert min(_spent(lines[1]) / max(_spent(lines[0]), 1e-6) for _ in range(3)) < 3


@pytest.mark.parametrize("length", [0, 900, 2000, 5000, 1_000_000])
def test_trouble_at_either_end_of_a_long_line_is_found(length: int) -> None:
    trouble = "sd 0:0:0:0: [sda] tag#1 FAILED Result: hostbyte=DID_TIME_OUT driverbyte=DRIVER_OK"
    kind = classify(trouble)
    assert kind is not None
    assert classify(f"{trouble} {'x' * length}") == kind
    assert classify(f"{'x' * length} {trouble}") == kind
