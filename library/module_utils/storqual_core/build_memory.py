# SPDX-License-Identifier: Apache-2.0
"""What is remembered of a driver build, and the way back: off the disk, and the former build loaded again."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping

from .adapter_drives import refuse_when_used
from .bench_lock import BenchLock
from .bench_state import read_saved, remember
from .build_plan import Wanted
from .driver_file import place_of
from .driver_reload import adapters_of_module, reload_module
from .durable import fsync_folder
from .errors import ToolError
from .provision_options import OptionsBench
from .tools import dkms, dpkg, kmod

__all__ = ["builds_of_run", "is_former", "remember_build", "set_aside", "take_off", "uninstall"]

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


def builds_of_run(state_dir: str) -> dict[str, dict[str, Any]]:
    """What is remembered of builds, by `<module>/<kernel>`."""
    saved = read_saved(Path(state_dir))
    values = saved.values if saved else {}
    return {key[len(_KEY) :]: value for key, value in values.items() if key.startswith(_KEY)}


def is_former(bench: OptionsBench, module: str, memory: Mapping[str, Any]) -> bool:
    """Whether the build that was there before is loaded; what another kernel had loaded is not known."""
    if memory["kernel"] != bench.running:
        return True
    now = kmod.loaded(module, bench.machine.path("/sys"))
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
    refuse_when_used(bench.machine, adapters, state_dir, f"loading {module} again takes it away for a moment")
    steps = take_off(bench, memory)
    if steps or not is_former(bench, module, memory):
        reload_module(bench.machine, bench.runner, module)
        steps.append(f"module {module} loaded again as it was found")
    return steps
