# SPDX-License-Identifier: Apache-2.0
"""Everything that is declared for a bench, applied in one call: each subsystem in its order, on the engine.

The order is that of the changes that undo others: a volume in the way goes first, firmware and the driver need boots,
a driver that is loaded again gives its adapter other interrupts and its drives new queues, and a drive that is a
member of a volume is not flashed. What only the control node can do (bring files, talk to a management controller,
boot) ends the call: its result says what is needed, and the next call goes on there with `resume`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Callable, Collection, Mapping, Sequence

from ..guard.claims import claims_of_adapters
from ..kit.command import Runner, run
from ..kit.errors import ToolError
from ..kit.machine import Machine
from ..kit.results import Provisioned
from ..tools import rpm
from .adapter_queue import ThrottleRequest, provision_throttle
from .boot import HUNG_TASK_S, System, TrialBoot, boot_facts, keep_kernel, prepare_trial, remember_boot, verify_trial
from .driver_build import BuildRequest, provision_build, remove_builds, stage_build, unstage_builds
from .drives import (
    ALL,
    MODE_PAGES,
    QUEUE,
    Access,
    DriveRequest,
    claims_for,
    provision_drives,
    provision_sessions,
    usable_drives,
)
from .engine import Call
from .firmware.flash import Owners, flash_as_given, guard_adapter, judge_inventory, refuse_answer
from .firmware.subject import REDFISH, Adapters, Drives, file_digest
from .firmware.subject import Access as FlashAccess
from .kernel_package import fetch_package, foreign_changes, install_package, look_at_files, look_at_package
from .multipath import provision_multipath
from .nvram import NvramBench, NvramRequest, provision_nvram
from .options import OptionsBench, boot_arguments
from .os_tuning import OsRequest, arm_detectors, provision_os, refuse_impossible
from .package_services import hold_services
from .raid.layout import Chooser, RaidRequest, provision_volumes, volumes_of

SUBSYSTEMS = ("firmware", "driver", "nvram", "queue", "os", "multipath", "modepages", "raid")
"""What can be applied on its own, by the name of a playbook's tag; `queue` is that of adapters and that of drives."""

# rdinit names no file, so the kernel looks for its root by itself and finds no such disk: a real panic, before any
# program runs and before any disk is mounted
_PANIC = ("rdinit=/storqual-panic", "root=/dev/storqual-panic")


@dataclass(frozen=True)
class ProvisionedBench:
    """The bench that is provisioned; other values are for tests."""

    runner: Runner = run
    machine: Machine = field(default_factory=Machine)
    system: System = field(default_factory=lambda: System(run))
    access: Access = usable_drives


@dataclass(frozen=True)
class ApplyRequest:
    """What a bench is to be: `declared` as `storqual resolve` has it, the inventory's adapters, how it is applied.

    `only`: these of `SUBSYSTEMS`; all when empty. `apt`: a missing kernel package is installed by the control node
    with the bench's package manager. `brought`: what the control node did since the last call, `resume`: where that
    one ended. Both are empty at first.
    """

    declared: Mapping[str, Any]
    adapters: Mapping[str, Any]
    kind: str = "hardware"
    only: Collection[str] = ()
    consent: Sequence[str] = ()
    keep: bool = False
    save: bool = False
    start_driver: bool = True
    apt: bool = False
    soak_s: float = 30.0
    log_rules: Sequence[Mapping[str, str]] | None = None
    prove_s: float = 0.0
    wait_s: float = 0.0
    brought: Mapping[str, Any] = field(default_factory=dict)
    resume: Mapping[str, Any] = field(default_factory=dict)
    state_dir: str = "/var/lib/storqual"
    run: str = "provision"
    check: bool = False

    @property
    def call(self) -> Call:
        return Call(self.state_dir, self.run, self.check)

    @property
    def where(self) -> dict[str, Any]:
        return asdict(self.call)

    def asks(self, *subsystems: str) -> bool:
        return not self.only or any(name in self.only for name in subsystems)


