# SPDX-License-Identifier: Apache-2.0
"""Kernel modules: loaded, on disk."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.kit.errors import ToolError
from storqual_core.tools import kmod
from tests.support.replay import Call, Replay

LINE = "modinfo -k 6.1.0-2-amd64 megaraid_sas"
TEXT = (Path(__file__).with_name("single_case") / "modinfo_text.txt").read_text(encoding="utf-8")


def test_repeated_and_continued_keys_are_kept() -> None:
    (values,) = kmod.parse_modinfo(TEXT)
    assert len(values["alias"]) == 2
    assert values["signature"] == ["30:45:02:21:00\nAA:BB"]
    assert values["parm"][0].endswith("threshold. (int)")


def test_the_build_on_disk_is_named() -> None:
    build = kmod.on_disk(Replay([Call(LINE, TEXT)]), ["megaraid_sas"], "6.1.0-2-amd64")["megaraid_sas"]
    assert build is not None
    assert (build.srcversion, build.version) == ("ABCDEF0123456789ABCDEF0", "07.719.03.00-rc1")


def test_a_module_that_the_kernel_does_not_have_is_none() -> None:
    """Modinfo says so in one sentence; anything else is a failure."""
    gone = Call(LINE, rc=1, stderr="modinfo: ERROR: Module megaraid_sas not found.\n")
    assert kmod.on_disk(Replay([gone]), ["megaraid_sas"], "6.1.0-2-amd64") == {"megaraid_sas": None}
    with pytest.raises(ToolError, match="could not open"):
        kmod.on_disk(Replay([Call(LINE, rc=1, stderr="could not open dir\n")]), ["megaraid_sas"], "6.1.0-2-amd64")


def test_several_modules_are_asked_for_at_once() -> None:
    text = (
        "filename: /lib/modules/1/virtio-scsi.ko\nlicense: GPL\nname: virtio_scsi\n"
        "name: 8250\nfilename: (builtin)\nlicense: GPL\n"
        "filename: /lib/modules/1/mptsas.ko.xz\nsrcversion: AA\n"
    )
    call = Call(
        "modinfo -k 1 virtio-scsi nosuch 8250 mptsas", text, "modinfo: ERROR: Module nosuch not found.\n", rc=1
    )
    found = kmod.on_disk(Replay([call]), ["virtio-scsi", "nosuch", "8250", "mptsas"], "1")
    assert found["nosuch"] is None
    assert {name: (build.srcversion, build.builtin) for name, build in found.items() if build} == {
        "virtio-scsi": ("", False),
        "8250": ("", True),
        "mptsas": ("AA", False),
    }
    assert kmod.on_disk(Replay([]), [], "1") == {}


def test_the_loaded_build_is_read_from_the_kernel(tmp_path: Path) -> None:
    folder = tmp_path / "module" / "virtio_scsi"
    folder.mkdir(parents=True)
    (folder / "srcversion").write_text("AA11\n")
    (folder / "initstate").write_text("live\n")
    assert kmod.loaded("virtio-scsi", str(tmp_path)) == kmod.Build(srcversion="AA11")
    assert kmod.loaded("other", str(tmp_path)) is None


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        records = kmod.parse_modinfo(text)
    except ToolError:
        return
    assert bool(records) == bool(text.strip())


def test_a_recorded_modinfo_is_read(transcripts: Path) -> None:
    (values,) = kmod.parse_modinfo((transcripts / "modinfo" / "mpt3sas_28.100.00.00_el8.txt").read_text())
    assert values["version"] == ["28.100.00.00"]
    assert len(values["parm"]) == 15


def test_a_text_that_stands_further_in_as_a_whole_is_read() -> None:
    assert kmod.parse_modinfo("".join(f"\t{line}\n" for line in TEXT.splitlines())) == kmod.parse_modinfo(TEXT)


@pytest.mark.parametrize("text", ["depends: scsi_mod\nfilename: /lib/modules/1/hba.ko\n", "no such option\n"])
def test_what_is_told_of_no_module_is_refused(text: str) -> None:
    """It would be the next module's."""
    with pytest.raises(ToolError, match=r"of a module that it does not name|which is of no module"):
        kmod.parse_modinfo(text)
