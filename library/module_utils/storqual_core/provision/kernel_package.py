# SPDX-License-Identifier: Apache-2.0
"""A kernel package: installed from files; of the RPM kind beside the others, proven, and removed again.

The scripts of one of the RPM kind would make it the default at once, give it the command line of the boot that runs,
and have SUSE remove older kernels at the next boot, which is the trial's. A script that fails is a warning, and the
front end says that all is complete; so nothing here rests on an exit status.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Sequence

from ..host.block_stack import physical
from ..host.in_use import device_of, read_mounts
from ..host.sysfs import read_adapters, read_drives
from ..kit.command import Runner
from ..kit.durable import copy_file, fsync_folder, replace_file
from ..kit.errors import StorqualError, ToolError
from ..kit.lock import BenchLock, read_saved, remember
from ..kit.machine import Machine, visible
from ..kit.package_names import Nevra, kernel_problem, split_nevra
from ..kit.results import PartialError, Provisioned
from ..tools import rpm, zypper
from ..tools.capabilities import Packages
from ..tools.grub import without_ours
from ..tools.lsinitrd import parse_listing
from .boot import System, check_trial, moved_back, name_default, remember_boot, restore_boot, usable_entries
from .engine import Call
from .initramfs import builds_in, module_name

_ASIDE = "sysconfig-kernel-before-package"
_LISTED = "rpm-packages"
_PURGE = "do_purge_kernels"
_PROMOTES = re.compile(r"^(\s*UPDATEDEFAULT\s*=).*$", re.MULTILINE)
_TIMEOUT = 3600.0
# of the largest kernel that is there
_SPARE = 1.2


@dataclass(frozen=True)
class KernelFiles:
    """Package files of one kernel: its release, the package with its image, rpm's names, those not installed."""

    release: str
    package: Nevra
    labels: tuple[str, ...]
    missing: tuple[str, ...]


def packages_in(runner: Runner, files: Sequence[str]) -> tuple[list[str], tuple[Nevra, ...]]:
    """Absolute paths of package files, and the package in each. Raises ToolError for those of other machines."""
    paths = [str(Path(file).absolute()) for file in files]
    packages = rpm.listing(runner, ["-p", "--", *paths]).packages
    machine = os.uname().machine
    foreign = [each.label for each in packages if each.architecture not in (machine, "noarch")]
    if len(packages) != len(files) or foreign:
        named = ", ".join(foreign or files)
        raise ToolError(f"{named}: expected one package in each file, for {machine}")
    return paths, packages


def read_files(system: System, files: Sequence[str]) -> KernelFiles:
    """What is in package files. Raises ToolError for files of other machines, and for one that is no package."""
    paths, packages = packages_in(system.runner, files)
    named = ", ".join(Path(file).name for file in files)
    carried: dict[str, Nevra] = {}
    for path, package in zip(paths, packages):
        listed = system.runner(["rpm", "-q", "-l", "-p", "--", path], timeout=_TIMEOUT).expect().stdout
        carried.update(dict.fromkeys(rpm.kernel_releases(rpm.parse_files(listed)), package))
    if len(carried) != 1:
        raise ToolError(f"{named}: expected the image of one kernel, found {', '.join(sorted(carried)) or 'none'}")
    problem = kernel_problem(packages)
    if problem:
        raise ToolError(f"{named}: {problem}")
    release, package = next(iter(carried.items()))
    labels = tuple(package.label for package in packages)
    there = {each.label for each in rpm.listing(system.runner, ["--", *labels]).packages}
    return KernelFiles(release, package, labels, tuple(label for label in labels if label not in there))


def check_room(system: System) -> None:
    """Raise ToolError, with the figure, where /boot does not take another kernel with its initramfs."""
    boot = Path(system.boot)
    files = [path for path in boot.rglob("*") if path.is_file()]
    sizes = [sum(path.stat().st_size for path in files if release in str(path)) for release in system.kernels()]
    need, free = int(max(sizes, default=0) * _SPARE), shutil.disk_usage(boot).free
    if free < need:
        raise ToolError(f"{boot} has {free >> 20} MiB left, and a kernel with its initramfs takes {need >> 20} MiB")


