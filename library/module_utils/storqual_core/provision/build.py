# SPDX-License-Identifier: Apache-2.0
"""A driver build that comes with a boot: before it an initramfs of our own that carries it, after it the disk.

Until the build has shown in a trial boot that it can carry the bench, it lies nowhere but in that initramfs: the
default boots what it always booted, from its own initramfs and from a disk without the build.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, ContextManager

from ..host.adapters import refuse_when_used
from ..kit.durable import copy_file, make_folder, replace_bytes
from ..kit.errors import BadInputError, StorqualError, ToolError
from ..kit.lock import BenchLock, hold_lock, read_saved
from ..kit.results import PartialError, Provisioned, told
from ..tools import dkms, dpkg, kmod
from .boot import remember_boot
from .build_plan import (
    BuildRequest,
    Builds,
    Wanted,
    builds_of_run,
    differing,
    identifiers,
    is_former,
    is_there,
    records,
    remember_build,
    result,
    set_aside,
    takes_boot,
    uninstall,
    wanted_build,
    words_of,
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
)
from .engine import LOCK_WAIT_S, Call, Outcome
from .initramfs import NewModule, builds_in, copy_with, depmod_index, module_build, plain_module
from .kernel_boot import System, image_name, own_images, remove_images, unchanged
from .options import OptionsBench

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
    if request.call.check or wanted is None:
        step = f"an initramfs with {request.module} would be made, for a boot of its own: {reason}"
        return {**result(request, before, before, [step]), "initramfs": name, "boots": True}
    with _locked(request.call) as lock:
        remember_boot(lock, system)
        remember_build(lock, bench, request.name, wanted, before["disk"], boots=True)
        name, steps = _make(request, bench, system, wanted, before)
    told = result(request, before, before, steps)
    return {**told, "initramfs": name, "boots": name != bench.booted_image}


def unstage_builds(call: Call, bench: OptionsBench) -> dict[str, Any]:
    """Take builds of the run that came with a boot off the disk; `boots` when the former ones need a boot to run."""
    steps: list[str] = []
    saved = read_saved(Path(call.state_dir))
    found = saved.values.get("boot.initramfs@bench", "") if saved else bench.booted_image
    boots = bench.booted_image != found
    for owner, memory in builds_of_run(call.state_dir).items():
        if not memory["boots"]:
            continue
        boots = boots or not is_former(bench, owner.partition("/")[0], memory)
        if not call.check:
            with _locked(call):
                steps += set_aside(bench, memory)
    return Outcome([], steps).result(identifiers={}, initramfs=found, boots=boots)


def put_on_disk(
    request: BuildRequest, bench: OptionsBench, before: Builds, wanted: Wanted, reason: str
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
    with _locked(request.call), told(steps, lambda: records(request.name, before, identifiers(bench, request.name))):
        if wanted.file is not None:
            steps += write_module(bench, wanted.file)
        else:
            source = dkms.source_of(bench.runner, wanted.package, bench.machine.root)
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
    bench.runner(["depmod", bench.kernel], timeout=300.0).expect()
    return [f"{place} written"]


def _make(
    request: BuildRequest, bench: OptionsBench, system: System, wanted: Wanted, before: Builds
) -> tuple[str, list[str]]:
    """Build where that is needed, and write the image; its name and what was done. Raises PartialError."""
    boot = Path(bench.machine.path("/boot"))
    native = Path(bench.machine.path(bench.initrd))
    steps: list[str] = []
    try:
        file = wanted.file
        if file is None:
            with unchanged(native, request.call.state_dir, steps):
                file = _build(request, bench, wanted, before, steps)
        content = _content(file)
        name = image_name(bench.kernel, content)
        steps += [f"/boot/{gone} removed" for gone in remove_images(str(boot), _needed(request, bench, system, name))]
        module = NewModule(request.name, content, file.needs)
        image = copy_with(native.read_bytes(), bench.kernel, module, depmod_index(bench.runner, bench.kernel))
        _write(boot, name, image)
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
    request: BuildRequest, bench: OptionsBench, wanted: Wanted, before: Builds, steps: list[str]
) -> ModuleFile:
    """The file that DKMS builds, installed nowhere. Raises ToolError."""
    if not wanted.installed:
        dpkg.install(bench.runner, request.files)
        steps.append(f"{wanted.package} {wanted.package_version} installed")
    source = dkms.source_of(bench.runner, wanted.package, bench.machine.root)
    path = dkms.build(bench.runner, source, request.name, bench.kernel, bench.machine.root)
    file = read_module_file(bench.runner, str(path))
    against = objections(file, "", bench.machine, bench.kernel, before["disk"])
    if wanted.version and file.build.version != wanted.version:
        against.append(f"{file.path} is version {file.build.version or '(none)'}, {wanted.version} is declared")
    if against:
        raise ToolError("\n".join(against))
    steps.append(f"{source.name} {source.version} built for kernel {bench.kernel}")
    return file


def _needed(request: BuildRequest, bench: OptionsBench, system: System, name: str) -> set[str]:
    """The images of ours that are booted, were found or are named in an entry, and the one that is to come."""
    saved = read_saved(Path(request.call.state_dir))
    found = saved.values.get("boot.images@bench", ()) if saved else ()
    text = system.loader.custom_text() or ""
    return {bench.booted_image, name, *found, *(each for each in own_images(system.boot) if each in text)}


def _write(boot: Path, name: str, image: bytes) -> None:
    free = shutil.disk_usage(boot).free
    if free < len(image) * _SPARE:
        raise ToolError(
            f"{boot} has {free >> 20} MiB left, and an initramfs beside the present one takes {len(image) >> 20} MiB"
        )
    replace_bytes(boot / name, image)


def _present_file(request: BuildRequest, bench: OptionsBench, wanted: Wanted | None) -> ModuleFile | None:
    """The module's file as far as it is there already: a package may not be installed, or not be built yet."""
    if wanted is None or wanted.file is not None or not wanted.installed:
        return wanted.file if wanted else None
    source = dkms.source_of(bench.runner, wanted.package, bench.machine.root)
    path = dkms.built(source, request.name, bench.kernel, bench.machine.root)
    return read_module_file(bench.runner, str(path)) if path else None


