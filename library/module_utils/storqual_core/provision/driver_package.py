# SPDX-License-Identifier: Apache-2.0
"""A driver as its customers get it: a kmod RPM or a KMP. What is in it, which kernels it reaches, whether it wins.

Its module lies in the folder of the kernel that it is built for, in `extra` or `updates`; weak-modules links it
into every other kernel whose symbols fit. Which file of a module a kernel loads, depmod's order says: without a line
`override` of its own a linked module loses to the kernel's own one, and the installation changes nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Mapping, Sequence

from ..kit import iso9660
from ..kit.durable import copy_file, make_folder, replace_bytes
from ..kit.errors import StorqualError, ToolError
from ..kit.package_names import RELEASE, Nevra, split_file
from ..tools import boot_files, depmod, kmod, rpm, weak_modules
from .boot import System, added_arguments, booted_image, image_name, keep, restore_boot, saved_boot, unmounted
from .driver import ModuleFile, read_module_file
from .initramfs import builds_in, module_name, plain_module
from .kernel_copies import KernelCopies
from .kernel_package import keep_list, look_before, packages_in
from .module_policy import packing_objections
from .module_symbols import fit_of_file
from .options import OptionsBench

_MODULE = re.compile(rf"(?:/usr)?/lib/modules/({RELEASE})/(.+\.ko(?:\.(?:xz|zst|gz))?)")
_LINKS = "weak-updates"
_INDEX_LIMIT_S = 300.0


@dataclass(frozen=True)
class DriverPackage:
    """Package files with a driver; `package` is the one with the module, which is built for kernel `built_for`.

    `place` is where its file lies in that kernel's folder, `file` the module itself, unpacked, in our state folder.
    `missing` are the labels of what is not installed, `contents` all files by path, `disk` the image of a driver disk
    that they are from.
    """

    files: tuple[str, ...]
    package: Nevra
    labels: tuple[str, ...]
    missing: tuple[str, ...]
    built_for: str
    place: str
    file: ModuleFile
    contents: Mapping[str, bytes]
    disk: str = ""

    @property
    def overrides(self) -> tuple[depmod.Override, ...]:
        return tuple(
            override
            for path, content in sorted(self.contents.items())
            if "/depmod.d/" in path and path.endswith(".conf")
            for override in depmod.parse_overrides(content.decode("utf-8", "replace"), path)
        )

    def places_for(self, release: str) -> tuple[str, ...]:
        """Where its module would lie for a kernel: as it is, or linked, as Red Hat's or as SUSE's script links it."""
        if release == self.built_for:
            return (self.place,)
        folder, _, rest = self.place.partition("/")
        inside = rest if folder in ("extra", "updates") else self.place
        return f"{_LINKS}/{inside}", f"{_LINKS}/{self.place}"


def read_package(bench: OptionsBench, files: Sequence[str], module: str) -> DriverPackage:
    """What is in the files of a driver package, and its module for the kernel that is meant.

    Of a driver disk that is the one package whose module is for it. Raises ToolError for files of other machines, for
    one that is no package, and where they hold no such module.
    """
    if bench.packages.MANAGER != rpm.MANAGER:
        named = ", ".join(Path(file).name for file in files)
        raise ToolError(f"{named}: the packages of this bench are those of {bench.packages.MANAGER}, not of rpm")
    disk = Path(files[0]).name if files[0].endswith(".iso") else ""
    if disk:
        files = [_of_disk(bench, files[0], module)]
    paths, packages = packages_in(bench.runner, files)
    contents: dict[str, bytes] = {}
    modules: dict[str, tuple[Nevra, str, str]] = {}
    for path, package in zip(paths, packages):
        carried = rpm.payload(path)
        contents.update(carried)
        for name in sorted(carried):
            match = _MODULE.fullmatch(name)
            if match:
                modules[name] = (package, match.group(1), match.group(2))
    named = ", ".join(Path(file).name for file in files)
    mine = {name: each for name, each in modules.items() if module_name(name) == module.replace("-", "_")}
    if not mine:
        there = ", ".join(sorted({module_name(name) for name in modules})) or "none"
        raise ToolError(f"{named}: expected module {module}, found {there}")
    folder = Path(files[0]).parent / "modules"
    chosen = _for_kernel(bench, folder, {name: contents[name] for name in mine}, mine)
    package, built_for, place = mine[chosen]
    file = read_module_file(bench.runner, _unpacked(folder, module, contents[chosen]))
    labels = tuple(each.label for each in packages)
    missing = tuple(_missing(labels, bench))
    return DriverPackage(tuple(files), package, labels, missing, built_for, place, file, contents, disk)


def _of_disk(bench: OptionsBench, image: str, module: str) -> str:
    """The package of a driver disk with a module that the kernel that is meant takes. Raises ToolError."""
    folder = Path(image).parent / "rpms"
    machine = os.uname().machine
    packages: dict[str, tuple[str, str]] = {}
    for member in iso9660.list_files(image):
        name = member.path.rpartition("/")[2]
        package = split_file(name) if name.endswith(".rpm") else None
        if package is None or package.architecture not in (machine, "noarch"):
            continue
        path = str(folder / name)
        make_folder(folder)
        replace_bytes(Path(path), member.read(image))
        for place, content in rpm.payload(path).items():
            match = _MODULE.fullmatch(place)
            if match and module_name(place) == module.replace("-", "_"):
                packages[path] = (match.group(1), _unpacked(Path(image).parent / "modules", module, content))
    exact = [path for path, (release, _) in packages.items() if release == bench.kernel]
    if exact:
        return exact[0]
    unfit = []
    for path, (release, file) in sorted(packages.items(), reverse=True):
        fit = fit_of_file(file, bench.machine, bench.kernel)
        if fit.compatible:
            return path
        unfit.append(f"{Path(path).name} for {release}: {fit.words}")
    reason = "; ".join(unfit) or f"it has no package for {machine} with that module"
    raise ToolError(f"{Path(image).name}: no package with {module} for kernel {bench.kernel} ({reason})")


def _unpacked(folder: Path, module: str, content: bytes) -> str:
    """A module's file as it is loaded, in a folder of its own; the same file each time."""
    plain = plain_module(content)
    place = folder / hashlib.sha256(plain).hexdigest()[:12] / f"{module.replace('-', '_')}.ko"
    if not place.exists() or place.read_bytes() != plain:
        make_folder(place.parent)
        replace_bytes(place, plain)
    return str(place)


