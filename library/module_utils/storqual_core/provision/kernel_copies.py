# SPDX-License-Identifier: Apache-2.0
"""What scripts of a driver package rewrite of every kernel: its initramfs, index of modules and linked modules.

Installing a driver for one kernel links it into all others that it fits and makes the initramfs of each anew;
removing it makes them anew once more. So all of them are copied before the package comes, compared after its scripts,
and what differs is put back: what boots beside the kernel under test is what booted before.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Callable, Collection, Iterator, Mapping

from ..kit.durable import copy_file, fsync_folder, make_folder, replace_json
from ..kit.errors import StorqualError, ToolError
from ..kit.machine import Machine
from .boot import own_images
from .selinux import read_context, write_context

_FOLDER = "kernel-copies"
_MANIFEST = "manifest.json"
_IMAGE = re.compile(r"(?:initramfs|initrd|initrd\.img)[-.].+")
_CONFIGURATION = ("etc/depmod.d", "etc/dracut.conf.d", "usr/lib/depmod.d")
# of a kernel's folder: what its own package brings, and links to its sources
_OWN = ("kernel", "build", "source", "vdso")
_MODULES = "lib/modules"
_SPARE = 1.05
_IS_FOLDER = "folder"

State = Mapping[str, str]
"""Paths below the root, to `file MODE DIGEST CONTEXT` (SELinux's), `link TARGET` or `folder`."""


def read_state(root: Path) -> dict[str, str]:
    """The files that scripts of driver packages may write, as they are now. Raises ToolError."""
    files = {}
    for path in _paths(root):
        try:
            if path.is_symlink():
                words = f"link {os.readlink(path)}"
            elif path.is_dir():
                words = _IS_FOLDER
            else:
                words = f"file {stat.S_IMODE(path.stat().st_mode):o} {_digest(path)} {read_context(path)}"
        except OSError as problem:
            raise ToolError(f"{path} cannot be read: {problem.strerror}") from problem
        files[str(path.relative_to(root))] = words
    return files


def _paths(root: Path) -> Iterator[Path]:
    boot, modules = root / "boot", root / _MODULES
    ours = set(own_images(str(boot)))
    for path in boot.glob("*"):
        if _IMAGE.fullmatch(path.name) and path.name not in ours and path.is_file() and not path.is_symlink():
            yield path
    yield from boot.glob("*/*/initrd")
    for kernel in modules.glob("*"):
        if not kernel.is_dir():
            continue
        yield kernel
        for path in kernel.iterdir():
            if path.is_dir() and not path.is_symlink() and path.name not in _OWN:
                yield path
                yield from path.rglob("*")
            elif path.name.startswith("modules."):
                yield path
    for folder in _CONFIGURATION:
        yield from (root / folder).rglob("*")


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while part := stream.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def differing(before: State, now: State) -> list[str]:
    """The paths that are not what they were, those that came and those that went among them."""
    return sorted(path for path in {*before, *now} if before.get(path) != now.get(path))


def kernel_of_path(path: str) -> str:
    """The kernel that a path is of; empty for configuration, which is of all."""
    if path.startswith(f"{_MODULES}/"):
        return path.split("/")[2]
    if not path.startswith("boot/"):
        return ""
    if path.endswith("/initrd"):
        return path.split("/")[-2]
    name = re.sub(r"^(?:initramfs|initrd\.img|initrd)-", "", path.rpartition("/")[2])
    return re.sub(r"(?:kdump)?\.img$", "", name)


def plain_path(path: str) -> str:
    """A path of a package as it is named here: below the root, and not by way of /usr or by a link to it."""
    inside = path.lstrip("/")
    if inside.startswith("usr/lib/modules/"):
        return inside[len("usr/") :]
    return f"usr/{inside}" if inside.startswith("lib/depmod.d/") else inside


@dataclass(frozen=True)
class _Manifest:
    """What was copied. `package` are the paths of the package, `kernel` is the one under test.

    `transaction`: scripts are at work, or were when the power went, and their changes are not put back yet.
    """

    state: State
    package: tuple[str, ...]
    kernel: str
    transaction: bool = False

    def is_stray(self, path: str, root: Path, *, installed: bool) -> bool:
        """Whether a path that was not there is one that the package or its scripts left."""
        if path in self.package or _leads_to(root / path, self.package):
            return True
        release = kernel_of_path(path)
        if f"{_MODULES}/{release}" in self.state or not release:
            return True
        # the folder of a kernel that is not installed came with the package
        brought = not installed and any(kernel_of_path(each) == release for each in self.package)
        return brought and not os.path.lexists(root / "boot" / f"vmlinuz-{release}")

    def is_gone(self, path: str, root: Path) -> bool:
        """Whether the kernel of a path was removed since."""
        folder = f"{_MODULES}/{kernel_of_path(path)}"
        return folder in self.state and not (root / folder).is_dir()


@contextmanager
def _readable(place: Path) -> Iterator[None]:
    """An error of the system in here names what could not be copied."""
    try:
        yield
    except OSError as problem:
        raise ToolError(f"{problem.filename or place} cannot be copied: {problem.strerror}") from problem


def _leads_to(place: Path, package: Collection[str]) -> bool:
    """Whether a path is a link to a file of the package, which may be gone."""
    return place.is_symlink() and plain_path(os.readlink(place)) in package


@dataclass(frozen=True)
class KernelCopies:
    """The copies in the state folder of a bench."""

    machine: Machine
    state_dir: str

    @property
    def root(self) -> Path:
        return Path(self.machine.path("/"))

    @property
    def _folder(self) -> Path:
        return Path(self.state_dir) / _FOLDER

    def _read(self) -> _Manifest | None:
        """What was copied; None when nothing is. Raises StorqualError for a file that cannot be read."""
        path = self._folder / _MANIFEST
        try:
            body = json.loads(path.read_text(encoding="utf-8"))
            return _Manifest(dict(body["state"]), tuple(body["package"]), str(body["kernel"]), body["transaction"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as problem:
            raise StorqualError(
                f"{path} cannot be read ({problem}); it holds what other kernels were before a driver package"
            ) from problem

    def _write(self, manifest: _Manifest) -> None:
        replace_json(self._folder / _MANIFEST, asdict(manifest))

    @property
    def kernel(self) -> str:
        """The kernel under test; empty where nothing is copied."""
        manifest = self._read()
        return manifest.kernel if manifest else ""

    def take(self, package: Collection[str], kernel: str) -> None:
        """Copy what is there before a package of these paths comes for `kernel`. Raises ToolError."""
        if self.kernel:
            return
        shutil.rmtree(self._folder, ignore_errors=True)
        make_folder(self._folder)
        state = read_state(self.root)
        sources = {words.split(" ")[2]: path for path, words in state.items() if words.startswith("file ")}
        need = sum((self.root / path).stat().st_size for path in sources.values())
        free = shutil.disk_usage(self._folder).free
        if free < need * _SPARE:
            raise ToolError(
                f"{self._folder} has {free >> 20} MiB left, and copies of what the package's scripts rewrite "
                f"of every kernel take {need >> 20} MiB"
            )
        with _readable(self._folder):
            for digest, path in sources.items():
                copy_file(self.root / path, self._folder / digest)
            self._write(_Manifest(state, tuple(sorted(map(plain_path, package))), kernel))

    def begin(self) -> list[str]:
        """Scripts are going to work; what another party changed before them, which stays, is told."""
        manifest = self._read()
        if manifest is None:
            return []
        steps: list[str] = []
        if not manifest.transaction:
            manifest, steps = self._adopt(manifest)
        self._write(replace(manifest, transaction=True))
        return steps

    def _adopt(self, manifest: _Manifest) -> tuple[_Manifest, list[str]]:
        """Take what others changed since for what was there; the kernel under test has the package's index."""
        state, now, steps = dict(manifest.state), read_state(self.root), []
        for path in differing(state, now):
            words = now.get(path, "")
            under_test = path.startswith(f"{_MODULES}/{manifest.kernel}/")
            if under_test or path in manifest.package or _leads_to(self.root / path, manifest.package):
                continue
            if words == _IS_FOLDER or state.get(path) == _IS_FOLDER or manifest.is_gone(path, self.root):
                continue
            if words.startswith("file "):
                copy_file(self.root / path, self._folder / words.split(" ")[2])
            if words:
                state[path] = words
            else:
                state.pop(path)
            steps.append(f"another party changed /{path} since the driver package came, which stays")
        return replace(manifest, state=state), steps

    def put_back(self, keep: Callable[[str], bool] = lambda _path: False, *, installed: bool) -> list[str]:
        """Have everything be what was copied, but for `keep`, and the package's files while it is `installed`.

        Returns what was done. Raises ToolError where something still differs.
        """
        manifest = self._read()
        if manifest is None:
            return []
        steps = []
        # what is in a folder comes after it: it goes before it, and comes back after it
        wrong = self._wrong(manifest, keep, installed=installed)
        for path in [*reversed([each for each in wrong if each not in manifest.state]), *wrong]:
            place = self.root / path
            if path in manifest.state:
                with _readable(place):
                    self._restore(place, manifest.state[path])
                steps.append(f"/{path} put back as it was before the package's scripts")
            elif place.is_dir() and not place.is_symlink():
                # one that is not empty has files of others
                with suppress(OSError):
                    place.rmdir()
            elif os.path.lexists(place):
                place.unlink()
                fsync_folder(place.parent)
                steps.append(f"/{path} removed, which the package's scripts left")
        self._tidy(manifest)
        still = [
            path
            for path in self._wrong(manifest, keep, installed=installed)
            if path in manifest.state or not (self.root / path).is_dir()
        ]
        if still:
            paths = ", ".join(f"/{path}" for path in still)
            raise ToolError(f"{paths}: not as before the driver package, though it was put back")
        self._write(replace(manifest, transaction=False))
        return steps

    def _tidy(self, manifest: _Manifest) -> None:
        """Remove what writes of ours that were cut short left beside their files."""
        names: dict[str, set[str]] = {}
        for path in manifest.state:
            folder, _, name = path.rpartition("/")
            names.setdefault(folder, set()).add(name)
        for folder, known in names.items():
            for part in (self.root / folder).glob(".*.part"):
                if part.name[1:].rsplit(".", 2)[0] in known:
                    part.unlink()

    def _wrong(self, manifest: _Manifest, keep: Callable[[str], bool], *, installed: bool) -> list[str]:
        """The paths that must be put back or go."""
        now = read_state(self.root)
        # what a package left may lie where nothing else is looked at
        watched = (f"{_MODULES}/", *(f"{folder}/" for folder in _CONFIGURATION))
        left = (path for path in manifest.package if path.startswith(watched))
        now.update({path: "left" for path in left if path not in now and os.path.lexists(self.root / path)})
        return [
            path
            for path in differing(manifest.state, now)
            if not keep(path)
            and not (installed and path in manifest.package)
            and (
                not manifest.is_gone(path, self.root)
                if path in manifest.state
                else manifest.is_stray(path, self.root, installed=installed)
            )
        ]

    def _restore(self, place: Path, words: str) -> None:
        if place.is_symlink():
            place.unlink()
        if words == _IS_FOLDER:
            make_folder(place)
            return
        make_folder(place.parent)
        if words.startswith("link "):
            with suppress(FileNotFoundError):
                place.unlink()
            place.symlink_to(words[len("link ") :])
            fsync_folder(place.parent)
            return
        _, mode, digest, context = words.split(" ")
        copy_file(self._folder / digest, place)
        place.chmod(int(mode, 8))
        write_context(place, context)

    def words(self) -> str:
        """What was compared and is as before, for the report."""
        manifest = self._read()
        if manifest is None:
            return ""
        files = {path: words for path, words in manifest.state.items() if words != _IS_FOLDER}
        digest = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
        kernels = sorted({path.split("/")[2] for path in manifest.state if path.startswith(f"{_MODULES}/")})
        others = [kernel for kernel in kernels if kernel != manifest.kernel]
        note = f"of kernels {', '.join(others)} " if others else ""
        return (
            f"initramfs, index and linked modules {note}are as before the package ({len(files)} files, {digest[:12]})"
        )

    def drop(self) -> None:
        """Forget the copies: the package is gone and everything is as it was."""
        path = self._folder / _MANIFEST
        if path.exists():
            path.unlink()
            fsync_folder(self._folder)
        shutil.rmtree(self._folder, ignore_errors=True)
