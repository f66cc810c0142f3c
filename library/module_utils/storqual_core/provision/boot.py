# SPDX-License-Identifier: Apache-2.0
"""Which kernel runs and which boots next: a trial and its proof, the default, a kernel package.

The trial's command line carries a mark (`storqual.trial=`), because the kernel's release alone cannot tell a trial
from the default when both boot the same kernel. `panic=` makes a kernel that panics reboot by itself, into the
default, since the boot loader forgot the trial before it started it. Before the mark come the words that have a hang
end by itself (`hang_words`), and the name of an initramfs of our own, which carries another build of a driver. All of
them are gone with the next boot.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Collection, Iterator, Mapping, Protocol, Sequence

from ..host.block_stack import below, whole_disk
from ..host.in_use import parse_mountinfo
from ..host.watchdog import CHECK_S, has_hardware, read_watchdogs
from ..kit.command import Runner
from ..kit.durable import copy_file, fsync_folder
from ..kit.errors import ToolError
from ..kit.lock import BenchLock, read_saved, remember
from ..kit.machine import Machine, read_attribute
from ..kit.results import Provisioned, TrialFailedError, partial_errors
from ..tools import kmod
from ..tools.bootctl import ENTRIES, EfiLoader, read_variable
from ..tools.capabilities import Packages
from ..tools.grub import KEPT_ENTRY, TRIAL_ENTRY, Grub, MenuEntry, initramfs_names
from ..tools.kmod import Build
from .engine import Call
from .initramfs import builds_in
from .package_services import packages_of

WORD = "storqual.initramfs="
_PREFIX = "initrd.storqual-"
_DIGITS = 12
_ASIDE = "initrd-before-package"


def image_name(release: str, module: bytes) -> str:
    """The file in /boot for a kernel with a build of a module, which is told by the digest of its file."""
    return f"{_PREFIX}{release}-{hashlib.sha256(module).hexdigest()[:_DIGITS]}"


def booted_image(arguments: Sequence[str]) -> str:
    """The image of ours that a command line names; empty for the distribution's own."""
    return next((word[len(WORD) :] for word in arguments if word.startswith(WORD)), "")


def own_images(boot: str) -> list[str]:
    return sorted(path.name for path in Path(boot).glob(f"{_PREFIX}*") if not path.name.endswith(".part"))


def remove_images(boot: str, keep: Collection[str]) -> list[str]:
    """Remove the images of ours that are not in `keep`, and what a write that was cut short left; their names."""
    parts = [path.name for path in Path(boot).glob(f".{_PREFIX}*.part")]
    gone = [*(name for name in own_images(boot) if name not in keep), *parts]
    for name in gone:
        (Path(boot) / name).unlink()
    if gone:
        fsync_folder(Path(boot))
    return gone


@contextmanager
def unchanged(native: Path, state_dir: str, steps: list[str]) -> Iterator[None]:
    """Have the distribution's initramfs `native` be afterwards what it was; in `steps` that it had to be put back.

    A package's own script may make it anew, with a build that nobody has seen boot. A copy lies in `state_dir` until
    then, so that `put_native_back` can end what was cut short.
    """
    steps += put_native_back(native, state_dir)
    copy_file(native, Path(state_dir) / _ASIDE)
    try:
        yield
    finally:
        steps += put_native_back(native, state_dir)


def put_native_back(native: Path, state_dir: str) -> list[str]:
    """Put back the copy that `unchanged` left, where there is one; what was done."""
    done = f"/boot/{native.name} put back as it was before the package"
    return [done] if moved_back(Path(state_dir) / _ASIDE, native) else []


def moved_back(aside: Path, file: Path) -> bool:
    """Whether a copy that was set aside was there and is the file again, which differed; the copy is gone."""
    differs = aside.exists() and file.read_bytes() != aside.read_bytes()
    if differs:
        copy_file(aside, file)
    aside.unlink(missing_ok=True)
    return differs