def _for_kernel(
    bench: OptionsBench, folder: Path, contents: Mapping[str, bytes], mine: Mapping[str, tuple[Nevra, str, str]]
) -> str:
    """Of several builds of a module the one for the kernel that is meant, else one whose symbols fit it."""
    exact = next((name for name, (_, release, _) in mine.items() if release == bench.kernel), "")
    if exact or len(mine) == 1:
        return exact or next(iter(mine))
    names = sorted(mine, reverse=True)
    # where a kernel's symbols are not known, the objections to the one that is chosen say so
    with suppress(ToolError):
        for name in names:
            file = _unpacked(folder, module_name(name), contents[name])
            if fit_of_file(file, bench.machine, bench.kernel).compatible:
                return name
    return names[0]


def reach(package: DriverPackage, bench: OptionsBench, releases: Sequence[str]) -> dict[str, str]:
    """Why the package does not reach a kernel, for each that is installed; empty where it does."""
    reasons = {}
    for release in releases:
        if release == package.built_for:
            reasons[release] = ""
            continue
        try:
            reasons[release] = fit_of_file(package.file.path, bench.machine, release).words
        except ToolError as problem:
            reasons[release] = str(problem)
    return reasons


def package_objections(package: DriverPackage, bench: OptionsBench) -> list[str]:
    """Why a package, installed as it is, would not bring its driver to the kernel that is meant, or to others too."""
    system = system_of(bench)
    problems = [*unmounted(system), *packing_objections(package.place, bench.runner), *images_elsewhere(system)[:1]]
    before = rpm.listing(bench.runner, ["--", package.package.name]).packages
    others = [each.label for each in before if each.label != package.package.label]
    if others and package.missing:
        problems.append(
            f"{', '.join(others)} is installed on this bench and {package.package.label} would take its place, and "
            "its package file is not here to put it back: remove it first, or declare both versions as drops"
        )
    return problems or loses(package, bench)


def images_elsewhere(system: System) -> list[str]:
    """A sentence for each kernel whose initramfs is not kept: nothing is copied of a partition mounted below."""
    return [
        f"the initramfs of kernel {release} is not in {system.boot}, where what a package's scripts make of it could "
        "be put back; `as: module` installs no package"
        for release, image in system.kernels().items()
        if image and (image.startswith(("efi/", "../")) or not (Path(system.boot) / image).exists())
    ]


