# SPDX-License-Identifier: Apache-2.0
"""A driver build: what is asked, where which build lies, an initramfs that carries it, and the disk after the boot.

A driver that the machine cannot do without while it runs, or that its initramfs loads, comes with a boot of its own
(`stage_build`); any other is loaded again where it is (`provision_build`).

Until the build has shown in a trial boot that it can carry the bench, it lies nowhere but in that initramfs: the
default boots what it always booted, from its own initramfs and from a disk without the build.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ContextManager, Mapping, Sequence

from ..host.reach import refuse_when_used
from ..kit.durable import copy_file, fsync_folder, make_folder, replace_bytes, replace_json
from ..kit.errors import BadInputError, StorqualError, ToolError
from ..kit.lock import BenchLock, hold_lock, read_saved, remember
from ..kit.results import PartialError, Provisioned, partial_errors
from ..tools import boot_files, dkms, kmod
from .boot import (
    System,
    check_trial,
    image_name,
    own_images,
    put_native_back,
    remember_boot,
    remove_images,
    unchanged,
)
from .driver import (
    ModuleFile,
    adapters_of_module,
    forget_start,
    note_starts,
    objections,
    pending_starts,
    place_of,
    read_module_file,
    reload_module,
    take_out,
)
from .driver_package import (
    DriverPackage,
    index_modules,
    install_driver,
    package_objections,
    read_package,
    remove_driver,
    system_of,
)
from .engine import LOCK_WAIT_S, Call, StepOutcome
from .initramfs import NewModule, builds_in, copy_with, depmod_index, module_build, plain_module
from .kernel_package import driver_labels
from .module_policy import policy_objections
from .options import OptionsBench, boot_reason
from .selinux import check_types, denials

Builds = Mapping[str, "kmod.Build | None"]
"""The build of one module by place: `loaded`, `disk`, and `initramfs` where that has it."""


@dataclass(frozen=True)
class BuildRequest:
    """A driver build: `module` and, where declared, its `version`; files on the bench; `sha256` of a prebuilt module.

    A `.ko` file (packed or not) is a prebuilt module, others are a DKMS package, or with `kmod` packages
    with a built module: `package` installs them with their scripts, `module` takes the module out. `awaited`: they
    are not copied yet, what lies under their names is another build. `kernel`: the release that it is for (empty:
    the running one).
    """

    module: str
    version: str = ""
    files: Sequence[str] = field(default_factory=tuple)
    sha256: str = ""
    kmod: str = ""
    awaited: bool = False
    kernel: str = ""
    call: Call = field(default_factory=Call)

    @property
    def prebuilt(self) -> bool:
        return len(self.files) == 1 and ".ko" in Path(self.files[0]).name

    @property
    def name(self) -> str:
        return self.module.replace("-", "_")


@dataclass(frozen=True)
class WantedBuild:
    """What must run: a prebuilt file, or the package and version that bring the driver, or both."""

    file: ModuleFile | None = None
    package: str = ""
    package_version: str = ""
    version: str = ""
    installed: bool = False
    driver_package: DriverPackage | None = None


def identifiers(bench: OptionsBench, module: str) -> dict[str, kmod.Build | None]:
    """The build of a module where it lies; the initramfs is the one that the running kernel was booted with."""
    builds = {
        "loaded": kmod.loaded(module, bench.machine.path("/sys")),
        "disk": kmod.on_disk(bench.runner, [module], bench.kernel)[module],
    }
    initrd = f"/boot/{bench.booted_image}" if bench.booted_image else bench.initrd
    packed = builds_in(bench.machine.path(initrd), [module])[module] if initrd else None
    if packed is not None:
        builds["initramfs"] = packed
    return builds


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


def wanted_build(request: BuildRequest, bench: OptionsBench, native: kmod.Build | None) -> WantedBuild:
    """What the files are. Raises ToolError with everything that speaks against them."""
    if request.prebuilt or request.kmod:
        package = read_package(bench, request.files, request.module) if request.kmod else None
        file = package.file if package else read_module_file(bench.runner, request.files[0])
        against = objections(file, request.sha256, bench.machine, bench.kernel, native)
        against += policy_objections(file.path, file.signer, file.supported, bench.machine, bench.runner)
        if file.name != request.name:
            against.append(f"{file.path} is module {file.name}, the drop declares {request.module}")
        if request.version and file.build.version and file.build.version != request.version:
            against.append(f"{file.path} is version {file.build.version}, {request.version} is declared")
        if package and request.kmod == "package" and package.missing:
            against += package_objections(package, bench)
        if against:
            raise ToolError("\n".join(against))
        if package is None or request.kmod != "package":
            return WantedBuild(file=file, version=request.version)
        return WantedBuild(
            file, package.package.name, package.package.evr, request.version, not package.missing, package
        )
    name, version = bench.packages.file_package(bench.runner, request.files[-1])
    if not bench.machine.exists(f"/lib/modules/{bench.kernel}/build/Makefile"):
        raise ToolError(
            f"{name} is built on the bench, and the headers of kernel {bench.kernel} are not installed "
            f"(/lib/modules/{bench.kernel}/build): install {bench.packages.HEADERS.format(release=bench.kernel)}"
        )
    dkms.status(bench.runner)
    known = bench.packages.installed(bench.runner, name)
    installed = bool(known and known.complete and known.version == version)
    return WantedBuild(package=name, package_version=version, version=request.version, installed=installed)


def is_there(wanted: WantedBuild, now: Builds) -> bool:
    disk = now["disk"]
    if disk is None or differing(now):
        return False
    if wanted.file is not None:
        there = wanted.installed or wanted.driver_package is None
        return there and bool(disk.srcversion) and disk.srcversion == wanted.file.build.srcversion
    return wanted.installed and (not wanted.version or disk.version == wanted.version)


def differing(now: Builds) -> list[str]:
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
    lock: BenchLock, bench: OptionsBench, module: str, wanted: WantedBuild, disk: kmod.Build | None, *, boots: bool
) -> None:
    """Remember what was there before a build; `boots` when it comes with a boot and not by loading it again.

    `disk`: the build that lies there now.

    Raises ToolError when the run has put a build of another kind there: its way back would be lost.
    """
    known = bench.packages.installed(bench.runner, wanted.package) if wanted.package else None
    runs = bench.kernel == bench.running
    # of a kernel that does not run, the build on disk is the one that it would load
    former = kmod.loaded(module, bench.machine.path("/sys")) if runs else disk
    fresh = {
        "package": wanted.package,
        "package_before": known.version if known and known.complete else "",
        "file": place_of(wanted.file, bench.kernel) if wanted.file and not wanted.package else "",
        "kernel": bench.kernel,
        "srcversion": former.srcversion if former else "",
        "version": former.version if former else "",
        "known": former is not None,
        "boots": boots,
        **({"labels": list(wanted.driver_package.missing)} if wanted.driver_package else {}),
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


def set_aside(bench: OptionsBench, memory: Mapping[str, Any], state_dir: str) -> list[str]:
    """Have the disk without a build that will be wanted again; what was done. Raises ToolError.

    A package stays, and what DKMS has built of it: the next session of its arm need not compile it again. One with a
    built module goes, with what its scripts left.
    """
    if "labels" in memory:
        return remove_driver(driver_labels(state_dir), replace(bench, release=str(memory["kernel"])), state_dir)
    package = str(memory["package"])
    known = bench.packages.installed(bench.runner, package) if package else None
    if known is None or not known.complete:
        return _remove_file(bench, memory)
    source = dkms.source_of(bench.runner, package, bench.machine.root, bench.packages)
    lay = dkms.uninstall(bench.runner, source, str(memory["kernel"]))
    return [f"{source.name} {source.version} uninstalled"] if lay else []


def take_off(bench: OptionsBench, memory: Mapping[str, Any], state_dir: str) -> list[str]:
    """Take a build off the disk, which loads nothing; what was done. Raises ToolError."""
    if "labels" in memory:
        return set_aside(bench, memory, state_dir)
    steps = _remove_file(bench, memory)
    package, before = str(memory["package"]), str(memory["package_before"])
    known = bench.packages.installed(bench.runner, package) if package else None
    # one whose installation was cut short is there, too
    if known is not None and (known.version != before or not known.complete):
        if before:
            raise ToolError(
                f"{package} was {before} when the bench was found and is {known.version}: install {before}"
            )
        bench.packages.remove_package(bench.runner, package)
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
        return take_off(bench, memory, state_dir)
    adapters = adapters_of_module(bench.machine, module)
    refuse_when_used(bench.machine, adapters, state_dir, f"reloading {module} unloads it for a moment")
    if not _was_known(memory):
        out = not is_former(bench, module, memory)
        if out:
            take_out(bench.machine, bench.runner, module)
        return [*([f"module {module} unloaded"] if out else []), *take_off(bench, memory, state_dir)]
    steps = take_off(bench, memory, state_dir)
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
                steps += take_off(bench, was, state_dir)
                native = Path(bench.machine.path(replace(bench, release=str(was["kernel"])).initrd))
                back = put_native_back(native, state_dir)
                if back:
                    boot_files.settle(bench.runner, [str(native.parent)])
                steps += back
            boots = boots or not is_former(bench, owner.partition("/")[0], was)
    return steps, boots


def restore_build(
    owner: str, was: Mapping[str, Any], bench: OptionsBench, state_dir: str, *, check: bool
) -> StepOutcome:
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
    return StepOutcome([setting], steps)


# of the image, which is written beside the one that it will replace
_SPARE = 1.05


def stage_build(request: BuildRequest, bench: OptionsBench, system: System) -> dict[str, Any]:
    """What comes before a boot: have an initramfs with the build in /boot, for `request.kernel`.

    The module's result, with `boots` (whether one is needed) and `initramfs` (its name; empty for a build that takes
    no boot). Raises BadInputError, ToolError (nothing was written) or PartialError.
    """
    bench, before, wanted = _look(request, bench)
    reason = takes_boot(bench, request.name, request.call.state_dir)
    if not reason:
        return {**result(request, before, before, []), "initramfs": "", "boots": False}
    file = _present_file(request, bench, wanted)
    name = image_name(bench.kernel, _content(file)) if file else ""
    if file and name == bench.booted_image and words_of(before["loaded"]) == words_of(file.build):
        return {**result(request, before, before, []), "initramfs": name, "boots": False}
    if not bench.initrd:
        raise ToolError(
            f"driver {request.module} needs a boot ({reason}), and kernel {bench.kernel} has no initramfs"
        )
    # where no trial could be booted and left again, nothing is installed for one
    check_trial(system, bench.kernel)
    if request.call.check or wanted is None:
        step = f"an initramfs with {request.module} would be made, for a boot of its own: {reason}"
        return {**result(request, before, before, [step]), "initramfs": name, "boots": True}
    with _locked(request.call) as lock:
        remember_boot(lock, system)
        remember_build(lock, bench, request.name, wanted, before["disk"], boots=True)
        name, steps = _make(request, bench, system, wanted, before)
    outcome = result(request, before, before, steps)
    return {**outcome, "initramfs": name, "boots": name != bench.booted_image}


def unstage_builds(call: Call, bench: OptionsBench) -> dict[str, Any]:
    """Take builds of the run that came with a boot off the disk; `boots` when the former ones need a boot to run."""
    steps: list[str] = []
    saved = read_saved(Path(call.state_dir))
    image = saved.values.get("boot.initramfs@bench", "") if saved else bench.booted_image
    boots = bench.booted_image != image
    for owner, memory in builds_of_run(call.state_dir).items():
        if not memory["boots"]:
            continue
        boots = boots or not is_former(bench, owner.partition("/")[0], memory)
        if not call.check:
            with _locked(call):
                steps += set_aside(bench, memory, call.state_dir)
    return StepOutcome([], steps).result(identifiers={}, initramfs=image, boots=boots)


def put_on_disk(
    request: BuildRequest, bench: OptionsBench, before: Builds, wanted: WantedBuild, reason: str
) -> dict[str, Any]:
    """After the trial: the build that it showed goes to the disk, and is in all three places then.

    Raises ToolError when the bench did not boot with it, PartialError when the disk cannot be made to hold it.
    """
    packed, loaded = before.get("initramfs"), before["loaded"]
    proven = bench.booted_image and packed and loaded and words_of(packed) == words_of(loaded)
    if not proven or (wanted.file and packed and packed.srcversion != wanted.file.build.srcversion):
        raise ToolError(
            f"driver {request.module} needs a boot ({reason}), and this boot's initramfs does not carry the declared "
            "build: the role provision boots it once"
        )
    steps: list[str] = []
    with _locked(request.call), partial_errors(
        steps, lambda: records(request.name, before, identifiers(bench, request.name))
    ):
        if wanted.driver_package is not None:
            index_modules(bench)
            steps.append(f"{wanted.package} {wanted.package_version} in the index of kernel {bench.kernel}")
        elif wanted.file is not None:
            steps += write_module(bench, wanted.file)
        else:
            source = dkms.source_of(bench.runner, wanted.package, bench.machine.root, bench.packages)
            dkms.install(bench.runner, source, bench.kernel)
            steps.append(f"{source.name} {source.version} installed for kernel {bench.kernel}")
        now = identifiers(bench, request.name)
        if not is_there(replace(wanted, installed=True), now):
            places = ", ".join(f"{place} {words_of(build)}" for place, build in now.items())
            raise ToolError(f"driver {request.module} is not the declared build everywhere: {places}")
    was = builds_of_run(request.call.state_dir).get(f"{request.name}/{bench.kernel}", {})
    former = kmod.Build(was.get("srcversion", ""), was.get("version", ""))
    return result(request, {**before, "loaded": former}, now, steps)


def _locked(call: Call) -> ContextManager[BenchLock]:
    return hold_lock(Path(call.state_dir), call.run, "driver build", wait_s=LOCK_WAIT_S)


def write_module(bench: OptionsBench, file: ModuleFile) -> list[str]:
    """Put a prebuilt module before the kernel's own; what was done. Raises ToolError."""
    place = place_of(file, bench.kernel)
    target = Path(bench.machine.path(place))
    make_folder(target.parent)
    copy_file(Path(file.path), target)
    check_types(bench.machine, bench.runner, [place])
    bench.runner(["depmod", bench.kernel], timeout=300.0).expect()
    return [f"{place} written"]