_STARTED_FROM = "LoaderDevicePartUUID"
"""The EFI variable with the partition from which the boot loader was started."""
_MARK = "storqual.trial="
_KEPT_MARK = "storqual.kept="
_PANIC = "panic=10"
_PSTORE = ("/sys/fs/pstore", "/var/lib/systemd/pstore")
_LAST_LINES = 60


WATCHDOG_S = 60
"""Of the run-time and the reboot watchdog; systemd feeds it twice in that time."""
HUNG_TASK_S = 120
"""The kernel's own limit for a task that waits without interruption."""
_SETS_SYSCTLS = (5, 8)
"""The first kernel that takes `sysctl.` on its command line."""
_RELEASE = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")


def hang_words(release: str, hung_task_s: int, *, hardware_watchdog: bool, nmi: bool = False) -> list[str]:
    """Words of the command line with which a kernel ends its own hangs.

    A bench that boots with `nowatchdog` keeps its detectors of lockups off. An older kernel cannot be told
    `hung_task_s`: where that is above its own limit, it does not panic by hung tasks. With `nmi` it panics by one
    that a management controller sends.
    """
    version = _RELEASE.match(release)
    sets = version is not None and tuple(map(int, version.groups())) >= _SETS_SYSCTLS
    words = [
        *(f"systemd.watchdog_sec={WATCHDOG_S}", "oops=panic", "softlockup_panic=1", "nmi_watchdog=panic"),
        "sysrq_always_enabled=1",
    ]
    if nmi:
        words.append("unknown_nmi_panic")
    if not hardware_watchdog:
        words.append("modules_load=softdog")
    if sets or hung_task_s <= HUNG_TASK_S:
        words.append("hung_task_panic=1")
    if sets:
        words.append(f"sysctl.kernel.hung_task_timeout_secs={hung_task_s}")
        words.append(f"sysctl.kernel.hung_task_check_interval_secs={CHECK_S}")
    return words


class Loader(Protocol):
    """A boot loader: its entries in its own order, what boots by default, an entry of ours, one boot and the default.

    `saved_entry` and `next_entry` are what its variables for the default and the next start are called here.
    """

    @property
    def folder(self) -> str:
        """Where its own files are."""

    def entries(self) -> list[MenuEntry]:
        """The menu. Raises ToolError."""

    def environment(self) -> Mapping[str, str]:
        """`saved_entry`, `next_entry` and what else it keeps. Raises ToolError."""

    def default(self, environment: Mapping[str, str] | None = None) -> MenuEntry | None:
        """What boots when nothing is asked for, by the loader's own rule."""

    def resolved_default(self, environment: Mapping[str, str] | None = None) -> tuple[MenuEntry | None, str]:
        """The same, and a name that does not name it: then the order of the menu decides."""

    def resolve(self, wanted: str) -> MenuEntry | None:
        """The entry that this word names; None where it names none."""

    def check_one_shot(self) -> None:
        """Raise ToolError where it could not boot an entry once, or not forget it by itself."""

    def build(self, template: MenuEntry, identifier: str, kernel: str, initrd: str, arguments: Sequence[str]) -> str:
        """The text of an entry of ours: as `template`, with these files and words. Raises ToolError."""

    # one entry of ours; the text of all of them, None where there is none
    def put_entry(self, text: str, identifier: str) -> None: ...
    def take_out(self, identifier: str) -> None: ...
    def custom_text(self) -> str | None: ...
    def write_custom(self, text: str | None) -> None: ...

    def tidy(self) -> None:
        """Remove what a write of ours that was cut short left."""

    def settle(self, files: Sequence[str] = ()) -> bool:
        """Have the loader see its files and `files`; whether they were read back as it reads them."""

    # an entry for the next start only, and from then on; a variable of the loader, which None removes
    def boot_once(self, path: str) -> None: ...
    def set_default(self, path: str) -> None: ...
    def put_variable(self, name: str, value: str | None) -> None: ...


