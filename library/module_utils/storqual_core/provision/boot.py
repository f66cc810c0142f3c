# SPDX-License-Identifier: Apache-2.0
"""The work of the modules that change what a bench boots: a trial, a default, a kernel package."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Mapping, Sequence

from ..kit.errors import BadInputError, StorqualError, ToolError
from ..kit.lock import BenchLock
from ..kit.results import PartialError, Provisioned, TrialFailedError, told
from ..kit.saved_state import read_saved, remember
from ..tools import dpkg
from ..tools.kmod import Build
from .engine import lock_for
from .initramfs import builds_in
from .kernel_boot import (
    System,
    added_arguments,
    booted_image,
    check_trial,
    keep,
    last_words,
    read_facts,
    saved_boot,
    trial,
)


@dataclass(frozen=True)
class BootRequest:
    """What is asked: `facts`, a `trial` of `kernel`, to `verify` it, `kernel` as the `default`, or to `remember`.

    `initramfs`: an image of ours in /boot that the trial boots, or that becomes part of the default.
    """

    state: str
    kernel: str = ""
    initramfs: str = ""
    arguments: Sequence[str] = ()
    mark: str = ""
    fallback: str = ""
    modules: Sequence[str] = ()
    kernels: Sequence[str] = ()
    package: str = ""
    version: str = ""
    state_dir: str = "/var/lib/storqual"
    run: str = "provision"
    check: bool = False


@dataclass(frozen=True)
class PackageRequest:
    """A package that carries a kernel: its name, version (empty: any), and the files it can be installed from."""

    package: str
    version: str = ""
    files: Sequence[str] = field(default_factory=tuple)
    state_dir: str = "/var/lib/storqual"
    run: str = "provision"
    check: bool = False


def provision_boot(request: BootRequest, system: System) -> dict[str, Any]:
    """Carry the request out; the module's result, with the facts after it. Raises StorqualError of all kinds."""
    if request.state == "verify":
        return _verify(request, system)
    if request.state == "facts":
        found = {"package": look_at_package(system, request.package, request.version)} if request.package else {}
        return {"changed": False, "settings": [], "steps": [], **found, **_facts(request, system)}
    if request.state == "remember":
        with lock_for(request.state_dir, request.run, "boot loader", check=request.check) as lock:
            if lock is not None:
                remember_boot(lock, system)
        return {"changed": False, "settings": [], "steps": []}
    kernel = request.kernel or (system.running if request.state == "default" else "")
    if not kernel:
        raise BadInputError(["a trial needs the release of the kernel to boot"])
    with lock_for(request.state_dir, request.run, "boot loader", check=request.check) as lock:
        return (
            _trial(request, system, kernel, lock)
            if request.state == "trial"
            else _default(request, system, kernel, lock)
        )


def _facts(request: BootRequest, system: System) -> dict[str, Any]:
    facts = read_facts(system, request.modules, request.kernels)
    saved = read_saved(Path(request.state_dir))
    default = (facts["default"] or {}).get("release", "")
    for name, now in (("running", facts["running"]), ("default", default)):
        facts[f"found_{name}"] = (saved.values.get(f"boot.{name}@bench") if saved else None) or now
    return {"facts": facts}


def remember_boot(lock: BenchLock, system: System) -> None:
    """Remember what boots now, for the restore. Raises StorqualError."""
    remember(lock, {f"boot.{name}@bench": value for name, value in saved_boot(system).items()})


def _verify(request: BootRequest, system: System) -> dict[str, Any]:
    """Whether the trial runs: release and mark, and of each driver the build that lies on disk for it.

    Raises TrialFailedError; ToolError when the right kernel runs a stale driver.
    """
    facts = read_facts(system, request.modules)
    asked = (request.kernel, request.mark, request.initramfs)
    if (facts["running"], facts["trial"], facts["initramfs"]) != asked:
        default = (facts["default"] or {}).get("release", "")
        by_itself = "by itself " if facts["running"] == default and not facts["trial"] else ""
        image = f" with {request.initramfs}" if request.initramfs else ""
        raise TrialFailedError(
            f"kernel {request.kernel}{image} did not start in its trial boot: the bench is back {by_itself}on "
            f"{facts['running']} (boot {facts['boot_id']})",
            facts=facts,
            evidence=last_words(),
        )
    carried = builds_in(f"{system.boot}/{request.initramfs}", request.modules) if request.initramfs else {}
    initrd = facts["installed"].get(request.kernel, "")
    problems = [
        problem
        for name, builds in facts["modules"].items()
        for problem in (
            _not_carried(name, builds["loaded"], carried[name])
            if carried.get(name)
            else _stale(name, builds, request.kernel, system, initrd)
        )
    ]
    if problems:
        raise ToolError("\n".join(problems))
    return {"changed": False, "settings": _driver_records(facts, request.kernel), "steps": [], "facts": facts}


