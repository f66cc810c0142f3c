# SPDX-License-Identifier: Apache-2.0
"""dd and sg_dd: counts are exact, printed times and rates are what they can stand for, a cut summary is refused."""

from __future__ import annotations

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import dd, sg_dd
from storqual_core.tools.dd import CopySummary
from tests.support.tool_fixtures import fixture_text as fixture


def test_dd_tells_its_counts_twice() -> None:
    report = dd.parse_report(fixture("dd", "asked_and_interrupted.txt"))
    first, last = report.summaries
    assert first == CopySummary(70891, 70890, 0, (145182720, 145182720), (361_657_500, 361_658_501))
    assert (last.records_in, last.time_ns) == (301734, (1_416_425_000, 1_416_435_001))
    assert report.notes == ()


def test_a_time_without_its_last_zeros_has_six_digits_all_the_same() -> None:
    (told,) = dd.parse_report(fixture("dd", "read_error.txt")).summaries
    assert told.time_ns == (499_999_500, 500_000_501)
    (short,) = dd.parse_report(fixture("dd", "short_copy.txt")).summaries
    assert short.time_ns == (60_899, 60_901)
    assert short.bytes == (512, 512)


def test_what_is_no_count_is_kept() -> None:
    assert dd.parse_report(fixture("dd", "read_error.txt")).notes == (
        "dd: error reading '/dev/sdb': Input/output error",
    )
    assert sg_dd.parse_report(fixture("sg_dd", "no_count.txt")).notes == (
        "Couldn't calculate count, please give one",
    )


def test_sg_dd_counts_blocks_and_its_rate_is_an_interval() -> None:
    first, last = sg_dd.parse_report(fixture("sg_dd", "asked_and_interrupted.txt")).summaries
    assert (first.records_in, last.records_in, last.partial) == (147448, 524280, 0)
    assert last.time_ns == (1_479_618_000, 1_479_619_000)
    least, most = last.bytes
    assert least <= 524280 * 512 <= most
    assert most - least < 20_000
    (none,) = sg_dd.parse_report(fixture("sg_dd", "nothing_yet.txt")).summaries
    assert none.bytes == (0, 511)


@pytest.mark.parametrize(
    "text",
    [
        fixture("dd", "cut.txt"),
        "1+0 records in\n512 bytes copied, 1 s, 512 B/s\n",
        "512 bytes copied, 1 s, 512 B/s\n",
        "1+0 records out\n",
        "1+0 records in\ndd: closing\n1+0 records out\n512 bytes copied, 1 s, 512 B/s\n",
    ],
)
def test_a_summary_of_dd_that_is_cut_is_refused(text: str) -> None:
    with pytest.raises(ToolError, match="dd told a summary that is cut"):
        dd.parse_report(text)


@pytest.mark.parametrize(
    "text",
    [
        fixture("sg_dd", "cut.txt"),
        "1+0 records in\n1+0 records out\n",
        "time to transfer data: 1.479618 secs\ntime to transfer data: 1.479618 secs\n",
    ],
)
def test_a_summary_of_sg_dd_that_is_cut_is_refused(text: str) -> None:
    with pytest.raises(ToolError, match="sg_dd told a summary that is cut"):
        sg_dd.parse_report(text)


def test_commands_read_past_the_page_cache_and_write_nowhere() -> None:
    assert dd.argv("/dev/x", bs=2048, offset=4096, size=8192) == [
        *("dd", "if=/dev/x", "of=/dev/null", "bs=2048", "iflag=direct,skip_bytes", "skip=4096", "count=4"),
    ]
    assert dd.argv("/dev/x", bs=2048, offset=0, size=0) == [
        "dd",
        "if=/dev/x",
        "of=/dev/null",
        "bs=2048",
        "iflag=direct",
    ]
    assert sg_dd.argv("/dev/x", bs=2048, offset=4096, size=9000) == [
        *("sg_dd", "if=/dev/x", "of=/dev/null", "bs=512", "bpt=4", "blk_sgio=1", "time=1", "skip=8", "count=16"),
    ]
