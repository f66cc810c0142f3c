# SPDX-License-Identifier: Apache-2.0
"""A driver build: what is asked, what the files are, where which build lies now, and how it can come into effect.

A driver that the machine cannot do without while it runs, or that its initramfs loads, comes with a boot of its own
(`stage_build` in `provision/build.py`); any other is loaded again where it is (`provision_build` there).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Mapping, Sequence

from ..host.adapters import refuse_when_used
from ..kit.durable import fsync_folder
from ..kit.errors import ToolError
from ..kit.lock import BenchLock, read_saved, remember
from ..kit.results import Provisioned
from ..tools import dkms, dpkg, kmod
from .driver import (
    ModuleFile,
    adapters_of_module,
    forget_start,
    objections,
    place_of,
    read_module_file,
    reload_module,
    take_out,
)
from .engine import Call, Outcome
from .initramfs import builds_in
from .kernel_boot import put_native_back
from .option_step import boot_reason
from .options import OptionsBench

Builds = Mapping[str, "kmod.Build | None"]
"""The build of one module by place: `loaded`, `disk`, and `initramfs` where that has it."""


@dataclass(frozen=True)
class BuildRequest:
    """A driver build: `module` and, where declared, its `version`; files on the bench; `sha256` of a prebuilt module.

    A `.ko` file (packed or not) is a prebuilt module, `.deb` files are a DKMS package. `awaited`: they are not copied
    yet, what lies under their names is another build. `kernel`: the release that it is for (empty: the running one).
    """

    module: str
    version: str = ""
    files: Sequence[str] = field(default_factory=tuple)
    sha256: str = ""
    awaited: bool = False
    kernel: str = ""
    call: Call = field(default_factory=Call)

    @property
    def prebuilt(self) -> bool:
        """Whether the file is a module and not a package."""
        return len(self.files) == 1 and ".ko" in Path(self.files[0]).name

    @property
    def name(self) -> str:
        """The module as the kernel names it."""
        return self.module.replace("-", "_")


@dataclass(frozen=True)
class Wanted:
    """What must run: a prebuilt file, or the package and version that bring the driver."""

    file: ModuleFile | None = None
    package: str = ""
    package_version: str = ""
    version: str = ""
    installed: bool = False


def identifiers(bench: OptionsBench, module: str) -> dict[str, kmod.Build | None]:
    """The build of a module where it lies; the initramfs is the one that the running kernel was booted with."""
    found = {
        "loaded": kmod.loaded(module, bench.machine.path("/sys")),
        "disk": kmod.on_disk(bench.runner, [module], bench.kernel)[module],
    }
    initrd = f"/boot/{bench.booted_image}" if bench.booted_image else bench.initrd
    packed = builds_in(bench.machine.path(initrd), [module])[module] if initrd else None
    if packed is not None:
        found["initramfs"] = packed
    return found


def takes_boot(bench: OptionsBench, module: str, state_dir: str) -> str:
    """Why a build of a module takes a boot, as part of a sentence; empty when it can be loaded where it is.

    A driver in the initramfs takes one also where it could be taken out: with the default's initramfs made anew, a
    build that cannot boot would have taken the way back with it.
    """
    loaded = bench.machine.exists(f"/sys/module/{module}")
    reason = boot_reason(bench.machine, module, state_dir) if loaded else ""
    if reason or not bench.initrd:
        return reason
    carried = builds_in(bench.machine.path(bench.initrd), [module])[module]
    return f"{bench.initrd} carries it" if carried is not None else ""


def wanted_build(request: BuildRequest, bench: OptionsBench, native: kmod.Build | None) -> Wanted:
    """What the files are. Raises ToolError with everything that speaks against them."""
    if request.prebuilt:
        file = read_module_file(bench.runner, request.files[0])
        against = objections(file, request.sha256, bench.machine, bench.kernel, native)
        if file.name != request.name:
            against.append(f"{file.path} is module {file.name}, the drop declares {request.module}")
        if request.version and file.build.version and file.build.version != request.version:
            against.append(f"{file.path} is version {file.build.version}, {request.version} is declared")
        if against:
            raise ToolError("\n".join(against))
        return Wanted(file=file, version=request.version)
    name, version = dpkg.file_package(bench.runner, request.files[-1])
    if not bench.machine.exists(f"/lib/modules/{bench.kernel}/build/Makefile"):
        raise ToolError(
            f"{name} is built on the bench, and the headers of kernel {bench.kernel} are not installed "
            f"(/lib/modules/{bench.kernel}/build): install linux-headers-{bench.kernel}"
        )
    dkms.status(bench.runner)
    known = dpkg.installed(bench.runner, name)
    installed = bool(known and known.complete and known.version == version)
    return Wanted(package=name, package_version=version, version=request.version, installed=installed)


def is_there(wanted: Wanted, now: Builds) -> bool:
    """Whether the build that is meant is in all places already."""
    disk = now["disk"]
    if disk is None or differing(now):
        return False
    if wanted.file is not None:
        return bool(disk.srcversion) and disk.srcversion == wanted.file.build.srcversion
    return wanted.installed and (not wanted.version or disk.version == wanted.version)


def differing(now: Builds) -> list[str]:
    """The places whose build is not the one on disk, each in words."""
    disk = now["disk"]
    return [
        f"{place} {words_of(build)}, disk {words_of(disk)}"
        for place, build in now.items()
        if disk is not None
        and build is not None
        and place != "disk"
        and (build.srcversion, build.version) != (disk.srcversion, disk.version)
    ]


def words_of(build: kmod.Build | None) -> str:
    """A build in a sentence."""
    if build is None:
        return "nothing"
    return " ".join(word for word in (build.srcversion, build.version) if word) or "no srcversion"


def records(name: str, before: Builds, now: Builds) -> list[Provisioned]:
    """The driver as a setting of the bench: proven when one build is in all places."""
    same = not differing(now) and now["loaded"] is not None
    places = ", ".join(place for place, build in now.items() if build is not None)
    return [
        Provisioned(
            f"driver.module.{name}",
            # what is declared is a file or a package; a build is told by its srcversion
            None,
            words_of(before["loaded"]),
            words_of(now["loaded"]),
            changed=words_of(before["loaded"]) != words_of(now["loaded"]),
            proven=same,
            proof=f"one build in these places: {places}" if same else "; ".join(differing(now)) or "not loaded",
        )
    ]


def result(request: BuildRequest, before: Builds, now: Builds, steps: Sequence[str]) -> dict[str, Any]:
    """The module's result."""
    (record,) = records(request.name, before, now)
    was = words_of(before["loaded"])
    is_now = words_of(now["loaded"]) if before != now or not steps else "the declared build"
    return {
        "changed": bool(steps),
        "settings": [record.record()],
        "steps": list(steps),
        "drift": [f"driver {request.module}: {was}, another build is declared"] if steps else [],
        "diff": {"before": f"{request.module}: {was}\n", "after": f"{request.module}: {is_now}\n"},
        "identifiers": {place: asdict(build) if build else None for place, build in now.items()},
    }


