# SPDX-License-Identifier: Apache-2.0
"""Which package archive the bench image and the kernels come from; no archive is named in this project."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import tarfile
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from storqual.virtual_bench.places import cache_folder, locked
from storqual_core.kit.command import run
from storqual_core.kit.errors import MissingToolError, ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping


SUITE = "bookworm"
_ENDINGS = {"", "-updates", "-security", "-backports"}
_OS_RELEASE = Path("/etc/os-release")
# what a lab sets to reach its mirror: proxies, certificates, time checks of a snapshot; never index targets
_KEPT_OPTIONS = re.compile(r"^Acquire::(?:http|https|Retries|Check-Valid-Until|Check-Date)(?:::[A-Za-z0-9._/-]+)* \"")


@dataclass(frozen=True)
class AptSources:
    """Where packages come from: deb822 or one-line text, or a bare mirror address, or "" for mmdebstrap's default."""

    origin: str
    text: str
    options: tuple[str, ...] = ()


def _is_debian(suites: list[str], components: list[str]) -> bool:
    """Whether a source is Debian's own archive for the guest's release, and not someone else's packages for it."""
    known = {SUITE + ending for ending in _ENDINGS}
    return bool(suites) and set(suites) <= known and "main" in components


def debian_entries(one_line: str, deb822: str) -> str:
    """Those entries of a machine's sources that are Debian's archive for the guest's release, as one deb822 text."""
    kept = []
    for block in re.split(r"\n\s*\n", deb822):
        lines = [line for line in block.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        fields: dict[str, str] = {}
        name = ""
        for line in lines:
            if line[0].isspace() and name:
                fields[name] += " " + line.strip()
            elif ":" in line:
                name, _, value = line.partition(":")
                name = name.strip().lower()
                fields[name] = value.strip()
        types = fields.get("types", "").split()
        off = fields.get("enabled", "yes").lower() in {"no", "false", "without", "off", "disable", "0"}
        if (
            "deb" in types
            and not off
            and _is_debian(fields.get("suites", "").split(), fields.get("components", "").split())
        ):
            kept.append("\n".join(lines))
    for line in one_line.splitlines():
        match = re.match(r"^\s*deb\s+(\[[^]]*\]\s+)?(\S+)\s+(\S+)\s+([^#]*)", line)
        if match and _is_debian([match[3]], match[4].split()):
            signed = re.search(r"signed-by=(\S+?)[\s\]]", match[1] or "", re.IGNORECASE)
            entry = ["Types: deb", f"URIs: {match[2]}", f"Suites: {match[3]}", f"Components: {match[4].strip()}"]
            kept.append("\n".join(entry + ([f"Signed-By: {signed[1]}"] if signed else [])))
    return "\n\n".join(kept) + "\n" if kept else ""


def _host_release() -> str:
    """`debian bookworm` for this machine, or something else."""
    try:
        fields = dict(
            line.split("=", 1) for line in _OS_RELEASE.read_text(encoding="utf-8").splitlines() if "=" in line
        )
    except OSError:
        return ""
    return f"{fields.get('ID', '').strip(chr(34))} {fields.get('VERSION_CODENAME', '').strip(chr(34))}"


def _host_options() -> tuple[str, ...]:
    """How this machine's apt reaches its archive (proxy, certificates), for one with another configuration."""
    dump = run(["apt-config", "dump"]).expect().stdout
    return tuple(line for line in dump.splitlines() if _KEPT_OPTIONS.match(line) and not line.endswith(' "";'))


def choose_sources(environment: Mapping[str, str] = os.environ, apt: Path = Path("/etc/apt")) -> AptSources:
    """The archive to use.

    `STORQUAL_DEBIAN_MIRROR`, else this machine's own when it runs the same release, else the default of mmdebstrap.
    """
    options = _host_options()
    mirror = environment.get("STORQUAL_DEBIAN_MIRROR", "")
    if mirror:
        return AptSources("STORQUAL_DEBIAN_MIRROR", mirror, options)
    if _host_release() == f"debian {SUITE}":
        parts = apt / "sources.list.d"
        one_line = [apt / "sources.list", *sorted(parts.glob("*.list"))]
        text = debian_entries(
            "\n".join(file.read_text(encoding="utf-8") for file in one_line if file.is_file()),
            "\n\n".join(file.read_text(encoding="utf-8") for file in sorted(parts.glob("*.sources"))),
        )
        if text:
            return AptSources("the apt sources of this machine", text, options)
    return AptSources("the default of mmdebstrap", "", options)


if TYPE_CHECKING:
    from collections.abc import Callable


_RECIPE = Path(__file__).parent / "recipe"
# raise it when the way the image is put together changes without a change of the recipe
_BUILDER = 1
_DISK_SIZE = "6G"
_NAMESPACE = uuid.UUID("5707a9d1-0000-5000-8000-73746f727175")
_GRUB_MODULES = (
    *("biosdisk", "part_msdos", "part_gpt", "iso9660", "ext2", "search", "search_fs_file", "search_fs_uuid"),
    *("normal", "configfile", "linux", "gzio", "loadenv", "serial", "terminal", "video", "all_video"),
    *("echo", "ls", "test", "true", "sleep", "reboot", "halt"),
)
# packages are unpacked into a tree that is thrown away when anything fails
_BUILD_OPTIONS = ('Acquire::Languages "none";', 'APT::Install-Recommends "false";', "Acquire::Retries 3;")
_BUILD_LIMIT_S = 1800.0


@dataclass(frozen=True)
class BenchImage:
    """One finished image in the cache."""

    folder: Path

    @property
    def digest(self) -> str:
        """sha256 of all inputs; also the folder's name."""
        return self.folder.name

    @property
    def root(self) -> Path:
        """The root disk: one ext4 file system, never written to once it is here."""
        return self.folder / "root.ext4"

    @property
    def disc(self) -> Path:
        return self.folder / "boot.iso"

    @property
    def sources(self) -> Path:
        """The guest's package sources: a JSON list of {form: list|sources, text}."""
        return self.folder / "sources.json"

    @property
    def apt_options(self) -> Path:
        return self.folder / "apt.conf"

    @property
    def packages(self) -> Path:
        return self.folder / "dpkg-status"


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def image_digest(sources: AptSources, recipe: Path = _RECIPE) -> str:
    """sha256 over everything the image is made from: recipe files with their names and modes, sources, builder."""
    digest = hashlib.sha256()
    inputs = {"builder": _BUILDER, "disk": _DISK_SIZE, "suite": SUITE, "sources": sources.text, "grub": _GRUB_MODULES}
    digest.update(json.dumps(inputs, sort_keys=True).encode())
    for file in _files(recipe):
        executable = bool(file.stat().st_mode & 0o100)
        digest.update(f"\0{file.relative_to(recipe).as_posix()}\0{executable}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _packages(recipe: Path) -> list[str]:
    lines = (recipe / "packages").read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def _pack_tree(tree: Path, target: Path) -> None:
    """Pack the recipe's files as root's, readable by all, whatever the checkout's umask was."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        return member

    with tarfile.open(target, "w") as archive:
        for file in _files(tree):
            archive.add(file, arcname=file.relative_to(tree).as_posix(), filter=plain)


def _debootstrap(work: Path, sources: AptSources, digest: str, root_uuid: str) -> None:
    """Have mmdebstrap make `root.tar` in `work`, with the recipe applied."""
    recipe = _RECIPE
    _pack_tree(recipe / "tree", work / "tree.tar")
    # files of the caller are handed in through mmdebstrap: in its user namespace it may not read the caller's home
    shutil.copyfile(recipe / "customize", work / "customize")
    machine = hashlib.sha256(digest.encode()).hexdigest()[:32]
    quoted = {name: shlex.quote(str(work / name)) for name in ("tree.tar", "customize", "dpkg-status", "sources.tar")}
    hooks = [
        f"tar-in {quoted['tree.tar']} /",
        f"upload {quoted['customize']} /customize",
        # apt's own record of where the packages came from, before the lists go
        f"download /var/lib/dpkg/status {quoted['dpkg-status']}",
        f"tar-out /etc/apt {quoted['sources.tar']}",
        f'chroot "$1" env STORQUAL_MACHINE_ID={machine} STORQUAL_ROOT_UUID={root_uuid} sh /customize',
        'rm "$1/customize"',
    ]
    argv = ["mmdebstrap", "--mode=auto", "--variant=minbase", "--format=tar", "--dpkgopt=force-unsafe-io"]
    argv += [f"--dpkgopt={line}" for line in _path_rules(recipe)]
    argv += [f"--aptopt={option}" for option in (*_BUILD_OPTIONS, *sources.options)]
    argv += [f"--customize-hook={hook}" for hook in hooks]
    argv += [f"--include={','.join(_packages(recipe))}", SUITE, str(work / "root.tar")]
    if "\n" in sources.text:
        given = work / "given.sources"
        given.write_text(sources.text, encoding="utf-8")
        argv.append(str(given))
    elif sources.text:
        argv.append(sources.text)
    ended = run(argv, timeout=_BUILD_LIMIT_S)
    (work / "build.log").write_text(f"{ended.line}\n{ended.stdout}{ended.stderr}", encoding="utf-8")
    if ended.rc != 0:
        tail = "\n".join(ended.stderr.strip().splitlines()[-12:])
        raise ToolError(f"mmdebstrap could not build the bench image (status {ended.rc}):\n{tail}")


def _path_rules(recipe: Path) -> list[str]:
    """What the guest's own dpkg leaves out is left out while the image is made, too."""
    text = (recipe / "tree/etc/dpkg/dpkg.cfg.d/storqual").read_text(encoding="utf-8")
    return [line.strip() for line in text.splitlines() if line.startswith("path-")]


def _sources_text(archive: Path) -> str:
    """The sources that mmdebstrap wrote into the guest, whichever of apt's two places it used."""
    parts = []
    with tarfile.open(archive) as tar:
        for member in tar:
            name = member.name.split("/")[-1]
            if member.isfile() and (name == "sources.list" or "sources.list.d/" in member.name):
                handle = tar.extractfile(member)
                parts.append((name.rsplit(".", 1)[-1], handle.read().decode("utf-8") if handle else ""))
    return json.dumps([{"form": form, "text": text} for form, text in parts if text.strip()], indent=1) + "\n"


def _make_disk(work: Path, root_uuid: str) -> None:
    """Fill an ext4 image from `root.tar` without a loop device; owners are kept through a user namespace."""
    script = (
        'set -eu; mkdir "$1/root"; tar -C "$1/root" --exclude=./dev/* -xf "$1/root.tar"; '
        'mkfs.ext4 -q -F -L storqual -U "$2" -m 0 -E nodiscard,root_owner=0:0 -d "$1/root" "$1/root.ext4" "$3"; '
        'rm -rf "$1/root"'
    )
    argv = ["sh", "-c", script, "sh", str(work), root_uuid, _DISK_SIZE]
    if os.geteuid() != 0:
        argv = ["unshare", "--user", "--map-root-user", "--map-auto", "--", *argv]
    run(argv, timeout=_BUILD_LIMIT_S).expect()


def _make_disc(work: Path) -> None:
    """The boot disc: GRUB with everything it needs built in, so that nothing on the root disk is executed by it."""
    folder = work / "disc/boot/grub"
    folder.mkdir(parents=True)
    core = folder / "eltorito.img"
    config = str(_RECIPE / "boot_disc.cfg")
    argv = ["grub-mkimage", "-O", "i386-pc-eltorito", "-c", config, "-p", "/boot/grub", "-o", str(core)]
    run([*argv, *_GRUB_MODULES]).expect()
    argv = ["xorriso", "-as", "mkisofs", "-quiet", "-R", "-b", "boot/grub/eltorito.img", "-no-emul-boot"]
    argv += ["-boot-load-size", "4", "-boot-info-table", "-o", str(work / "boot.iso"), str(work / "disc")]
    run(argv).expect()


def _build(folder: Path, sources: AptSources, say: Callable[[str], None]) -> None:
    began = time.monotonic()
    digest = folder.name
    root_uuid = str(uuid.uuid5(_NAMESPACE, digest))
    work = Path(tempfile.mkdtemp(prefix=f"{digest[:12]}.", dir=folder.parent))
    try:
        say(f"building the bench image from {sources.origin}; this happens once and takes some minutes")
        try:
            _debootstrap(work, sources, digest, root_uuid)
            _make_disk(work, root_uuid)
            _make_disc(work)
        except MissingToolError as problem:
            raise ToolError(f"{problem}; `make setup-bench` installs what a virtual bench needs") from problem
        (work / "sources.json").write_text(_sources_text(work / "sources.tar"), encoding="utf-8")
        (work / "apt.conf").write_text("\n".join(sources.options) + "\n", encoding="utf-8")
        for leftover in ("root.tar", "tree.tar", "customize", "given.sources", "sources.tar"):
            (work / leftover).unlink(missing_ok=True)
        shutil.rmtree(work / "disc")
        facts = {"digest": digest, "sources": sources.origin, "seconds": round(time.monotonic() - began, 1)}
        (work / "image.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        work.chmod(0o755)
        work.rename(folder)
        say(f"bench image built in {facts['seconds']} s")
    except BaseException:
        # parts of the tree may belong to ids of the user namespace
        if os.geteuid() != 0:
            run(["unshare", "--user", "--map-root-user", "--map-auto", "--", "rm", "-rf", str(work / "root")])
        shutil.rmtree(work, ignore_errors=True)
        raise


def _folder(sources: AptSources) -> Path:
    return cache_folder() / "bench-image" / image_digest(sources)


def image_is_cached() -> bool:
    """Whether the image for the present inputs has been built."""
    return (_folder(choose_sources()) / "image.json").is_file()


def ensure_image(say: Callable[[str], None] = lambda _line: None) -> BenchImage:
    """The image for the present inputs, built when it is not in the cache; two at once wait for each other.

    Raises ToolError when it cannot be built.
    """
    sources = choose_sources()
    folder = _folder(sources)
    images = folder.parent
    images.mkdir(parents=True, exist_ok=True)
    if not (folder / "image.json").is_file():
        with locked(images / "lock"):
            if not (folder / "image.json").is_file():
                _build(folder, sources, say)
    return BenchImage(folder)
