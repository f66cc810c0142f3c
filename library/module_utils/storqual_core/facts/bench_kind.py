# SPDX-License-Identifier: Apache-2.0
"""What kind of bench this is: packages, boot loader, initramfs, Secure Boot, what runs beside a measurement.

Found by evidence and not by the name of the distribution: an EL rebuild may boot Oracle's kernel, and Ubuntu may make
its initramfs with dracut. Each answer says what it rests on. What is not known is an empty value, and its evidence is
a sentence that names what was looked at; nothing that does without provisioning depends on it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Mapping, Sequence

from ..kit.command import Runner, find_program
from ..kit.machine import Machine, selected_word, visible
from ..provision.initramfs import initramfs_maker
from ..provision.package_services import package_manager
from ..provision.selinux import ENFORCE, has_policy
from ..tools import depmod


@dataclass(frozen=True)
class Trait:
    """A value, empty where it is not known, and what it rests on."""

    value: str
    evidence: str


def _unknown(*looked_at: str) -> Trait:
    return Trait("", f"not known; looked at {', '.join(looked_at)}")


def _trait(value: str, evidence: str) -> Trait:
    return Trait(value, evidence) if value else _unknown(evidence)


def read_kind(machine: Machine, runner: Runner) -> dict[str, dict[str, str]]:
    """Every finding by its name, as JSON carries it: `value` and `evidence`. Raises nothing."""
    release = machine.text("/proc/sys/kernel/osrelease")
    owner = _trait(*package_manager(machine, runner, release))
    loader = _loader(machine)
    traits: dict[str, Trait] = {
        "packages": owner,
        "front_end": _front_end(machine, owner.value),
        "loader": loader,
        **_loader_places(machine, loader.value),
        "initramfs": _trait(*initramfs_maker(machine)),
    }
    readers: Mapping[str, Callable[[Machine], Trait]] = {
        "module_order": module_order,
        "module_overrides": _overrides,
        "secure_boot": _secure_boot,
        "lockdown": _lockdown,
        "signed_modules_only": _signed_modules_only,
        "selinux": _selinux,
        "fips": _fips,
        "immutable": immutable,
        "tuned": _tuned,
        "irqbalance": lambda where: _service(where, "irqbalance"),
        "kdump": _kdump,
    }
    traits.update({name: read(machine) for name, read in readers.items()})
    return {name: {"value": trait.value, "evidence": visible(trait.evidence)} for name, trait in traits.items()}


def _program(machine: Machine, names: Sequence[str]) -> Trait:
    """The first of these programs that is installed."""
    for name in names:
        path = find_program(machine, name)
        if path:
            link = machine.link(path)
            return Trait(name, f"{path}{f' (a link to {link})' if link else ''}")
    return _unknown(*names)


def _front_end(machine: Machine, packages: str) -> Trait:
    """The program that resolves what a package needs."""
    return _program(machine, ("apt-get",) if packages == "dpkg" else ("dnf", "yum", "zypper"))


_INFO = "/sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
_SECURE = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
_FOLDERS = ("/boot/grub2", "/boot/grub")
_ENTRIES = ("/boot/loader/entries", "/boot/efi/loader/entries", "/efi/loader/entries")
_BLS_UPSTREAM = re.compile(r"^\s*(?:insmod\s+blsuki\b|blscfg\s+-)", re.MULTILINE)
_BLS = re.compile(r"^\s*blscfg\b", re.MULTILINE)


def _grub_folder(machine: Machine) -> str:
    vendors = [f"/boot/efi/EFI/{name}" for name in machine.names("/boot/efi/EFI")]
    return next((folder for folder in (*_FOLDERS, *vendors) if machine.exists(f"{folder}/grub.cfg")), "")


def _loader(machine: Machine) -> Trait:
    """`grub`, with Boot Loader Specification entries `grub-blscfg` (Red Hat's reader) or `grub-blsuki` (upstream's).

    `grub2-bls` and `systemd-boot` keep what boots in EFI variables.
    """
    variable = machine.read(_INFO)
    if variable:
        info = variable[4:].decode("utf-16-le", "replace").rstrip("\0")
        name = "systemd-boot" if info.startswith("systemd-boot") else "grub2-bls" if "grub" in info.lower() else ""
        if name:
            return Trait(name, f"EFI variable LoaderInfo: {info}")
    folder = _grub_folder(machine)
    if not folder:
        return _unknown("EFI variable LoaderInfo", *(f"{each}/grub.cfg" for each in (*_FOLDERS, "/boot/efi/EFI/*")))
    text = "\n".join(machine.lines(f"{folder}/grub.cfg"))
    if not text.strip():
        return Trait("", f"not known; {folder}/grub.cfg is there and cannot be read, or is empty")
    if _BLS_UPSTREAM.search(text):
        return Trait("grub-blsuki", f"{folder}/grub.cfg calls upstream's reader of entries")
    if _BLS.search(text):
        return Trait("grub-blscfg", f"{folder}/grub.cfg calls blscfg, as Red Hat's GRUB has it")
    return Trait("grub", f"{folder}/grub.cfg has its entries itself")


def _loader_places(machine: Machine, loader: str) -> dict[str, Trait]:
    """Folder, programs, entries and environment of the loader, and whether it can write."""
    folder = _grub_folder(machine)
    entries = next((place for place in _ENTRIES if machine.exists(place)), "")
    traits = {
        "loader_folder": Trait(folder, "its grub.cfg") if folder else _unknown("folders of a grub.cfg"),
        "loader_program": _program(machine, ("grub2-editenv", "grub-editenv")),
        "loader_entries": Trait(entries, "the folder is there") if entries else _unknown(*_ENTRIES),
    }
    if loader in ("systemd-boot", "grub2-bls"):
        place = entries.partition("/loader/")[0]
        traits["loader_folder"] = Trait(place, "its entries") if place else _unknown(*_ENTRIES)
        traits["loader_program"] = _program(machine, ("bootctl",))
        traits["loader_environment"] = Trait("EFI variables", f"loader {loader}")
        traits["loader_writes"] = _efi_writes(machine)
        return traits
    environment = f"{folder}/grubenv" if folder else ""
    if environment and machine.exists(environment):
        real = machine.real(environment)
        link = f", which leads to {real}" if real != environment else ""
        traits["loader_environment"] = Trait(real, f"{environment}{link}")
        traits["loader_writes"] = _grub_writes(machine, real)
    else:
        looked = environment or "folders of a grub.cfg"
        traits["loader_environment"] = traits["loader_writes"] = _unknown(looked)
    return traits


def _mounts(machine: Machine) -> list[tuple[str, str, str, str]]:
    """Point, options, kind and device number of what this process sees mounted, the last mount last."""
    mounts = []
    for line in machine.lines("/proc/self/mountinfo"):
        head, _, tail = line.partition(" - ")
        words, kind = head.split(" "), tail.split(" ")[0]
        if len(words) > 5 and kind:
            mounts.append((words[4], words[5], kind, words[2]))
    return mounts


def _mounted(machine: Machine, path: str) -> tuple[str, str, str, str] | None:
    """The mount that a path lies on."""
    over = [each for each in _mounts(machine) if path == each[0] or path.startswith(each[0].rstrip("/") + "/")]
    return max(over, key=lambda each: len(each[0]), default=None)


def _grub_writes(machine: Machine, environment: str) -> Trait:
    """Whether GRUB can write its environment: not into a file system or a device that it only reads."""
    mount = _mounted(machine, environment)
    if mount is None:
        return _unknown(f"/proc/self/mountinfo for {environment}")
    point, _, kind, number = mount
    layer = next((name for name in ("dm", "md") if machine.exists(f"/sys/dev/block/{number}/{name}")), "")
    where = f"{environment} is on {kind} at {point}"
    if layer:
        return Trait("no", f"{where}, which is on {'LVM or device mapper' if layer == 'dm' else 'an md array'}")
    if kind == "btrfs" and "env_block" in "\n".join(machine.lines(f"{environment[: -len('grubenv')]}grub.cfg")):
        return Trait("yes", f"{where}, and grub.cfg keeps the environment in its header")
    if kind in ("ext2", "ext3", "ext4", "xfs", "vfat"):
        return Trait("yes", where)
    return Trait("no", f"{where}, into which GRUB does not write")


def _efi_writes(machine: Machine) -> Trait:
    for _, options, kind, _ in _mounts(machine):
        if kind == "efivarfs":
            writable = "rw" in options.split(",")
            return Trait("yes" if writable else "no", f"efivarfs is mounted {options}")
    return _unknown("/proc/self/mountinfo for efivarfs")


def module_order(machine: Machine) -> Trait:
    """Where depmod looks for a module, the first place that wins first."""
    searches = depmod.config_lines(machine, "search")
    order = " ".join(depmod.search_order(machine))
    if not searches:
        return Trait(order, f"depmod's own order: no `search` in {', '.join(depmod.FOLDERS)}")
    return Trait(order, f"`search` in {', '.join(dict.fromkeys(file for file, _ in searches))}")


def _overrides(machine: Machine) -> Trait:
    """Modules whose place is named, whatever the order says."""
    lines = depmod.config_lines(machine, "override")
    named = "; ".join(" ".join(words) for _, words in lines)
    return Trait(named or "none", ", ".join(dict.fromkeys(file for file, _ in lines)) or "no `override` line")


def _secure_boot(machine: Machine) -> Trait:
    if not machine.exists("/sys/firmware/efi"):
        return Trait("off", "booted by BIOS: there is no /sys/firmware/efi")
    variable = machine.read(_SECURE)
    if not variable or len(variable) != 5:
        return _unknown(f"EFI variable SecureBoot ({_SECURE})")
    return Trait("on" if variable[4] == 1 else "off", f"EFI variable SecureBoot is {variable[4]}")


def _lockdown(machine: Machine) -> Trait:
    place = "/sys/kernel/security/lockdown"
    text = machine.text(place)
    return Trait(selected_word(text), place) if text else _unknown(place)


def _signed_modules_only(machine: Machine) -> Trait:
    place = "/sys/module/module/parameters/sig_enforce"
    text = machine.text(place)
    return Trait("yes" if text == "Y" else "no", f"{place} is {text}") if text else _unknown(place)


def _selinux(machine: Machine) -> Trait:
    """What it does now; the evidence has what the next boot does, where that is something else."""
    text = machine.text(ENFORCE)
    now = {"1": "enforcing", "0": "permissive"}.get(text, "" if text else "off")
    if text and not has_policy(machine):
        return Trait("off", f"{ENFORCE} is {text}, and no policy is loaded")
    words = [
        line.partition("=")[2].strip() for line in machine.lines("/etc/selinux/config") if "SELINUX=" in line[:8]
    ]
    later = f"; /etc/selinux/config says {words[-1]} for the next boot" if words and words[-1] != now else ""
    return Trait(now, f"{ENFORCE} is {text or 'not there'}{later}")


def _fips(machine: Machine) -> Trait:
    place = "/proc/sys/crypto/fips_enabled"
    text = machine.text(place)
    return Trait("on" if text == "1" else "off", f"{place} is {text or 'not there'}")


def immutable(machine: Machine) -> Trait:
    """`no`, or what manages a root file system that packages cannot be put into: kernels are images or snapshots."""
    if machine.exists("/run/ostree-booted"):
        return Trait("bootc" if find_program(machine, "bootc") else "ostree", "/run/ostree-booted")
    root = [options for point, options, _, _ in _mounts(machine) if point == "/"][-1:]
    program = find_program(machine, "transactional-update")
    if program and root and "ro" in root[0].split(","):
        return Trait("transactional-update", f"{program}, and / is mounted read-only")
    return Trait("no", "no /run/ostree-booted, no transactional-update with / mounted read-only")


_GROUPS = ("/sys/fs/cgroup/system.slice", "/sys/fs/cgroup/systemd/system.slice")


def _service(machine: Machine, name: str) -> Trait:
    groups = [place for place in _GROUPS if machine.exists(place)]
    if not groups:
        return _unknown(*_GROUPS)
    runs = next((place for place in groups if machine.exists(f"{place}/{name}.service")), "")
    return Trait("running" if runs else "off", f"{runs or groups[0]}/{name}.service{'' if runs else ' is not there'}")


def _tuned(machine: Machine) -> Trait:
    service = _service(machine, "tuned")
    if service.value != "running":
        return service
    place = "/etc/tuned/active_profile"
    return Trait(machine.text(place) or "running", f"{service.evidence}; {place}")


def _kdump(machine: Machine) -> Trait:
    """Whether a crash kernel is loaded, by the kernel: kdumpctl may say operational while its service failed."""
    place = "/sys/kernel/kexec_crash_loaded"
    text = machine.text(place)
    known = ("/etc/kdump.conf", "/etc/sysconfig/kdump", "/etc/default/kdump-tools")
    files = [file for file in known if machine.exists(file)]
    more = f"; {', '.join(files)}" if files else ""
    return Trait("loaded" if text == "1" else "not loaded", f"{place} is {text}{more}") if text else _unknown(place)


_FOR_PROVISIONING = ("packages", "loader", "loader_writes", "initramfs")


def provisioning_objections(kind: Mapping[str, Any], uses: Sequence[str]) -> Iterator[str]:
    """Why this bench cannot be given another kernel or driver, though the plan wants it; none where it can.

    `uses` say what for: `the kernel of the drop`.
    """
    for use in uses:
        if kind["immutable"]["value"] != "no":
            why = f"this system is kept by {kind['immutable']['value']} ({kind['immutable']['evidence']})"
            yield f"{use} cannot be installed: {why}, which takes kernels and drivers as images, not as packages"
        elif kind["loader_writes"]["value"] == "no":
            why = kind["loader_writes"]["evidence"]
            yield f"{use} cannot be tried in a boot that falls back: the boot loader could not forget it ({why})"


def unknown_for_provisioning(kind: Mapping[str, Any]) -> list[str]:
    """What provisioning would have to know and is not known, a sentence each."""
    names = [name for name in _FOR_PROVISIONING if not kind[name]["value"]]
    return [f"{name.replace('_', ' ')}: {kind[name]['evidence']}" for name in names]


def kind_words(kind: Mapping[str, Any]) -> list[str]:
    """What is known in a few words each, without places, and without what is off or not there."""
    values = {name: trait["value"] for name, trait in kind.items() if not name.startswith("loader_")}
    words = {name: value for name, value in values.items() if value not in ("", "off", "no", "none")}
    return [f"{name.replace('_', ' ')} {visible(value)}" for name, value in words.items()]