def _make(
    request: BuildRequest, bench: OptionsBench, system: System, wanted: WantedBuild, before: Builds
) -> tuple[str, list[str]]:
    """Build where that is needed, and write the image; its name and what was done. Raises PartialError."""
    boot = Path(bench.machine.path("/boot"))
    native = Path(bench.machine.path(bench.initrd))
    steps: list[str] = []
    made: bytes | None = None
    try:
        file = wanted.file
        if wanted.driver_package is not None:
            made = _install_driver(request, bench, wanted.driver_package, steps, runs=False)
        if file is None:
            with unchanged(native, request.call.state_dir, steps):
                file = _build(request, bench, wanted, before, steps)
            boot_files.settle(bench.runner, [str(boot)])
        content = _content(file)
        name = image_name(bench.kernel, content)
        steps += [f"/boot/{gone} removed" for gone in remove_images(str(boot), _needed(request, bench, system, name))]
        module, base = NewModule(request.name, content, file.needs), native.read_bytes()
        inputs = [hashlib.sha256(each).hexdigest() for each in (base, content)]
        if _is_made(boot / name, inputs, request.call.state_dir):
            steps.append(f"/boot/{name} is there, made of the same {bench.initrd} and {request.module}")
            return name, steps
        index = depmod_index(bench.runner, bench.kernel)
        image = made or copy_with(base, bench.kernel, module, index, partial(_kernel_module, bench))
        _write(boot, name, image)
        check_types(bench.machine, bench.runner, [f"/boot/{name}"])
        made_of = {"inputs": inputs, "image": hashlib.sha256(image).hexdigest()}
        replace_json(Path(request.call.state_dir) / _MADE, {name: made_of})
        packed = builds_in(str(boot / name), [request.name])[request.name]
        if packed is None or words_of(packed) != words_of(module_build(content)):
            raise ToolError(
                f"/boot/{name} carries {words_of(packed)} after {words_of(file.build)} was packed into it"
            )
        steps.append(f"/boot/{name} made from {bench.initrd}, with {request.module} {words_of(packed)}")
    except (StorqualError, OSError) as problem:
        left = records(request.name, before, identifiers(bench, request.name))
        raise PartialError(str(problem), steps=steps, settings=left) from problem
    return name, steps