@dataclass(frozen=True)
class System:
    """The bench that a step works on: its runner and where its trees are (other roots are for tests)."""

    runner: Runner
    boot: str = "/boot"
    proc: str = "/proc"
    sysfs: str = "/sys"
    release: str = ""

    @property
    def root(self) -> Path:
        """What /boot lies in."""
        return Path(self.boot).parent

    @property
    def running(self) -> str:
        return self.release or os.uname().release

    @property
    def loader(self) -> Loader:
        """GRUB where it has a grub.cfg; else the loader that is told by EFI variables, where it left its own."""
        folders = [f"{self.boot}/{name}" for name in ("grub", "grub2")]
        folder = next((folder for folder in folders if Path(f"{folder}/grub.cfg").exists()), "")
        variables = Path(f"{self.sysfs}/firmware/efi/efivars")
        if not folder and next(variables.glob(f"{ENTRIES}-*"), None):
            places = [self.boot, f"{self.boot}/efi", f"{self.boot}/../efi"]
            place = next((place for place in places if Path(f"{place}/loader/entries").is_dir()), "")
            if place:
                return EfiLoader(self.runner, place, self.sysfs, self.proc)
        return Grub(self.runner, folder or folders[0], self.sysfs, self.proc, str(self.root / "etc"))

    def kernels(self) -> dict[str, str]:
        """Releases that can be booted, to their initramfs below `boot` (empty: none)."""
        kernels = installed_kernels(self.boot)
        for release, entry in self._entries().items():
            kernels[release] = self._below(entry.images[-1]) if entry.images else ""
        return kernels

    def kernel_file(self, release: str) -> str:
        """The kernel itself, below `boot`: where its entry names it, for a loader that is told by EFI variables."""
        entry = self._entries().get(release)
        return self._below(entry.kernel) if entry else f"vmlinuz-{release}"

    def _entries(self) -> dict[str, MenuEntry]:
        """Of a loader that is told by EFI variables: the entry of each kernel, which names its files."""
        loader = self.loader
        entries = usable_entries(loader.entries()) if isinstance(loader, EfiLoader) else []
        return {entry.release: entry for entry in reversed(entries)}

    def _below(self, file: str) -> str:
        """A path from the top of the loader's partition as one below `boot`."""
        return os.path.relpath(f"{self.loader.folder}/{file}", self.boot)

    @property
    def packages(self) -> Packages:
        return packages_of(Machine(str(self.root)), self.runner, self.running)

    def arguments(self) -> list[str]:
        return (read_attribute(f"{self.proc}/cmdline") or "").split()


def _machine(system: System) -> Machine:
    return Machine(str(Path(system.sysfs).parent))


def last_words() -> list[dict[str, str]]:
    """What a panic left in pstore, newest kernel message dumps first; empty where the bench has none."""
    dumps = []
    for folder in _PSTORE:
        for path in sorted(Path(folder).rglob("dmesg-*"), reverse=True):
            text = read_attribute(path)
            if text:
                dumps.append({"name": str(path), "text": "\n".join(text.splitlines()[-_LAST_LINES:])})
    return dumps


def trial_mark(arguments: Sequence[str]) -> str:
    """The mark of the trial that is running, empty when the bench runs its default."""
    return next((word[len(_MARK) :] for word in arguments if word.startswith(_MARK)), "")


def added_arguments(arguments: Sequence[str]) -> list[str]:
    """The words that an entry of ours added to the command line: what follows its mark, without our `panic=`."""
    marks = [place for place, word in enumerate(arguments) if word.startswith((_MARK, _KEPT_MARK))]
    return [word for word in arguments[marks[-1] + 1 :] if word != _PANIC] if marks else []


def installed_kernels(boot: str = "/boot") -> dict[str, str]:
    """Releases that can be booted, to the name of their initramfs (empty: none)."""
    kernels = {}
    for image in sorted(Path(boot).glob("vmlinuz-*")):
        release = image.name[len("vmlinuz-") :]
        if not release.startswith("0-rescue-"):
            names = initramfs_names(release)
            kernels[release] = next((name for name in names if (Path(boot) / name).exists()), "")
    return kernels