_OTHER_KERNELS = re.compile(
    r"dracut\b.*--regenerate-all|update-initramfs\b.*-k\s+all|weak-modules\b.*--(?:add|remove)-modules|purge-kernels|"
    r"weak-modules2\b.*--(?:add|remove)-kmp|kernel-scriptlets/(?:in)?kmp-post(?:un)?\b"
)


def look_before(runner: Runner, files: Sequence[str]) -> list[str]:
    """What is to be told of package files before they are installed: who signed them, scripts for other kernels.

    Raises ToolError for files that are damaged, for an installation that would change anything else, and where it
    would not come to it, with who holds the lock. Whether a signature is needed, the bench's own settings decide.
    """
    paths = [str(Path(file).absolute()) for file in files]
    remarks = []
    for check in rpm.signatures(runner, paths):
        name = Path(check.file).name
        if check.wrong:
            raise ToolError(f"{name} is damaged or was changed: bad {', '.join(check.wrong)}")
        by = f"signed with key {', '.join(check.keys) or 'of no id'}" if check.signed else "not signed"
        remarks.append(f"{name}: {by}{'' if check.good else ', which this bench does not know'}")
    for path in paths:
        for script in rpm.scripts(runner, path):
            other = _OTHER_KERNELS.search(script.text)
            if other:
                remarks.append(
                    f"{Path(path).name}: its script {script.when} is for other kernels too: {other.group()}"
                )
    named = {(each.name, each.version, each.release) for each in rpm.listing(runner, ["-p", "--", *paths]).packages}
    plan = rpm.preview(runner, paths).planned
    _refuse_others(
        plan, sorted(name for name, *_ in named), lambda each: (each.name, each.version, each.release) in named
    )
    return remarks


def _refuse_others(plan: Mapping[str, Sequence[str]], names: Sequence[str], belongs: Callable[[Nevra], bool]) -> None:
    """Raise ToolError with every package that would change and does not belong to the kernel that is to come."""
    others = []
    for verb, words in plan.items():
        for word in words:
            package = split_nevra(word)
            if verb != "install" or package is None or not belongs(package):
                others.append(f"{verb} {word}")
    if others:
        raise ToolError(f"the installation of {', '.join(names)} would also {', '.join(others)}")


def put_settings_back(system: System, state_dir: str) -> list[str]:
    """Put back what `held` left when it was cut short; what was done."""
    file = system.root / "etc/sysconfig/kernel"
    return [f"{file} as it was"] if moved_back(Path(state_dir) / _ASIDE, file) else []


@contextmanager
def held(system: System, state_dir: str, steps: list[str]) -> Iterator[None]:
    """Have the default, older kernels and the new kernel's own options be what they would be without a trial.

    Raises ToolError when the package has become the default all the same; that is put back first.
    """
    put_settings_back(system, state_dir)
    file, boot = system.root / "etc/sysconfig/kernel", Path(system.boot)
    text = file.read_text(encoding="utf-8", errors="surrogateescape") if file.exists() else ""
    before = system.loader.environment()
    known = {entry.file for entry in system.loader.entries() if entry.file}
    purges = (boot / _PURGE).exists()
    if _PROMOTES.search(text):
        copy_file(file, Path(state_dir) / _ASIDE)
        replace_file(file, _PROMOTES.sub(r"\1no", text))
    try:
        yield
    finally:
        put_settings_back(system, state_dir)
        if (boot / _PURGE).exists():
            # it would remove kernels in the next boot
            (boot / _PURGE).replace(boot / f".{_PURGE}.storqual") if purges else (boot / _PURGE).unlink()
            fsync_folder(boot)
            steps.append(f"{boot}/{_PURGE} held back")
        for entry in system.loader.entries():
            if entry.file and entry.file not in known:
                steps += _without_ours(system, Path(entry.file))
    after = system.loader.environment()
    moved = [name for name in ("saved_entry", "next_entry") if before.get(name) != after.get(name)]
    for name in moved:
        system.loader.put_variable(name, before.get(name))
    system.loader.settle()
    if moved:
        raise ToolError(f"the package changed {' and '.join(moved)} of the boot loader, which is put back")


