# SPDX-License-Identifier: Apache-2.0
"""Parsers of RAID and flash tools are total: cut, mixed and localised output gives data or a ToolError, never more.

The recordings beside the checkout, where they are, go through the same parsers.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.errors import ToolError
from storqual_core.tools import arcconf, fwupd, mvcli, sas3ircu, sasflash, ssacli

if TYPE_CHECKING:
    from collections.abc import Callable

FIXTURES = Path(__file__).parent / "fixtures"
PARSERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "ssacli": ("ssacli/config_detail.txt", ssacli.parse_controllers),
    "arcconf config": ("arcconf/getconfig.txt", lambda text: arcconf.parse_config(text, "1")),
    "arcconf list": ("arcconf/getconfig.txt", arcconf.parse_list),
    "arcconf tasks": ("arcconf/getconfig.txt", arcconf.parse_tasks),
    "sas3ircu display": ("sas3ircu/display.txt", lambda text: sas3ircu.parse_display(text, "0")),
    "sas3ircu list": ("sas3ircu/list.txt", sas3ircu.parse_list),
    "sas3ircu status": ("sas3ircu/status.txt", sas3ircu.parse_status),
    "mvcli vd": ("mvcli/vd.txt", mvcli.parse_volumes),
    "mvcli hba": ("mvcli/nvme_hba.txt", mvcli.parse_cards),
    "sasflash list": ("sasflash/list.txt", lambda text: sasflash.parse_adapter(text, "sas3flash 0")),
    "sasflash links": ("sasflash/links.txt", sasflash.parse_links),
    "sasflash listall": ("sasflash/list.txt", sasflash.parse_list_all),
    "fwupd": ("fwupd/devices.json", fwupd.parse_devices),
}
DIGITS = str.maketrans("0123456789.", "٠١٢٣٤٥٦٧٨٩,")


@pytest.mark.parametrize("name", PARSERS)
@given(data=st.data())
def test_a_parser_gives_data_or_a_sentence(name: str, data: st.DataObject) -> None:
    """Truncated anywhere, lines of another tool in between, digits and commas of another language."""
    file, parse = PARSERS[name]
    text = (FIXTURES / file).read_text(encoding="utf-8")
    kind = data.draw(st.sampled_from(["cut", "mixed", "localised", "changed"]))
    if kind == "cut":
        text = text[: data.draw(st.integers(0, len(text)))]
    elif kind == "mixed":
        lines = text.splitlines(keepends=True)
        other, _ = PARSERS[data.draw(st.sampled_from(sorted(PARSERS)))]
        for line in (FIXTURES / other).read_text(encoding="utf-8").splitlines(keepends=True)[:40:3]:
            lines.insert(data.draw(st.integers(0, len(lines))), line)
        text = "".join(lines)
    elif kind == "localised":
        start = data.draw(st.integers(0, len(text)))
        text = text[:start] + text[start:].translate(DIGITS).replace(" ", "\u202f")
    else:
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(st.text(max_size=8)) + text[at + data.draw(st.integers(0, 8)) :]
    with suppress(ToolError):
        parse(text)


RECORDED: dict[str, Callable[[str], Any]] = {
    "arcconf/getconfig_degraded_rebuilding.txt": PARSERS["arcconf config"][1],
    "arcconf/getstatus_rebuild_1pct.txt": arcconf.parse_tasks,
    "arcconf/hba1100-16i_list.txt": arcconf.parse_list,
    "fwupd/fwupdagent_get_devices_warning_prefix.json": fwupd.parse_devices,
    "mvcli/info_vd_offline_sg_noise.txt": mvcli.parse_volumes,
    "mvcli/mnv_cli_0_info_o_hba.txt": mvcli.parse_cards,
    "sas2ircu/display_18.00_no_ir_volume.txt": PARSERS["sas3ircu display"][1],
    "sas2ircu/list_18.00_sas2008.txt": sas3ircu.parse_list,
    "sas2ircu/status_18.00_no_ir_volume_error.txt": sas3ircu.parse_status,
    "sasflash/sas2flash_list_nvdata_mismatch.txt": PARSERS["sasflash list"][1],
    "sasflash/sas2flash_testlsall_all_down.txt": sasflash.parse_links,
    "sasflash/sas3flash_listall_two_sas3008.txt": sasflash.parse_list_all,
    "ssacli/hpacucli_err_no_controllers.txt": ssacli.parse_controllers,
    "ssacli/hpacucli_interim_recovery_fw_banner.txt": ssacli.parse_controllers,
    "ssacli/p212_p410i_config_detail.txt": ssacli.parse_controllers,
    "ssacli/p400i_failed_battery_unassigned.txt": ssacli.parse_controllers,
    "ssacli/p816i-a_slot0_detail.txt": ssacli.parse_controllers,
}
REFUSED: dict[str, tuple[Callable[[str], Any], str]] = {
    "arcconf/hba1100-16i_getconfig_1_LD_unsupported.txt": (PARSERS["arcconf config"][1], "not supported"),
    "fwupd/get_results_error_code9.json": (fwupd.parse_devices, "code 9"),
    "ssacli/hpacucli_err_identify_by_slot.txt": (ssacli.parse_controllers, "identified by slot"),
}


@pytest.mark.parametrize("file", RECORDED)
def test_a_recording_is_understood(file: str, transcripts: Path) -> None:
    """Each gives data."""
    assert RECORDED[file]((transcripts / file).read_text(encoding="utf-8")) is not None


@pytest.mark.parametrize("file", REFUSED)
def test_a_recorded_failure_is_a_sentence(file: str, transcripts: Path) -> None:
    """The tool's own words are in it."""
    parse, words = REFUSED[file]
    with pytest.raises(ToolError, match=words):
        parse((transcripts / file).read_text(encoding="utf-8"))


def test_every_recording_of_these_tools_is_in_the_tables(transcripts: Path) -> None:
    """A new one must be understood or refused, not passed over."""
    folders = ("arcconf", "fwupd", "mvcli", "sas2ircu", "sasflash", "ssacli")
    files = {f"{folder}/{path.name}" for folder in folders for path in (transcripts / folder).iterdir()}
    assert files == RECORDED.keys() | REFUSED.keys()
