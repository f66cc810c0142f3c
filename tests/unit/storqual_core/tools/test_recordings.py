# SPDX-License-Identifier: Apache-2.0
"""Recorded outputs of real tools, where they lie beside the checkout: each is read, or refused with a sentence.

The recordings are other people's and stay outside the project. `recordings.json` says which function meets which
output, and for an output that must be refused a part of the sentence.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from storqual_core.kit.errors import StorqualError, ToolError
from storqual_core.tools import TOOLS
from storqual_core.turns import fio_result
from tests.support.mangle import mangled

MET: dict[str, tuple[str, str, str]] = {
    output: (tool, parse, refusal)
    for output, (tool, parse, refusal) in json.loads(
        Path(__file__).with_name("recordings.json").read_text(encoding="utf-8")
    ).items()
}
"""Each output with its tool, its parser, and a part of the refusal or nothing."""


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


VALUES: dict[str, Callable[[Any], object]] = {
    "dnf/dnf4_fedora40_install_kernel.txt": lambda found: (len(found.done["install"]), found.end) == (3, ""),
    "dnf/dnf5_fedora41_install_kernel_cut.txt": lambda found: (
        found.done == {"install": ("kernel-modules-core-0:6.16.11-100.fc41.x86_64",)}
    ),
    "dnf/needs_more_space_on_boot.txt": lambda found: found.space == {"/boot": 48 << 20},
    "dnf/posttrans_dkms_failed_fedora41.txt": lambda found: (
        "40-dkms.install" in found.failures[2] and "%posttrans" in found.failures[3] and not found.problems
    ),
    "dnf/posttrans_dracut_failed.txt": lambda found: len(found.failures) == 3,
    "dnf/transaction_test_error_same_files.txt": lambda found: len(found.problems) == 5,
    "kdumpctl/el10_operational_while_service_failed.txt": lambda found: (
        (found.operational, found.mode) == (True, "fadump")
    ),
    "kdumpctl/start_no_memory_reserved.txt": lambda found: found.operational is None and len(found.problems) == 2,
    "lsinitrd/el7_early_cpio.txt": lambda found: (
        (len(found.early), len(found.modules), len(found.files)) == (6, 20, 5)
    ),
    "lsinitrd/el8_kdump_image_modules.txt": lambda found: (
        [name.rpartition("/")[2] for name in found.files if ".ko" in name]
        == ["loop.ko.xz", "overlay.ko.xz", "squashfs.ko.xz"]
    ),
    "mokutil/db_short.txt": lambda found: [key.digest for key in found] == ["b7b180e323", "46def63b5c"],
    "mokutil/sb_state_enabled.txt": lambda found: found.enabled is True,
    "mokutil/sb_state_no_efi.txt": lambda found: found.enabled is None,
    "rpm/el8_query_kernel_not_installed.txt": lambda found: (found.packages, found.missing) == ((), ("kernel",)),
    "rpm/el9_ansible_dnf_results.json": lambda found: len(found.done["install"]) == 4 and found.end == "complete",
    "rpm/el9_repoquery_bpftool_from_kernel.txt": lambda found: (
        [(each.name, each.version) for each in found.packages].count(("bpftool", "5.14.0")) == 2
    ),
    "sestatus/avc_module_load_denied.txt": lambda found: found[0].target == "admin_home_t",
    "sestatus/disabled.txt": lambda found: not found.enabled,
    "sestatus/enforcing.txt": lambda found: (found.configured, len(found.booleans)) == ("enforcing", 6),
    "sestatus/ol8_enforcing_config_disabled.txt": lambda found: (
        (found.mode, found.configured) == ("enforcing", "disabled")
    ),
    "weak_modules/el6_depmod_unknown_symbols.txt": lambda found: len(found.unknown) == 4,
    "weak_modules/el7_not_compatible_in_symbols.txt": lambda found: (
        [len(fit.symbols) for fit in found.incompatible] == [1, 3, 1]
    ),
    "weak_modules/suse_dkms_getopt_unrecognized.txt": lambda found: len(found.problems) == 1,
    "weak_modules/vermagic_refused.txt": lambda found: len(found.problems) == 2,
    "zypper/history_purge_kernels.txt": lambda found: [each.action for each in found] == ["command", "remove"] * 6,
    "zypper/sles15_install_kmp_cut.txt": lambda found: (
        found.planned == {"install": ("msr-safe", "msr-safe-kmp-default")}
    ),
}
"""What recordings of RPM benches say, read by a person."""


@pytest.mark.parametrize("output", sorted(VALUES))
def test_a_recording_is_read_right(transcripts: Path, output: str) -> None:
    assert VALUES[output](parser(output)[0](text_of(transcripts, output)))