def _without_ours(system: System, file: Path) -> list[str]:
    """Take out of a new entry what the boot that runs has beyond its kernel's own entry, where it is one of ours.

    kernel-install copies the command line of what runs.
    """
    running = system.arguments()
    if without_ours(running) == running:
        return []
    natives = [entry for entry in usable_entries(system.loader.entries()) if entry.release == system.running]
    own = {word for entry in natives for word in entry.arguments} or set(without_ours(running))
    added = {word for word in running if word not in own}
    lines = file.read_text(encoding="utf-8").split("\n")
    fresh = [
        " ".join(word for word in line.split(" ") if word not in added) if line.startswith("options") else line
        for line in lines
    ]
    if fresh == lines:
        return []
    replace_file(file, "\n".join(fresh))
    return [f"arguments of the running trial taken out of {file}"]


def _other_options(system: System, release: str) -> list[str]:
    """How the boot options of a new kernel differ from those of the kernel that runs, which an arm is compared with.

    kernel-install has them of /etc/kernel/cmdline where that is there, which may be older than what the bench boots.
    """
    entries = usable_entries(system.loader.entries())
    before, now = (
        next((set(each.arguments) for each in entries if each.release == kernel), None)
        for kernel in (system.running, release)
    )
    if before is None or now is None or before == now:
        return []
    words = [
        f"{verb} {' '.join(sorted(some))}" for verb, some in (("has", now - before), ("lacks", before - now)) if some
    ]
    return [f"the boot options of kernel {release} are not those of {system.running}: it {' and '.join(words)}"]


def lacking_drivers(system: System, release: str, image: str) -> list[str]:
    """The drivers of the root drives that an initramfs lacks. Raises ToolError for an image that cannot be read."""
    machine = Machine(str(system.root))
    drives = {
        drive
        for mount in read_mounts(machine)
        if mount.point == "/" and not mount.process
        for drive in physical(machine, device_of(machine, mount.number, mount.source))
    }
    adapters = {drive.adapter for drive in read_drives(machine) if drive.name in drives}
    drivers = {each.module for each in read_adapters(machine) if each.module and each.identity.pci in adapters}
    builtin = {module_name(line) for line in machine.lines(f"/lib/modules/{release}/modules.builtin")}
    lacking = [name for name, build in builds_in(image, sorted(drivers - builtin)).items() if build is None]
    if lacking:
        # dracut may have packed modules into a squashfs, which lsinitrd opens
        with suppress(ToolError):
            listing = parse_listing(system.runner(["lsinitrd", image], timeout=_TIMEOUT).expect().stdout)
            there = {module_name(file) for file in listing.files}
            lacking = [name for name in lacking if name not in there]
    return lacking


def proof(system: System, release: str, labels: Sequence[str]) -> list[str]:
    """What is missing of an installed kernel: its files, its initramfs to the end, its entry, what rpm verifies."""
    boot = Path(system.boot)
    needed = [boot / system.kernel_file(release), system.root / "lib/modules" / release / "modules.dep"]
    problems = [f"{path} is not there" for path in needed if not path.exists()]
    image = system.kernels().get(release, "")
    if not image:
        problems.append(f"kernel {release} has no initramfs in {boot}: a script of the package failed")
    else:
        try:
            lacking = lacking_drivers(system, release, str(boot / image))
        except ToolError as problem:
            problems.append(f"{boot}/{image} cannot be read to its end: {problem}")
        else:
            problems += [f"{boot}/{image} lacks {name}, the driver of the root drive" for name in lacking]
    if not [entry for entry in usable_entries(system.loader.entries()) if entry.release == release]:
        problems.append(f"kernel {release} has no boot entry")
    verified = system.runner(["rpm", "-V", "--", *labels], timeout=_TIMEOUT).stdout
    deviations, needs = rpm.parse_verify(verified)
    problems += [f"{each.path} is not as its package has it" for each in deviations if each.kind not in ("c", "g")]
    return problems + [f"a package lacks {need}" for need in needs]