_KEY = "build.module@"


def remember_build(
    lock: BenchLock, bench: OptionsBench, module: str, wanted: Wanted, disk: kmod.Build | None, *, boots: bool
) -> None:
    """Remember what was there before a build; `boots` when it comes with a boot and not by loading it again.

    `disk`: the build that lies there now.

    Raises ToolError when the run has put a build of another kind there: its way back would be lost.
    """
    known = dpkg.installed(bench.runner, wanted.package) if wanted.package else None
    runs = bench.kernel == bench.running
    # of a kernel that does not run, the build on disk is the one that it would load
    former = kmod.loaded(module, bench.machine.path("/sys")) if runs else disk
    fresh = {
        "package": wanted.package,
        "package_before": known.version if known and known.complete else "",
        "file": place_of(wanted.file, bench.kernel) if wanted.file else "",
        "kernel": bench.kernel,
        "srcversion": former.srcversion if former else "",
        "version": former.version if former else "",
        "known": former is not None,
        "boots": boots,
    }
    owner = f"{module}/{bench.kernel}"
    kept = builds_of_run(str(lock.state_dir)).get(owner, fresh)
    if (kept["package"], kept["file"]) != (fresh["package"], fresh["file"]):
        raise ToolError(
            f"this run has put {kept['package'] or kept['file']} there as the build of {module}, and "
            f"{fresh['package'] or fresh['file']} cannot be put beside it: restore the bench first"
        )
    remember(lock, {f"{_KEY}{owner}": fresh})


