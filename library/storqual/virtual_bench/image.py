# SPDX-License-Identifier: Apache-2.0
"""Which package archive the bench image and the kernels come from; no archive is named in this project."""

import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import tarfile
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from storqual.virtual_bench.places import FileOf, cache_folder, locked
from storqual_core.kit.command import run
from storqual_core.kit.errors import BadInputError, MissingToolError, ToolError

SUITE = "bookworm"
# whose GRUB has a reader of boot entries in files, which that of the guest's own release lacks
_UNSTABLE = "sid"
_ENDINGS = {"", "-updates", "-security", "-backports"}
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
        # a line that begins with a blank goes on with the one before it
        pairs = (line.partition(":") for line in re.sub(r"\n[ \t]", " ", "\n".join(lines)).splitlines())
        fields = {name.strip().lower(): value.strip() for name, _, value in pairs}
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
        fields = platform.freedesktop_os_release()
    except OSError:
        return ""
    return f"{fields['ID']} {fields.get('VERSION_CODENAME', '')}"


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


_RECIPE = Path(__file__).parent / "recipe"
FLAVOURS = {
    "deb": ("common", "deb"),
    "rpm": ("common", "rpm-base", "rpm-grub", "rpm", "rpm-dnf"),
    "rpm-suse": ("common", "rpm-base", "rpm-grub", "rpm-suse"),
    "uefi": ("common", "rpm-base", "uefi", "rpm-dnf"),
}
"""The kinds of guest: folders of the recipe, each over the one before it."""
# raise it when the way the image is put together changes without a change of the recipe
_BUILDER = 2
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

    root = FileOf("root.ext4")
    """The root disk, an ext4 file system or partitions, never written to once it is here."""
    disc = FileOf("boot.iso")
    """What the machine is started from; there is none where its firmware is UEFI."""
    sources = FileOf("sources.json")
    """The guest's package sources: a JSON list of {form: list|sources, text}."""
    apt_options = FileOf("apt.conf")
    kept = FileOf("kept")
    """Files of the guest for its drops, such as the RPMs of its kernels."""
    packages = FileOf("dpkg-status")

    @property
    def digest(self) -> str:
        """sha256 of all inputs; also the folder's name."""
        return self.folder.name

    @property
    def firmware(self) -> tuple[Path, Path] | None:
        """UEFI and its variables as they are before the first start, for a guest that is started by it."""
        code, variables = (self.kept / "OVMF" / f"OVMF_{part}_4M.fd" for part in ("CODE", "VARS"))
        return (code, variables) if code.is_file() else None


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def image_digest(sources: AptSources, flavour: str = "deb", recipe: Path = _RECIPE) -> str:
    """sha256 over everything the image is made from: recipe files with their names and modes, sources, builder."""
    digest = hashlib.sha256()
    inputs = {"builder": _BUILDER, "disk": _DISK_SIZE, "suite": SUITE, "sources": sources.text, "grub": _GRUB_MODULES}
    digest.update(json.dumps(inputs, sort_keys=True).encode())
    for file in (file for layer in FLAVOURS[flavour] for file in _files(recipe / layer)):
        executable = bool(file.stat().st_mode & 0o100)
        digest.update(f"\0{file.relative_to(recipe).as_posix()}\0{executable}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _words(layers: list[Path], name: str) -> list[str]:
    """The lines of a file that some layers of the recipe have; a '#' starts a comment."""
    texts = [(layer / name).read_text(encoding="utf-8") for layer in layers if (layer / name).is_file()]
    lines = (line.strip() for text in texts for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _pack_tree(trees: list[Path], target: Path, prefix: str = "") -> None:
    """Pack folders of files as root's, readable by all, whatever the checkout's umask was."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        return member

    with tarfile.open(target, "w") as archive:
        for tree in trees:
            for file in _files(tree):
                archive.add(file, arcname=prefix + file.relative_to(tree).as_posix(), filter=plain)


def _debootstrap(
    work: Path, sources: AptSources, layers: list[Path], digest: str, root_uuid: str, loader: Path | None
) -> None:
    """Have mmdebstrap make `root.tar` in `work`, with the recipe applied."""
    _pack_tree([layer / "tree" for layer in layers], work / "tree.tar")
    # a letter in front: upstream's GRUB takes the name of an entry that begins with a digit for a number
    machine = f"f{hashlib.sha256(digest.encode()).hexdigest()[1:32]}"
    quoted = {
        name: shlex.quote(str(work / name)) for name in ("tree.tar", "loader.tar", "dpkg-status", "sources.tar")
    }
    hooks = [f"tar-in {quoted['tree.tar']} /"]
    if loader:
        # as its installation leaves them on a disk: by these a bench tells which GRUB starts it
        _pack_tree([loader / _LOADER_MODULES], work / "loader.tar", "boot/grub2/i386-pc/")
        hooks.append(f"tar-in {quoted['loader.tar']} /")
    hooks += [
        # apt's own record of where the packages came from, before the lists go
        f"download /var/lib/dpkg/status {quoted['dpkg-status']}",
        f"tar-out /etc/apt {quoted['sources.tar']}",
    ]
    hooks += [(layer / "fetch").read_text(encoding="utf-8") for layer in layers if (layer / "fetch").is_file()]
    for layer in layers:
        # handed in through mmdebstrap: in its user namespace it may not read files of the caller's home
        script = shutil.copyfile(layer / "customize", work / f"customize-{layer.name}")
        hooks += [
            f"upload {shlex.quote(str(script))} /customize",
            f'chroot "$1" env STORQUAL_MACHINE_ID={machine} STORQUAL_ROOT_UUID={root_uuid} sh /customize',
        ]
    for number, folder in enumerate(_words(layers, "kept")):
        hooks.append(f"tar-out {folder} {shlex.quote(str(work / f'kept-{number}.tar'))}")
    hooks.append(
        'cd "$1" && rm -rf customize var/lib/apt/lists/* var/cache/apt/* var/log/*.log var/log/apt'
        " etc/apt/apt.conf.d/99mmdebstrap"
    )
    argv = ["mmdebstrap", "--mode=auto", "--variant=minbase", "--format=tar", "--dpkgopt=force-unsafe-io"]
    # which would empty /etc/machine-id, by which boot entries in files are named
    argv.append("--skip=cleanup/reproducible")
    argv += [f"--dpkgopt={line}" for line in _path_rules(layers)]
    argv += [f"--aptopt={option}" for option in (*_BUILD_OPTIONS, *sources.options)]
    argv += [f"--customize-hook={hook}" for hook in hooks]
    argv += [f"--include={','.join(_words(layers, 'packages'))}", SUITE, str(work / "root.tar")]
    argv += _sources_argument(work / "given.sources", sources.text)
    ended = run(argv, timeout=_BUILD_LIMIT_S)
    (work / "build.log").write_text(f"{ended.line}\n{ended.stdout}{ended.stderr}", encoding="utf-8")
    if ended.rc != 0:
        tail = "\n".join(ended.stderr.strip().splitlines()[-12:])
        raise ToolError(f"mmdebstrap could not build the bench image (status {ended.rc}):\n{tail}")


def _sources_argument(file: Path, text: str) -> list[str]:
    if "\n" not in text:
        return [text] if text else []
    file.write_text(text, encoding="utf-8")
    return [str(file)]


def _path_rules(layers: list[Path]) -> list[str]:
    """What the guest's own dpkg leaves out is left out while the image is made, too."""
    return [line for line in _words(layers, "tree/etc/dpkg/dpkg.cfg.d/storqual") if line.startswith("path-")]


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


def _layer_file(layers: list[Path], name: str) -> Path | None:
    """The file of this name of the last layer that has one."""
    return next((file for layer in reversed(layers) if (file := layer / name).is_file()), None)


def _make_disk(work: Path, layers: list[Path], root_uuid: str) -> None:
    """Make the root disk of `root.tar` without a loop device; owners are kept through a user namespace."""
    text = 'mkdir "$1/root"; tar -C "$1/root" --exclude=./dev/* -xf "$1/root.tar"; sh "$4" "$@"; rm -r "$1/root"'
    argv = ["sh", "-euc", text, "sh", str(work), root_uuid, _DISK_SIZE, str(_layer_file(layers, "disk"))]
    if os.geteuid() != 0:
        argv = ["unshare", "--user", "--map-root-user", "--map-auto", "--", *argv]
    run(argv, timeout=_BUILD_LIMIT_S).expect()


_LOADER_MODULES = Path("usr/lib/grub/i386-pc")


def unstable_sources(text: str) -> str:
    """The unstable release of the same archive: of sources as text, the first entry that has our whole release."""
    for block in text.split("\n\n") if "\n" in text else ():
        lines = [line for line in block.splitlines() if re.match(r"(?i)(types|uris|signed-by|trusted):", line)]
        if re.search(rf"(?im)^suites:(.*\s)?{SUITE}(\s|$)", block):
            return "\n".join([*lines, f"Suites: {_UNSTABLE}", "Components: main"]) + "\n"
    return "" if "\n" in text else text


def _loader(images: Path, sources: AptSources, modules: list[str], say: Callable[[str], None]) -> Path:
    """A GRUB that has all `modules`, unpacked beside the images from Debian's unstable release and kept there.

    Nothing of it is installed: its programs run by their own loader and libraries.
    """
    folder = images / "grub-unstable"
    if not all((folder / _LOADER_MODULES / f"{module}.mod").is_file() for module in modules):
        work = Path(tempfile.mkdtemp(prefix="grub.", dir=images))
        try:
            say(f"fetching a GRUB with {', '.join(modules)} from Debian's unstable release")
            argv = ["mmdebstrap", "--mode=auto", "--variant=extract", "--include=grub-common,grub-pc-bin"]
            # a mirror that lags behind has an older GRUB, which the image records; signatures are checked there too
            options = (*_BUILD_OPTIONS, *sources.options, 'Acquire::Check-Valid-Until "false";')
            argv += [f"--aptopt={option}" for option in options]
            argv += [_UNSTABLE, str(work / "grub.tar")]
            argv += _sources_argument(work / "given.sources", unstable_sources(sources.text))
            run(argv, timeout=_BUILD_LIMIT_S).expect()
            wanted = re.compile(r"\./usr/(bin/grub-|lib/grub/i386-pc/|lib/x86_64-linux-gnu/)")
            with tarfile.open(work / "grub.tar") as tar:
                members = [each for each in tar if wanted.match(each.name) and not each.isdev()]
                tar.extractall(work / "unpacked", members, filter="tar")
            lacking = [
                name for name in modules if not (work / "unpacked" / _LOADER_MODULES / f"{name}.mod").is_file()
            ]
            if lacking:
                raise ToolError(f"the GRUB of Debian's unstable release has no {', '.join(lacking)}")
            shutil.rmtree(folder, ignore_errors=True)
            (work / "unpacked").rename(folder)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return folder


def _grub_mkimage(loader: Path | None) -> list[str]:
    """The command of this machine's GRUB, or of an unpacked one."""
    if loader is None:
        return ["grub-mkimage"]
    libraries = loader / "usr/lib/x86_64-linux-gnu"
    argv = [str(libraries / "ld-linux-x86-64.so.2"), "--library-path", str(libraries)]
    return [*argv, str(loader / "usr/bin/grub-mkimage"), "-d", str(loader / _LOADER_MODULES)]


def _make_disc(work: Path, config: Path, modules: list[str], loader: Path | None) -> str:
    """The boot disc: GRUB with everything it needs built in, so that nothing on the root disk is executed by it.

    Returns its version.
    """
    folder = work / "disc/boot/grub"
    folder.mkdir(parents=True)
    core = folder / "eltorito.img"
    argv = [*_grub_mkimage(loader), "-O", "i386-pc-eltorito", "-c", str(config), "-p", "/boot/grub", "-o", str(core)]
    run([*argv, *_GRUB_MODULES, *modules]).expect()
    argv = ["xorriso", "-as", "mkisofs", "-quiet", "-R", "-b", "boot/grub/eltorito.img", "-no-emul-boot"]
    argv += ["-boot-load-size", "4", "-boot-info-table", "-o", str(work / "boot.iso"), str(work / "disc")]
    run(argv).expect()
    shutil.rmtree(work / "disc")
    return run([*_grub_mkimage(loader), "--version"]).expect().stdout.split()[-1]


def _build(folder: Path, sources: AptSources, flavour: str, say: Callable[[str], None]) -> None:
    began = time.monotonic()
    digest = folder.name
    root_uuid = str(uuid.uuid5(_NAMESPACE, digest))
    layers = [_RECIPE / layer for layer in FLAVOURS[flavour]]
    modules = _words(layers, "grub_modules")
    work = Path(tempfile.mkdtemp(prefix=f"{digest[:12]}.", dir=folder.parent))
    try:
        say(f"building the {flavour} bench image from {sources.origin}; this happens once and takes some minutes")
        try:
            loader = _loader(folder.parent, sources, modules, say) if modules else None
            _debootstrap(work, sources, layers, digest, root_uuid, loader)
            _make_disk(work, layers, root_uuid)
            config = _layer_file(layers, "boot_disc.cfg")
            grub = _make_disc(work, config, modules, loader) if config else ""
        except MissingToolError as problem:
            raise ToolError(f"{problem}; `make setup-bench` installs what a virtual bench needs") from problem
        (work / "sources.json").write_text(_sources_text(work / "sources.tar"), encoding="utf-8")
        (work / "apt.conf").write_text("\n".join(sources.options) + "\n", encoding="utf-8")
        for kept in work.glob("kept-*.tar"):
            with tarfile.open(kept) as tar:
                tar.extractall(work / "kept", filter="data")
        for leftover in (*work.glob("*.tar"), *work.glob("customize-*"), work / "given.sources"):
            leftover.unlink(missing_ok=True)
        seconds = round(time.monotonic() - began, 1)
        facts = {"digest": digest, "flavour": flavour, "sources": sources.origin, "grub": grub, "seconds": seconds}
        (work / "image.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        work.chmod(0o755)
        work.rename(folder)
        say(f"bench image built in {seconds} s")
    except BaseException:
        # parts of the tree may belong to ids of the user namespace
        if os.geteuid() != 0:
            run(["unshare", "--user", "--map-root-user", "--map-auto", "--", "rm", "-rf", str(work / "root")])
        shutil.rmtree(work, ignore_errors=True)
        raise


def _folder(sources: AptSources, flavour: str) -> Path:
    if flavour not in FLAVOURS:
        raise BadInputError([f"storqual_virtual.flavour: expected one of {', '.join(FLAVOURS)}, found {flavour!r}"])
    return cache_folder() / "bench-image" / image_digest(sources, flavour)


def image_is_cached(flavour: str = "deb") -> bool:
    """Whether the image for the present inputs has been built."""
    return (_folder(choose_sources(), flavour) / "image.json").is_file()


def ensure_image(say: Callable[[str], None] = lambda _line: None, flavour: str = "deb") -> BenchImage:
    """The image for the present inputs, built when it is not in the cache; two at once wait for each other.

    Raises ToolError when it cannot be built.
    """
    sources = choose_sources()
    folder = _folder(sources, flavour)
    images = folder.parent
    images.mkdir(parents=True, exist_ok=True)
    if not (folder / "image.json").is_file():
        with locked(images / "lock"):
            if not (folder / "image.json").is_file():
                _build(folder, sources, flavour, say)
    return BenchImage(folder)