def read_facts(system: System, modules: Sequence[str] = ()) -> dict[str, Any]:
    """What runs, what would boot, what is installed, and the builds of `modules` loaded and on disk."""
    arguments = system.arguments()
    loader = system.loader
    environment = loader.environment()
    default = loader.default(environment)
    disk = kmod.on_disk(system.runner, modules, system.running)
    builds: dict[str, Any] = {
        name: {"loaded": _plain(kmod.loaded(name, system.sysfs)), "disk": {system.running: _plain(disk[name])}}
        for name in modules
    }
    return {
        "running": system.running,
        "boot_id": read_attribute(f"{system.proc}/sys/kernel/random/boot_id") or "",
        "arguments": arguments,
        "trial": trial_mark(arguments),
        "added": added_arguments(arguments),
        "initramfs": booted_image(arguments),
        "default": {"release": default.release, "entry": default.path} if default else None,
        "next_entry": environment.get("next_entry", ""),
        "installed": system.kernels(),
        "watchdogs": read_watchdogs(_machine(system)),
        "modules": builds,
        "drivers": {name: _driver(build, system.running) for name, build in builds.items()},
    }


def _plain(build: kmod.Build | None) -> dict[str, Any] | None:
    return asdict(build) if build else None


def _driver(builds: Mapping[str, Any], running: str) -> dict[str, str]:
    """The build in use: the loaded one, or for a driver without a module of its own the one of the kernel."""
    build = builds["loaded"] or builds["disk"].get(running) or {}
    return {key: build.get(key, "") for key in ("srcversion", "version")}


def saved_boot(system: System) -> dict[str, Any]:
    """What a restore must put back: the running kernel, our words and images, the default, the loader's own state."""
    environment = system.loader.environment()
    default = system.loader.default(environment)
    return {
        "running": system.running,
        "added": added_arguments(system.arguments()),
        "initramfs": booted_image(system.arguments()),
        "images": own_images(system.boot),
        "default": default.release if default else "",
        "default_initramfs": booted_image(default.arguments) if default else "",
        "saved_entry": environment.get("saved_entry"),
        "next_entry": environment.get("next_entry"),
        "custom": system.loader.custom_text(),
    }


def usable_entries(entries: Sequence[MenuEntry]) -> list[MenuEntry]:
    """Entries of a kernel, neither for recovery nor ours."""
    return [
        e
        for e in entries
        if e.kernel
        and "recovery" not in e.identifier
        and not e.release.startswith("0-rescue-")
        and e.identifier not in (TRIAL_ENTRY, KEPT_ENTRY)
    ]


def _template(system: System, release: str) -> MenuEntry:
    """The entry to copy: where each kernel has a file of its own that one, else one of the running kernel."""
    entries = system.loader.entries()
    usable = usable_entries(entries)
    if not usable:
        raise ToolError(f"{system.loader.folder}/grub.cfg has no entry that boots a kernel")
    own = [entry for entry in usable if entry.file and entry.release == release]
    if not own and any(entry.file for entry in usable):
        raise ToolError(
            f"no file in {system.boot}/loader/entries boots kernel {release}, so its options are not known"
        )
    if len(own) > 1:
        # files of another machine, copies by hand and counted ones: the one that is named as the default is
        default = system.loader.default()
        token = default.identifier.rpartition(f"-{default.release}")[0] if default else ""
        own = [entry for entry in own if entry.identifier == f"{token}-{release}"] or own
    if len(own) > 1:
        raise ToolError(f"kernel {release} has several entries: {', '.join(sorted(entry.file for entry in own))}")
    of_running = [entry for entry in usable if entry.release == system.running]
    template = (own or of_running or usable)[0]
    if template.problems:
        raise ToolError(template.problems[0])
    return template