def builds_in_memory(saved: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What saved.json holds of builds, by `<module>/<kernel>`."""
    return {key[len(_KEY) :]: value for key, value in saved.items() if key.startswith(_KEY)}


def builds_of_run(state_dir: str) -> dict[str, dict[str, Any]]:
    """The same of the bench's saved.json."""
    saved = read_saved(Path(state_dir))
    return builds_in_memory(saved.values if saved else {})


def _was_known(memory: Mapping[str, Any]) -> bool:
    """Whether there was a build of the module at all; memories of former versions are of such only."""
    return bool(memory.get("known", True))


def is_former(bench: OptionsBench, module: str, memory: Mapping[str, Any]) -> bool:
    """Whether the build that was there before is loaded; what another kernel had loaded is not known."""
    if memory["kernel"] != bench.running:
        return True
    now = kmod.loaded(module, bench.machine.path("/sys"))
    if not _was_known(memory):
        return now is None
    return now is not None and (now.srcversion, now.version) == (memory["srcversion"], memory["version"])


def set_aside(bench: OptionsBench, memory: Mapping[str, Any]) -> list[str]:
    """Have the disk without a build that will be wanted again; what was done. Raises ToolError.

    A package stays, and what DKMS has built of it: the next session of its arm need not compile it again.
    """
    package = str(memory["package"])
    known = dpkg.installed(bench.runner, package) if package else None
    if known is None or not known.complete:
        return _remove_file(bench, memory)
    source = dkms.source_of(bench.runner, package, bench.machine.root)
    lay = dkms.uninstall(bench.runner, source, str(memory["kernel"]))
    return [f"{source.name} {source.version} uninstalled"] if lay else []


def take_off(bench: OptionsBench, memory: Mapping[str, Any]) -> list[str]:
    """Take a build off the disk, which loads nothing; what was done. Raises ToolError."""
    steps = _remove_file(bench, memory)
    package, before = str(memory["package"]), str(memory["package_before"])
    known = dpkg.installed(bench.runner, package) if package else None
    # one whose installation was cut short is there, too
    if known is not None and (known.version != before or not known.complete):
        if before:
            raise ToolError(
                f"{package} was {before} when the bench was found and is {known.version}: install {before}"
            )
        dpkg.remove(bench.runner, package)
        steps.append(f"{package} removed")
    return steps


def _remove_file(bench: OptionsBench, memory: Mapping[str, Any]) -> list[str]:
    place = str(memory["file"])
    if not place or not bench.machine.exists(place):
        return []
    path = Path(bench.machine.path(place))
    path.unlink()
    fsync_folder(path.parent)
    bench.runner(["depmod", str(memory["kernel"])], timeout=300.0).expect()
    return [f"{place} removed"]


def uninstall(bench: OptionsBench, module: str, memory: Mapping[str, Any], state_dir: str) -> list[str]:
    """Take a build off again and load the former one; what was done. Raises StorqualError.

    One that came with a boot goes with a boot, and one of another kernel is not loaded: only the disk is seen to.
    """
    if memory["boots"] or memory["kernel"] != bench.running:
        return take_off(bench, memory)
    adapters = adapters_of_module(bench.machine, module)
    refuse_when_used(bench.machine, adapters, state_dir, f"reloading {module} unloads it for a moment")
    if not _was_known(memory):
        out = not is_former(bench, module, memory)
        if out:
            take_out(bench.machine, bench.runner, module)
        return [*([f"module {module} unloaded"] if out else []), *take_off(bench, memory)]
    steps = take_off(bench, memory)
    if steps or not is_former(bench, module, memory):
        reload_module(bench.machine, bench.runner, module)
        steps.append(f"module {module} loaded again as it was found")
    return steps


def take_builds_off(
    saved: Mapping[str, Any], bench: OptionsBench, state_dir: str, *, check: bool
) -> tuple[list[str], bool]:
    """Take builds that came with a boot off the disk, before the boot that may be needed for the former ones.

    `saved` are the values of saved.json. What was done, and whether a former build needs a boot to run. Raises
    StorqualError.
    """
    steps: list[str] = []
    boots = False
    for owner, was in builds_in_memory(saved).items():
        if was["boots"]:
            if not check:
                steps += take_off(bench, was)
                native = replace(bench, release=str(was["kernel"])).initrd
                steps += put_native_back(Path(bench.machine.path(native)), state_dir)
            boots = boots or not is_former(bench, owner.partition("/")[0], was)
    return steps, boots


def restore_build(owner: str, was: Mapping[str, Any], bench: OptionsBench, state_dir: str, *, check: bool) -> Outcome:
    """The build of a driver that was there before, loaded; `owner` is `<module>/<kernel>`. Raises StorqualError."""
    module = owner.partition("/")[0]
    before = kmod.loaded(module, bench.machine.path("/sys"))
    steps = [] if check else uninstall(bench, module, was, state_dir)
    if not check:
        forget_start(bench.machine, state_dir, module)
    now = kmod.loaded(module, bench.machine.path("/sys"))
    setting = Provisioned(
        f"driver.module.{module}",
        was["srcversion"],
        before.srcversion if before else None,
        now.srcversion if now else None,
        changed=bool(steps),
    )
    return Outcome([setting], steps)
