# SPDX-License-Identifier: Apache-2.0
"""Drivers with a planted defect: trials of the shipped suite find each, name it rightly, and pass what has none.

What each takes is in tests/planted/README.md. The candidate is judged alone, so that one failure is enough; against a
baseline the exact test wants a failure that is no damage of data five times.
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from storqual.judge.verdict import verdict_of
from tests.support.driver_sources import DriverSources, driver_sources
from tests.support.live_bench import Bench, one_connection, powered_bench
from tests.support.planted_driver import (
    FAMILIES,
    Found,
    Kind,
    build_planted,
    drawn_kinds,
    family_of,
    measure_planted,
    qualify_planted,
    quick_profile,
    send_planted,
)

pytestmark = [
    pytest.mark.bench,
    pytest.mark.long,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(
        not (shutil.which("make") and shutil.which("gcc")), reason="needs gcc and make on this machine"
    ),
]

QUICK = "time: 1.5s, sessions: 2"


@dataclass(frozen=True)
class Case:
    """A defect, where it is planted, the faults that are to find it, and what the check of it says."""

    defect: str
    adapter: str
    faults: str
    check: str
    reason: str
    parameters: str = ""
    profile: str = QUICK


CASES = (
    Case("lose_after_reset", "vscsi", "device_reset", "trials.device_reset", "lost: "),
    Case("flush_dropped", "vscsi", "power_cut", "trials.power_cut", "dropped flush: "),
    Case("stale_after_recovery", "vscsi", "device_reset", "trials.device_reset", "stale: ", "every=7"),
    Case("wrong_residual", "fusion", "scheduler_change", "residual", "wrong residual: "),
    Case("never_recovers", "vscsi", "device_reset", "trials.device_reset", "not recovered: "),
    Case("forgets_lun", "vscsi", "drive_removal", "trials.drive_removal", "drive missing: "),
    Case(
        *("leak_per_reset", "vscsi", "device_reset", "memory.device_reset", "memory leak: "),
        profile=f"{QUICK}, repeats: 5",
    ),
    Case("slow_recovery", "vscsi", "device_reset", "trials.device_reset", "slow recovery: "),
    Case("panic_on_abort", "fusion", "command_timeout", "trials.command_timeout", "panic: "),
    Case(
        *("corrupt_byte", "mraid", "scheduler_change", "trials.scheduler_change", "corrupted: ", "depth=24"),
        "time: 10s, sessions: 2",
    ),
    Case("misdirected_write", "vscsi", "device_reset", "trials.device_reset", "misdirected: "),
)
"""corrupt_byte acts from 24 commands under way, because 32 workers have seldom all of their commands under way."""

CLEAN = (
    ("vscsi", "scheduler_change, device_reset, drive_removal, power_cut", False),
    ("fusion", "scheduler_change, host_reset, drive_removal, command_timeout", False),
    ("mraid", "scheduler_change, host_reset, drive_removal, driver_rebind", True),
)
"""Adapter, faults, and whether against a baseline: the driver of the third never tells a residual, which is known."""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A bench of our own that has the module."""
    folder = tmp_path_factory.mktemp("planted")
    sources: DriverSources = driver_sources(tmp_path_factory.mktemp("sources"), [])
    with powered_bench("planted", folder) as found, one_connection(found.state):
        send_planted(found, build_planted(sources))
        yield found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.defect)
def test_a_planted_defect_is_found_and_named(bench: Bench, case: Case, tmp_path: Path) -> None:
    profile = f"{{faults: [{case.faults}], {case.profile}}}"
    found = qualify_planted(bench, case.adapter, case.defect, profile, tmp_path, parameters=case.parameters)
    check = found.checks[case.check]
    print(f"{case.defect}: {len(found.records['candidate'])} trials, {found.seconds:.0f} s")
    assert check["outcome"] == "FAIL"
    assert case.reason in check["reason"]


SEED = int(os.environ.get("STORQUAL_PLANTED_SEED", "1"))
NUMBER = int(os.environ.get("STORQUAL_PLANTED", "6"))
"""How many kinds are drawn, and by which seed: another one draws other kinds with other parameters."""
CLEAN_SWEEPS = int(os.environ.get("STORQUAL_PLANTED_CLEAN", "3"))
KNOWN = {"sym": ("residual",)}
"""Checks that fail on an emulated adapter with any driver, and that only a baseline excuses: they find no defect."""


