# SPDX-License-Identifier: Apache-2.0
"""qaucli and scli: instances, parameters, and writing only what the tool's own help confirms."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.kit.command import Completed
from storqual_core.kit.errors import MissingToolError, ToolError
from storqual_core.kit.settings import section_of
from storqual_core.tools import qaucli
from storqual_core.tools.capabilities import FirmwareImage
from tests.support.replay import Call, Replay

FIXTURES = Path(__file__).parent / "fixtures" / "qaucli"


def text_of(name: str) -> str:
    return (FIXTURES / f"{name}.txt").read_text()


def test_an_instance_is_known_by_its_pci_address() -> None:
    """Numbers are decimal; a version of 255.255.255 is none; an unknown line is kept."""
    facts = qaucli.parse_instances(text_of("instances"))
    (adapter,) = facts.adapters
    assert (adapter.index, adapter.pci, adapter.serial) == ("3", "0000:3b:00.1", "SYN0000001")
    assert adapter.firmware == {"firmware": "9.01.00", "firmware.flash": "9.02.00"}
    assert adapter.ports[0].wwn == "0x2100000000000002"
    assert facts.notes == ("a line of a newer build",)


def test_a_listing_is_in_the_order_of_the_tool_not_of_instances() -> None:
    facts = qaucli.parse_listing(text_of("listing"))
    assert [(each.index, each.ports[0].wwn, each.ports[0].link) for each in facts.adapters] == [
        ("2", "0x2100000000000001", "Online"),
        ("3", "0x2100000000000002", "Link down"),
    ]
    assert "Total QLogic HBA(s) : 1" in facts.notes


def test_parameters_have_canonical_names() -> None:
    """Flags are 0 and 1; an operation mode is its number; units in labels do not matter."""
    values = qaucli.parse_parameters(text_of("parameters"))
    assert values["execution_throttle"] == 16
    assert (values["command_completion"], values["interrupt_delay"], values["boot_rom"]) == (6, 10, 0)
    assert set(values) == set(qaucli.SETTINGS) <= set(section_of("nvram"))


def test_no_parameters_are_told_with_the_tools_words() -> None:
    with pytest.raises(ToolError, match="Option is unsupported with selected HBA"):
        qaucli.parse_parameters("qaucli: Option is unsupported with selected HBA\n")


def test_versions_that_wait_in_flash_are_pending() -> None:
    replay = Replay([Call("qaucli -pr fc -i all", text_of("instances"))])
    assert qaucli.read_versions(replay, "3") == {"firmware": "9.01.00", "firmware.pending": "9.02.00"}
    with pytest.raises(ToolError, match="instance 9"):
        qaucli.read_versions(Replay([Call("qaucli -pr fc -i all", text_of("instances"))]), "9")


def test_writing_asks_the_help_first() -> None:
    """The alias is in it, so the value is written."""
    calls = [
        Call("qaucli -pr fc -n -h", "  -n <inst> <alias> <value>\n  ET  Execution Throttle\n"),
        Call("qaucli -pr fc -n 3 ET 32", "Parameters were saved.\n"),
    ]
    replay = Replay(calls)
    qaucli.write_setting(replay, "3", "execution_throttle", 32)
    replay.done()


def test_syntax_that_the_help_does_not_confirm_is_not_tried() -> None:
    calls = [Call("qaucli -pr fc -n -h", "Unknown option; see RESETTING\n")] * 2
    replay = Replay(calls)
    assert "does not name the alias ET" in qaucli.objection(replay, "3", "execution_throttle", 32)
    with pytest.raises(ToolError, match="set it with the tool's menu"):
        qaucli.write_setting(replay, "3", "execution_throttle", 32)
    replay.done()


@pytest.mark.parametrize(("text", "rc"), [("Unable to write NVRAM\n", 0), ("\n", 7)])
def test_a_write_that_failed_is_told(text: str, rc: int) -> None:
    calls = [Call("qaucli -pr fc -n -h", "ET"), Call("qaucli -pr fc -n 3 ET 32", text, rc=rc)]
    with pytest.raises(ToolError, match="-n 3 ET 32"):
        qaucli.write_setting(Replay(calls), "3", "execution_throttle", 32)


def test_scli_serves_where_qaucli_is_not() -> None:
    seen = []

    def runner(argv: list[str], **_options: object) -> Completed:
        seen.append(" ".join(argv))
        if argv[0] != "scli":
            raise MissingToolError(argv[0])
        return Completed(tuple(argv), 0, text_of("parameters"), "", 0.0)

    assert qaucli.read_settings(runner, "3")["frame_size"] == 2048
    assert seen[-1] == "scli -c 3"


def test_a_machine_without_such_adapters_has_none() -> None:
    assert qaucli.read_facts(Replay([Call("qaucli -pr fc -i all", "No HBAs found\n", rc=1)])).adapters == ()
    with pytest.raises(ToolError, match="status 5: driver not loaded"):
        qaucli.read_facts(Replay([Call("qaucli -pr fc -i all", "driver not loaded\n", rc=5)]))


def test_a_line_in_front_of_the_instances_that_is_not_of_the_host_is_a_note() -> None:
    plain, more = (qaucli.parse_instances(front + text_of("instances")) for front in ("", "Service agent: stopped\n"))
    assert (more.adapters, more.notes) == (plain.adapters, ("Service agent: stopped", *plain.notes))


def test_instances_are_compared_with_the_list_of_adapters() -> None:
    """An instance that one of the two commands leaves out is no silent loss."""
    shown = Call("qaucli -pr fc -i all", text_of("instances"))
    listing = text_of("listing")
    one = "\n".join(line for line in listing.splitlines() if "instance  2" not in line)
    facts = qaucli.read_facts(Replay([shown, Call("qaucli -pr fc -g", one)]))
    assert ([adapter.index for adapter in facts.adapters], facts.notes) == (["3"], ("a line of a newer build",))
    with pytest.raises(ToolError, match=r"-i all shows the instances 3, -g lists 2, 3"):
        qaucli.read_facts(Replay([shown, Call("qaucli -pr fc -g", listing)]))
    facts = qaucli.read_facts(Replay([shown, Call("qaucli -pr fc -g", "Invalid option\n", rc=1)]))
    assert "instances not compared with the list of adapters" in facts.notes[-1]


POOL = [line for path in sorted(FIXTURES.glob("*.txt")) for line in path.read_text().splitlines()]


@given(st.lists(st.one_of(st.sampled_from(POOL), st.text()), max_size=30), st.integers(0, 2000))
def test_any_text_is_read_or_refused(lines: list[str], cut: int) -> None:
    text = "\n".join(lines)[:cut]
    with suppress(ToolError):
        assert qaucli.parse_instances(text).adapters
    with suppress(ToolError):
        assert qaucli.parse_listing(text).notes is not None
    try:
        values = qaucli.parse_parameters(text)
    except ToolError:
        return
    assert values.keys() <= qaucli.SETTINGS.keys()


def test_recorded_outputs_are_read(transcripts: Path) -> None:
    (adapter,) = qaucli.parse_instances((transcripts / "qaucli" / "i_all_qle2690.txt").read_text()).adapters
    assert (adapter.pci, adapter.firmware["firmware"]) == ("0000:ad:00.0", "9.07.00")
    assert len(qaucli.parse_listing((transcripts / "qaucli" / "pr_fc_g_two_qle2564.txt").read_text()).adapters) == 8


def test_an_image_is_written_whole_and_waits_for_a_boot() -> None:
    image = FirmwareImage("/x/fw.bin", "00", "9.03.00")
    line = "qaucli -pr fc -b 3 -rg all /x/fw.bin"
    qaucli.download(Replay([Call(line, "Updating...\nFlash update complete.\n")]), "3", image)
    with pytest.raises(ToolError, match=r"HBA instance 3 did not accept .*: Option is unsupported with selected HBA"):
        qaucli.download(Replay([Call(line, "Option is unsupported with selected HBA\n")]), "3", image)
    look = Call("qaucli -pr fc -i all", text_of("instances"))
    assert qaucli.activation(Replay([look]), "3", image) == "reboot"
    assert qaucli.activation(Replay([look]), "3", FirmwareImage("/x", "00", "9.01.00")) == "none"
    assert qaucli.firmware_objections(Replay([]), "3", image) == ()
    bios = FirmwareImage("/x", "00", "3.62", "bios")
    assert "all parts of an adapter" in qaucli.firmware_objections(Replay([]), "3", bios)[0]


def test_adapters_that_would_be_lost_are_refused() -> None:
    listing = (FIXTURES / "listing.txt").read_text()
    with pytest.raises(ToolError, match="reports 2 adapters and lists 1"):
        qaucli.parse_listing(listing.replace("HBA(s) : 1", "HBA(s) : 2"))
    with pytest.raises(ToolError, match="reports 1 adapters and lists 0"):
        qaucli.parse_listing(listing.replace("HBA Model QLE0000", "Adapter QLE0000"))
    with pytest.raises(ToolError, match="shows no instance of an adapter"):
        qaucli.parse_instances("nothing of the kind")
    assert qaucli.parse_instances("No HBAs detected in system\n").adapters == ()


def test_every_part_that_waits_in_flash_is_known() -> None:
    text = "HBA Instance : 0\nHBA Model : QLE9999\nRunning MPI Firmware Version : 3.02.01\n"
    text += "Flash MPI Firmware Version : 3.03.00\nFlash PEP Firmware Version : 255.255.255\n"
    (adapter,) = qaucli.parse_instances(text).adapters
    assert adapter.firmware == {"mpi": "3.02.01", "mpi.flash": "3.03.00"}