def _build(
    request: BuildRequest, bench: OptionsBench, wanted: WantedBuild, before: Builds, steps: list[str]
) -> ModuleFile:
    """The file that DKMS builds, installed nowhere. Raises ToolError."""
    if not wanted.installed:
        bench.packages.install_packages(bench.runner, request.files)
        steps.append(f"{wanted.package} {wanted.package_version} installed")
    source = dkms.source_of(bench.runner, wanted.package, bench.machine.root, bench.packages)
    path = dkms.build(bench.runner, source, request.name, bench.kernel, bench.machine.root)
    file = read_module_file(bench.runner, str(path))
    against = objections(file, "", bench.machine, bench.kernel, before["disk"])
    against += policy_objections(file.path, file.signer, file.supported, bench.machine, bench.runner)
    if wanted.version and file.build.version != wanted.version:
        against.append(f"{file.path} is version {file.build.version or '(none)'}, {wanted.version} is declared")
    if against:
        raise ToolError("\n".join(against))
    steps.append(f"{source.name} {source.version} built for kernel {bench.kernel}")
    return file


_MADE = "initramfs-made.json"


def _is_made(image: Path, inputs: Sequence[str], state_dir: str) -> bool:
    """Whether an image is there as it was made of the same files in an earlier session."""
    try:
        made_of = json.loads((Path(state_dir) / _MADE).read_text(encoding="utf-8"))[image.name]
        digest = hashlib.sha256(image.read_bytes()).hexdigest()
        return bool(made_of == {"inputs": list(inputs), "image": digest})
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _needed(request: BuildRequest, bench: OptionsBench, system: System, name: str) -> set[str]:
    """The images of ours that are booted, were found or are named in an entry, and the one that is to come."""
    saved = read_saved(Path(request.call.state_dir))
    images = saved.values.get("boot.images@bench", ()) if saved else ()
    text = system.loader.custom_text() or ""
    return {bench.booted_image, name, *images, *(image for image in own_images(system.boot) if image in text)}