@dataclass
class Report:
    """What the subsystems did so far; `throttle`: what NVRAM leaves to the drivers' options."""

    settings: list[Any] = field(default_factory=list)
    drift: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    driver: dict[str, Any] = field(default_factory=dict)
    throttle: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Pause:
    """Where a call ends because the control node must act: what it must do, and what the step needs to know then.

    `needs`: `files`, a `package`, the management `controller`. `boot`: kind (`reboot`, `power cycle`) and reason.
    """

    state: Mapping[str, Any]
    needs: Mapping[str, Any] = field(default_factory=dict)
    boot: Mapping[str, str] = field(default_factory=dict)


class Apply:
    """One call. `doing` is the subsystem that works, `done()` what was done before it."""

    def __init__(self, request: ApplyRequest, bench: ProvisionedBench | None = None) -> None:
        self._request = request
        self._bench = bench or ProvisionedBench()
        self._report = Report(**request.resume.get("report", {}))
        self._changed = False
        self._diff = {"before": "", "after": ""}
        self._progress: Mapping[str, Any] = {}
        self.doing = ""

    def done(self) -> dict[str, Any]:
        report = asdict(self._report)
        return {
            "changed": self._changed,
            "subsystem": self.doing,
            "steps": report["steps"],
            "settings": report["settings"],
        }

    def run(self) -> dict[str, Any]:
        """Apply what is left; the module's result. Raises StorqualError of all kinds."""
        methods: Sequence[Callable[[Mapping[str, Any]], Pause | None]] = (
            *(self._files, self._possible, self._detectors, self._clearing, self._firmware, self._driver),
            *(self._nvram, self._queue, self._os, self._multipath, self._drives, self._raid),
        )
        stages = {method.__name__[1:]: method for method in methods}
        first = str(self._request.resume.get("stage") or "files")
        names = list(stages)
        for name in names[names.index(first) :]:
            self.doing = name
            state = self._request.resume.get("state") or {}
            pause = stages[name](state if name == first else {})
            if pause is not None:
                resume = {"stage": name, "state": dict(pause.state), "report": asdict(self._report)}
                return self._result(pause, resume)
        # a volume under way is looked at again, and nothing else
        return self._result(Pause({}), {"stage": "raid"} if self._progress else {})

    def _result(self, pause: Pause, resume: Mapping[str, Any]) -> dict[str, Any]:
        report = {name: value for name, value in asdict(self._report).items() if name != "throttle"}
        return {
            "changed": self._changed,
            **report,
            "diff": self._diff,
            "progress": dict(self._progress),
            "needs": {"files": [], "package": {}, "controller": {}, **pause.needs},
            "boot_needed": dict(pause.boot),
            "resume": dict(resume),
        }

    def _keep(self, result: Mapping[str, Any], *, settings: bool = True, drift: bool = True) -> None:
        self._changed = self._changed or bool(result.get("changed"))
        self._report.steps += result.get("steps", ())
        self._report.settings += result.get("settings", ()) if settings else ()
        new = [line for line in result.get("drift", ()) if drift and line not in self._report.drift]
        self._report.drift += new
        for name, text in (result.get("diff") or {}).items():
            self._diff[name] += text

    # what must be there, and what cannot be

    def _missing(self) -> list[Mapping[str, Any]]:
        listed = [each for each in self._request.declared["files"] if self._request.asks(each["subsystem"])]
        return [each for each in listed if not _holds(self._path(each["to"]), each["sha256"])]

    def _path(self, place: str) -> Path:
        return Path(self._request.state_dir, place)

    def _files(self, state: Mapping[str, Any]) -> Pause | None:
        missing = [] if self._request.check else self._missing()
        if missing and state:
            listed = ", ".join(str(each["to"]) for each in missing)
            raise ToolError(
                f"{listed}: the bench does not hold the declared file after it was copied; look at its disk"
            )
        return Pause({"copied": True}, needs={"files": missing}) if missing else None

    def _possible(self, _state: Mapping[str, Any]) -> None:
        declared = self._request.declared["os"]
        if self._request.asks("os") and declared["settings"]:
            refuse_impossible(self._os_request(), self._bench.machine, self._bench.runner)

    def _detectors(self, _state: Mapping[str, Any]) -> None:
        """Before a driver is loaded; a boot of ours brings its own. Not where a fault makes tasks wait on purpose."""
        request, bench = self._request, self._bench
        hung_task_s, nmi = request.declared["os"]["hung_task_s"], bool(request.declared["driver"].get("nmi"))
        if request.asks("os") and request.kind != "local" and 0 < hung_task_s <= HUNG_TASK_S:
            armed = arm_detectors(request.call, hung_task_s, bench.machine, bench.runner, nmi=nmi)
            self._keep(armed, drift=False)

    def _clearing(self, _state: Mapping[str, Any]) -> None:
        """Delete volumes of this run that are in the way of loading drivers again."""
        declared = self._request.declared
        if self._request.asks("raid") and declared["raid"]["only"] and declared["change"] in ("reload", "rebuild"):
            # what is not there at the end of the session is no drift of its own
            self._keep(self._volumes((), (), only=True, wait_s=0.0), settings=False, drift=False)

    # firmware

    def _firmware(self, state: Mapping[str, Any]) -> Pause | None:
        images = self._request.declared["firmware"] if self._request.asks("firmware") else ()
        for number, image in enumerate(images):
            if number < state.get("image", 0):
                continue
            now = state if number == state.get("image") else {}
            work = self._by_controller if image["firmware"]["tool"] == REDFISH else self._flash
            pause = work(image, now)
            if pause is not None:
                return Pause({**pause.state, "image": number}, pause.needs, pause.boot)
        return None

    def _flash(self, image: Mapping[str, Any], state: Mapping[str, Any]) -> Pause | None:
        """Flash one image by its tool, or prove it after the boot. The one place where a flash is asked for."""
        request, proving = self._request, bool(state.get("proving"))
        given = {
            **image["firmware"],
            **request.where,
            "consent": request.consent,
            "soak_s": request.soak_s,
            "log_rules": request.log_rules,
            "state": "proven" if proving else "present",
        }

        def owners(access: FlashAccess) -> Owners:
            if image["drives"]:
                wanted = claims_for(request.adapters, image["drives"])
                return Drives(access, wanted, claims_of_adapters(request.adapters))
            chosen = {alias: request.adapters[alias] for alias in image["adapters"]}
            return Adapters(access, chosen, request.adapters)

        result = flash_as_given(given, owners, check=request.check)
        pending = "" if request.check else str(result["pending"])
        self._keep(result, settings=not pending, drift=not proving)
        if not pending:
            return None
        reason = f"firmware {image['firmware']['version']}"
        return Pause({"proving": True}, boot={"kind": pending, "reason": reason})

    def _by_controller(self, image: Mapping[str, Any], state: Mapping[str, Any]) -> Pause | None:
        """The same by the management controller: look, ask the guard, have it flash, look again."""
        brought, (alias,) = self._request.brought, image["adapters"]
        job = {"file": image["file"], "activation": image["firmware"]["activation"], "adapter": alias}
        if not state:
            return Pause({"step": "look"}, needs={"controller": {**job, "flash": False}})
        entries, target = brought.get("entries") or (), str(brought.get("target") or "")
        if state["step"] == "look":
            looked = judge_inventory(image["firmware"], alias, entries, target)
            wanted = looked["needed"] and not self._request.check
            self._keep(looked, settings=not wanted)
            if not wanted:
                return None
            request, bench = self._request, self._bench
            access = FlashAccess(request.state_dir, request.run, tuple(request.consent), bench.runner, bench.machine)
            guard_adapter(access, alias, request.adapters)
            return Pause({"step": "flashed", "found": looked["found"]}, needs={"controller": {**job, "flash": True}})
        refuse_answer(alias, str(brought.get("answer") or ""))
        self._changed = True
        self._keep(
            judge_inventory(image["firmware"], alias, entries, target, before=state["found"], flashed=True),
            drift=False,
        )
        return None

    # driver

    def _driver(self, state: Mapping[str, Any]) -> Pause | None:
        request, bench = self._request, self._bench
        if request.kind == "local":
            read = bench.machine.text
            self._report.driver = {
                "kernel": read("/proc/sys/kernel/osrelease"),
                "boot_id": read("/proc/sys/kernel/random/boot_id"),
                "drivers": {},
            }
            return None
        if not request.asks("driver"):
            return None
        declared = request.declared["driver"]
        if "trial" in state:
            wanted = TrialBoot(**state["trial"])
            modules = [*declared["modules"], *([self._module] if wanted.initramfs and declared["build"] else [])]
            proven = verify_trial(wanted, list(dict.fromkeys(modules)), bench.system)
            self._keep(proven)
            facts, booted = proven["facts"], True
        else:
            facts = boot_facts(bench.system, request.state_dir, declared["modules"])
            wanted, booted, pause = self._before_boot(facts, state)
            if pause is not None:
                return pause
        self._after_boot(facts, wanted, booted=booted)
        return None

    @property
    def _module(self) -> str:
        return str(self._request.declared["driver"]["build"].get("module", ""))

    def _before_boot(
        self, facts: Mapping[str, Any], state: Mapping[str, Any]
    ) -> tuple[TrialBoot, bool, Pause | None]:
        """What must run, whether that takes a boot, and the pause for it, or for a package that is missing."""
        request, declared = self._request, self._request.declared["driver"]
        package, pause = self._package(declared["kernel"], state)
        if pause is not None:
            return TrialBoot(""), True, pause
        words = [*declared["cmdline"], *boot_arguments(declared["options"], self._options, request.state_dir)]
        release = package["kernel"] or facts["found_running"]
        staged: Mapping[str, Any] = {}
        # in check mode a missing package has no release yet, so nothing can be said of a build for it
        if (declared["build"] or declared["build_as_found"]) and not package["missing"]:
            staged = self._build(release)
            self._keep(staged, settings=False)
        kernel = _kernel_name(declared["kernel"]) if package["missing"] else release
        booted = facts["initramfs"] if release == facts["running"] else ""
        wanted = TrialBoot(
            kernel,
            staged.get("initramfs", booted),
            words,
            facts["boot_id"][:8],
            facts["found_default"],
            declared["hung_task_s"],
            bool(declared.get("nmi")),
        )
        differs = kernel != facts["running"] or words != facts["added"]
        if differs and not declared["fresh_boot"]:
            line = f"kernel {facts['running']} {' '.join(facts['added'])}, declared {kernel} {' '.join(words)}"
            self._keep({"drift": [line]})
        boots = differs or declared["fresh_boot"] or declared["panic_at_boot"] or staged.get("boots", False)
        if not boots:
            if declared["kernel"]:
                runs = Provisioned("driver.kernel", kernel, None, facts["running"], proven=True, proof="uname -r")
                self._keep({"settings": [runs.record()]})
            return wanted, False, None
        if package["missing"]:
            self._keep({"changed": True, "steps": [f"kernel {kernel} would be installed and booted"]})
            return wanted, True, None
        panic = _PANIC if declared["panic_at_boot"] else ()
        trial = replace(wanted, arguments=[*words, *panic])
        self._keep(prepare_trial(trial, request.call, self._bench.system))
        reason = f"kernel {kernel}"
        pause = None if request.check else Pause({"trial": asdict(wanted)}, boot={"kind": "reboot", "reason": reason})
        return wanted, True, pause

    def _package(self, kernel: Mapping[str, Any], state: Mapping[str, Any]) -> tuple[Mapping[str, Any], Pause | None]:
        request, system = self._request, self._bench.system
        name, version = str(kernel.get("package") or ""), str(kernel.get("version") or "")
        self._keep({"drift": foreign_changes(system, request.state_dir, check=request.check)})
        own, lacking = [str(self._path(each)) for each in kernel.get("files") or ()], False
        if own:
            if request.check and {each["to"] for each in self._missing()}.intersection(kernel["files"]):
                return {"missing": True, "kernel": ""}, None
            name, version, lacking = look_at_files(system, own)
        if not name:
            return {"missing": False, "kernel": ""}, None
        looked = look_at_package(system, name, version)
        if lacking:
            looked = {**looked, "missing": True}
        files = own or [str(self._path(each)) for each in request.brought.get("packages") or ()]
        if looked["missing"] and not files and state.get("fetched") and system.packages.MANAGER == rpm.MANAGER:
            files = fetch_package(system, name, version, request.state_dir)
        if looked["missing"] and files and not request.check:
            looked = install_package(name, version, files, request.call, system)
        if not looked["missing"]:
            self._keep(looked)
        elif not request.check:
            if state.get("fetched"):
                raise ToolError(f"{name} is not installed, and no package file was brought to the bench")
            if request.apt:
                with request.call.lock("driver package") as lock:
                    if lock is not None:
                        remember_boot(lock, system)
            needed = {"name": name, "version": version, "manager": system.packages.MANAGER}
            return looked, Pause({"fetched": True}, needs={"package": needed})
        return looked, None

    @property
    def _options(self) -> OptionsBench:
        return OptionsBench(self._bench.runner, self._bench.machine)

    def _build(self, kernel: str = "") -> dict[str, Any]:
        """The declared driver build, or those that the run installed off; for `kernel` what comes before its boot."""
        build, call, bench = self._request.declared["driver"]["build"], self._request.call, self._options
        if not build:
            return unstage_builds(call, bench) if kernel else remove_builds(call, bench)
        missing = {each["to"] for each in self._missing()} if call.check else set()
        request = BuildRequest(
            **{name: build[name] for name in ("module", "version", "sha256")},
            files=[str(self._path(path)) for path in build["paths"]],
            kmod=build["kmod"],
            awaited=not missing.isdisjoint(build["paths"]),
            kernel=kernel,
            call=call,
        )
        return stage_build(request, bench, self._bench.system) if kernel else provision_build(request, bench)

    def _after_boot(self, facts: Mapping[str, Any], wanted: TrialBoot, *, booted: bool) -> None:
        """The build on the disk and loaded, the kernel kept, and what is loaded in the end."""
        request, declared, bench = self._request, self._request.declared["driver"], self._bench
        installed: Mapping[str, Any] = {}
        if declared["build"] or declared["build_as_found"]:
            installed = self._build()
            self._keep(installed)
        if (request.keep or declared["kernel"].get("keep")) and not (request.check and booted):
            self._keep(keep_kernel(request.call, bench.system, wanted.arguments, wanted.initramfs))
        if installed.get("changed") and not request.check:
            facts = boot_facts(bench.system, request.state_dir, declared["modules"])
        self._report.driver = {
            "kernel": facts["running"],
            "booted": booted,
            **{name: facts[name] for name in ("boot_id", "drivers", "modules", "default")},
        }

    # settings

    def _nvram(self, _state: Mapping[str, Any]) -> None:
        declared, request = self._request.declared["nvram"], self._request
        if not request.asks("nvram") or not any(declared.values()):
            return
        nvram_request = NvramRequest(
            declared["settings"],
            request.adapters,
            start_driver=request.start_driver,
            as_found=declared["as_found"],
            start=declared["start"],
            **request.where,
        )
        result = provision_nvram(nvram_request, NvramBench(self._bench.runner, self._bench.machine))
        self._keep(result)
        self._report.throttle = dict(result["throttle"])

    def _queue(self, _state: Mapping[str, Any]) -> None:
        """Module options, and the throttles of NVRAM that only an option brings about."""
        declared, request = self._request.declared["driver"], self._request
        wanted = declared["options"] or self._report.throttle or declared["options_as_found"]
        if request.asks("queue") and wanted:
            throttle_request = ThrottleRequest(
                self._report.throttle, declared["options"], request.adapters, prove_s=request.prove_s, **request.where
            )
            self._keep(provision_throttle(throttle_request, self._options, self._bench.access))

    def _os_request(self) -> OsRequest:
        request, declared = self._request, self._request.declared["os"]
        return OsRequest(
            request.adapters,
            **declared["settings"],
            as_found=declared["as_found"],
            prove_s=request.prove_s,
            **request.where,
        )

    def _os(self, _state: Mapping[str, Any]) -> None:
        bench = self._bench
        if self._request.asks("os") and self._request.kind != "local":
            # what is still while the bench is measured is no drift of the drop's
            held = hold_services(self._request.call, bench.machine, bench.runner)
            self._keep(held, drift=False)
        if self._request.asks("os") and any(self._request.declared["os"].values()):
            self._keep(provision_os(self._os_request(), bench.machine, bench.runner, bench.access))

    def _multipath(self, _state: Mapping[str, Any]) -> None:
        """After everything that makes drives come and go; before the drives, which may have their own timers."""
        request, declared = self._request, self._request.declared["multipath"]
        if request.asks("multipath") and any(declared.values()):
            claims = claims_of_adapters(request.adapters)
            settings, as_found = declared["settings"], declared["as_found"]
            self._keep(provision_multipath(settings, as_found, claims, request.call, self._options))

    def _drives(self, _state: Mapping[str, Any]) -> None:
        declared, request = self._request.declared["drive"], self._request
        pages, queue = request.asks("modepages"), request.asks("queue")
        if not (pages or queue) or not any(declared.values()):
            return
        drive_request = DriveRequest(
            declared["settings"],
            request.adapters,
            as_found=declared["as_found"],
            part=ALL if pages and queue else MODE_PAGES if pages else QUEUE,
            save=request.save,
            prove_s=request.prove_s,
            **request.where,
        )
        if queue:
            bench = self._bench
            self._keep(provision_sessions(drive_request, bench.runner, bench.machine, bench.access))
        self._keep(provision_drives(drive_request, access=self._bench.access))

    # volumes

    def _raid(self, _state: Mapping[str, Any]) -> None:
        declared, request = self._request.declared, self._request
        # what the other arm or another level of a varied setting declared is not there in this session
        only = bool(declared["raid"]["only"] and declared["change"])
        if request.kind == "local" or not request.asks("raid") or not (declared["raid"]["volumes"] or only):
            return
        result = self._volumes(declared["raid"]["volumes"], request.consent, only=only, wait_s=request.wait_s)
        self._keep(result)
        self._progress = result["progress"]

    def _volumes(
        self, volumes: Sequence[Mapping[str, Any]], consent: Collection[str], *, only: bool, wait_s: float
    ) -> dict[str, Any]:
        request = self._request
        raid_request = RaidRequest(
            volumes, request.adapters, consent=consent, only=only, wait_s=wait_s, **request.where
        )
        backends = volumes_of(
            request.state_dir, request.run, consent, machine=self._bench.machine, runner=self._bench.runner
        )
        result: dict[str, Any] = provision_volumes(
            raid_request, backends, Chooser(request.adapters, self._bench.machine).tool
        )
        return result


def _kernel_name(kernel: Mapping[str, Any]) -> str:
    return str(kernel.get("package") or ", ".join(Path(file).name for file in kernel["files"]))


def _holds(path: Path, sha256: str) -> bool:
    try:
        return bool(sha256) and file_digest(path) == sha256.lower()
    except OSError:
        return False
