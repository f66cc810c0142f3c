# SPDX-License-Identifier: Apache-2.0
"""`storqual_power`: every mistake with its line, no password in any message or copy."""

from pathlib import Path

import pytest

from storqual.inputs import load_inventory
from storqual.inputs.inventory import Bench
from storqual.inputs.power import read_rendered_power
from storqual_core.kit.errors import BadInputError

CANARY = "canary-" + "7d793037"

HEAD = Path(__file__).with_suffix(".head").read_text(encoding="utf-8")


def written(folder: Path, *lines: str, kind: str = "hardware") -> Bench:
    hosts = folder / "hosts.yml"
    hosts.write_text(HEAD.format(kind=kind) + "".join(f"        - {line}\n" for line in lines), encoding="utf-8")
    return load_inventory([hosts]).benches["bench01"]


def refused(folder: Path, *lines: str, kind: str = "hardware") -> list[str]:
    with pytest.raises(BadInputError) as problem:
        written(folder, *lines, kind=kind)
    return problem.value.problems


def test_backends_are_read_in_the_order_of_the_inventory(tmp_path: Path) -> None:
    bench = written(
        tmp_path,
        f"ipmi: {{host: bmc01.lab, user: storqual, password: {CANARY}}}",
        "redfish: {url: 'https://bmc01.lab', user: storqual, password: '{{ vault_bmc01 }}'}",
        "{pdudaemon: {url: 'http://pdu.lab:16421', outlets: [{pdu: rack3a, port: 7}]}, off_for: 45s}",
        "labgrid: {place: bench01}",
        "command: {on: [switch, 'on'], off: [switch, 'off'], state: [switch, state]}",
    )
    assert [entry.backend for entry in bench.power] == ["ipmi", "redfish", "pdudaemon", "labgrid", "command"]
    assert bench.power[2].off_for == 45.0


def test_on_and_off_without_quotes_are_keys_though_ansible_makes_truth_values_of_them(tmp_path: Path) -> None:
    (entry,) = written(tmp_path, "command: {on: [switch, up], off: [switch, down]}").power
    assert entry.command is not None
    assert (entry.command.on, entry.command.off) == (("switch", "up"), ("switch", "down"))
    (rendered,) = read_rendered_power([{"command": {True: ["switch", "up"], False: ["switch", "down"]}}], "bench01")
    assert rendered == entry


def test_every_mistake_is_told_with_its_line(tmp_path: Path) -> None:
    told = refused(
        tmp_path,
        "ipmi: {host: bmc01.lab, user: storqual}",
        "{}",
        "{ipmi: {host: a, user: b, password: c}, labgrid: {place: x}}",
        "pdudaemon: {url: 'http://me:secret@pdu.lab', outlets: []}",
        "redfish: {url: 'http://bmc01.lab', user: storqual, password: c}",
    )
    lines = [problem.split(":")[1] for problem in told]
    assert lines == ["7", "8", "9", "10", "10", "11"]


def test_a_virtual_switch_needs_a_virtual_bench(tmp_path: Path) -> None:
    (told,) = refused(tmp_path, "virtual: true")
    assert ":7: " in told


def test_a_local_bench_has_no_power_switch(tmp_path: Path) -> None:
    told = refused(tmp_path, "labgrid: {place: bench01}", kind="local")
    assert any("no power switch" in problem for problem in told)


@pytest.mark.parametrize("password", ["1234567890123", f"[{CANARY}]", f"{{word: {CANARY}}}", f'"{CANARY}\\n"'])
def test_a_password_that_cannot_be_one_is_refused_without_being_shown(tmp_path: Path, password: str) -> None:
    told = refused(tmp_path, f"ipmi: {{host: bmc01.lab, user: storqual, password: {password}}}")
    assert len(told) == 1
    assert CANARY not in told[0]
    assert "1234567890123" not in told[0]


def test_a_password_that_is_encrypted_in_its_place_is_read(tmp_path: Path) -> None:
    vaulted = "!vault |\n              $ANSIBLE_VAULT;1.1;AES256\n              6231"
    (entry,) = written(
        tmp_path, f"ipmi:\n            host: a\n            user: b\n            password: {vaulted}"
    ).power
    assert entry.ipmi is not None


def test_how_a_bench_is_switched_is_in_no_copy_of_its_inventory(tmp_path: Path) -> None:
    bench = written(tmp_path, f"ipmi: {{host: bmc01.lab, user: storqual, password: {CANARY}}}")
    assert "power" not in bench.model_dump(mode="json")
    assert CANARY not in repr(bench)


IN_SHELF = Path(__file__).with_suffix(".shelf.yml").read_text(encoding="utf-8")
OUTLET = "pdudaemon: {url: 'http://pdu.lab:16421', outlets: [{pdu: rack3a, port: 7}]}"


@pytest.mark.parametrize(
    ("entry", "claim", "cuts"),
    [
        (f"{{{OUTLET}}}", "true", True),
        ("{ipmi: {host: a, user: b, password: c}}", "true", False),
        ("{ipmi: {host: a, user: b, password: c}, removes: dc}", "true", True),
        (f"{{{OUTLET}, powers: [bench, shelf1]}}", "true", True),
        # of a shelf that is switched too every drive must be claimed
        (f"{{{OUTLET}, powers: [bench, shelf1]}}", "false", False),
    ],
)
def test_power_is_cut_by_what_says_that_it_removes_it_from_claimed_drives_alone(
    tmp_path: Path, entry: str, claim: str, cuts: bool
) -> None:
    hosts = tmp_path / "hosts.yml"
    hosts.write_text(IN_SHELF.format(entry=entry, claim=claim), encoding="utf-8")
    assert load_inventory([hosts]).benches["bench01"].cuts_power is cuts


def test_a_shelf_on_which_there_is_no_drive_is_a_mistake(tmp_path: Path) -> None:
    (problem,) = refused(tmp_path, f"{{{OUTLET}, powers: [bench, shelf2]}}")
    assert "powered_by: shelf2" in problem