def _write(boot: Path, name: str, image: bytes) -> None:
    free = shutil.disk_usage(boot).free
    if free < len(image) * _SPARE:
        raise ToolError(
            f"{boot} has {free >> 20} MiB left, and an initramfs beside the present one takes {len(image) >> 20} MiB"
        )
    replace_bytes(boot / name, image)


def _present_file(request: BuildRequest, bench: OptionsBench, wanted: WantedBuild | None) -> ModuleFile | None:
    """The module's file as far as it is there already: a package may not be installed, or not be built yet."""
    if wanted is None or wanted.file is not None or not wanted.installed:
        return wanted.file if wanted else None
    source = dkms.source_of(bench.runner, wanted.package, bench.machine.root, bench.packages)
    path = dkms.built(source, request.name, bench.kernel, bench.machine.root)
    return read_module_file(bench.runner, str(path)) if path else None


def _content(file: ModuleFile) -> bytes:
    """A module's file, unpacked. Raises ToolError."""
    try:
        return plain_module(Path(file.path).read_bytes())
    except OSError as problem:
        raise ToolError(f"{file.path} cannot be read: {problem.strerror}") from problem


def _kernel_module(bench: OptionsBench, name: str) -> NewModule | None:
    """See `initramfs.ModuleLookup`. Raises ToolError."""
    build = kmod.on_disk(bench.runner, [name], bench.kernel)[name]
    if build is None:
        return None
    if build.builtin:
        return NewModule(name, b"")
    file = read_module_file(bench.runner, bench.machine.path(build.filename))
    return NewModule(name, _content(file), file.needs)


