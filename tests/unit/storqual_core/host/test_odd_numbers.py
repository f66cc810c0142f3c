# SPDX-License-Identifier: Apache-2.0
"""Numbers in texts of the kernel and of fio that no counter has: read, left out or refused, never another error."""

from collections.abc import Callable
from typing import Any

import pytest

from storqual_core.host.counters import parse_block_stat, parse_interrupts, parse_proc_stat
from storqual_core.host.in_use import parse_mountinfo, parse_swaps
from storqual_core.host.kernel_log import classify, decode_log_info, parse_record
from storqual_core.kit.labelled_text import as_int, printed_size, size_range, whole_number
from storqual_core.kit.quantities import is_whole, parse_duration, parse_percent, parse_size
from storqual_core.turns.derive import parse_log
from tests.support.mangle import ODD_NUMBERS, with_odd_number

READERS: list[tuple[Callable[[str], Any], str]] = [
    (parse_proc_stat, "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 12 3 4\nctxt 99\n"),
    (lambda text: parse_interrupts(text, ["24"]), "     CPU0  CPU1\n 24:  11  22  PCI-MSI 512-edge  mpt3sas0\n"),
    (parse_block_stat, "  11 22 33 44 55 66 77 88 99 10 11"),
    (lambda text: parse_mountinfo([text]), "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw"),
    (lambda text: parse_swaps([text]), "/dev/sda2  partition  1048572  0  -2"),
    (parse_record, "6,339,5140900,-;NET: Registered protocol family 10"),
    (classify, "[   12.345678] mpt2sas0: log_info(0x31110d00): originator(PL), code(0x11), sub_code(0x0d00)"),
    (decode_log_info, "mpt2sas0: log_info(0x31110d00): originator(PL), code(0x11), sub_code(0x0d00)"),
    (parse_log, "1000, 2048, 0, 4096, 0\n2000, 2048, 1, 4096, 0\n"),
    (as_int, "12"),
    (whole_number, "30 - LIP"),
    (lambda text: printed_size(text, base=1024), "4.55 TB"),
    (lambda text: size_range(text, base=1000), "960.5 GB"),
]


@pytest.mark.parametrize("odd", ODD_NUMBERS, ids=lambda odd: f"{odd[:8]} of {len(odd)}")
@pytest.mark.parametrize("place", range(len(READERS)))
def test_a_number_that_no_counter_has_is_read_or_left_out(place: int, odd: str) -> None:
    read, text = READERS[place]
    for changed in with_odd_number(text, odd):
        read(changed)


@pytest.mark.parametrize("odd", ODD_NUMBERS)
@pytest.mark.parametrize(("read", "text"), [(parse_size, "4k"), (parse_duration, "2.5s"), (parse_percent, "3.5%")])
def test_a_quantity_of_people_is_refused(read: Callable[[str], Any], text: str, odd: str) -> None:
    for changed in with_odd_number(text, odd):
        try:
            found = read(changed)
        except ValueError:
            continue
        assert abs(found) < 1e100


@pytest.mark.parametrize("odd", [*ODD_NUMBERS, "", "1 ", "1\n", "+1", "1_0"])
def test_only_plain_digits_are_a_whole_number(odd: str) -> None:
    assert not is_whole(odd)
    assert is_whole("0")
    assert is_whole(str(2**64 - 1))


@pytest.mark.parametrize("value", [10**5000, -(10**41), float("inf"), float("nan"), 1e300, 0.5], ids=range(6))
def test_what_is_no_count_is_none_in_json_either(value: float) -> None:
    assert as_int(value) is None
