# SPDX-License-Identifier: Apache-2.0
"""One apply: what is declared reaches its subsystem, in order; a call that a boot or a file ended is gone on with."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storqual.campaign.declared import declared_document
from storqual_core.kit.errors import GuardRefusalError, ToolError
from storqual_core.kit.lock import read_saved
from storqual_core.kit.machine import Machine
from storqual_core.kit.results import PartialError, TrialFailedError, finish
from storqual_core.provision import apply as subject
from storqual_core.provision.apply import SUBSYSTEMS, Apply, ApplyRequest, ProvisionedBench
from tests.support.adapter_bench import KERNEL
from tests.support.build_bench import PLACE, TrialBench, module_file
from tests.support.fake_boot import FakeBench

OLD, NEW = "6.1.0-1-amd64", "6.1.0-2-amd64"
PACKAGE = "linux-image-new"
NOTHING = {"changed": False, "settings": [], "steps": [], "drift": [], "diff": {"before": "", "after": ""}}
WORKERS = {
    "flash_as_given": "firmware",
    "provision_nvram": "nvram",
    "provision_throttle": "queue",
    "refuse_impossible": "possible",
    "arm_detectors": "detectors",
    "provision_os": "os",
    "provision_drives": "drives",
    "provision_volumes": "raid",
}


class Recorder:
    """Subsystems that write down what they were asked for, and answer what a test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.answers: dict[str, list[Any]] = {}
        self.rest: tuple[Any, ...] = ()
        for function, name in WORKERS.items():
            monkeypatch.setattr(subject, function, self.worker(name))

    def worker(self, name: str) -> Callable[..., dict[str, Any]]:
        def work(request: Any, *rest: Any, **_more: Any) -> dict[str, Any]:
            self.asked.append((name, request))
            self.rest = rest
            answers = self.answers.get(name) or [{}]
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
            if isinstance(answer, Exception):
                raise answer
            return {**NOTHING, "throttle": {}, "progress": {}, "pending": "", **answer}

        return work

    @property
    def order(self) -> list[str]:
        return [name for name, _ in self.asked]

    def of(self, name: str) -> list[Any]:
        """What one subsystem was asked for."""
        return [request for asked, request in self.asked if asked == name]


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    return Recorder(monkeypatch)


