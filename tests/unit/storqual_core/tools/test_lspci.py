# SPDX-License-Identifier: Apache-2.0
"""lspci: for programs and for people."""

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import lspci
from tests.support.replay import Call, Replay
from tests.support.tool_fixtures import fixture_text

VERBOSE = fixture_text("lspci", "verbose.txt")


def test_what_sysfs_does_not_show_is_read() -> None:
    _, adapter = lspci.read_functions(Replay([Call("lspci -D -vvv", VERBOSE)]))
    assert (adapter.address, adapter.driver, adapter.modules) == ("0000:3b:00.0", "mpt3sas", ("mpt3sas", "mpt2sas"))
    assert (adapter.slot, adapter.numa_node, adapter.revision) == ("4", "1", "01")
    assert adapter.vpd == {"PN": "SAS9999", "SN": "EX0001", "V3": "16.00.01.00", "YA": ""}
    assert (adapter.link_speed, adapter.link_width) == ("5GT/s", 4)
    assert (adapter.link_speed_max, adapter.link_width_max) == ("8GT/s", 8)
    assert adapter.errors == ("DevSta CorrErr", "UESta UnsupReq", "CESta BadTLP")


def test_no_line_is_dropped() -> None:
    functions, notes = lspci.parse_verbose(VERBOSE)
    assert notes == ("pcilib: a note of the library",)
    assert "Product Name: Example SAS HBA" in functions[1].lines
    assert lspci.parse_verbose("3b:00.0 Class: Name\n Kernel driver in use: a\n Kernel driver in use: b\n")[0][
        0
    ].lines == ("Kernel driver in use: b",)


def test_records_for_programs_are_read() -> None:
    first, second = lspci.parse_records(fixture_text("lspci", "records.txt"))
    assert (first.address, first.modules, first.slot) == ("0000:3b:00.0", ("mpt3sas", "mpt2sas"), "4")
    assert (first.subsystem, first.numa_node, first.lines) == ("1000 30e0", "1", ("IOMMUGroup: 17",))
    assert (second.address, second.driver) == ("0001:00:1f.2", "")


def test_what_is_no_record_is_refused() -> None:
    with pytest.raises(ToolError, match="where `Tag: value` was expected"):
        lspci.parse_records("Slot:\t3b:00.0\ncommand not found\n")
    with pytest.raises(ToolError, match="without the address"):
        lspci.parse_records("Class:\t0107\n")
    with pytest.raises(ToolError, match="no PCI function: Cannot open /proc"):
        lspci.read_functions(Replay([Call("lspci -D -vvv", "Cannot open /proc/bus/pci\n")]))


def test_flags_that_go_on_in_further_lines_are_read() -> None:
    text = """3b:00.0 Serial Attached SCSI controller: Example SAS
\tCapabilities: [200 v2] Advanced Error Reporting
\t\tUESta:\tDLP- SDES- TLP+ FCP- CmpltTO- CmpltAbrt- UnxCmplt- RxOF- MalfTLP-
\t\t\tECRC- UnsupReq+ ACSViol- UncorrIntErr- BlockedTLP- AtomicOpBlocked- TLPBlockedErr-
\t\t\tPoisonTLPBlocked+ DMWrReqBlocked- IDECheck- MisIDETLP- PCRC_CHECK- TLPXlatBlocked-
\t\tUEMsk:\tDLP- SDES- TLP- FCP- CmpltTO- CmpltAbrt- UnxCmplt- RxOF- MalfTLP-
\t\t\tECRC- UnsupReq- ACSViol- UncorrIntErr+ BlockedTLP- AtomicOpBlocked- TLPBlockedErr-
"""
    ((function,), _) = lspci.parse_verbose(text)
    assert function.errors == ("UESta TLP", "UESta UnsupReq", "UESta PoisonTLPBlocked")
    assert [line.split()[0] for line in function.lines] == ["Capabilities:", "UEMsk:", "ECRC-"]


def test_records_with_line_ends_of_dos_are_told_apart_and_two_in_one_are_refused() -> None:
    text = "Slot:\t3b:00.0\nClass:\t0107\n\nSlot:\t3c:00.0\nClass:\t0108\n"
    assert lspci.parse_records(text.replace("\n", "\r\n")) == lspci.parse_records(text)
    with pytest.raises(ToolError, match="a record of several functions: 3b:00"):
        lspci.parse_records(text.replace("\n\n", "\n"))
    with pytest.raises(ToolError, match="shows no PCI function: Slot:"):
        lspci.parse_verbose(text)


def test_a_link_without_lanes_is_told_as_printed() -> None:
    text = (
        "d6f5:00:02.0 Ethernet controller: Example Virtual Function (rev 80)\n"
        "\t\tLnkCap: Port #0, Speed 8GT/s, Width x16, ASPM not supported\n"
        "\t\tLnkSta: Speed unknown (downgraded), Width x0 (downgraded)\n"
    )
    (function,), _ = lspci.parse_verbose(text)
    assert (function.link_speed, function.link_width) == ("unknown", 0)
    assert (function.link_speed_max, function.link_width_max) == ("8GT/s", 16)
    assert function.lines == ()


def test_a_text_that_stands_further_in_as_a_whole_is_read() -> None:
    text = "".join(f"    {line}\n" for line in VERBOSE.splitlines())
    assert lspci.parse_verbose(text) == lspci.parse_verbose(VERBOSE)


def test_a_function_s_line_that_was_wrapped_is_one() -> None:
    text = "3b:00.0 SCSI controller: Example SAS{}(rev 02) (prog-if 01)\n\tKernel driver in use: hba\n"
    for wrapped in ("\nPCI-Express ", "\n        PCI-Express "):
        assert lspci.parse_verbose(text.format(wrapped)) == lspci.parse_verbose(text.format(" PCI-Express "))