def remove_added(
    system: System, release: str, added: Mapping[str, Any], saved: dict[str, Any], state_dir: str
) -> list[str]:
    """Remove what a run installed, and what its scripts left of it; what was done. Never the running kernel.

    Raises ToolError.
    """
    labels = list(added["labels"])
    if release == system.running:
        raise ToolError(f"kernel {release} runs, so its packages {', '.join(labels)} stay; boot the former one first")
    steps = [*put_settings_back(system, state_dir), *foreign_changes(system, state_dir, check=False)]
    forget_list(state_dir)
    there = rpm.listing(system.runner, ["--", *labels]).packages if labels else ()
    if there:
        system.runner(["rpm", "-e", "--", *(each.label for each in there)], timeout=_TIMEOUT).expect()
    steps += [f"{each.label} removed" for each in there]
    boot = Path(system.boot)
    stems = ("vmlinuz", ".vmlinuz", "System.map", "config", "symvers", "initrd")
    names = [f"{name}-{release}{end}" for name in stems for end in ("", ".hmac", ".gz", ".xz")]
    left = [boot / name for name in (*names, f"initramfs-{release}.img", f"initramfs-{release}kdump.img")]
    left += (path for end in ("", "+*") for path in (boot / "loader" / "entries").glob(f"*-{release}{end}.conf"))
    for path in left:
        if path.is_file():
            path.unlink()
            steps.append(f"{path} removed, which its package left")
    for folder in (system.root / "lib/modules" / release, *boot.glob(f"*/{release}")):
        if folder.is_dir():
            shutil.rmtree(folder)
            steps.append(f"{folder} removed, which its package left")
    aside = boot / f".{_PURGE}.storqual"
    if aside.exists():
        aside.replace(boot / _PURGE)
        steps.append(f"{boot}/{_PURGE} given back")
    elif not added["purges"] and (boot / _PURGE).exists():
        (boot / _PURGE).unlink()
        steps.append(f"{boot}/{_PURGE} removed, which the package left")
    links, now = added.get("links", _links(boot)), _links(boot)
    for name in sorted(name for name in {*links, *now} if links.get(name) != now.get(name)):
        (boot / name).unlink(missing_ok=True)
        if name in links:
            (boot / name).symlink_to(links[name])
        steps.append(f"{boot}/{name}, a link, as it was")
    fsync_folder(boot)
    # its scripts may have written the menu anew, which is to be seen before the default is another entry
    system.loader.settle()
    # where the default was named by its place, a kernel less may have moved it
    return [*steps, *restore_boot(system, saved)]


def _links(boot: Path) -> dict[str, str]:
    """The links in /boot, which SUSE's scripts lead to the newest kernel and leave there."""
    return {path.name: os.readlink(path) for path in boot.iterdir() if path.is_symlink()}


def _all_labels(system: System) -> set[str]:
    return {each.label for each in rpm.listing(system.runner, ["-a"]).packages}


def keep_list(system: System, state_dir: str) -> None:
    """Note which packages are there after a step of the run, so that the next one tells what another party did."""
    replace_file(Path(state_dir) / _LISTED, "".join(f"{label}\n" for label in sorted(_all_labels(system))))


def forget_list(state_dir: str) -> None:
    """The bench is as it was found: what other parties do from now on concerns nobody."""
    (Path(state_dir) / _LISTED).unlink(missing_ok=True)


def driver_labels(state_dir: str) -> list[str]:
    """The labels of all driver packages that the run installs, for whichever kernel."""
    saved = read_saved(Path(state_dir))
    builds = (added for key, added in (saved.values if saved else {}).items() if key.startswith("build.module@"))
    return sorted({label for added in builds for label in added.get("labels", ())})


