# SPDX-License-Identifier: Apache-2.0
"""The preflight in one call: identity first, then the guard, then stamps; check mode writes nothing."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from storqual_core.facts.preflight import Request, examine
from storqual_core.guard.file_targets import targets_folder
from storqual_core.kit.lock import LockedError, hold_lock
from storqual_core.kit.machine import Machine
from tests.support.bench_tree import STATE, BenchTree

DRIVE = {
    "wwn": "0x5000c50000000001",
    "serial": "SER1",
    "vendor": "SEAGATE",
    "model": "ST336607LW",
    "size": "20MiB",
    "claim": True,
}
VENDOR = "install it from its vendor"
ADAPTERS = {"sym": {"driver": "sym53c8xx", "pci": "0000:00:05.0", "drives": [DRIVE]}}


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    """A bench with one claimed empty drive."""
    return BenchTree(tmp_path).adapter().scsi("sda")


def ask(tree: BenchTree, **changes: Any) -> Any:
    return examine(Request(**{"adapters": ADAPTERS, "state_dir": STATE, **changes}), machine=tree.machine)


def test_a_good_bench_passes_and_is_stamped_once(tree: BenchTree) -> None:
    assert ask(tree).stamped == []
    assert ask(tree, stamp=True, check=True).stamped == [DRIVE["wwn"]]
    first = ask(tree, stamp=True)
    assert (first.exit_code, first.stamped) == (0, [DRIVE["wwn"]])
    assert ask(tree, stamp=True).stamped == []
    assert ask(tree, stamp=True, check=True).stamped == []


def test_a_wrong_bench_is_code_3_and_a_refusal_code_4_and_both_are_told(tree: BenchTree) -> None:
    tree.mount("8:16", "/data")
    refused = ask(tree, stamp=True)
    assert (refused.exit_code, refused.problems, len(refused.refusals)) == (4, [], 1)
    wrong = ask(tree, adapters={"sym": {**ADAPTERS["sym"], "driver": "mptsas"}}, stamp=True)
    assert (wrong.exit_code, len(wrong.problems), len(wrong.refusals)) == (3, 1, 1)
    assert wrong.stamped == []


def test_two_declared_paths_are_enough_but_for_launches(tmp_path: Path) -> None:
    """A trial has a multipath device made over them; fio is given one disk."""
    tree = BenchTree(tmp_path).adapter().adapter("0000:00:07.0", driver="virtio").scsi("sda")
    tree.scsi("sdb", hctl="3:0:0:0", pci="0000:00:07.0")
    declared = {**ADAPTERS["sym"], "drives": [{**DRIVE, "paths": ["b"]}]}
    adapters = {"sym": declared, "b": {"driver": "virtio", "pci": "0000:00:07.0"}}
    needs = {"programs": [], "for": "launches"}
    assert ask(tree, adapters=adapters, needs=[needs]).refusals == []
    (refusal,) = ask(tree, adapters=adapters, needs=[{**needs, "one_disk": True}]).refusals
    assert "multipath" in refusal


def test_a_claim_that_cannot_be_read_is_code_3(tree: BenchTree) -> None:
    found = ask(tree, adapters={"sym": {**ADAPTERS["sym"], "drives": [{**DRIVE, "model": ""}]}})
    assert found.exit_code == 3
    assert "adapter sym, drive 1: the claim states no model" in found.problems


def test_check_mode_writes_nothing(tree: BenchTree) -> None:
    drive, state = tree.root / "dev/sda", tree.root / STATE.lstrip("/")
    ask(tree, stamp=True, check=True)
    assert not any(drive.read_bytes())
    assert list(state.iterdir()) == []


def local(state: Path) -> dict[str, Any]:
    """Arguments for a bench whose drive is a file."""
    drive = {"file": str(state / "targets" / "drive0"), "size": "1MiB", "claim": True}
    return {"adapters": {"files": {"drives": [drive]}}, "kind": "local", "state_dir": str(state)}


def test_a_local_benchs_files_are_made(tmp_path: Path) -> None:
    """Once; in check mode only named; without `stamp` their absence is a refusal."""
    asked = local(tmp_path)
    assert "it does not exist; run the preflight" in examine(Request(**asked)).refusals[0]
    foreseen = examine(Request(**asked, stamp=True, check=True), machine=Machine())
    assert (foreseen.exit_code, len(foreseen.stamped)) == (0, 1)
    assert not targets_folder(tmp_path).exists()
    assert len(examine(Request(**asked, stamp=True)).stamped) == 1
    assert examine(Request(**asked, stamp=True)).stamped == []


def test_a_program_that_will_be_run_and_is_not_installed_is_code_3_with_its_package(tree: BenchTree) -> None:
    needs = [
        {"programs": ["fio"], "for": "launches"},
        {"programs": ["storcli64", "storcli"], "for": "the volumes of adapter mraid"},
        {"programs": ["sas3ircu", "sas2ircu"], "for": "the volumes of adapter sym"},
    ]
    folder = tree.root / "usr" / "sbin"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "storcli").write_text("", encoding="utf-8")
    found = ask(tree, needs=needs, stamp=True)
    assert (found.exit_code, found.stamped) == (3, [])
    assert found.problems == [
        "fio is not installed, and is needed for launches: install the package fio",
        "sas3ircu or sas2ircu is not installed, and is needed for the volumes of adapter sym: " + VENDOR,
    ]
    (folder / "fio").write_text("", encoding="utf-8")
    assert ask(tree, needs=needs[:2]).exit_code == 0


def test_a_bench_that_cannot_take_a_kernel_is_told_before_anything_is_installed(tree: BenchTree) -> None:
    needs = [{"programs": [], "for": "the kernel of the drop", "boots": True}]
    assert ask(tree, needs=needs).problems == []
    tree.write("/run/ostree-booted", "")
    found = ask(tree, needs=needs, stamp=True)
    assert (found.exit_code, found.stamped) == (3, [])
    assert any("the kernel of the drop cannot be installed" in problem for problem in found.problems)
    # a plan without another kernel is measured
    assert ask(tree).exit_code == 0


def test_on_a_local_bench_a_program_is_looked_for_as_the_bench_program_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs = [{"programs": ["storqual-no-fio"], "for": "launches"}]
    asked = {**local(tmp_path / "state"), "needs": needs, "stamp": True}
    assert "storqual-no-fio is not installed" in examine(Request(**asked)).problems[0]
    program = tmp_path / "bin" / "storqual-no-fio"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    assert examine(Request(**asked)).problems == []


def test_the_module_ends_with_sentences_and_the_exit_code(
    tree: BenchTree, load_module: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load_module("bench_guard")
    ended: dict[str, Any] = {}
    warned: list[str] = []

    class Stand:
        """What AnsibleModule is to main()."""

        def __init__(self, argument_spec: dict[str, Any], supports_check_mode: bool) -> None:
            assert supports_check_mode
            self.check_mode = False
            self.params = {name: spec.get("default") for name, spec in argument_spec.items()}
            self.params.update(adapters=ADAPTERS, state_dir=STATE)

        def warn(self, sentence: str) -> None:
            warned.append(sentence)

        def exit_json(self, **result: Any) -> None:
            ended.clear()
            ended.update(result, failed=False)

        def fail_json(self, **result: Any) -> None:
            ended.clear()
            ended.update(result, failed=True)

    monkeypatch.setattr(module, "AnsibleModule", Stand)
    port = "FC port 0x2100000e1e000001: it is Linkdown, not Online"
    monkeypatch.setattr(
        module, "examine", lambda request: replace(examine(request, machine=tree.machine), conditions=[port])
    )
    module.main()
    assert (ended["failed"], ended["changed"], ended["facts"]["schema"]) == (False, False, "storqual.facts/1")
    tree.mount("8:16", "/data")
    module.main()
    assert (ended["failed"], ended["storqual_exit_code"], ended["refusals"]) == (True, 4, [ended["msg"]])
    assert "facts" not in ended
    # what is not well explains a refusal, too
    assert warned == [port, port]


def test_nothing_is_stamped_on_a_bench_that_is_not_the_inventorys_though_the_guard_has_no_objection(
    tree: BenchTree,
) -> None:
    wrong = ask(tree, adapters={"sym": {**ADAPTERS["sym"], "driver": "mptsas"}}, stamp=True)
    assert (wrong.exit_code, len(wrong.problems), wrong.refusals, wrong.stamped) == (3, 1, [], [])
    assert not any((tree.root / "dev/sda").read_bytes())


def test_nothing_is_stamped_while_another_run_has_the_bench(tree: BenchTree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storqual_core.kit.lock._SETTLE_S", 0.0)
    with (
        hold_lock(Path(tree.machine.path(STATE)), "another", "a block", wait_s=0.0),
        pytest.raises(LockedError, match="is held by run another"),
    ):
        ask(tree, stamp=True)
    assert not any((tree.root / "dev/sda").read_bytes())