def _initrd(system: System, release: str, image: str = "") -> str:
    """The initramfs of a kernel: its own one, or `image` of ours. Raises ToolError when either is missing."""
    kernels = system.kernels()
    if release not in kernels:
        held = ", ".join(kernels) or "none"
        raise ToolError(f"kernel {release} is not installed in {system.boot} (there: {held})")
    if image and image not in own_images(system.boot):
        raise ToolError(f"{system.boot} has no initramfs {image}")
    return image or kernels[release]


def _files(system: System, release: str, image: str) -> list[str]:
    names = (system.kernel_file(release), _initrd(system, release, image))
    return [path for path in (f"{system.boot}/{name}" for name in names if name) if Path(path).exists()]


def _entry(system: System, identifier: str, release: str, arguments: Sequence[str], image: str) -> str:
    template = _template(system, release)
    words = [f"{WORD}{image}", *arguments] if image else arguments
    return system.loader.build(template, identifier, f"vmlinuz-{release}", _initrd(system, release, image), words)


def unmounted(system: System) -> list[str]:
    """Why what is written is not where the loader looks: /etc/fstab has a file system there, and none is mounted."""
    machine = _machine(system)
    # the kernel's own table writes blanks in a path as fstab does
    mounted = {line.split(" ")[4] for line in machine.lines("/proc/self/mountinfo") if line.count(" ") > 4}
    rows = [line.split() for line in machine.lines("/etc/fstab")]
    inside = f"/{os.path.relpath(system.loader.folder, system.root)}/"
    points = [row[1] for row in rows if len(row) > 2 and row[0][0] != "#" and row[1] != "/"]
    return [
        f"/etc/fstab has a file system at {point}, which is not mounted: what is written there is not where the "
        f"boot loader looks (mount {point})"
        for point in points
        if inside.startswith(f"{point.rstrip('/')}/") and point.rstrip("/") not in mounted
    ]


def _check_partition(system: System) -> None:
    """Raise ToolError where a loader that reads EFI variables was started from another disk than its folder is on.

    A copy of its partition has the same entries, and one that is written there is none to the loader.
    """
    started = read_variable(f"{system.sysfs}/firmware/efi/efivars", _STARTED_FROM)
    machine, folder = _machine(system), f"/{os.path.relpath(system.loader.folder, system.root)}"
    partition = Path(machine.link(f"/dev/disk/by-partuuid/{started[0].lower()}")).name if started else ""
    numbers = [
        mount.number for mount in parse_mountinfo(machine.lines("/proc/self/mountinfo")) if mount.point == folder
    ]
    mounted = Path(machine.link(f"/sys/dev/block/{numbers[-1]}")).name if numbers else ""
    if partition and mounted and whole_disk(machine, partition) not in below(machine, mounted):
        raise ToolError(
            f"the boot loader was started from {partition}, and {mounted}, of another disk, is mounted at {folder}: "
            f"what is written there is not where the boot loader looks (mount /dev/{partition} there)"
        )


def check_trial(system: System, release: str, image: str = "") -> None:
    """Raise ToolError when a trial of `release`, with `image` of ours, could not be booted once or not fall back."""
    for sentence in unmounted(system):
        raise ToolError(sentence)
    _initrd(system, release, image)
    if isinstance(system.loader, EfiLoader):
        _check_partition(system)
    system.loader.check_one_shot()
    sealed = f"{system.boot}/.vmlinuz-{release}.hmac"
    if "fips=1" in _template(system, release).arguments and not Path(sealed).exists():
        raise ToolError(f"this bench boots with fips=1, and {sealed} is not there: the kernel would refuse to start")
    if system.loader.default() is None:
        raise ToolError(f"{system.loader.folder}/grub.cfg has no default entry to fall back to")


