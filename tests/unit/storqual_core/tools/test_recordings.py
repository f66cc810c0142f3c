# SPDX-License-Identifier: Apache-2.0
"""Recorded outputs of real tools, where they lie beside the checkout: each is read, or refused with a sentence.

The recordings are other people's and stay outside the project. `MET` says which function meets which output, and for
an output that must be refused a part of the sentence.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings

from storqual_core.kit.errors import StorqualError, ToolError
from storqual_core.tools import TOOLS
from storqual_core.turns import fio_result
from tests.support.mangle import mangled

if TYPE_CHECKING:
    from collections.abc import Callable

# output: (tool, parser, a part of the refusal or nothing)
MET: dict[str, tuple[str, str, str]] = {
    "arcconf/getconfig_degraded_rebuilding.txt": ("arcconf", "parse_config", ""),
    "arcconf/getstatus_rebuild_1pct.txt": ("arcconf", "parse_tasks", ""),
    "arcconf/hba1100-16i_getconfig_1_LD_unsupported.txt": ("arcconf", "parse_config", "feature is not supported"),
    "arcconf/hba1100-16i_list.txt": ("arcconf", "parse_list", ""),
    "dmidecode/dell_r630.txt": ("dmidecode", "parse_records", ""),
    "fwupd/fwupdagent_get_devices_warning_prefix.json": ("fwupd", "parse_devices", ""),
    "fwupd/get_results_error_code9.json": ("fwupd", "parse_devices", "FwupdError code 9"),
    "hbacmd/hbaattributes_lpe31002-m6.txt": ("hbacmd", "parse_attributes", ""),
    "lsiutil/1.62_sas6ir_settings.txt": ("lsiutil", "parse_settings", ""),
    "lsiutil/1.70_board_name_with_space.txt": ("lsiutil", "parse_boards", ""),
    "lsiutil/1.70_sas9207-8i_full.txt": ("lsiutil", "parse_versions", ""),
    "lsiutil/1.72_hba330_nvram_page_write.txt": ("lsiutil", "parse_page", ""),
    "lspci/k_cisco_ucs_mptsas_qla2xxx.txt": ("lspci", "parse_verbose", ""),
    "lspci/vmmkn_vm.txt": ("lspci", "parse_records", ""),
    "lspci/vvv_qle2464_vpd_link.txt": ("lspci", "parse_verbose", ""),
    "lsscsi/g_p2000_multipath_luns.txt": ("lsscsi", "parse_devices", ""),
    "mdadm/detail_degraded_recovering_30pct.txt": ("mdadm", "parse_detail", ""),
    "mdadm/query-container2-member.txt": ("mdadm", "parse_detail", ""),
    "mdadm/query-raid1-faulty-with-spare.txt": ("mdadm", "parse_detail", ""),
    "modinfo/mpt3sas_28.100.00.00_el8.txt": ("kmod", "parse_modinfo", ""),
    "mvcli/info_vd_offline_sg_noise.txt": ("mvcli", "parse_volumes", ""),
    "mvcli/mnv_cli_0_info_o_hba.txt": ("mvcli", "parse_cards", ""),
    "nvme/1.16_list_verbose_boss-n1.json": ("nvme", "parse_list", ""),
    "nvme/2.11_list.json": ("nvme", "parse_list", ""),
    "nvme/2.11_smart_log.json": ("nvme", "parse_smart_log", ""),
    "nvme/2.3_list.json": ("nvme", "parse_list", ""),
    "nvme/text_smart_log_fr_FR_2.5.txt": ("nvme", "parse_smart_log", "no JSON object: Smart Log for NVME device"),
    "qaucli/i_all_qle2690.txt": ("qaucli", "parse_instances", ""),
    "qaucli/pr_fc_g_two_qle2564.txt": ("qaucli", "parse_listing", ""),
    "redfish/idrac_error_running_job.json": ("redfish", "parse_error", ""),
    "sas2ircu/display_18.00_no_ir_volume.txt": ("sas3ircu", "parse_display", ""),
    "sas2ircu/list_18.00_sas2008.txt": ("sas3ircu", "parse_list", ""),
    "sas2ircu/status_18.00_no_ir_volume_error.txt": ("sas3ircu", "parse_status", ""),
    "sasflash/sas2flash_list_nvdata_mismatch.txt": ("sasflash", "parse_adapter", ""),
    "sasflash/sas2flash_testlsall_all_down.txt": ("sasflash", "parse_links", ""),
    "sasflash/sas3flash_listall_two_sas3008.txt": ("sasflash", "parse_list_all", ""),
    "sdparm/1.10_la_mb24000gyevk.stderr.txt": ("sdparm", "parse_fields", "no mode page field: descriptor overflows"),
    "sdparm/1.10_la_mb24000gyevk.txt": ("sdparm", "parse_fields", ""),
    "sg3_utils/inhex_vpd_emc_symmetrix_old_di.hex": ("sg3", "parse_hex_file", ""),
    "sg3_utils/sg_inq_ata_1020.txt": ("sg3", "parse_inquiry", ""),
    "sg3_utils/sg_modes_a_ibm_ult3580.txt": ("sg3", "parse_mode_pages", ""),
    "smartctl/7.0_intel_rst_raid_volume_exit4.json": ("smartctl", "parse_health", ""),
    "smartctl/7.0_open_failed_exit2.json": ("smartctl", "parse_health", "could not be opened, or is in standby"),
    "smartctl/7.1_scan_megaraid.json": ("smartctl", "parse_scan", ""),
    "smartctl/7.1_usb_failing_exit216.json": ("smartctl", "parse_health", ""),
    "smartctl/7.4_hp_73.4g_mas3735nc_u320.json": ("smartctl", "parse_health", ""),
    "smartctl/text_7.3_pl_PL_windows_truncated.txt": ("smartctl", "parse_health", "no JSON object: smartctl 7.3"),
    "ssacli/hpacucli_err_identify_by_slot.txt": ("ssacli", "parse_controllers", "must be identified by slot"),
    "ssacli/hpacucli_err_no_controllers.txt": ("ssacli", "parse_controllers", ""),
    "ssacli/hpacucli_interim_recovery_fw_banner.txt": ("ssacli", "parse_controllers", ""),
    "ssacli/p212_p410i_config_detail.txt": ("ssacli", "parse_controllers", ""),
    "ssacli/p400i_failed_battery_unassigned.txt": ("ssacli", "parse_controllers", ""),
    "ssacli/p816i-a_slot0_detail.txt": ("ssacli", "parse_controllers", ""),
    "perccli/h755_call_show_all.json": ("storcli", "parse_adapters", ""),
    "perccli/none_no_controller_found.json": ("storcli", "parse_adapters", ""),
    "storcli/err_c5_not_found.json": ("storcli", "parse_adapters", ""),
    "storcli/err_set_good_errcd255.json": ("storcli", "parse_adapters", "Operation not allowed. (code 255)"),
    "storcli/failure_but_full_data.json": ("storcli", "parse_adapters", ""),
    "storcli/foreign_raid60.json": ("storcli", "parse_foreign", ""),
    "storcli/hba9500-8i_call_show_all.json": ("storcli", "parse_adapters", ""),
    "storcli/m5015_call_show_all.json": ("storcli", "parse_adapters", ""),
    "storcli/mr9560_add_vd_fail.json": ("storcli", "parse_adapters", "doesn't have enough capacity (code 13)"),
    "storcli/mr9560_set_cache_ok.json": ("storcli", "parse_volumes", "says nothing about volumes"),
    "storcli/mr9560_vd_show_all_v239.json": ("storcli", "parse_volumes", ""),
    "storcli/none_number_of_controllers_0.json": ("storcli", "parse_adapters", ""),
    "storcli/text_m5110e_leading_failure.txt": ("storcli", "parse_adapters", ""),
    "storcli/text_multi_controller_degraded.txt": ("storcli", "parse_adapters", ""),
    "storcli/three_controllers_call_show.json": ("storcli", "parse_adapters", ""),
    "storcli2/ehba9600-24i_c0_show.json": ("storcli2", "parse_adapters", ""),
    "storcli2/err_vd999_invalid.json": ("storcli2", "parse_volumes", "Invalid VD number (code 255)"),
    "storcli2/mr9660-16i_c0_show_all.json": ("storcli2", "parse_adapters", ""),
    "storcli2/none_number_of_controllers_0.json": ("storcli2", "parse_adapters", ""),
    "storcli2/plaintext_despite_J_combined_set.txt": ("storcli2", "parse_volumes", "unexpected TOKEN_WRITE_CACHE"),
    "storcli2/set_wrcache_ok.json": ("storcli2", "parse_volumes", "says nothing about volumes"),
    "storcli2/show_one_controller.json": ("storcli2", "parse_adapters", ""),
}


def parser(output: str) -> tuple[Callable[[str], Any], str]:
    """The function that meets an output, and a part of its refusal."""
    tool, name, refusal = MET[output]
    return getattr(TOOLS[tool](), name), refusal


def text_of(transcripts: Path, output: str) -> str:
    """A recording, as a runner decodes what a tool prints."""
    return (transcripts / output).read_bytes().decode("utf-8", "replace")


@pytest.mark.parametrize("output", sorted(MET))
def test_a_recording_is_read_or_refused_with_a_sentence(transcripts: Path, output: str) -> None:
    parse, refusal = parser(output)
    if refusal:
        with pytest.raises(ToolError) as caught:
            parse(text_of(transcripts, output))
        assert refusal in str(caught.value)
    else:
        # nothing under way and no adapter found are good answers too
        assert parse(text_of(transcripts, output)) is not None


@pytest.mark.parametrize("tool", sorted({tool for tool, _, _ in MET.values()}))
def test_a_mangled_recording_is_read_or_refused(transcripts: Path, tool: str) -> None:
    outputs = [output for output, (owner, _, _) in MET.items() if owner == tool]
    parsers = {MET[output][1]: parser(output)[0] for output in outputs}

    @settings(max_examples=20, deadline=None)
    @given(mangled([text_of(transcripts, output) for output in outputs]))
    def check(text: str) -> None:
        for parse in parsers.values():
            try:
                parse(text)
            except StorqualError:
                continue

    check()


def test_recorded_fio_outputs_are_found_or_known_to_hold_no_result(transcripts: Path) -> None:
    for path in sorted((transcripts / "fio").iterdir()):
        found, rest = fio_result.find_document(path.read_text(encoding="utf-8", errors="replace"))
        assert (found is None) == (path.name == "engine_not_loadable.txt")
        assert found is not None or "engine libaio not loadable" in rest
