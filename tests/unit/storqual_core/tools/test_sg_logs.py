# SPDX-License-Identifier: Apache-2.0
"""sg_logs: pages by number, values by name, counters apart."""

from __future__ import annotations

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import sg3
from tests.support.replay import Call, Replay
from tests.support.tool_fixtures import fixture_text

ALL = fixture_text("sg3", "logs_all.txt")


def test_pages_are_read_by_number() -> None:
    pages = sg3.parse_log_pages(ALL)
    assert sorted(page for page, _ in pages) == [0x0, 0x2, 0x6, 0xD, 0xE, 0x10, 0x18]
    assert pages[0x0D, 0].values["Current temperature"] == "30 C"
    assert pages[0x10, 0].values["Parameter code #2"] == "2"
    assert pages[0x10, 0].values["accumulated power-on hours"] == "12"
    assert pages[0x18, 0].values["Invalid DWORD count"] == "4"
    assert len(pages[0x00, 0].notes) == 3


def test_error_counters_are_those_of_the_error_pages() -> None:
    calls = [Call("sg_logs -a /dev/sg1", "", rc=6), Call("sg_logs -a /dev/sg1", ALL)]
    assert sg3.error_counters(sg3.read_log_pages(Replay(calls), "/dev/sg1")) == {
        "write.Errors corrected without substantial delay": 0,
        "write.Total errors corrected": 3,
        "write.Total bytes processed": 123456,
        "write.Total uncorrected errors": 1,
        "non_medium.Non-medium error count": 12,
    }


def test_another_number_of_phys_than_listed_is_refused() -> None:
    with pytest.raises(ToolError, match="reports 2 phys and lists 1"):
        sg3.parse_log_pages(ALL.replace("number of phys = 1", "number of phys = 2"))


def test_no_page_is_told_with_the_tools_words() -> None:
    with pytest.raises(ToolError, match="no log page: log_sense: not supported"):
        sg3.parse_log_pages("log_sense: not supported\n")
    with pytest.raises(ToolError, match="the drive does not know this command"):
        sg3.read_log_pages(Replay([Call("sg_logs -a /dev/sg1", "", rc=9)]), "/dev/sg1")


ODD = """    EXAMPLE   DISK9             0007

Non-medium error page  [0x6]
  Non-medium error count = 3

Sequential access device page (ssc-3)
  Data bytes received with WRITE commands: 5 GB

No ascii information for page = 0x37, here is hex:
 00     37 00 00 04 00 00 00 04

Protocol Specific port page for SAS SSP  (sas-2) [0x18]
relative target port id = 1
  number of phys = 1
  phy identifier = 0
    Running disparity error count = 52
    Loss of DWORD synchronization = 19
    Phy event descriptors:
     Running disparity error count: 52
     Loss of dword synchronization count: 19
relative target port id = 2
  number of phys = 1
  phy identifier = 1
    Running disparity error count = 2
    Loss of DWORD synchronization = 3
"""


def test_a_page_without_a_number_in_its_title_gives_nothing_to_the_page_before() -> None:
    pages = sg3.parse_log_pages(ODD)
    assert list(pages) == [(6, 0), (-1, 0), (0x37, 0), (0x18, 0)]
    assert sg3.error_counters(pages) == {"non_medium.Non-medium error count": 3}
    assert pages[-1, 0].values == {"Data bytes received with WRITE commands": "5 GB"}
    assert pages[0x37, 0].notes == ("00     37 00 00 04 00 00 00 04",)


def test_what_a_phy_tells_twice_is_counted_once() -> None:
    pages = sg3.parse_log_pages(ODD)
    assert sg3.link_counters(pages) == {
        "link.Running disparity error count": 54,
        "link.Loss of DWORD synchronization": 22,
    }
    assert pages[0x18, 0].values["Phy event: Running disparity error count"] == "52"


def test_a_label_that_compares_is_read_whole() -> None:
    text = (
        "Seagate cache page [0x37]\n"
        "  Number of read and write commands whose size <= segment size = 400\n"
        "  Number of read and write commands whose size > segment size = 500\n"
        "HGST/WDC performance counters page [0x30]\n"
        "  Seeks >= 1/3 and < 2/3 = 3\n"
    )
    pages = sg3.parse_log_pages(text)
    assert pages[0x37, 0].values == {
        "Number of read and write commands whose size <= segment size": "400",
        "Number of read and write commands whose size > segment size": "500",
    }
    assert pages[0x30, 0].values == {"Seeks >= 1/3 and < 2/3": "3"}


@pytest.mark.parametrize(
    "title",
    ["Volume statistics page (ssc-4), subpage=0", "Unable to decode Drive control verification (lto-5) [dcv_]"],
)
def test_values_of_a_page_without_a_number_are_not_those_of_the_page_before_it(title: str) -> None:
    text = f"Write error counter page  [0x2]\n  Total uncorrected errors = 0\n{title}\n  Total write retries: 4\n"
    pages = sg3.parse_log_pages(text)
    assert pages[2, 0].values == {"Total uncorrected errors": "0"}
    assert pages[-1, 0] == sg3.LogPage(title, {"Total write retries": "4"})


def test_a_page_that_is_not_decoded_has_its_number() -> None:
    text = (
        "Non-medium error page  [0x6]\n  Non-medium error count = 1\n"
        "Unable to decode page=0x3a, subpage=0x2\n 00   3a 02\n"
    )
    pages = sg3.parse_log_pages(text)
    assert pages[6, 0].notes == ()
    assert pages[0x3A, 2].notes == ("00   3a 02",)