def trial(system: System, planned: TrialBoot) -> list[str]:
    """Have the next start, and only that, be `planned`. Returns what was done. Raises ToolError."""
    loader, release, image = system.loader, planned.kernel, planned.initramfs
    watched = has_hardware(read_watchdogs(_machine(system)))
    guards = hang_words(release, planned.hung_task_s, hardware_watchdog=watched, nmi=planned.nmi)
    words = [*guards, f"{_MARK}{planned.mark}", *planned.arguments, _PANIC]
    loader.put_entry(_entry(system, TRIAL_ENTRY, release, words, image), TRIAL_ENTRY)
    # the entry and its files must be where the loader looks before it is told to boot them
    seen = loader.settle(_files(system, release, image))
    chosen, default = loader.resolve(TRIAL_ENTRY), loader.default()
    if chosen is None or chosen.identifier != TRIAL_ENTRY or default is None or default.identifier == TRIAL_ENTRY:
        loader.take_out(TRIAL_ENTRY)
        raise ToolError(
            f"the boot loader would boot {default.path if default else 'nothing'} by default and "
            f"{chosen.path if chosen else 'nothing'} as the trial: {loader.folder}/grub.cfg must read custom.cfg "
            "after its own entries, and saved_entry in grubenv must name one of them"
        )
    loader.boot_once(TRIAL_ENTRY)
    if loader.environment().get("next_entry") not in (TRIAL_ENTRY, f"{TRIAL_ENTRY}.conf"):
        raise ToolError(f"the boot loader did not take {TRIAL_ENTRY} as its next entry")
    loader.settle()
    steps = [f"{loader.folder} and the kernel read as the boot loader reads them"] if seen else []
    return [*steps, f"one-shot boot of {release}{f' with {image}' if image else ''} prepared"]


def keep(system: System, release: str, arguments: Sequence[str], image: str = "") -> list[str]:
    """Make `release`, with our initramfs `image` where given, the default from now on; return what was done.

    Raises ToolError.
    """
    loader = system.loader
    native = [entry for entry in usable_entries(loader.entries()) if entry.release == release]
    # a name that begins with a digit may be a number to the loader
    named = [entry for entry in native if loader.resolve(entry.path) == entry]
    # one without it may be that of the newest kernel, whichever that comes to be
    named.sort(key=lambda entry: release not in entry.path)
    if named and not arguments and not image:
        path = named[0].path
    else:
        loader.put_entry(_entry(system, KEPT_ENTRY, release, [f"{_KEPT_MARK}1", *arguments], image), KEPT_ENTRY)
        path = KEPT_ENTRY
    loader.settle(_files(system, release, image))
    loader.set_default(path)
    loader.settle()
    now = loader.default()
    if now is None or now.release != release:
        raise ToolError(
            f"the boot loader's default is {now.release if now else 'nothing'} after it was set to {release}"
        )
    return [f"default kernel set to {release}{f' with {image}' if image else ''}"]


def name_default(system: System) -> list[str]:
    """Have the default be named with its kernel, before a newer one is the first of the menu. Raises ToolError."""
    default, saved = system.loader.default(), system.loader.environment().get("saved_entry") or ""
    return [] if default is None or default.release in saved else keep(system, default.release, [])


def _put_variables_back(loader: Loader, saved: Mapping[str, Any]) -> list[str]:
    """The default keeps the name that it has where by the former one another kernel would boot, installed since."""
    environment, steps = loader.environment(), []
    former = loader.default({**environment, "saved_entry": saved.get("saved_entry") or ""})
    another_boots = former is not None and former.release != (saved.get("default") or former.release)
    for name in ("next_entry",) if another_boots else ("saved_entry", "next_entry"):
        before, now = saved.get(name), environment.get(name)
        # one that GRUB has cleared is there, and empty
        if (now or None) != (before or None) or (before is None and now is not None):
            loader.put_variable(name, before)
            steps.append(f"boot loader: {name} put back")
    if steps:
        # grub-editenv writes its file anew: an entry goes when the loader sees that nothing names it
        loader.settle()
    return steps