def _look(request: BuildRequest, bench: OptionsBench) -> tuple[OptionsBench, Builds, WantedBuild | None]:
    """The bench with the kernel that is meant, its builds, and what the files are (None: check mode has no files)."""
    if not request.files or not request.module:
        raise BadInputError([f"driver build of {request.module or '(no module)'}: module and file are needed"])
    bench = replace(bench, release=request.kernel or bench.release)
    before = identifiers(bench, request.name)
    # check mode copies nothing, so what the file holds is not known on the bench
    unknown = request.call.check and (request.awaited or not all(Path(file).exists() for file in request.files))
    return bench, before, None if unknown else wanted_build(request, bench, before["disk"])


def provision_build(request: BuildRequest, bench: OptionsBench) -> dict[str, Any]:
    """Have the build installed and loaded; the module's result, with `identifiers` of the three places after it.

    Raises BadInputError, ToolError, GuardRefusalError (nothing was written) or PartialError (something was).
    """
    bench, before, wanted = _look(request, bench)
    unfinished = request.name in pending_starts(bench.machine, request.call.state_dir)
    if wanted and is_there(wanted, before) and not unfinished:
        return result(request, before, before, [])
    reason = takes_boot(bench, request.name, request.call.state_dir)
    if wanted is None or (reason and request.call.check):
        return result(request, before, before, [f"{request.module} would be installed and loaded"])
    if reason:
        return put_on_disk(request, bench, before, wanted, reason)
    adapters = adapters_of_module(bench.machine, request.name)
    what = f"reloading {request.module} unloads it for a moment"
    refuse_when_used(bench.machine, adapters, request.call.state_dir, what)
    if request.call.check:
        return result(request, before, before, [f"{request.module} would be installed and loaded"])
    return _carry_out(request, bench, before, wanted)