def _content(file: ModuleFile) -> bytes:
    """A module's file, unpacked. Raises ToolError."""
    try:
        return plain_module(Path(file.path).read_bytes())
    except OSError as problem:
        raise ToolError(f"{file.path} cannot be read: {problem.strerror}") from problem


def _look(request: BuildRequest, bench: OptionsBench) -> tuple[OptionsBench, Builds, Wanted | None]:
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


def _carry_out(request: BuildRequest, bench: OptionsBench, before: Builds, wanted: Wanted) -> dict[str, Any]:
    """Save, install, load again, read back."""
    steps: list[str] = []
    with _locked(request.call) as lock:
        remember_build(lock, bench, request.name, wanted, before["disk"], boots=False)
        note_starts(bench.machine, request.call.state_dir, [request.name])
        with told(steps, lambda: records(request.name, before, identifiers(bench, request.name))):
            steps += _install(request, bench, wanted)
            reload_module(bench.machine, bench.runner, request.name)
            forget_start(bench.machine, request.call.state_dir, request.name)
            steps.append(f"module {request.name} loaded again")
            now = identifiers(bench, request.name)
            check_build(request, wanted, now)
    return result(request, before, now, steps)


def _install(request: BuildRequest, bench: OptionsBench, wanted: Wanted) -> list[str]:
    """Put the build on disk; what was done. Raises ToolError."""
    if wanted.file is not None:
        return write_module(bench, wanted.file)
    dpkg.install(bench.runner, request.files)
    built = dkms.built_for(dkms.status(bench.runner), wanted.version, bench.kernel) if wanted.version else [None]
    if not built:
        said = dkms.last_build_words() or "no build log"
        raise ToolError(f"{wanted.package} is installed, and DKMS has no driver of version {wanted.version}: {said}")
    return [f"{wanted.package} {wanted.package_version} installed"]


def check_build(request: BuildRequest, wanted: Wanted, now: Builds) -> None:
    """Raise ToolError unless the build that is meant is loaded and on disk."""
    if now["loaded"] is None:
        raise ToolError(f"driver {request.module} is not loaded")
    if not is_there(replace(wanted, installed=True), now):
        told = differing(now) or [f"disk {words_of(now['disk'])}, declared {wanted.version or request.sha256[:12]}"]
        raise ToolError(f"driver {request.module} is not the declared build everywhere: {'; '.join(told)}")


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
    return Outcome(settings, steps).result(drift=steps, identifiers={})