def restore_boot(system: System, saved: dict[str, Any]) -> list[str]:
    """Put back what `saved_boot` found; return what was done. The kernel itself comes with the next start."""
    loader = system.loader
    loader.tidy()
    steps = _put_variables_back(loader, saved)
    if loader.custom_text() != saved.get("custom"):
        loader.write_custom(saved.get("custom"))
        # the former default may be one of these entries
        steps += ["boot loader: own entries put back", *_put_variables_back(loader, saved)]
    default = loader.default()
    on_trial = default is not None and default.identifier == TRIAL_ENTRY
    if saved.get("default") and (default is None or on_trial or default.release != saved["default"]):
        # without a saved entry the default is the newest kernel, and one was installed since
        steps += keep(system, saved["default"], [])
    steps += [f"{name} removed" for name in remove_images(system.boot, saved.get("images") or ())]
    if steps:
        loader.settle()
    return steps


@dataclass(frozen=True)
class TrialBoot:
    """A one-shot boot: the kernel's release, an initramfs of ours in /boot, words for the command line.

    `mark` tells this boot from the default; `fallback` is the release that must be the default meanwhile (empty: what
    is the default now). A task that waits for more than `hung_task_s` seconds is a panic, and with `nmi` so is an NMI
    from outside.
    """

    kernel: str
    initramfs: str = ""
    arguments: Sequence[str] = ()
    mark: str = "trial"
    fallback: str = ""
    hung_task_s: int = HUNG_TASK_S
    nmi: bool = False


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


def verify_trial(expected: TrialBoot, modules: Sequence[str], system: System) -> dict[str, Any]:
    """The facts of the trial that runs: release and mark, and of each driver the build that lies on disk for it.

    `settings` are the kernel and the drivers. Raises TrialFailedError; ToolError when the right kernel runs a stale
    driver.
    """
    facts = read_facts(system, modules)
    identity = (expected.kernel, expected.mark, expected.initramfs)
    if (facts["running"], facts["trial"], facts["initramfs"]) != identity:
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
    sentence = f"driver {name}: the initramfs on trial carries build {carries}, and {now} is loaded"
    return [] if now == carries else [sentence]


def _stale(name: str, driver: Mapping[str, Any], kernel: str, system: System, initrd: str) -> list[str]:
    """A loaded driver that is not the one on disk: most often the initramfs was not rebuilt, which is looked up."""
    loaded, disk = driver["loaded"], driver["disk"].get(kernel)
    if loaded is None:
        if disk is None:
            return [f"kernel {kernel} has no driver {name}"]
        why = f"driver {name} is installed for kernel {kernel}, but not loaded; check that its adapter is present"
        return [] if disk["builtin"] else [why]
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
    records = [
        Provisioned("driver.kernel", kernel, None, facts["running"], proven=True, proof="uname -r and trial mark")
    ]
    for watchdog in facts["watchdogs"]:
        if watchdog["armed"]:
            armed = f"{watchdog['identity']}, {watchdog['timeout_s']} s"
            records.append(Provisioned("boot.watchdog", None, None, armed, proven=True, proof="armed in sysfs"))
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


def prepare_trial(planned: TrialBoot, call: Call, system: System) -> dict[str, Any]:
    """Have the next start be the trial; first the default is set to the kernel to fall back to, if it is another."""
    with call.lock("boot loader") as lock:
        # check mode has made no image
        check_trial(system, planned.kernel, planned.initramfs if lock else "")
        before = {"default": _default_release(system), "next": system.loader.environment().get("next_entry", "")}
        # a name that names nothing boots the first entry of the menu, and which one that is may change
        lost = system.loader.resolved_default()[1]
        fallback = planned.fallback or before["default"]
        steps: list[str] = []
        if lock is not None:
            remember_boot(lock, system)
            with partial_errors(steps):
                if fallback != before["default"] or lost:
                    steps += keep(system, fallback, [])
                steps += trial(system, planned)
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
            with partial_errors(steps):
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
    return _words(entry.release, added_arguments(entry.arguments), booted_image(entry.arguments)) if entry else ""


def _words(kernel: str, arguments: Sequence[str], image: str) -> str:
    """A kernel with the words that we add to its command line, and the initramfs where it is ours."""
    return " ".join(word for word in (kernel, *arguments, image) if word)