def _carry_out(request: BuildRequest, bench: OptionsBench, before: Builds, wanted: WantedBuild) -> dict[str, Any]:
    steps: list[str] = []
    with _locked(request.call) as lock:
        if wanted.driver_package is not None:
            # while its scripts are at work the default is held
            remember_boot(lock, system_of(bench))
        remember_build(lock, bench, request.name, wanted, before["disk"], boots=False)
        note_starts(bench.machine, request.call.state_dir, [request.name])
        with partial_errors(steps, lambda: records(request.name, before, identifiers(bench, request.name))):
            _install(request, bench, wanted, steps)
            _load_again(bench, request.name)
            forget_start(bench.machine, request.call.state_dir, request.name)
            steps.append(f"module {request.name} loaded again")
            now = identifiers(bench, request.name)
            check_build(request, wanted, now)
    return result(request, before, now, steps)


def _install(request: BuildRequest, bench: OptionsBench, wanted: WantedBuild, steps: list[str]) -> None:
    """Put the build on disk; what was done is added to `steps`. Raises ToolError."""
    if wanted.driver_package is not None:
        _install_driver(request, bench, wanted.driver_package, steps, runs=True)
        return
    if wanted.file is not None:
        steps += write_module(bench, wanted.file)
        return
    bench.packages.install_packages(bench.runner, request.files)
    built = dkms.built_for(dkms.status(bench.runner), wanted.version, bench.kernel) if wanted.version else [None]
    if not built:
        log = dkms.last_build_words() or "no build log"
        raise ToolError(f"{wanted.package} is installed, and DKMS has no driver of version {wanted.version}: {log}")
    steps.append(f"{wanted.package} {wanted.package_version} installed")


def _load_again(bench: OptionsBench, module: str) -> None:
    """Load a module again; where SELinux denied it, the error says so. Raises ToolError."""
    try:
        reload_module(bench.machine, bench.runner, module)
    except ToolError as problem:
        disk = kmod.on_disk(bench.runner, [module], bench.kernel)[module]
        raise ToolError(
            f"{problem}{denials(bench.machine, bench.runner, disk.filename) if disk else ''}"
        ) from problem


def _install_driver(
    request: BuildRequest, bench: OptionsBench, package: DriverPackage, steps: list[str], *, runs: bool
) -> bytes | None:
    state_dir = request.call.state_dir
    return install_driver(package, driver_labels(state_dir), bench, state_dir, steps, runs=runs)


def check_build(request: BuildRequest, wanted: WantedBuild, now: Builds) -> None:
    """Raise ToolError unless the build that is meant is loaded and on disk."""
    if now["loaded"] is None:
        raise ToolError(f"driver {request.module} is not loaded")
    if not is_there(replace(wanted, installed=True), now):
        problems = differing(now) or [
            f"disk {words_of(now['disk'])}, declared {wanted.version or request.sha256[:12]}"
        ]
        raise ToolError(f"driver {request.module} is not the declared build everywhere: {'; '.join(problems)}")


def remove_builds(call: Call, bench: OptionsBench) -> dict[str, Any]:
    """Builds that the run installed go, and the former ones run; they stay remembered for the restore.

    Those that came with a boot went before the boot (`unstage_builds`).
    """
    settings: list[Provisioned] = []
    steps: list[str] = []
    in_place = {owner: was for owner, was in builds_of_run(call.state_dir).items() if not was["boots"]}
    for owner, was in in_place.items():
        module = owner.partition("/")[0]
        before = identifiers(bench, module)
        if call.check:
            steps += [] if is_former(bench, module, was) else [f"{module} would be loaded as it was found"]
        else:
            with _locked(call):
                steps += uninstall(bench, module, was, call.state_dir)
        now = identifiers(bench, module)
        settings += records(module, before, now)
    return StepOutcome(settings, steps).result(drift=steps, identifiers={})