def loses(package: DriverPackage, bench: OptionsBench) -> list[str]:
    """Why depmod would take another file of the module than the package's, as a sentence; none where it would not."""
    release, module = bench.kernel, package.file.name
    folder = f"/lib/modules/{release}"
    root = Path(bench.machine.path(folder))
    own = package.places_for(release)
    others = sorted(
        str(path.relative_to(root))
        for path in root.rglob("*.ko*")
        if module_name(path.name) == module and not path.parts[len(root.parts)].startswith(("build", "source"))
    )
    others = [place for place in others if depmod.module_stem(place) not in map(depmod.module_stem, own)]
    order = depmod.search_order(bench.machine)
    carried = {override.file for override in package.overrides}
    installed = [each for each in depmod.overrides(bench.machine) if each.file not in carried]
    # files of all folders are sorted by name: the first line that names a place holds
    named = sorted((*installed, *package.overrides), key=lambda each: Path(each.file).name)
    first = [depmod.winner([place, *others], order, named, release) for place in own]
    if any(place in own for place in first) or not others:
        return []
    taken = first[0]
    override = next((each for each in named if each.names(taken, release)), None)
    if override:
        why = f"{override.file} says `{override.words}`"
    else:
        words = [f"`{each.words}`, which names no place of it" for each in package.overrides]
        has = f"it has {words[0] if words else 'no `override`'}"
        why = f"depmod looks in this order: {' '.join(order)}, and {has}"
    sentence = (
        f"{package.package.label} would be installed and change nothing: kernel {release} goes on loading "
        f"{folder}/{taken} and not {own[0]} ({why})"
    )
    return [sentence]


def package_words(package: DriverPackage, bench: OptionsBench, releases: Sequence[str]) -> list[str]:
    """What is to be told of a package before it is installed. Raises ToolError where it could not be."""
    label, file = package.package.label, package.file
    override = "; ".join(each.words for each in package.overrides) or "no override"
    signed = f"module signed by '{file.signer}'" if file.signer else "module not signed"
    marked = f", SUSE's mark: {file.supported}" if file.supported else ""
    build = " ".join(word for word in (file.build.srcversion, file.build.version) if word)
    reached = reach(package, bench, releases)
    yes = ", ".join(release for release, why in reached.items() if not why) or "none"
    no = "; ".join(f"{release}: {why}" for release, why in reached.items() if why)
    origin = [f"{package.disk}: {Path(package.files[0]).name} is its package for kernel {bench.kernel}"]
    origin = origin if package.disk else []
    needs = [need for path in package.files for need in rpm.requires(bench.runner, path)]
    return [
        *origin,
        f"{label}: {package.place} for kernel {package.built_for}, build {build}, {signed}{marked}, {override}",
        f"{label} reaches the kernels {yes}{f', and not {no}' if no else ''}",
        *([f"{label} needs {', '.join(needs)}"] if needs else []),
        *look_before(bench.runner, package.files),
    ]


@contextmanager
def _default_held(system: System) -> Iterator[None]:
    """Have the default boot from a copy of its initramfs while scripts make that anew.

    They write it where it lies: a power cut would leave a torn one, or one with a driver that nobody has seen boot.
    """
    default = system.loader.default()
    image = system.kernels().get(default.release, "") if default else ""
    if default is None or not image or booted_image(default.arguments):
        yield
        return
    before, boot = saved_boot(system), Path(system.boot)
    native = boot / image
    copy = boot / image_name(default.release, native.read_bytes())
    free, need = shutil.disk_usage(boot).free, native.stat().st_size
    # the scripts write one more beside it, and then there is the one of the trial
    if free < 3 * need:
        raise ToolError(f"{boot} has {free >> 20} MiB left, and three more of {image} take {3 * need >> 20} MiB")
    copy_file(native, copy)
    keep(system, default.release, added_arguments(default.arguments), copy.name)
    try:
        yield
    finally:
        restore_boot(system, before)


