# SPDX-License-Identifier: Apache-2.0
"""Governor and interrupts: refused, set, proven, put back."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from storqual_core.kit.command import Completed
from storqual_core.kit.errors import BadInputError, MissingToolError, ToolError
from storqual_core.kit.lock import read_saved
from storqual_core.kit.results import PartialError
from storqual_core.provision import os_tuning
from storqual_core.provision.boot import System
from storqual_core.provision.engine import Call
from storqual_core.provision.os_tuning import OsRequest, parse_cpus, provision_os, refuse_impossible
from storqual_core.provision.restore import Tools, restore
from tests.support.bench_tree import BenchTree

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PCI = "0000:00:05.0"
ADAPTERS = {"sas0": {"pci": PCI, "driver": "mpt3sas"}}


class Lab:
    """Four CPUs, an adapter with three vectors, and systemd with irqbalance."""

    def __init__(self, root: Path, *, cpufreq: bool = True, service: str = "active") -> None:
        self.tree = BenchTree(root / "bench").adapter(PCI, driver="mpt3sas")
        self.machine = self.tree.machine
        self.state = str(root / "state")
        self.service = service
        self.seen: list[str] = []
        self.tree.write("/sys/devices/system/cpu/online", "0-3\n")
        for cpu in range(4) if cpufreq else ():
            place = f"/sys/devices/system/cpu/cpu{cpu}/cpufreq"
            self.tree.write(f"{place}/scaling_governor", "powersave\n")
            self.tree.write(f"{place}/scaling_available_governors", "performance powersave\n")
        for vector in ("40", "41", "42"):
            self.tree.write(f"/sys/devices/pci0000:00/{PCI}/msi_irqs/{vector}", "msix\n")
            self.tree.write(f"/proc/irq/{vector}/smp_affinity_list", "0-3\n")
            self.tree.write(f"/proc/irq/{vector}/effective_affinity_list", "1\n")

    def __call__(self, argv: Sequence[str], **_options: Any) -> Completed:
        assert argv[0] == "systemctl", argv
        if not self.service:
            raise MissingToolError("`systemctl` is not installed on this machine")
        self.seen.append(argv[1])
        self.service = {"start": "active", "stop": "inactive"}.get(argv[1], self.service)
        return Completed(
            tuple(argv),
            3 if argv[1:2] == ["is-active"] and self.service != "active" else 0,
            self.service + "\n",
            "",
            0.0,
        )

    def set(self, **given: Any) -> dict[str, Any]:
        return provision_os(OsRequest(ADAPTERS, self.state, "r1", **given), self.machine, self)

    def look_ahead(self, **given: Any) -> None:
        """What is refused before anything is touched."""
        refuse_impossible(OsRequest(ADAPTERS, self.state, "r1", **given), self.machine, self)

    def restore(self) -> dict[str, Any]:
        tools = Tools(self, System(self), sysfs=self.machine.path("/sys"), machine=self.machine)
        return restore(self.state, tools, check=False)

    def governors(self) -> set[str]:
        return {self.machine.text(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor") for cpu in range(4)}

    def affinity(self) -> list[str]:
        return [self.machine.text(f"/proc/irq/{vector}/smp_affinity_list") for vector in ("40", "41", "42")]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def test_the_governor_of_all_cpus_is_set_and_put_back(lab: Lab) -> None:
    first = lab.set(governor="performance")
    assert first["drift"] == ["bench os.governor: powersave, declared performance"]
    assert first["settings"][0] | {"proof": ""} == {
        "name": "os.governor",
        "declared": "performance",
        "before": "powersave",
        "read_back": "performance",
        "changed": True,
        "proven": None,
        "proof": "",
    }
    assert lab.governors() == {"performance"}
    assert not lab.set(governor="performance")["changed"]
    assert lab.restore()["restored"]
    assert lab.governors() == {"powersave"}
    assert lab.seen == []


def test_each_cpu_gets_its_own_governor_back(lab: Lab) -> None:
    place = "/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor"
    lab.tree.write(place, "performance\n")
    lab.set(governor="performance")
    lab.restore()
    assert lab.machine.text(place) == "performance"
    assert lab.governors() == {"performance", "powersave"}


def test_interrupts_go_to_the_declared_cpus_while_irqbalance_is_stopped(lab: Lab) -> None:
    balance, entry = lab.set(irq_affinity={"sas0": [1, 0]})["settings"]
    assert (balance["name"], balance["before"], balance["read_back"]) == ("os.irqbalance", "active", "inactive")
    assert (entry["adapter"], entry["declared"], entry["before"], entry["read_back"]) == (
        "sas0",
        [0, 1],
        [0, 1, 2, 3],
        [0, 1],
    )
    assert (entry["proven"], entry["proof"]) == (True, "the kernel has 3 of 3 interrupts on these CPUs")
    assert lab.affinity() == ["0,1"] * 3
    assert lab.service == "inactive"
    assert lab.restore()["restored"]
    assert lab.affinity() == ["0,1,2,3"] * 3
    assert lab.service == "active"
    assert read_saved(Path(lab.state)) is None


def test_an_irqbalance_that_did_not_run_is_not_started(tmp_path: Path) -> None:
    for number, service in enumerate(("inactive", "")):
        lab = Lab(tmp_path / str(number), service=service)
        lab.set(irq_affinity={"sas0": [0]})
        lab.restore()
        assert lab.service == service
        assert "start" not in lab.seen


def test_vectors_with_cpus_of_their_own_get_them_back(lab: Lab) -> None:
    for cpu, vector in enumerate(("40", "41", "42")):
        lab.tree.write(f"/proc/irq/{vector}/smp_affinity_list", f"{cpu}\n")
    lab.set(irq_affinity={"sas0": [3]})
    assert lab.affinity() == ["3"] * 3
    lab.restore()
    assert lab.affinity() == ["0", "1", "2"]


def test_an_interrupt_on_another_cpu_is_not_in_effect(lab: Lab) -> None:
    *_, entry = lab.set(irq_affinity={"sas0": [2, 3]})["settings"]
    assert (entry["read_back"], entry["proven"]) == ([2, 3], False)


def test_what_only_the_other_arm_declares_is_as_it_was_found(lab: Lab) -> None:
    lab.set(governor="performance", irq_affinity={"sas0": [0]})
    lab.set(as_found=["governor", "irq_affinity"])
    assert lab.governors() == {"powersave"}
    assert lab.affinity() == ["0,1,2,3"] * 3


@pytest.mark.parametrize(
    ("given", "kind", "told"),
    [
        ({"governor": "ondemand"}, ToolError, "cpu0 has no governor ondemand; it has performance, powersave"),
        ({"irq_affinity": {"sas0": [0, 9]}}, ToolError, r"os.irq_affinity names CPU 9; online are \[0, 1, 2, 3\]"),
        ({"irq_affinity": {"sas1": [0]}}, BadInputError, "is no adapter of this bench's inventory"),
        ({"irq_affinity": {"sas0": []}}, BadInputError, "is not a list of CPU numbers"),
    ],
)
def test_what_cannot_be_is_refused_before_any_write(
    lab: Lab, given: dict[str, Any], kind: type[Exception], told: str
) -> None:
    for work in (lab.look_ahead, lab.set):
        with pytest.raises((kind, ToolError), match=told):
            work(**given)
    assert lab.service == "active"
    assert not Path(lab.state).exists()


def test_a_bench_without_cpufreq_is_refused_before_anything_is_touched(tmp_path: Path) -> None:
    lab = Lab(tmp_path, cpufreq=False)
    for work in (lab.look_ahead, lab.set):
        with pytest.raises(ToolError, match=r"it has no cpufreq .*, so os\.governor performance cannot be set"):
            work(governor="performance", irq_affinity={"sas0": [0]})
    assert lab.affinity() == ["0-3"] * 3
    assert not Path(lab.state).exists()


def test_the_look_ahead_touches_nothing_and_needs_no_driver(lab: Lab) -> None:
    for vector in ("40", "41", "42"):
        (Path(lab.machine.path(f"/sys/devices/pci0000:00/{PCI}/msi_irqs")) / vector).unlink()
    (Path(lab.machine.path(f"/sys/devices/pci0000:00/{PCI}")) / "irq").write_text("0\n")
    lab.look_ahead(irq_affinity={"sas0": [0]}, governor="performance")
    assert not Path(lab.state).exists()
    with pytest.raises(ToolError, match="has no interrupts now"):
        lab.set(irq_affinity={"sas0": [0]})


def test_managed_interrupts_are_refused(lab: Lab) -> None:
    Path(lab.machine.path("/proc/irq/41/smp_affinity_list")).chmod(0o444)
    with pytest.raises(ToolError, match="the kernel spreads its interrupts itself"):
        lab.set(irq_affinity={"sas0": [0]})
    assert lab.service == "active"


def test_an_irqbalance_that_systemd_does_not_know_is_a_persons_matter(tmp_path: Path) -> None:
    lab = Lab(tmp_path, service="inactive")
    lab.tree.write("/proc/4711/comm", "irqbalance\n")
    with pytest.raises(ToolError, match="irqbalance runs, but not as a service"):
        lab.set(irq_affinity={"sas0": [0]})


def test_a_refused_write_tells_what_was_done_before(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(path: str, value: object) -> None:
        if "irq" in str(path):
            raise ToolError(f"the kernel refused {value!r} for {path}: Input/output error")
        Path(path).write_text(f"{value}\n")

    monkeypatch.setattr(os_tuning, "write_attribute", write)
    with pytest.raises(PartialError, match="Input/output error") as caught:
        lab.set(governor="performance", irq_affinity={"sas0": [0]})
    assert caught.value.steps == ["bench: governor set to performance", "bench: irqbalance stopped"]


def test_check_mode_touches_nothing(lab: Lab) -> None:
    result = lab.set(governor="performance", irq_affinity={"sas0": [0]}, check=True)
    assert result["changed"]
    assert len(result["drift"]) == 3
    assert lab.governors() == {"powersave"}
    assert not Path(lab.state).exists()


@pytest.mark.parametrize(("text", "cpus"), [("0-3,8", [0, 1, 2, 3, 8]), ("7\n", [7]), ("", [])])
def test_a_list_of_cpus_is_read(text: str, cpus: list[int]) -> None:
    assert parse_cpus(text) == cpus


def test_another_text_is_no_list_of_cpus() -> None:
    with pytest.raises(ToolError, match="where the kernel prints a list of CPUs"):
        parse_cpus("ff,00")


@pytest.mark.parametrize(
    ("governor", "driver", "look", "proven"),
    [
        ("performance", "intel_pstate", (3_400_000, 800_000, 3_600_000), True),
        ("performance", "acpi-cpufreq", (1_200_000, 800_000, 3_600_000), None),
        ("powersave", "acpi-cpufreq", (800_000, 800_000, 3_600_000), True),
        ("powersave", "acpi-cpufreq", (2_000_000, 800_000, 3_600_000), None),
        ("powersave", "intel_pstate", (800_000, 800_000, 3_600_000), None),
        ("schedutil", "acpi-cpufreq", (3_600_000, 800_000, 3_600_000), None),
        ("performance", "acpi-cpufreq", (0, 800_000, 3_600_000), None),
    ],
)
def test_a_governor_is_shown_by_the_frequency_that_it_fixes(
    governor: str, driver: str, look: tuple[int, int, int], proven: bool | None
) -> None:
    assert os_tuning.judge_frequency(governor, driver, [look, look])[0] is proven
    assert os_tuning.judge_frequency(governor, driver, [])[0] is None


def test_the_frequency_of_each_cpu_is_looked_at(lab: Lab) -> None:
    for cpu in range(4):
        for name, khz in (("cur", 3_600_000), ("min", 800_000), ("max", 3_600_000)):
            lab.tree.write(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_{name}_freq", f"{khz}\n")
    (entry,) = lab.set(governor="performance", prove_s=0.1)["settings"]
    assert (entry["proven"], entry["proof"]) == (True, "all CPUs run at their most: 3600 of 3600 MHz")


@pytest.mark.parametrize(("vector", "cpu", "proven"), [("41", 1, True), ("41", 2, False), ("99", 2, None)])
def test_interrupts_are_shown_by_the_cpus_that_took_them(
    lab: Lab, vector: str, cpu: int, proven: bool | None
) -> None:
    def table(count: int) -> str:
        rows = [
            f" {name}: " + " ".join(str(count * (number == cpu)) for number in range(4)) for name in (vector, "7")
        ]
        return "\n".join(["      CPU0 CPU1 CPU2 CPU3", *rows, ""])

    @contextmanager
    def reads(_place: object) -> Iterator[int]:
        lab.tree.write("/proc/interrupts", table(50))
        yield 2

    lab.tree.write("/proc/interrupts", table(0))
    place = os_tuning.find_adapters(lab.machine, ADAPTERS, ["sas0"])["sas0"]
    watched = os_tuning.Interrupts(lab.machine, reads).watch(place, "irq_affinity", [0, 1], 0.0)
    assert watched is not None
    assert watched[0] is proven
    assert "while 2 drives were read" in watched[1]


def test_without_a_claimed_drive_behind_it_the_kernels_word_stays(lab: Lab) -> None:
    *_, entry = lab.set(irq_affinity={"sas0": [0, 1]}, prove_s=0.1)["settings"]
    assert (entry["proven"], entry["proof"]) == (True, "the kernel has 3 of 3 interrupts on these CPUs")


SYSCTLS = {
    "panic": "0",
    "panic_on_oops": "0",
    "softlockup_panic": "0",
    "hung_task_timeout_secs": "300",
    "hung_task_check_interval_secs": "0",
    "hung_task_panic": "0",
    "sysrq": "438",
    "unknown_nmi_panic": "0",
}


def sysctls(lab: Lab) -> dict[str, str]:
    return {name: lab.machine.text(f"/proc/sys/kernel/{name}").strip() for name in SYSCTLS}


@pytest.fixture
def hangs(lab: Lab) -> Lab:
    """A bench whose kernel was built without a detector of hard lockups."""
    for name, value in SYSCTLS.items():
        lab.tree.write(f"/proc/sys/kernel/{name}", f"{value}\n")
    return lab


@pytest.mark.parametrize("nmi", [True, False])
def test_a_kernel_panics_where_it_hangs_while_a_run_has_the_bench(hangs: Lab, *, nmi: bool) -> None:
    def arm(*, check: bool) -> dict[str, Any]:
        return os_tuning.arm_detectors(Call(hangs.state, "r1", check=check), 120, hangs.machine, hangs, nmi=nmi)

    assert arm(check=True)["changed"]
    assert sysctls(hangs) == SYSCTLS
    (entry,) = arm(check=False)["settings"]
    armed = {**dict.fromkeys(SYSCTLS, "1"), "panic": "10", "hung_task_timeout_secs": "120"}
    armed["hung_task_check_interval_secs"] = "10"
    assert sysctls(hangs) == {**armed, "unknown_nmi_panic": "1" if nmi else "0"}
    assert dict(pair.split("=") for pair in entry["read_back"].split()) == sysctls(hangs)
    assert arm(check=False)["changed"] is False
    hangs.restore()
    assert sysctls(hangs) == SYSCTLS
    assert read_saved(Path(hangs.state)) is None