def foreign_changes(system: System, state_dir: str, *, check: bool) -> list[str]:
    """Packages that came or went since the last step and not by this run; nothing where it installed no kernel."""
    file, saved = Path(state_dir) / _LISTED, read_saved(Path(state_dir))
    own = {
        *driver_labels(state_dir),
        *(
            label
            for key, added in (saved.values if saved else {}).items()
            if key.startswith("packages.")
            for label in added["labels"]
        ),
    }
    if not own or not file.exists():
        return []
    before, now = set(file.read_text(encoding="utf-8").splitlines()), _all_labels(system)
    came, went = sorted(now - before - own), sorted(before - now)
    if (came or went) and not check:
        keep_list(system, state_dir)
    changes = [
        f"{word} {', '.join(labels)} since the last step{_by_whom(system, labels)}"
        for word, labels in (("installed", came), ("removed", went))
        if labels
    ]
    return [f"another party {change}" for change in changes]


def _by_whom(system: System, labels: Sequence[str]) -> str:
    """When and by which command a package of these came or went, where zypper's history tells."""
    path = system.root / "var/log/zypp/history"
    names = {package.name for package in map(split_nevra, labels) if package}
    with suppress(OSError, ToolError):
        command = origin = ""
        for entry in zypper.parse_history(path.read_text(encoding="utf-8", errors="replace")):
            if entry.action == "command":
                command = " ".join(visible(word) for word in entry.words[:2])
            elif entry.name in names:
                origin = f" ({entry.time}: {command})" if command else f" ({entry.time})"
        return origin
    return ""


def look_at_files(system: System, files: Sequence[str]) -> tuple[str, str, bool]:
    """Name and version of the package that carries the kernel in these files, and whether any of them is missing.

    Raises ToolError for files that are not one kernel, or that this bench's package manager does not take.
    """
    packages = system.packages
    ending = ".rpm" if packages.MANAGER == rpm.MANAGER else ".deb"
    other = [Path(file).name for file in files if not file.endswith(ending)]
    if other:
        raise ToolError(f"{', '.join(other)}: the packages of this bench are those of {packages.MANAGER} ({ending})")
    if ending == ".rpm":
        kernel = read_files(system, files)
        return kernel.package.name, kernel.package.evr, bool(kernel.missing)
    named = [packages.file_package(system.runner, file) for file in files]
    images = [each for each in named if each[0].startswith("linux-image-")]
    if len(images) != 1:
        names = ", ".join(name for name, _ in images) or "none"
        raise ToolError(f"{', '.join(name for name, _ in named)}: expected one linux-image package, found {names}")
    there = [packages.installed(system.runner, name, version) for name, version in named]
    return (*images[0], not all(each and each.complete for each in there))


def fetch_package(system: System, package: str, version: str, state_dir: str) -> list[str]:
    """The files of a kernel and of the packages that belong to it, from the bench's own repositories.

    Raises ToolError where anything else would change, with names, before anything is fetched.
    """
    wanted = f"{rpm.named(package, version)}-{version.rpartition(':')[2]}" if version else rpm.named(package)
    plan = rpm.preview(system.runner, [wanted]).planned
    packages = [each for each in map(split_nevra, plan.get("install", ())) if each]
    kernel = next((each for each in packages if each.name == package), None)
    if kernel is None:
        raise ToolError(f"the repositories of this bench have no {wanted} to install")
    release = (kernel.version, kernel.release)
    _refuse_others(plan, [wanted], lambda each: (each.version, each.release) == release)
    folder = Path(state_dir) / "packages" / f"{package}-{'-'.join(release)}"
    # what a fetch that was cut short left is of no use
    shutil.rmtree(folder, ignore_errors=True)
    return rpm.fetch(system.runner, [wanted], str(folder))


def look_at_package(system: System, package: str, version: str = "") -> dict[str, Any]:
    """Whether a package is installed, in which version, and which kernel it carries. Raises ToolError.

    A package that is installed in another version than declared is a failure, for one kernel release in two builds
    cannot stay installed side by side, and the bench may be running it.
    """
    packages = system.packages
    entry = packages.installed(system.runner, packages.named(package, version), version)
    has = entry.version if entry and entry.complete else ""
    if has and version and has != version:
        raise ToolError(
            f"{package} is installed as {has}, the drop says {version}: the two share their file names and cannot be "
            "installed side by side; use another release of the package"
        )
    if not has:
        return {"missing": True, "kernel": "", "version": "", "settings": []}
    record = _package_record(packages, version, has, has).record()
    kernel = packages.kernel_of(system.runner, package, has)
    return {"missing": False, "kernel": kernel, "version": has, "settings": [record]}