def _not_carried(name: str, loaded: Mapping[str, Any] | None, carried: Build | None) -> list[str]:
    """A driver that was not loaded from the initramfs on trial; it comes to the disk once this one is proven."""
    carries = " ".join((carried.srcversion, carried.version)) if carried else ""
    now = " ".join((loaded["srcversion"], loaded["version"])) if loaded else "nothing"
    told = f"driver {name}: the initramfs on trial carries build {carries}, and {now} is loaded"
    return [] if now == carries else [told]


def _stale(name: str, found: Mapping[str, Any], kernel: str, system: System, initrd: str) -> list[str]:
    """A loaded driver that is not the one on disk: most often the initramfs was not rebuilt, which is looked up."""
    loaded, disk = found["loaded"], found["disk"].get(kernel)
    if loaded is None:
        if disk is None:
            return [f"kernel {kernel} has no driver {name}"]
        return (
            []
            if disk["builtin"]
            else [
                f"driver {name} is installed for kernel {kernel}, but not loaded; check that its adapter is present"
            ]
        )
    if disk is not None and loaded["srcversion"] and loaded["srcversion"] != disk["srcversion"]:
        builds = f"build {loaded['srcversion']} is loaded, build {disk['srcversion']} is on disk"
        packed = builds_in(f"{system.boot}/{initrd}", [name])[name] if initrd else None
        why = "its initramfs does not carry the driver, so something else loaded it"
        if packed is not None:
            why = f"its initramfs carries build {packed.srcversion}"
            if packed.srcversion == loaded["srcversion"]:
                why += ", which is stale (update-initramfs -u)"
        return [f"driver {name}: {builds} for kernel {kernel}; {why}"]
    return []


def _driver_records(facts: Mapping[str, Any], kernel: str) -> list[dict[str, Any]]:
    """The kernel and each driver as proven settings of the session."""
    records = [
        Provisioned("driver.kernel", kernel, None, facts["running"], proven=True, proof="uname -r and trial mark")
    ]
    for name, builds in facts["modules"].items():
        loaded = builds["loaded"] or builds["disk"].get(kernel) or {}
        words = [word for word in (loaded.get("srcversion", ""), loaded.get("version", "")) if word]
        build = " ".join(words) or "no srcversion"
        records.append(
            Provisioned(
                f"driver.module.{name}", None, None, build, proven=True, proof="loaded build equals the one on disk"
            )
        )
    return [record.record() for record in records]


def _default_release(system: System) -> str:
    entry = system.loader.default()
    return entry.release if entry else ""


def _trial(request: BootRequest, system: System, kernel: str, lock: BenchLock | None) -> dict[str, Any]:
    """A one-shot boot; first the default is set to the kernel to fall back to, where it is another one."""
    # check mode has made no image
    check_trial(system, kernel, request.initramfs if lock else "")
    before = {"default": _default_release(system), "next": system.loader.environment().get("next_entry", "")}
    fallback = request.fallback or before["default"]
    steps: list[str] = []
    if lock is not None:
        remember_boot(lock, system)
        with told(steps):
            if fallback != before["default"]:
                steps += keep(system, fallback, [])
            steps += trial(system, kernel, request.arguments, request.mark, request.initramfs)
    setting = Provisioned("boot.trial", kernel, before["next"], kernel if lock else before["next"], changed=True)
    return {
        "changed": True,
        "settings": [setting.record()],
        "steps": steps or [f"one-shot boot of {kernel} would be prepared"],
        "diff": {
            "before": f"next boot: {before['default']}\ndefault: {before['default']}\n",
            "after": f"next boot: {kernel} {' '.join(request.arguments)}\ndefault: {fallback}\n",
        },
        **_facts(request, system),
    }


