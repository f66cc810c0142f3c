# SPDX-License-Identifier: Apache-2.0
"""What a bench boots: a trial and its proof, a default, a kernel package."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping, Sequence

from ..kit.errors import StorqualError, ToolError
from ..kit.lock import BenchLock, read_saved, remember
from ..kit.results import PartialError, Provisioned, TrialFailedError, told
from ..tools import dpkg
from ..tools.kmod import Build
from .engine import Call
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
class Trial:
    """A one-shot boot: the kernel's release, an initramfs of ours in /boot, words for the command line.

    `mark` tells this boot from the default; `fallback` is the release that must be the default meanwhile (empty: what
    is the default now).
    """

    kernel: str
    initramfs: str = ""
    arguments: Sequence[str] = ()
    mark: str = "trial"
    fallback: str = ""


def boot_facts(system: System, state_dir: str, modules: Sequence[str] = ()) -> dict[str, Any]:
    """What runs and what boots, the builds of `modules`, and the kernel and default from before the run."""
    facts = read_facts(system, modules)
    saved = read_saved(Path(state_dir))
    default = (facts["default"] or {}).get("release", "")
    for name, now in (("running", facts["running"]), ("default", default)):
        facts[f"found_{name}"] = (saved.values.get(f"boot.{name}@bench") if saved else None) or now
    return facts


def remember_boot(lock: BenchLock, system: System) -> None:
    """Remember what boots now, for the restore. Raises StorqualError."""
    remember(lock, {f"boot.{name}@bench": value for name, value in saved_boot(system).items()})


def verify_trial(expected: Trial, modules: Sequence[str], system: System) -> dict[str, Any]:
    """The facts of the trial that runs: release and mark, and of each driver the build that lies on disk for it.

    `settings` are the kernel and the drivers. Raises TrialFailedError; ToolError when the right kernel runs a stale
    driver.
    """
    facts = read_facts(system, modules)
    asked = (expected.kernel, expected.mark, expected.initramfs)
    if (facts["running"], facts["trial"], facts["initramfs"]) != asked:
        default = (facts["default"] or {}).get("release", "")
        by_itself = "by itself " if facts["running"] == default and not facts["trial"] else ""
        image = f" with {expected.initramfs}" if expected.initramfs else ""
        raise TrialFailedError(
            f"kernel {expected.kernel}{image} did not start in its trial boot: the bench is back {by_itself}on "
            f"{facts['running']} (boot {facts['boot_id']})",
            facts=facts,
            evidence=last_words(),
        )
    carried = builds_in(f"{system.boot}/{expected.initramfs}", modules) if expected.initramfs else {}
    initrd = facts["installed"].get(expected.kernel, "")
    problems = [
        problem
        for name, builds in facts["modules"].items()
        for problem in (
            _not_carried(name, builds["loaded"], carried[name])
            if carried.get(name)
            else _stale(name, builds, expected.kernel, system, initrd)
        )
    ]
    if problems:
        raise ToolError("\n".join(problems))
    return {"settings": _driver_records(facts, expected.kernel), "facts": facts}


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


def prepare_trial(planned: Trial, call: Call, system: System) -> dict[str, Any]:
    """Have the next start be the trial; first the default is set to the kernel to fall back to, if it is another."""
    with call.lock("boot loader") as lock:
        # check mode has made no image
        check_trial(system, planned.kernel, planned.initramfs if lock else "")
        before = {"default": _default_release(system), "next": system.loader.environment().get("next_entry", "")}
        fallback = planned.fallback or before["default"]
        steps: list[str] = []
        if lock is not None:
            remember_boot(lock, system)
            with told(steps):
                if fallback != before["default"]:
                    steps += keep(system, fallback, [])
                steps += trial(system, planned.kernel, planned.arguments, planned.mark, planned.initramfs)
    return {
        "changed": True,
        "steps": steps or [f"one-shot boot of {planned.kernel} would be prepared"],
        "diff": {
            "before": f"next boot: {before['default']}\ndefault: {before['default']}\n",
            "after": f"next boot: {planned.kernel} {' '.join(planned.arguments)}\ndefault: {fallback}\n",
        },
    }


def keep_kernel(
    call: Call, system: System, arguments: Sequence[str] = (), initramfs: str = "", kernel: str = ""
) -> dict[str, Any]:
    """What boots from now on: the running kernel, or `kernel`; nothing is written when it is the default already."""
    release = kernel or system.running
    with call.lock("boot loader") as lock:
        before, was = _default_release(system), _default_words(system)
        wanted = _words(release, arguments, initramfs)
        steps: list[str] = []
        if was != wanted and lock is not None:
            remember_boot(lock, system)
            with told(steps):
                steps += keep(system, release, arguments, initramfs)
        now = _default_release(system)
    setting = Provisioned("boot.default", release, before, now, changed=was != _default_words(system))
    return {
        "changed": was != wanted,
        "settings": [setting.record()],
        "steps": steps,
        "diff": {"before": f"default: {was}\n", "after": f"default: {wanted}\n"},
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


def install_package(package: str, version: str, files: Sequence[str], call: Call, system: System) -> dict[str, Any]:
    """Install a kernel package that is missing from its files; the module's result, with the kernel that it carries.

    Raises PartialError.
    """
    with call.lock("driver package") as lock:
        if lock is not None:
            # installing a kernel rewrites the boot menu, and may change what is the default
            remember_boot(lock, system)
        try:
            dpkg.install(system.runner, files)
        except StorqualError as problem:
            now = dpkg.installed(system.runner, package)
            state = Provisioned("driver.kernel", package, "", now.version if now else "", changed=now is not None)
            raise PartialError(str(problem), steps=[f"dpkg -i of {len(files)} files"], settings=[state]) from problem
    now = dpkg.installed(system.runner, package)
    if now is None or not now.complete or (version and now.version != version):
        state = Provisioned("driver.kernel", version, "", now.version if now else "", changed=True)
        held = f"{now.version} ({'complete' if now.complete else 'not configured'})" if now else "nothing"
        raise PartialError(f"{package} after the installation: {held}", steps=["dpkg -i"], settings=[state])
    return {
        "changed": True,
        "missing": False,
        "kernel": dpkg.kernel_of(system.runner, package),
        "version": now.version,
        "steps": [f"{package} {now.version} installed"],
        "settings": [_package_record(version, "", now.version).record()],
        "diff": {"before": f"{package}: not installed\n", "after": f"{package}: {now.version}\n"},
    }