class Called:
    """One bench, its drop, and calls of the module; a resume travels as JSON, as it does through Ansible."""

    def __init__(self, folder: Path, bench: ProvisionedBench | None, spec: dict[str, Any], **more: Any) -> None:
        self.bench = bench or ProvisionedBench(machine=Machine(str(folder)))
        self.more = {"kind": "local", "adapters": {}, **more}
        self.state = folder / "state"
        self.declared = declared_document(spec)

    def __call__(self, after: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        resume = json.loads(json.dumps(after["resume"])) if after else {}
        given = {"declared": self.declared, "state_dir": str(self.state), "run": "r1", **self.more, **more}
        return Apply(ApplyRequest(resume=resume, **given), self.bench).run()


SPEC: dict[str, Any] = {
    "nvram": {"fc0": {"execution_throttle": 32}},
    "driver": {"options": {"m": {"p": "1"}}},
    "os": {"governor": "performance"},
    "drive": {"0x5000": {"WCE": 0, "queue_depth": 4}},
    "raid": [{"adapter": "sym", "level": "1"}],
    "as_found": {"drive": {"0x6000": ["WCE"]}},
    "change": "reload",
}


def test_each_subsystem_gets_what_is_declared_in_the_order_of_what_undoes_what(
    tmp_path: Path, recorder: Recorder
) -> None:
    recorder.answers["nvram"] = [{"throttle": {"fc0": 32}, "settings": [{"name": "nvram.x"}], "drift": ["d"]}]
    recorder.answers["drives"] = [{"changed": True, "steps": ["s"], "settings": [{"name": "drive.WCE"}]}]
    called = Called(tmp_path, None, SPEC, kind="virtual", only=[name for name in SUBSYSTEMS if name != "driver"])
    done = called(prove_s=0.5, consent=["abcdef"], wait_s=7.0, save=True)
    assert recorder.order == ["possible", "raid", "nvram", "queue", "os", "drives", "raid"]
    (os,) = recorder.of("os")
    assert (os.governor, os.prove_s) == ("performance", 0.5)
    clearing, volumes = recorder.of("raid")
    assert (clearing.volumes, clearing.only, clearing.wait_s, clearing.consent) == ((), True, 0.0, ())
    assert (volumes.volumes, volumes.only, volumes.wait_s, volumes.consent) == (SPEC["raid"], True, 7.0, ["abcdef"])
    (queue,) = recorder.of("queue")
    assert (queue.throttle, queue.options, queue.run) == ({"fc0": 32}, {"m": {"p": "1"}}, "r1")
    (drives,) = recorder.of("drives")
    assert (queue.prove_s, drives.prove_s) == (0.5, 0.5)
    assert (drives.drives, drives.as_found, drives.part, drives.save) == (
        SPEC["drive"],
        SPEC["as_found"]["drive"],
        "all",
        True,
    )
    assert (done["changed"], done["steps"], done["drift"], done["resume"]) == (True, ["s"], ["d"], {})
    assert [entry["name"] for entry in done["settings"]] == ["nvram.x", "drive.WCE"]


@pytest.mark.parametrize(
    ("kind", "hung_task_s", "armed"),
    [("hardware", 120, True), ("hardware", 225, False), ("hardware", None, False), ("local", 120, False)],
)
def test_detectors_are_armed_before_a_driver_is_loaded_unless_a_fault_makes_tasks_wait(
    tmp_path: Path, recorder: Recorder, kind: str, hung_task_s: int | None, armed: bool
) -> None:
    spec = {**SPEC, "hung_task_s": hung_task_s}
    Called(tmp_path, None, spec, kind=kind, only=[name for name in SUBSYSTEMS if name != "driver"])()
    assert recorder.order[:3] == (["possible", "detectors", "raid"] if armed else ["possible", "raid", "nvram"])


@pytest.mark.parametrize(
    ("only", "order", "part"),
    [
        (["nvram", "raid"], ["raid", "nvram", "raid"], None),
        (["modepages"], ["drives"], "mode_pages"),
        (["queue"], ["queue", "drives"], "queue"),
    ],
)
def test_what_is_chosen_is_applied_alone(
    tmp_path: Path, recorder: Recorder, only: list[str], order: list[str], part: str | None
) -> None:
    Called(tmp_path, None, SPEC, kind="virtual", only=only)()
    assert recorder.order == order
    assert [request.part for request in recorder.of("drives")] == ([part] if part else [])


def test_nothing_declared_asks_nobody_and_tells_what_runs(tmp_path: Path, recorder: Recorder) -> None:
    (tmp_path / "proc/sys/kernel/random").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/osrelease").write_text("6.1\n")
    (tmp_path / "proc/sys/kernel/random/boot_id").write_text("b0\n")
    done = Called(tmp_path, None, {})()
    assert recorder.order == []
    assert done["driver"] == {"kernel": "6.1", "boot_id": "b0", "drivers": {}}
    assert (done["changed"], done["needs"]) == (False, {"files": [], "package": {}, "controller": {}})
    assert not (tmp_path / "state").exists()


def test_options_that_only_the_other_arm_has_are_looked_for(tmp_path: Path, recorder: Recorder) -> None:
    Called(tmp_path, None, {"as_found": {"driver": {"m": ["options"]}}})()
    assert recorder.order == ["queue"]


class Left(Exception):  # noqa: N818 - how a module of Ansible ends
    """What a module that ended returned."""


class Module:
    """What `finish` needs of Ansible."""

    def fail_json(self, **result: Any) -> None:
        self.result = {"failed": True, **result}

    def exit_json(self, **result: Any) -> None:
        self.result = result


@pytest.mark.parametrize(
    ("problem", "steps"),
    [
        (ToolError("broke"), ["nvram written"]),
        (GuardRefusalError(["drive 1: no"]), ["nvram written"]),
        (PartialError("half", steps=["sda written"], settings=()), ["nvram written", "sda written"]),
    ],
)
def test_a_failure_tells_what_the_subsystems_before_it_did(
    tmp_path: Path, recorder: Recorder, problem: Exception, steps: list[str]
) -> None:
    recorder.answers["nvram"] = [{"changed": True, "steps": ["nvram written"], "settings": [{"name": "nvram.x"}]}]
    recorder.answers["drives"] = [problem]
    called = Called(tmp_path, None, SPEC)
    apply = Apply(ApplyRequest(called.declared, {}, "local", state_dir=str(called.state)), called.bench)
    module = Module()
    finish(module, apply.run, apply.done)
    assert (module.result["failed"], module.result["changed"], module.result["subsystem"]) == (True, True, "drives")
    assert module.result["steps"] == steps
    assert [entry["name"] for entry in module.result["settings"]] == ["nvram.x"]


def test_volumes_under_way_are_looked_at_again_and_nothing_else(tmp_path: Path, recorder: Recorder) -> None:
    recorder.answers["raid"] = [NOTHING, {"progress": {"sym/r1": {"initialise": 5.0}}}, NOTHING]
    called = Called(tmp_path, None, SPEC, kind="virtual", only=["nvram", "raid"])
    first = called()
    assert first["progress"] == {"sym/r1": {"initialise": 5.0}}
    recorder.asked.clear()
    assert called(first)["resume"] == {}
    assert recorder.order == ["raid"]


# files


def prebuilt(folder: Path, text: bytes = b"module") -> dict[str, Any]:
    """A drop with a prebuilt module on the control node."""
    file = folder / "drop" / "hba.ko"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(text)
    return {"driver": {"module": {"file": str(file), "sha256": hashlib.sha256(text).hexdigest()}}}


def test_a_file_that_the_bench_does_not_hold_is_asked_for_before_anything(tmp_path: Path, recorder: Recorder) -> None:
    called = Called(tmp_path, None, {**SPEC, **prebuilt(tmp_path)})
    first = called()
    (file,) = first["needs"]["files"]
    assert (file["from"], recorder.order) == (str(tmp_path / "drop" / "hba.ko"), [])
    place = tmp_path / "state" / file["to"]
    place.parent.mkdir(parents=True)
    place.write_bytes(b"half of it")
    with pytest.raises(ToolError, match="does not hold the declared file"):
        called(first)
    place.write_bytes(b"module")
    assert called(first)["needs"]["files"] == []
    assert called()["needs"]["files"] == []
    assert called(only=["nvram"])["needs"]["files"] == []
    assert recorder.order[-1] == "nvram"


# firmware


def image(**more: Any) -> dict[str, Any]:
    given = {"file": "/x/new.bin", "sha256": "a" * 64, "version": "2.0", "activation": "reset", "adapters": ["sas0"]}
    return {**given, "tool": "storcli", **more}


CLAIMED = {"wwn": "0x5000c50000000001", "serial": "S1", "vendor": "V", "model": "M", "size": 1048576, "claim": True}
ADAPTERS: dict[str, Any] = {"sas0": {"pci": "0000:3b:00.0", "drives": []}}


@pytest.fixture
def no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_holds", lambda _path, _digest: True)


@pytest.mark.usefixtures("no_files")
def test_an_image_that_needs_a_boot_is_proven_after_it_and_then_the_next_is_flashed(
    tmp_path: Path, recorder: Recorder
) -> None:
    recorder.answers["firmware"] = [
        {"changed": True, "pending": "power cycle", "settings": [{"name": "written"}], "drift": ["a"]},
        {"settings": [{"name": "proof"}], "drift": ["a"]},
        {"settings": [{"name": "drive"}]},
    ]
    drive = image(tool="sg_write_buffer", adapters=[], drives=["0x5000"], version="3")
    called = Called(tmp_path, None, {"firmware": [drive, image()]}, adapters=ADAPTERS, consent=["000001"])
    first = called()
    assert first["boot_needed"] == {"kind": "power cycle", "reason": "firmware 2.0"}
    assert first["settings"] == []
    second = called(first)
    assert [asked["state"] for asked in recorder.of("firmware")] == ["present", "proven", "present"]
    assert [asked["version"] for asked in recorder.of("firmware")] == ["2.0", "2.0", "3"]
    assert recorder.of("firmware")[0]["consent"] == ["000001"]
    assert recorder.of("firmware")[0]["path"] == f"firmware/{'a' * 64}/new.bin"
    assert [entry["name"] for entry in second["settings"]] == ["proof", "drive"]
    assert (second["drift"], second["boot_needed"]) == (["a"], {})


@pytest.mark.usefixtures("no_files")
@pytest.mark.parametrize("drives", [[], [CLAIMED["wwn"]]], ids=["adapter", "drive"])
def test_the_guard_learns_of_everything_beside_what_is_flashed(
    tmp_path: Path, recorder: Recorder, drives: list[str]
) -> None:
    """A flash reaches other functions of a card, and other namespaces of a drive."""
    other = {**CLAIMED, "wwn": "0x5000c50000000002", "serial": "S2"}
    bench = {"sas0": {"pci": "0000:3b:00.0", "drives": [CLAIMED]}, "sas1": {"pci": "0000:3b:00.1", "drives": [other]}}
    flash = image(adapters=[] if drives else ["sas0"], drives=drives)
    Called(tmp_path, None, {"firmware": [flash]}, adapters=bench)()
    owners = recorder.rest[0](None)
    if drives:
        assert [claim.id for claim in owners.claims] == drives
        assert {claim.id for claim in owners.beside} == {CLAIMED["wwn"], other["wwn"]}
    else:
        assert (list(owners.adapters), owners.beside) == (["sas0"], bench)


@pytest.mark.usefixtures("no_files")
def test_check_mode_asks_for_no_boot_and_no_file(tmp_path: Path, recorder: Recorder) -> None:
    recorder.answers["firmware"] = [{"pending": "reboot"}]
    done = Called(tmp_path, None, {"firmware": [image()], **prebuilt(tmp_path)}, adapters=ADAPTERS)(check=True)
    assert (done["boot_needed"], done["resume"], recorder.order) == ({}, {}, ["firmware"])


LISTED = [{"Id": "1", "Name": "HBA", "Version": "1.0"}]
UPDATED = [{"Id": "1", "Name": "HBA", "Version": "2.0"}]


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The adapters that the guard was asked about, and let be flashed."""
    asked: list[str] = []
    monkeypatch.setattr(subject, "guard_adapter", lambda _access, alias, _adapters: asked.append(alias))
    return asked


def test_the_management_controller_flashes_once_the_guard_agrees(tmp_path: Path, guarded: list[str]) -> None:
    called = Called(tmp_path, None, {"firmware": [image(tool="redfish", activation="reboot")]}, adapters=ADAPTERS)
    asked = {"file": "/x/new.bin", "activation": "reboot", "adapter": "sas0"}
    look = called()
    assert look["needs"] == {"files": [], "package": {}, "controller": {**asked, "flash": False}}
    flash = called(look, brought={"entries": LISTED, "target": "HBA"})
    assert (flash["needs"]["controller"], guarded) == ({**asked, "flash": True}, ["sas0"])
    done = called(flash, brought={"entries": UPDATED, "target": "HBA"})
    (entry,) = done["settings"]
    assert (entry["before"], entry["read_back"], entry["proven"], done["changed"]) == ("1.0", "2.0", True, True)
    assert done["drift"] == ["sas0 firmware.firmware: 1.0, declared 2.0"]
    with pytest.raises(ToolError, match="did not flash it: a job is running"):
        called(flash, brought={"entries": [], "target": "HBA", "answer": "a job is running"})


def test_a_version_that_the_controller_shows_already_needs_no_flash(tmp_path: Path, guarded: list[str]) -> None:
    called = Called(tmp_path, None, {"firmware": [image(tool="redfish")]}, adapters=ADAPTERS)
    for check, entries, flashed in ((False, UPDATED, False), (True, LISTED, False), (False, LISTED, True)):
        done = called(called(check=check), brought={"entries": entries, "target": "HBA"}, check=check)
        assert bool(done["needs"]["controller"]) == flashed
    assert guarded == ["sas0"]


# drivers


@pytest.fixture
def booting(tmp_path: Path) -> FakeBench:
    """Two kernels; the older one runs and is the default."""
    variables = {"saved_entry": f"linux-{OLD}"}
    modules = {"sym53c8xx": {OLD: "AAAA", NEW: "BBBB"}}
    return FakeBench(tmp_path / "bench", [OLD, NEW], OLD, variables=variables, modules=modules)


class Booting(Called):
    """Calls on a bench that boots."""

    def __init__(self, booting: FakeBench, spec: dict[str, Any], **more: Any) -> None:
        self.booting = booting
        super().__init__(booting.folder, ProvisionedBench(), spec, kind="virtual", **more)

    def __call__(self, after: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """The next call, on what runs now."""
        self.bench = ProvisionedBench(self.booting, Machine(str(self.booting.folder)), self.booting.system)
        return super().__call__(after, **more)

    def booted(self, **more: Any) -> dict[str, Any]:
        """As the role does: call, boot, call."""
        first = self(**more)
        assert first["boot_needed"]["kind"] == "reboot"
        self.booting.reboot()
        return self(first, **more)


def kernel(package: str = PACKAGE, **more: Any) -> dict[str, Any]:
    driver = {"kernel": {"package": package, **more}}
    return {"driver": driver, "expected_drivers": {"sym": "sym53c8xx"}, "kind": "virtual"}


def test_a_bench_that_runs_the_drop_is_left_alone(booting: FakeBench) -> None:
    booting.packages[PACKAGE] = ("6.1.1", OLD)
    done = Booting(booting, kernel())()
    assert (done["changed"], done["boot_needed"], done["drift"]) == (False, {}, [])
    assert (done["driver"]["kernel"], done["driver"]["booted"]) == (OLD, False)
    # what it runs is what is declared, and that is shown without a boot as well
    shown = [(entry["name"], entry["declared"], entry["read_back"]) for entry in done["settings"]]
    assert shown == [("driver.kernel.version", None, "6.1.1"), ("driver.kernel", OLD, OLD)]
    assert not (booting.folder / "state").exists()


def test_another_kernel_is_booted_once_and_proven(booting: FakeBench) -> None:
    booting.packages[PACKAGE] = ("6.1.2", NEW)
    called = Booting(booting, {**kernel(), "os": {"cmdline": ["nosmt"]}})
    done = called.booted()
    assert (done["driver"]["kernel"], done["driver"]["booted"]) == (NEW, True)
    assert done["driver"]["drivers"]["sym53c8xx"]["srcversion"] == "BBBB"
    assert done["drift"] == [f"kernel {OLD} , declared {NEW} nosmt"]
    assert [entry["name"] for entry in done["settings"]] == [
        "driver.kernel.version",
        "driver.kernel",
        "driver.module.sym53c8xx",
    ]
    assert {"nosmt", "panic=10"} <= set(booting.system.arguments())
    again = called()
    assert (again["changed"], again["boot_needed"]) == (False, {})
    booting.reboot()
    assert booting.running == OLD


def test_a_missing_package_is_brought_and_installed_first(booting: FakeBench) -> None:
    booting.kernels.remove(NEW)
    called = Booting(booting, kernel(version="6.1.2"))
    first = called()
    assert first["needs"]["package"] == {"name": PACKAGE, "version": "6.1.2", "manager": "dpkg"}
    with pytest.raises(ToolError, match="no package file was brought"):
        called(first)
    deb = f"packages/{PACKAGE}_6.1.2_{NEW}.deb"
    second = called(first, brought={"packages": [deb]})
    assert second["boot_needed"]["reason"] == f"kernel {NEW}"
    assert any(line.endswith(f"{booting.folder}/state/{deb}") for line in booting.seen)
    booting.reboot()
    assert called(second)["driver"]["kernel"] == NEW


def test_a_kernel_of_files_travels_and_is_installed(booting: FakeBench, tmp_path: Path) -> None:
    booting.kernels.remove(NEW)
    deb = tmp_path / f"{PACKAGE}_6.1.2_{NEW}.deb"
    deb.write_text("a package")
    called = Booting(booting, {"driver": {"kernel": {"files": [str(deb)]}}, "kind": "virtual"})
    checked = called(check=True)
    assert (checked["changed"], checked["drift"]) == (True, [f"kernel {OLD} , declared {deb.name} "])
    first = called()
    (file,) = first["needs"]["files"]
    place = booting.folder / "state" / file["to"]
    place.parent.mkdir(parents=True)
    place.write_bytes(deb.read_bytes())
    second = called(first)
    assert second["boot_needed"]["reason"] == f"kernel {NEW}"
    booting.reboot()
    assert called(second)["driver"]["kernel"] == NEW
    assert called()["changed"] is False


def test_the_boot_loader_is_remembered_before_apt_changes_it(booting: FakeBench) -> None:
    Booting(booting, kernel(), apt=True)()
    saved = read_saved(booting.folder / "state")
    assert saved is not None
    assert saved.values["boot.default@bench"] == OLD


def test_check_mode_of_a_missing_package_installs_and_boots_nothing(booting: FakeBench) -> None:
    done = Booting(booting, kernel())(check=True)
    assert (done["boot_needed"], done["needs"]["package"], done["changed"]) == ({}, {}, True)
    assert done["drift"] == [f"kernel {OLD} , declared {PACKAGE} "]
    assert not (booting.folder / "state").exists()


def test_a_fresh_boot_is_a_boot_of_the_same_kernel_and_no_drift(booting: FakeBench) -> None:
    booting.packages[PACKAGE] = ("6.1.1", OLD)
    done = Booting(booting, {**kernel(), "boot": "always"}).booted()
    assert (done["driver"]["kernel"], done["driver"]["booted"], done["drift"]) == (OLD, True, [])


def test_a_drop_without_a_kernel_is_the_kernel_the_bench_was_found_with(booting: FakeBench) -> None:
    """Also the words that an earlier trial added are left by booting."""
    booting.packages[PACKAGE] = ("6.1.2", NEW)
    Booting(booting, {**kernel(), "os": {"cmdline": ["nosmt"]}}).booted()
    assert booting.running == NEW
    done = Booting(booting, {"kind": "virtual"}).booted()
    assert (done["driver"]["kernel"], booting.running) == (OLD, OLD)
    assert "nosmt" not in booting.system.arguments()


def test_a_panic_is_asked_of_the_trial_only(booting: FakeBench) -> None:
    booting.packages[PACKAGE] = ("6.1.2", NEW)
    called = Booting(booting, {**kernel(), "virtual": {"panic_at_boot": True}}, keep=True)
    first = called()
    booting.reboot()
    assert booting.running == OLD
    with pytest.raises(TrialFailedError, match="back by itself on"):
        called(first)
    default = booting.system.loader.default()
    assert default is not None
    assert default.release == OLD


@pytest.mark.parametrize("declared", [False, True])
def test_a_proven_kernel_is_kept_on_request(booting: FakeBench, declared: bool) -> None:
    booting.packages[PACKAGE] = ("6.1.2", NEW)
    done = Booting(booting, kernel(keep=declared), keep=not declared).booted()
    assert done["settings"][-1]["name"] == "boot.default"
    booting.reboot()
    assert booting.running == NEW


# driver builds


class Building(Called):
    """Calls on a bench whose initramfs carries the driver."""

    def __init__(self, bench: TrialBench, spec: dict[str, Any], **more: Any) -> None:
        self.building = bench
        super().__init__(
            bench.root, ProvisionedBench(bench, bench.machine, bench.system), spec, kind="virtual", **more
        )

    def bring(self) -> None:
        for file in self.declared["files"]:
            place = self.state / file["to"]
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(Path(file["from"]).read_bytes())

    def booted(self) -> dict[str, Any]:
        self.bring()
        first = self()
        assert first["boot_needed"], first
        self.building.reboot()
        return self(first)


@pytest.mark.slow
def test_a_build_that_takes_a_boot_is_staged_booted_proven_and_put_on_disk(tmp_path: Path) -> None:
    bench = TrialBench(tmp_path / "root")
    called = Building(bench, prebuilt(tmp_path, module_file("BBBB")))
    done = called.booted()
    assert (bench.loaded, bench.on_disk, done["driver"]["booted"]) == ("BBBB", "BBBB", True)
    assert len(done["drift"]) == 1
    assert done["settings"][-1]["read_back"] == "BBBB 2.0"
    again = called()
    assert (again["changed"], again["boot_needed"], again["drift"]) == (False, {}, [])
    # the other arm, and a fresh boot of what runs
    off = Building(bench, {"as_found": {"driver": {"": ["module"]}}})
    first = off()
    assert not bench.machine.exists(PLACE)
    bench.reboot()
    assert off(first)["driver"]["kernel"] == KERNEL
    assert bench.loaded == "AAAA"


@pytest.mark.slow
def test_a_fresh_boot_of_a_build_that_runs_is_a_boot_with_its_initramfs(tmp_path: Path) -> None:
    bench = TrialBench(tmp_path / "root")
    spec = {**prebuilt(tmp_path, module_file("BBBB")), "boot": "always"}
    Building(bench, spec).booted()
    again = Building(bench, spec).booted()
    assert (bench.loaded, again["driver"]["booted"], again["drift"]) == ("BBBB", True, [])


@pytest.mark.slow
@pytest.mark.parametrize("held", [True, False])
def test_check_mode_says_whether_the_bench_holds_the_declared_build(tmp_path: Path, held: bool) -> None:
    """A file that is not copied yet is another build, whatever lies in its place."""
    bench = TrialBench(tmp_path / "root")
    called = Building(bench, prebuilt(tmp_path, module_file("BBBB")))
    called.booted()
    if not held:
        (called.state / called.declared["files"][0]["to"]).write_bytes(b"another")
    done = called(check=True)
    assert (bool(done["drift"]), done["boot_needed"], bench.loaded) == (not held, {}, "BBBB")