def _default(request: BootRequest, system: System, kernel: str, lock: BenchLock | None) -> dict[str, Any]:
    """What boots from now on; nothing is written when it is the default already."""
    before, was = _default_release(system), _default_words(system)
    wanted = _words(kernel, request.arguments, request.initramfs)
    steps: list[str] = []
    if was != wanted and lock is not None:
        remember_boot(lock, system)
        with told(steps):
            steps += keep(system, kernel, request.arguments, request.initramfs)
    now = _default_release(system)
    setting = Provisioned("boot.default", kernel, before, now, changed=was != _default_words(system))
    return {
        "changed": was != wanted,
        "settings": [setting.record()],
        "steps": steps,
        "diff": {"before": f"default: {was}\n", "after": f"default: {wanted}\n"},
        **_facts(request, system),
    }


def _default_words(system: System) -> str:
    """The default as `_words` tells it."""
    entry = system.loader.default()
    if entry is None:
        return ""
    return _words(entry.release, added_arguments(entry.arguments), booted_image(entry.arguments))


def _words(kernel: str, arguments: Sequence[str], image: str) -> str:
    """A kernel with the words that we add to its command line, and the initramfs where it is ours."""
    return " ".join(word for word in (kernel, *arguments, image) if word)


def look_at_package(system: System, package: str, version: str = "") -> dict[str, Any]:
    """Whether a package is installed, in which version, and which kernel it carries. Raises ToolError.

    A package that is installed in another version than declared is a failure, for one kernel release in two builds
    cannot stay installed side by side, and the bench may be running it.
    """
    found = dpkg.installed(system.runner, dpkg.named(package, version))
    has = found.version if found and found.complete else ""
    if has and version and has != version:
        raise ToolError(
            f"{package} is installed as {has}, the drop says {version}: the two share their file names and cannot be "
            "installed side by side; use another release of the package"
        )
    if not has:
        return {"missing": True, "kernel": "", "version": "", "settings": []}
    record = _package_record(version, has, has).record()
    return {"missing": False, "kernel": dpkg.kernel_of(system.runner, package), "version": has, "settings": [record]}


def _package_record(declared: str, before: str, now: str) -> Provisioned:
    proof = "dpkg's own record"
    return Provisioned("driver.kernel.version", declared or None, before, now, changed=before != now, proof=proof)


def provision_package(request: PackageRequest, system: System) -> dict[str, Any]:
    """Have the package installed; the module's result, with the kernel release that it carries.

    `missing` is true when it is not installed and no files are given: fetch them, then ask again.
    """
    looked = look_at_package(system, request.package, request.version)
    before = looked["version"]
    if not looked["missing"]:
        return {"changed": False, "steps": [], "diff": {}, **looked}
    if not request.files or request.check:
        return {
            "changed": request.check,
            "missing": True,
            "kernel": "",
            "steps": [],
            "settings": [],
            "diff": {
                "before": f"{request.package}: not installed\n",
                "after": f"{request.package}: {request.version}\n",
            },
        }
    with lock_for(request.state_dir, request.run, "driver package", check=request.check) as lock:
        if lock is not None:
            # installing a kernel rewrites the boot menu, and may change what is the default
            remember_boot(lock, system)
        try:
            dpkg.install(system.runner, request.files)
        except StorqualError as problem:
            now = dpkg.installed(system.runner, request.package)
            state = Provisioned(
                "driver.kernel", request.package, before, now.version if now else "", changed=now is not None
            )
            raise PartialError(
                str(problem), steps=[f"dpkg -i of {len(request.files)} files"], settings=[state]
            ) from problem
    now = dpkg.installed(system.runner, request.package)
    if now is None or not now.complete or (request.version and now.version != request.version):
        state = Provisioned("driver.kernel", request.version, before, now.version if now else "", changed=True)
        held = f"{now.version} ({'complete' if now.complete else 'not configured'})" if now else "nothing"
        raise PartialError(f"{request.package} after the installation: {held}", steps=["dpkg -i"], settings=[state])
    return _package_result(request, system, before, now.version, [f"{request.package} {now.version} installed"])


def _package_result(
    request: PackageRequest, system: System, before: str, now: str, steps: list[str]
) -> dict[str, Any]:
    return {
        "changed": before != now,
        "missing": False,
        "kernel": dpkg.kernel_of(system.runner, request.package),
        "version": now,
        "steps": steps,
        "settings": [_package_record(request.version, before, now).record()],
        "diff": {
            "before": f"{request.package}: {before or 'not installed'}\n",
            "after": f"{request.package}: {now}\n",
        },
    }
