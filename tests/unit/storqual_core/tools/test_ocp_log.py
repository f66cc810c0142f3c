# SPDX-License-Identifier: Apache-2.0
"""The OCP health log of nvme-cli: one set of names, whatever form it is printed in."""

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import nvme
from tests.support.replay import Call, Replay
from tests.support.tool_fixtures import fixture_text

LINE = "nvme ocp smart-add-log /dev/nvme0n1 --output-format=json"


def values(name: str) -> dict[str, int]:
    return dict(nvme.parse_ocp_log(fixture_text("nvme", name)).values)


def test_labels_get_the_names_of_the_second_form() -> None:
    found = values("ocp_labels.json")
    assert found["physical_media_units_written"] == (1 << 64) + 527805403860992
    assert (found["bad_user_nand_blocks_raw"], found["uncorrectable_read_errors"], found["refresh_count"]) == (
        7,
        1,
        520628,
    )
    assert (found["max_user_data_erase_count"], found["pcie_correctable_errors"], found["unaligned_io"]) == (45, 3, 0)
    # FFFFh: the drive has no capacitor
    assert "capacitor_health" not in found
    assert values("ocp_names.json")["capacitor_health"] == 100
    assert values("ocp_names.json").keys() - {"capacitor_health", "media_dies_offline"} <= found.keys()


def test_halves_and_text_say_the_same() -> None:
    assert values("ocp_halves.json")["physical_media_units_written"] == 39074645999616
    found = values("ocp.txt")
    assert found == {
        "physical_media_units_written": 39074645999616,
        "physical_media_units_read": 36265469677568,
        "bad_user_nand_blocks_raw": 7,
        "uncorrectable_read_errors": 1,
        "current_throttling_status": 2,
        "unaligned_io": 5,
        "nvme_command_set_errata_version": 1,
        "sys_area_uncorrectable_read_count_noralized": 100,
        "log_page_version": 2,
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (fixture_text("nvme", "smart_log.json"), "no OCP health log"),
        (fixture_text("nvme", "ocp_other_guid.json"), "another vendor's"),
        ('{"Physical media units written": {"lo": 1}}', "one half of physical_media_units_written"),
        ("{}", "no OCP health log"),
        ("NVMe Status:Invalid Log Page(109)\n", "no JSON object"),
    ],
)
def test_another_page_is_refused(text: str, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        nvme.parse_ocp_log(text)


def test_a_smart_log_is_not_taken_from_an_ocp_log() -> None:
    with pytest.raises(ToolError, match="no SMART log"):
        nvme.parse_smart_log(fixture_text("nvme", "ocp_names.json"))


@pytest.mark.parametrize("ended", [Call(LINE, rc=1, stderr="ERROR : OCP : Unable to read C0 data"), Call(LINE)])
def test_a_drive_without_the_page_has_none(ended: Call) -> None:
    assert nvme.read_ocp_log(Replay([ended]), "/dev/nvme0n1") is None


def test_a_drive_with_the_page_is_asked_for_json() -> None:
    log = nvme.read_ocp_log(Replay([Call(LINE, fixture_text("nvme", "ocp_labels.json"))]), "/dev/nvme0n1")
    assert log is not None
    assert log.values["soft_ecc_error_count"] == 1117
