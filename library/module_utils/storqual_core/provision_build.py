# SPDX-License-Identifier: Apache-2.0
"""The work of the module that puts a driver build on a bench: a DKMS package, or a prebuilt module.

Order: is it there already; everything that speaks against it; save; install; the build on disk, in the initramfs and
loaded must be one and the same. A driver that cannot be taken out while the machine runs is refused here: a bench has
a fall-back for such a one only with a kernel package, whose trial boot forgets itself.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Mapping, Sequence

from .adapter_drives import refuse_when_used
from .bench_lock import hold_lock
from .bench_state import read_saved, remember
from .driver_file import ModuleFile, objections, place_of, read_module_file
from .driver_reload import adapters_of_module, reload_module
from .driver_starts import forget_start, note_starts, pending_starts
from .durable import copy_file, fsync_folder, make_folder
from .errors import BadInputError, StorqualError, ToolError
from .initramfs import builds_in
from .option_step import boot_reason
from .provision_drives import LOCK_WAIT_S
from .provision_options import OptionsBench
from .provisioned import PartialError, Provisioned
from .tools import dkms, dpkg, initramfs_maker, kmod

__all__ = ["BuildRequest", "identifiers", "provision_build", "refresh", "uninstall"]


@dataclass(frozen=True)
class BuildRequest:
    """A driver build: `module` and, where declared, its `version`; files on the bench; `sha256` of a prebuilt module.

    One file that ends in `.ko` (packed or not) is a prebuilt module, `.deb` files are a DKMS package. `as_found`:
    no build is declared, and those that the run installed must go.
    """

    module: str = ""
    version: str = ""
    files: Sequence[str] = field(default_factory=tuple)
    sha256: str = ""
    as_found: bool = False
    state_dir: str = "/var/lib/storqual"
    run: str = "provision"
    check: bool = False

    @property
    def prebuilt(self) -> bool:
        """Whether the file is a module and not a package."""
        return len(self.files) == 1 and ".ko" in Path(self.files[0]).name

    @property
    def name(self) -> str:
        """The module as the kernel names it."""
        return self.module.replace("-", "_")


def identifiers(bench: OptionsBench, module: str) -> dict[str, kmod.Build | None]:
    """The build of a module where it lies: `loaded`, `disk`, and `initramfs` where that has it."""
    found = {
        "loaded": kmod.loaded(module, bench.machine.path("/sys")),
        "disk": kmod.on_disk(bench.runner, [module], bench.kernel)[module],
    }
    packed = builds_in(bench.machine.path(bench.initrd), [module])[module] if bench.initrd else None
    if packed is not None:
        found["initramfs"] = packed
    return found


def provision_build(request: BuildRequest, bench: OptionsBench) -> dict[str, Any]:
    """Have the build installed and loaded; the module's result, with `identifiers` of the three places after it.

    Raises BadInputError, ToolError, GuardRefusalError (nothing was written) or PartialError (something was).
    """
    if request.as_found:
        return _as_found(request, bench)
    if not request.files or not request.module:
        raise BadInputError([f"driver build of {request.module or '(no module)'}: module and file are needed"])
    before = identifiers(bench, request.name)
    missing = [file for file in request.files if not Path(file).exists()]
    if missing and request.check:
        # check mode copies nothing, so what the file holds is not known on the bench
        return _foreseen(request, before)
    wanted = _wanted(request, bench, before["disk"])
    unfinished = request.name in pending_starts(bench.machine, request.state_dir)
    if _there(wanted, before) and not unfinished:
        return _result(request, before, before, [])
    adapters = adapters_of_module(bench.machine, request.name)
    reason = boot_reason(bench.machine, request.name, request.state_dir)
    if before["loaded"] is not None and reason:
        raise ToolError(
            f"driver {request.module} cannot be taken out while the machine runs ({reason}): qualify this build as a "
            "kernel package, whose trial boot falls back by itself"
        )
    what = f"loading {request.module} again takes it away for a moment"
    refuse_when_used(bench.machine, adapters, request.state_dir, what)
    if request.check:
        return {
            **_result(request, before, before, [f"{request.module} would be installed and loaded"]),
            "changed": True,
        }
    return _carry_out(request, bench, before, wanted)


@dataclass(frozen=True)
class _Wanted:
    """What must run: a prebuilt file, or the package and version that bring the driver."""

    file: ModuleFile | None = None
    package: str = ""
    package_version: str = ""
    version: str = ""
    installed: bool = False


def _wanted(request: BuildRequest, bench: OptionsBench, native: kmod.Build | None) -> _Wanted:
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
        return _Wanted(file=file, version=request.version)
    name, version = dpkg.file_package(bench.runner, request.files[-1])
    if not bench.machine.exists(f"/lib/modules/{bench.kernel}/build/Makefile"):
        raise ToolError(
            f"{name} is built on the bench, and the headers of kernel {bench.kernel} are not installed "
            f"(/lib/modules/{bench.kernel}/build): install linux-headers-{bench.kernel}"
        )
    dkms.status(bench.runner)
    known = dpkg.installed(bench.runner, name)
    installed = bool(known and known.complete and known.version == version)
    return _Wanted(package=name, package_version=version, version=request.version, installed=installed)


def _there(wanted: _Wanted, now: Mapping[str, kmod.Build | None]) -> bool:
    """Whether the build that is meant is in all places already."""
    disk = now["disk"]
    if disk is None or _differing(now):
        return False
    if wanted.file is not None:
        return bool(disk.srcversion) and disk.srcversion == wanted.file.build.srcversion
    return wanted.installed and (not wanted.version or disk.version == wanted.version)


def _differing(now: Mapping[str, kmod.Build | None]) -> list[str]:
    """The places whose build is not the one on disk, each in words."""
    disk = now["disk"]
    return [
        f"{place} {_words(build)}, disk {_words(disk)}"
        for place, build in now.items()
        if disk is not None
        and build is not None
        and place != "disk"
        and (build.srcversion, build.version) != (disk.srcversion, disk.version)
    ]


def _words(build: kmod.Build | None) -> str:
    return " ".join(word for word in (build.srcversion, build.version) if word) if build else "nothing"


def _carry_out(
    request: BuildRequest, bench: OptionsBench, before: Mapping[str, kmod.Build | None], wanted: _Wanted
) -> dict[str, Any]:
    steps: list[str] = []
    with hold_lock(Path(request.state_dir), request.run, "driver build", wait_s=LOCK_WAIT_S) as lock:
        known = dpkg.installed(bench.runner, wanted.package) if wanted.package else None
        loaded = before["loaded"]
        remember(
            lock,
            {
                f"build.module@{request.name}": {
                    "package": wanted.package,
                    "package_before": known.version if known and known.complete else "",
                    "file": place_of(wanted.file, bench.kernel) if wanted.file else "",
                    "kernel": bench.kernel,
                    "srcversion": loaded.srcversion if loaded else "",
                    "version": loaded.version if loaded else "",
                }
            },
        )
        note_starts(bench.machine, request.state_dir, [request.name])
        try:
            steps += _install(request, bench, wanted)
            steps += refresh(bench, request.name)
            reload_module(bench.machine, bench.runner, request.name)
            forget_start(bench.machine, request.state_dir, request.name)
            steps.append(f"module {request.name} loaded again")
            now = identifiers(bench, request.name)
            _check(request, wanted, now)
        except StorqualError as problem:
            left = identifiers(bench, request.name)
            raise PartialError(str(problem), steps=steps, settings=_records(request, before, left)) from problem
    return _result(request, before, now, steps)


def _install(request: BuildRequest, bench: OptionsBench, wanted: _Wanted) -> list[str]:
    """Put the build on disk; what was done. Raises ToolError."""
    if wanted.file is not None:
        place = place_of(wanted.file, bench.kernel)
        target = Path(bench.machine.path(place))
        make_folder(target.parent)
        copy_file(Path(wanted.file.path), target)
        bench.runner(["depmod", bench.kernel], timeout=300.0).expect()
        return [f"{place} written"]
    dpkg.install(bench.runner, request.files)
    built = dkms.built_for(dkms.status(bench.runner), wanted.version, bench.kernel) if wanted.version else [None]
    if not built:
        said = dkms.last_build_words() or "no build log"
        raise ToolError(f"{wanted.package} is installed, and DKMS has no driver of version {wanted.version}: {said}")
    return [f"{wanted.package} {wanted.package_version} installed"]


def refresh(bench: OptionsBench, module: str) -> list[str]:
    """Have the initramfs carry the build on disk, where it carries the module; what was done. Raises ToolError."""
    if not bench.initrd or builds_in(bench.machine.path(bench.initrd), [module])[module] is None:
        return []
    initramfs_maker.rebuild(bench.runner, bench.kernel, bench.initrd)
    return [f"{bench.initrd} made anew"]


def _check(request: BuildRequest, wanted: _Wanted, now: Mapping[str, kmod.Build | None]) -> None:
    """Raise ToolError unless the build that is meant is loaded, on disk, and in the initramfs that has the module."""
    if now["loaded"] is None:
        raise ToolError(f"driver {request.module} is not loaded")
    if not _there(_Wanted(wanted.file, wanted.package, wanted.package_version, wanted.version, installed=True), now):
        told = _differing(now) or [f"disk {_words(now['disk'])}, declared {wanted.version or request.sha256[:12]}"]
        raise ToolError(f"driver {request.module} is not the declared build everywhere: {'; '.join(told)}")


def _records(
    request: BuildRequest, before: Mapping[str, kmod.Build | None], now: Mapping[str, kmod.Build | None]
) -> list[Provisioned]:
    same = not _differing(now) and now["loaded"] is not None
    places = ", ".join(place for place, build in now.items() if build is not None)
    return [
        Provisioned(
            f"driver.module.{request.name}",
            # what is declared is a file or a package; a build is told by its srcversion
            None,
            _words(before["loaded"]),
            _words(now["loaded"]),
            changed=_words(before["loaded"]) != _words(now["loaded"]),
            proven=same,
            proof=f"one build in these places: {places}" if same else "; ".join(_differing(now)) or "not loaded",
        )
    ]


def _result(
    request: BuildRequest,
    before: Mapping[str, kmod.Build | None],
    now: Mapping[str, kmod.Build | None],
    steps: Sequence[str],
) -> dict[str, Any]:
    (record,) = _records(request, before, now)
    return {
        "changed": bool(steps),
        "settings": [record.record()],
        "steps": list(steps),
        "drift": [f"driver {request.module}: {_words(before['loaded'])}, another build is declared"] if steps else [],
        "diff": {
            "before": f"{request.module}: {_words(before['loaded'])}\n",
            "after": f"{request.module}: {_words(now['loaded']) if before != now else 'the declared build'}\n"
            if steps
            else f"{request.module}: {_words(now['loaded'])}\n",
        },
        "identifiers": {place: asdict(build) if build else None for place, build in now.items()},
    }


def _as_found(request: BuildRequest, bench: OptionsBench) -> dict[str, Any]:
    """Builds that the run installed go, and the former ones run; they stay remembered for the restore."""
    saved = read_saved(Path(request.state_dir))
    builds = {
        key.partition("@")[2]: value
        for key, value in (saved.values if saved else {}).items()
        if "build.module@" in key
    }
    settings: list[Provisioned] = []
    steps: list[str] = []
    for module, was in builds.items():
        before = kmod.loaded(module, bench.machine.path("/sys"))
        if request.check:
            gone = before is not None and before.srcversion == was["srcversion"]
            steps += [] if gone else [f"{module} would be loaded as it was found"]
        else:
            with hold_lock(Path(request.state_dir), request.run, "driver build", wait_s=LOCK_WAIT_S):
                steps += uninstall(bench, module, was, request.state_dir)
        now = identifiers(bench, module)
        settings += _records(BuildRequest(module), {**now, "loaded": before}, now)
    return {
        "changed": bool(steps),
        "settings": [entry.record() for entry in settings],
        "steps": steps,
        "drift": steps,
        "diff": {},
        "identifiers": {},
    }


def _foreseen(request: BuildRequest, before: Mapping[str, kmod.Build | None]) -> dict[str, Any]:
    """What check mode answers."""
    return _result(request, before, before, [f"{request.module} would be installed and loaded"])


def uninstall(bench: OptionsBench, module: str, memory: Mapping[str, Any], state_dir: str) -> list[str]:
    """Take a build off again and load the former one; what was done. Raises StorqualError."""
    steps: list[str] = []
    adapters = adapters_of_module(bench.machine, module)
    refuse_when_used(bench.machine, adapters, state_dir, f"loading {module} again takes it away for a moment")
    place = str(memory["file"])
    if place and bench.machine.exists(place):
        path = Path(bench.machine.path(place))
        path.unlink()
        fsync_folder(path.parent)
        bench.runner(["depmod", str(memory["kernel"])], timeout=300.0).expect()
        steps.append(f"{place} removed")
    package, before = str(memory["package"]), str(memory["package_before"])
    known = dpkg.installed(bench.runner, package) if package else None
    if known is not None and known.complete and known.version != before:
        if before:
            raise ToolError(
                f"{package} was {before} when the bench was found and is {known.version}: install {before}"
            )
        dpkg.remove(bench.runner, package)
        steps.append(f"{package} removed")
    loaded = kmod.loaded(module, bench.machine.path("/sys"))
    if steps or loaded is None or loaded.srcversion != memory["srcversion"]:
        steps += refresh(bench, module)
        reload_module(bench.machine, bench.runner, module)
        steps.append(f"module {module} loaded again as it was found")
    return steps
