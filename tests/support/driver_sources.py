# SPDX-License-Identifier: Apache-2.0
"""Drivers for the virtual bench's kernel, made on this machine from Debian's sources, headers and compiler.

The sources are those of the very kernel that the bench runs, with a version of their own, so that a build differs
from the kernel's in what the test changed and in nothing else.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from storqual.virtual_bench.image import BenchImage, ensure_image
from storqual.virtual_bench.package_cache import fetch_packages

_KERNEL = re.compile(r"^Package: linux-image-(\d+\.\d+\.\d+\S*)$", re.MULTILINE)
_CONTROL = """\
Package: {name}-dkms
Version: {version}
Architecture: all
Maintainer: A driver's vendor <drivers@example.org>
Depends: dkms
Description: sources of {module}
"""
_CONF = """\
PACKAGE_NAME="{name}"
PACKAGE_VERSION="{version}"
BUILT_MODULE_NAME[0]="{module}"
DEST_MODULE_LOCATION[0]="/updates/dkms"
AUTOINSTALL="yes"
"""
_POSTINST = '#!/bin/sh\nset -e\n/usr/lib/dkms/common.postinst {name} {version} /usr/share/{name} "" "$2"\n'
_PRERM = "#!/bin/sh\nset -e\ndkms remove -m {name} -v {version} --all\n"


@dataclass(frozen=True)
class DriverSources:
    """Where the kernel's headers and sources were unpacked, and for which release."""

    folder: Path
    release: str

    def _source(self, module: str, edits: Sequence[tuple[str, str]], more: str) -> str:
        (file,) = (self.folder / "source").rglob(f"{module}.c")
        text = file.read_text(encoding="utf-8")
        for old, new in edits:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        return text + more

    def _lay_out(self, folder: Path, module: str, text: str) -> None:
        """Sources with their Makefile in an empty folder."""
        folder.mkdir(parents=True)
        (folder / f"{module}.c").write_text(text, encoding="utf-8")
        (folder / "Makefile").write_text(f"obj-m := {module}.o\n", encoding="utf-8")
        for header in (self.folder / "source").rglob("*.h"):
            shutil.copy(header, folder)

    def module(self, module: str, name: str, edits: Sequence[tuple[str, str]] = (), more: str = "") -> Path:
        """A prebuilt module: the kernel's source with edits and with more at its end, compiled and stripped."""
        folder = self.folder / name
        self._lay_out(folder, module, self._source(module, edits, more))
        return self._compiled(folder, module)

    def folder_module(self, folder: str, module: str, file: str, rewrite: Callable[[str], str]) -> Path:
        """A prebuilt module of a folder of the kernel's sources, with its own Makefile if any, one file rewritten."""
        (source,) = (self.folder / "source").glob(f"*/{folder}")
        built = Path(tempfile.mkdtemp(dir=self.folder)) / "driver"
        shutil.copytree(source, built)
        (built / file).write_text(rewrite((built / file).read_text(encoding="utf-8")), encoding="utf-8")
        if not (built / "Makefile").exists():
            (built / "Makefile").write_text(f"obj-m := {module}.o\n", encoding="utf-8")
        return self._compiled(built, module)

    def whole_module(self, file: Path) -> Path:
        """A prebuilt module that is one source file of the tests."""
        folder = self.folder / file.stem
        folder.mkdir()
        shutil.copy(file, folder)
        (folder / "Makefile").write_text(f"obj-m := {file.stem}.o\n", encoding="utf-8")
        return self._compiled(folder, file.stem)

    def _compiled(self, folder: Path, module: str) -> Path:
        headers = self.folder / "headers/usr/src" / f"linux-headers-{self.release}"
        _run(["make", "-C", str(headers), f"M={folder}", "modules"])
        _run(["strip", "--strip-debug", str(folder / f"{module}.ko")])
        return folder / f"{module}.ko"

    def dkms_package(self, module: str, version: str, more: str) -> Path:
        """A DKMS package of the kernel's source with more at its end."""
        words = {"name": module.replace("_", "-") + "-lab", "module": module, "version": version}
        tree = self.folder / f"dkms-{version}"
        source = tree / "usr/src/{name}-{version}".format(**words)
        self._lay_out(source, module, self._source(module, (), more))
        (source / "dkms.conf").write_text(_CONF.format(**words), encoding="utf-8")
        (tree / "DEBIAN").mkdir()
        (tree / "DEBIAN/control").write_text(_CONTROL.format(**words), encoding="utf-8")
        for script, text in (("postinst", _POSTINST), ("prerm", _PRERM)):
            (tree / "DEBIAN" / script).write_text(text.format(**words), encoding="utf-8")
            (tree / "DEBIAN" / script).chmod(0o755)
        package = self.folder / "{name}-dkms_{version}_all.deb".format(**words)
        _run(["dpkg-deb", "--root-owner-group", "--build", str(tree), str(package)])
        return package


def _run(argv: list[str]) -> None:
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=900, check=False)
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-2000:]


def _release(image: BenchImage) -> str:
    (release,) = _KERNEL.findall(image.packages.read_text(encoding="utf-8"))
    return release


def driver_sources(folder: Path, paths: Sequence[str]) -> DriverSources:
    """Headers for the bench's kernel, and these files of its source tree, which is not fetched for none."""
    image = ensure_image()
    release = _release(image)
    headers = folder / "headers"
    for package in fetch_packages(image, f"linux-headers-{release}"):
        if package.package.startswith("linux-"):
            _run(["dpkg-deb", "-x", package.path, str(headers)])
    makefile = headers / f"usr/src/linux-headers-{release}/Makefile"
    makefile.write_text(makefile.read_text(encoding="utf-8").replace("/usr/src", f"{headers}/usr/src"))
    if not paths:
        return DriverSources(folder, release)
    series = ".".join(release.split(".")[:2])
    (source,) = (
        each for each in fetch_packages(image, f"linux-source-{series}") if each.package.startswith("linux-source")
    )
    _run(["dpkg-deb", "-x", source.path, str(folder / "package")])
    (folder / "source").mkdir()
    archive = folder / f"package/usr/src/linux-source-{series}.tar.xz"
    _run(["tar", "-C", str(folder / "source"), "-xJf", str(archive), *(f"linux-source-{series}/{p}" for p in paths)])
    shutil.rmtree(folder / "package")
    return DriverSources(folder, release)


def packages_of_compiler() -> list[str]:
    image = ensure_image()
    wanted = (f"linux-headers-{_release(image)}", "dkms")
    return sorted({package.path for name in wanted for package in fetch_packages(image, name)})