def install_driver(
    package: DriverPackage,
    labels: Sequence[str],
    bench: OptionsBench,
    state_dir: str,
    steps: list[str],
    *,
    runs: bool,
) -> bytes | None:
    """Install a package with its scripts for the kernel that is meant; all other kernels stay as they are.

    `labels` are the packages that the run brings. `runs`: the kernel under test has the module in its index from now
    on; else its default goes on booting what it booted. Returns the initramfs that the scripts made for that kernel,
    None where it does not carry the module; what was done is added to `steps`. Raises ToolError, with everything as
    it was.
    """
    copies, kernel = KernelCopies(bench.machine, state_dir), bench.kernel
    system = system_of(bench)
    if copies.kernel not in ("", kernel):
        steps += remove_driver(labels, bench, state_dir)
    wanted = _missing(package.labels, bench)
    if wanted:
        steps += package_words(package, bench, list(system.kernels()))
    copies.take(package.contents, kernel)
    links = f"lib/modules/{kernel}/"

    def of_package(path: str) -> bool:
        return path.startswith(links) and (runs or not path[len(links) :].startswith("modules."))

    with _default_held(system):
        steps += copies.begin()
        try:
            if wanted:
                bench.packages.install_packages(bench.runner, package.files)
                steps.append(f"{', '.join(wanted)} installed")
            image = _prove(package, bench)
        except StorqualError as problem:
            steps += remove_driver(labels, bench, state_dir)
            sentence = f"{package.package.label} is removed again, and the bench is as it was"
            raise ToolError(f"{problem}; {sentence}") from problem
        steps += copies.put_back(of_package, installed=True)
        boot_files.settle(bench.runner, [system.boot])
    keep_list(system, state_dir)
    steps.append(copies.words())
    return image


def _missing(labels: Sequence[str], bench: OptionsBench) -> list[str]:
    there = {each.label for each in rpm.listing(bench.runner, ["--", *labels]).packages}
    return [label for label in labels if label not in there]


def _prove(package: DriverPackage, bench: OptionsBench) -> bytes | None:
    """The initramfs of the kernel under test where the scripts put the module into it.

    Raises ToolError where the package is not there after all, or another file of the module is taken.
    """
    missing = _missing(package.labels, bench)
    if missing:
        raise ToolError(f"{', '.join(missing)} is not installed, though its installation ended well")
    index_modules(bench)
    module, wanted = package.file.name, package.file.build.srcversion
    disk = kmod.on_disk(bench.runner, [module], bench.kernel)[module]
    if disk is None or disk.srcversion != wanted:
        has = f"{disk.filename} (build {disk.srcversion})" if disk else "none"
        why = "; ".join([*loses(package, bench), *not_linked(package, bench)])
        raise ToolError(
            f"{package.package.label} is installed and changes nothing: kernel {bench.kernel} loads {has} and not "
            f"the package's build {wanted}{why and f' ({why})'}"
        )
    if not bench.initrd:
        return None
    path = bench.machine.path(bench.initrd)
    try:
        packed = builds_in(path, [module])[module]
    except ToolError as problem:
        raise ToolError(f"the scripts of {package.package.label} left {bench.initrd} broken: {problem}") from problem
    return Path(path).read_bytes() if packed and packed.srcversion == wanted else None


def index_modules(bench: OptionsBench) -> None:
    """Have the index of the kernel that is meant be of the modules that lie there. Raises ToolError."""
    bench.runner(["depmod", bench.kernel], timeout=_INDEX_LIMIT_S).expect()


def not_linked(package: DriverPackage, bench: OptionsBench) -> list[str]:
    """Why weak-modules did not link the module, in its own words; nothing where it does not say."""
    if package.built_for == bench.kernel:
        return []
    module = f"/lib/modules/{package.built_for}/{package.place}"
    words = ["weak-modules", "--dry-run", "--verbose", "--no-initramfs", "--add-modules"]
    with suppress(StorqualError):
        ended = bench.runner(words, timeout=_INDEX_LIMIT_S, send=f"{module}\n".encode())
        answer = weak_modules.parse_answer(f"{ended.stdout}\n{ended.stderr}")
        own = [fit for fit in answer.incompatible if fit.kernel == bench.kernel]
        return [*(f"weak-modules: it differs in {' '.join(fit.symbols)}" for fit in own), *answer.problems]
    return []


def remove_driver(labels: Sequence[str], bench: OptionsBench, state_dir: str) -> list[str]:
    """Remove the packages that the run brought, and all that their scripts left; what was done. Raises ToolError."""
    copies, system = KernelCopies(bench.machine, state_dir), system_of(bench)
    there = [each.label for each in rpm.listing(bench.runner, ["--", *labels]).packages] if labels else []
    if not there and not copies.kernel:
        return []
    with _default_held(system):
        steps = copies.begin()
        if there:
            steps += [*rpm.erase(bench.runner, there), f"{', '.join(there)} removed"]
        steps += copies.put_back(installed=False)
        boot_files.settle(bench.runner, [system.boot])
    if copies.kernel:
        steps.append(copies.words())
    copies.drop()
    keep_list(system, state_dir)
    return steps


def system_of(bench: OptionsBench) -> System:
    """The same bench for what concerns its boots."""
    root = bench.machine.path
    return System(bench.runner, root("/boot"), root("/proc"), root("/sys"), release=bench.running)
