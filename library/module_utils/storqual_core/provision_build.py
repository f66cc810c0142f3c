# SPDX-License-Identifier: Apache-2.0
"""The work of the module that puts a driver build on a bench: a DKMS package, or a prebuilt module.

Order: is it there already; everything that speaks against it; save; install; the build on disk, in the initramfs and
loaded must be one and the same. A driver that can be taken out is loaded again; one that cannot, or that the
initramfs loads, is staged (`build_trial`), booted once, and comes to the disk when the boot has shown it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from .adapter_drives import refuse_when_used
from .bench_lock import hold_lock
from .build_memory import builds_of_run, is_former, remember_build, uninstall
from .build_plan import (
    BuildRequest,
    Builds,
    Wanted,
    differing,
    identifiers,
    is_there,
    records,
    result,
    takes_boot,
    wanted_build,
    words_of,
)
from .build_trial import put_on_disk, stage_build, stage_none, write_module
from .driver_reload import adapters_of_module, reload_module
from .driver_starts import forget_start, note_starts, pending_starts
from .errors import BadInputError, StorqualError, ToolError
from .kernel_boot import System
from .provision_drives import LOCK_WAIT_S
from .provision_options import OptionsBench
from .provisioned import PartialError, Provisioned
from .tools import dkms, dpkg

__all__ = ["provision_build"]


def provision_build(request: BuildRequest, bench: OptionsBench, system: System) -> dict[str, Any]:
    """Have the build installed and loaded; the module's result, with `identifiers` of the three places after it.

    With `request.staged` only what comes before a boot is done; `boots` and `initramfs` in the result say whether one
    is needed, and with which image. Raises BadInputError, ToolError, GuardRefusalError (nothing was written) or
    PartialError (something was).
    """
    if request.as_found:
        return stage_none(request, bench) if request.staged else _as_found(request, bench)
    if not request.files or not request.module:
        raise BadInputError([f"driver build of {request.module or '(no module)'}: module and file are needed"])
    bench = replace(bench, release=request.kernel or bench.release)
    before = identifiers(bench, request.name)
    missing = [file for file in request.files if not Path(file).exists()]
    # check mode copies nothing, so what the file holds is not known on the bench
    wanted = None if missing and request.check else wanted_build(request, bench, before["disk"])
    if request.staged:
        return stage_build(request, bench, system, before, wanted)
    unfinished = request.name in pending_starts(bench.machine, request.state_dir)
    if wanted and is_there(wanted, before) and not unfinished:
        return result(request, before, before, [])
    reason = takes_boot(bench, request.name, request.state_dir)
    if wanted is None or (reason and request.check):
        return result(request, before, before, [f"{request.module} would be installed and loaded"])
    if reason:
        return put_on_disk(request, bench, before, wanted, reason)
    adapters = adapters_of_module(bench.machine, request.name)
    what = f"loading {request.module} again takes it away for a moment"
    refuse_when_used(bench.machine, adapters, request.state_dir, what)
    if request.check:
        return result(request, before, before, [f"{request.module} would be installed and loaded"])
    return _carry_out(request, bench, before, wanted)


def _carry_out(request: BuildRequest, bench: OptionsBench, before: Builds, wanted: Wanted) -> dict[str, Any]:
    """Save, install, load again, read back."""
    steps: list[str] = []
    with hold_lock(Path(request.state_dir), request.run, "driver build", wait_s=LOCK_WAIT_S) as lock:
        remember_build(lock, bench, request.name, wanted, before["disk"], boots=False)
        note_starts(bench.machine, request.state_dir, [request.name])
        try:
            steps += _install(request, bench, wanted)
            reload_module(bench.machine, bench.runner, request.name)
            forget_start(bench.machine, request.state_dir, request.name)
            steps.append(f"module {request.name} loaded again")
            now = identifiers(bench, request.name)
            _check(request, wanted, now)
        except StorqualError as problem:
            left = identifiers(bench, request.name)
            raise PartialError(str(problem), steps=steps, settings=records(request.name, before, left)) from problem
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


def _check(request: BuildRequest, wanted: Wanted, now: Builds) -> None:
    """Raise ToolError unless the build that is meant is loaded and on disk."""
    if now["loaded"] is None:
        raise ToolError(f"driver {request.module} is not loaded")
    if not is_there(replace(wanted, installed=True), now):
        told = differing(now) or [f"disk {words_of(now['disk'])}, declared {wanted.version or request.sha256[:12]}"]
        raise ToolError(f"driver {request.module} is not the declared build everywhere: {'; '.join(told)}")


def _as_found(request: BuildRequest, bench: OptionsBench) -> dict[str, Any]:
    """Builds that the run installed go, and the former ones run; they stay remembered for the restore.

    Those that came with a boot went before the boot (`stage_none`).
    """
    settings: list[Provisioned] = []
    steps: list[str] = []
    in_place = {owner: was for owner, was in builds_of_run(request.state_dir).items() if not was["boots"]}
    for owner, was in in_place.items():
        module = owner.partition("/")[0]
        before = identifiers(bench, module)
        if request.check:
            steps += [] if is_former(bench, module, was) else [f"{module} would be loaded as it was found"]
        else:
            with hold_lock(Path(request.state_dir), request.run, "driver build", wait_s=LOCK_WAIT_S):
                steps += uninstall(bench, module, was, request.state_dir)
        now = identifiers(bench, module)
        settings += records(module, before, now)
    return {
        "changed": bool(steps),
        "settings": [entry.record() for entry in settings],
        "steps": steps,
        "drift": steps,
        "diff": {},
        "identifiers": {},
    }