def _package_record(packages: Packages, declared: str, before: str, now: str) -> Provisioned:
    proof = f"{packages.MANAGER}'s own record"
    return Provisioned("driver.kernel.version", declared or None, before, now, changed=before != now, proof=proof)


def install_package(package: str, version: str, files: Sequence[str], call: Call, system: System) -> dict[str, Any]:
    """Install a kernel package that is missing from its files; the module's result, with the kernel that it carries.

    Raises PartialError; ToolError before anything is installed.
    """
    packages = system.packages
    steps: list[str] = []
    with call.lock("driver package") as lock:
        if lock is not None:
            # installing a kernel rewrites the boot menu, and may change what is the default
            remember_boot(lock, system)
            steps += name_default(system)
        try:
            if packages.MANAGER == rpm.MANAGER:
                problems = _install_rpms(files, call.state_dir, system, lock, steps)
            else:
                problems = _install_debs(files, system)
        except StorqualError as problem:
            now = packages.installed(system.runner, package, version)
            state = Provisioned("driver.kernel", package, "", now.version if now else "", changed=now is not None)
            raise PartialError(
                str(problem), steps=[*steps, f"{packages.MANAGER} -i of {len(files)} files"], settings=[state]
            ) from problem
    now = packages.installed(system.runner, package, version)
    if now is None or not now.complete or (version and now.version != version) or problems:
        state = Provisioned("driver.kernel", version, "", now.version if now else "", changed=True)
        held_as = f"{now.version} ({'complete' if now.complete else 'not configured'})" if now else "nothing"
        why = "; ".join(problems) or held_as
        raise PartialError(
            f"{package} after the installation: {why}", steps=[*steps, f"{packages.MANAGER} -i"], settings=[state]
        )
    return {
        "changed": True,
        "missing": False,
        "kernel": packages.kernel_of(system.runner, package, now.version),
        "version": now.version,
        "steps": [*steps, f"{package} {now.version} installed"],
        "settings": [_package_record(packages, version, "", now.version).record()],
        "diff": {"before": f"{package}: not installed\n", "after": f"{package}: {now.version}\n"},
    }


def _install_debs(files: Sequence[str], system: System) -> list[str]:
    system.packages.install_packages(system.runner, files)
    system.loader.settle()
    return []


def _install_rpms(
    files: Sequence[str], state_dir: str, system: System, lock: BenchLock | None, steps: list[str]
) -> list[str]:
    """The same beside what is there; what is wrong with it afterwards."""
    kernel = read_files(system, files)
    drivers = driver_labels(state_dir)
    there = rpm.listing(system.runner, ["--", *drivers]).packages if drivers else ()
    if there:
        # its scripts would be asked for the new kernel too, which has the driver in its first initramfs then
        named = ", ".join(each.label for each in there)
        raise ToolError(
            f"{named} is installed for a trial, and kernel {kernel.release} would come with it: declare the kernel "
            "in both arms, or restore the bench first"
        )
    if kernel.release == system.running:
        raise ToolError(f"kernel {kernel.release} runs: its packages are not exchanged under it")
    # where no kernel could be tried and left again, none is installed
    check_trial(system, system.running)
    check_room(system)
    steps += look_before(system.runner, files)
    if lock is not None:
        boot = Path(system.boot)
        before = {"labels": list(kernel.missing), "purges": (boot / _PURGE).exists(), "links": _links(boot)}
        remember(lock, {f"packages.{kernel.release}@bench": before})
    with held(system, state_dir, steps):
        system.packages.install_packages(system.runner, files)
    keep_list(system, state_dir)
    steps += _other_options(system, kernel.release)
    return proof(system, kernel.release, kernel.labels)