def failures_of(found: Found, adapter: str) -> dict[str, str]:
    """Failed checks by name with their reasons, but for those that are known of the adapter."""
    failed = {name: check["reason"] for name, check in found.checks.items() if check["outcome"] == "FAIL"}
    return {name: reason for name, reason in failed.items() if name not in KNOWN.get(adapter, ())}


@pytest.mark.parametrize(
    ("number", "kind"), [*enumerate(drawn_kinds(SEED, NUMBER))], ids=lambda one: getattr(one, "name", str(one))
)
def test_a_drawn_defect_is_found_by_profile_quick(bench: Bench, number: int, kind: Kind, tmp_path: Path) -> None:
    """By those of its trials that can: what a campaign of all of them finds as well."""
    seed = SEED + number
    words, adapter = kind.words(seed), family_of(kind, seed)
    beside = FAMILIES[(FAMILIES.index(adapter) + 1) % len(FAMILIES)]
    found = qualify_planted(
        *(bench, adapter, "drawn", quick_profile(kind.faults or ("integrity",)), tmp_path),
        parameters=words,
        seed=seed,
        beside=(beside,) if kind.adapters > 1 else (),
    )
    failed = failures_of(found, adapter)
    print(f"{kind.name} ({words}) on {adapter}: {found.seconds:.0f} s, {failed}")
    assert failed, f"{kind.about}: nothing failed, and it acted {found.acted} times"


def test_measured_launches_of_large_blocks_show_a_large_tail(bench: Bench, tmp_path: Path) -> None:
    """By name, with address and content; every other point, and all of the baseline, is as without the defect."""
    run = measure_planted(bench, ("sym", "fusion", "mraid"), "on=write act=zero_tail from=256 every=1", tmp_path)
    found = [one for one in verdict_of(run)["criteria"] if one["id"] == "data"]
    for one in found:
        print(one["outcome"], one["adapter"], one["point"], one["reason"])
    failed = {(one["adapter"], one["point"]) for one in found if one["outcome"] == "FAIL"}
    large = {(one["adapter"], one["point"]) for one in found if "write[bs=256k" in one["point"]}
    assert large <= failed
    # what is read of it later is wrong as well
    assert all("write" not in point for _, point in failed - large)
    for one in found:
        if (one["adapter"], one["point"]) in large:
            assert "in a block of 262144 bytes" in one["reason"]
            assert f"found {'00' * 32}" in one["reason"]
            assert "of the baseline" not in one["reason"]


@pytest.mark.parametrize("number", range(CLEAN_SWEEPS))
def test_the_layer_that_draws_nothing_is_accused_of_nothing(bench: Bench, number: int, tmp_path: Path) -> None:
    """All of its code runs for each command: it acts from so many sectors on that no command has them."""
    seed = SEED + number
    adapter, words = FAMILIES[seed % len(FAMILIES)], "on=write act=zero_tail from=1000000000"
    profile = quick_profile(["integrity"])
    found = qualify_planted(bench, adapter, "drawn", profile, tmp_path, parameters=words, seed=seed)
    accused = failures_of(found, adapter)
    print(f"none on {adapter}: {sum(map(len, found.records.values()))} trials, {found.seconds:.0f} s")
    assert accused == {}


@pytest.mark.parametrize(("adapter", "faults", "baseline"), CLEAN, ids=[adapter for adapter, _, _ in CLEAN])
def test_the_same_layer_without_a_defect_passes(
    bench: Bench, adapter: str, faults: str, baseline: bool, tmp_path: Path
) -> None:
    profile = f"{{faults: [{faults}], {QUICK}}}"
    found = qualify_planted(bench, adapter, "none", profile, tmp_path, baseline=baseline)
    print(f"none on {adapter}: {sum(map(len, found.records.values()))} trials, {found.seconds:.0f} s")
    assert {name: check["outcome"] for name, check in found.checks.items()} == dict.fromkeys(found.checks, "PASS")
    assert [record["outcome"] for record in found.records["candidate"]] == ["passed"] * (faults.count(",") + 1)
