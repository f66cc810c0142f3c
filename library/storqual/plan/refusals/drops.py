# SPDX-License-Identifier: Apache-2.0
"""What is wrong with drops on these benches: names, files, members, modules, schedulers, references."""

import hashlib
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from storqual.inputs.drop import Drop, Firmware, On, Rollback
from storqual.inputs.inventory import Adapter, Bench
from storqual.inputs.shape import did_you_mean, one_of
from storqual.inputs.yaml_file import Document, Keys, read_yaml
from storqual.plan.inputs import DropFile
from storqual.plan.resolve import drives_of, find_drive, is_for, resolve, unmatched
from storqual.plan.settable import Facts
from storqual_core.kit.settings import SETTINGS
from storqual_core.provision.driver import FIXED_DEPTH

_NVME = "nvme"
_NAME_IT = "; name the adapters that it is for (`on: {adapter: ...}`)"
_OR_NAME_ADAPTERS = ", or name the adapters that it is for (`on: {adapter: ...}`)"
_ON_ANY_MACHINE = frozenset({"governor"})
"""Settings of the system that need neither an adapter nor a drive."""
_BRACKETS = re.compile(r"[\[\]]")
LEAST_MEMBERS = {"1": 2, "5": 3, "6": 4, "10": 2, "50": 6, "60": 8}
"""By RAID level; 0 is missing because controllers make volumes of one drive that way, 10 has two with md."""


def image_problems(drop: Drop, path: Path) -> Iterator[str]:
    """Images without a version, and files that are not there or not what their SHA-256 says."""
    if not drop.firmware:
        return
    document = read_yaml(path)
    listed = isinstance(document.data.get("firmware"), list)
    for number, image in enumerate(drop.firmware):
        keys: Keys = ("firmware", number) if listed else ("firmware",)
        if image.version is None:
            sentence = "firmware needs `version`: what the adapter or drive reports when it runs the image"
            yield document.about(keys, sentence)
        yield from _file_problems(document, keys, image, drop.folder)
        entry = document.data["firmware"][number] if listed else document.data["firmware"]
        several = isinstance(entry.get("rollback"), list)
        for position, each in enumerate(image.rollback or ()):
            inner: Keys = (*keys, "rollback", position) if several else (*keys, "rollback")
            yield from _file_problems(document, inner, each, drop.folder)


def _file_problems(document: Document, keys: Keys, image: Firmware | Rollback, folder: str) -> Iterator[str]:
    file = Path(folder, image.file)
    if not file.is_file():
        yield document.about((*keys, "file"), f"firmware image {str(file)!r} does not exist")
    else:
        yield from _digest_problems(document, (*keys, "sha256"), file, image.sha256)
    if image.signature is not None:
        for name, text in (("file", image.signature.file), ("key", image.signature.key)):
            if not Path(folder, text).is_file():
                sentence = f"{name} {text!r} of the signature does not exist beside the image"
                yield document.about((*keys, "signature", name), sentence)


def arm_problems(drops: Sequence[tuple[Drop, Path]]) -> Iterator[str]:
    """One name for two drops; firmware that only one of two arms declares: the other could not get back its own."""
    for (first, path), (second, other) in itertools.pairwise(drops):
        if first.name == second.name and path.resolve() != other.resolve():
            sentence = f"drop {path} has the same name, {first.name!r}; give each drop its own"
            yield read_yaml(other).about(("name",), sentence)
    with_images = [(drop, path) for drop, path in drops if drop.firmware]
    for drop, path in with_images if len(with_images) < len(drops) else ():
        document = read_yaml(path)
        others = ", ".join(other.name for other, _ in drops if other is not drop)
        sentence = (
            f"drop {others} declares no firmware; both drops must declare theirs, so that a bench can switch back"
        )
        yield document.about(("firmware",), sentence)


def drop_problems(file: DropFile, lab: Sequence[Bench]) -> Iterator[str]:
    """What a drop names and no bench of the lab has; files that are not there; members that are not claimed."""
    document = read_yaml(file.path)
    for section, entries in file.drop.sections.items():
        for number, entry in enumerate(entries):
            keys = section_keys(document, section, number)
            yield from _on_problems(document, keys, entry.on, lab)
            named: list[tuple[str, str]] = []
            if section == "raid":
                named = [(name, text) for name in ("members", "hot_spares") for text in entry.settings.get(name, ())]
            if section == "virtual":
                limited = [text for text in entry.settings.get("iops_limit", {}) if text != "all"]
                named += [("iops_limit", text) for text in limited]
                if "unplug" in entry.settings:
                    named.append(("unplug", str(entry.settings["unplug"]["drive"])))
            for name, text in named:
                yield from _drive_problems(document, (*keys, name), text, lab)
            if section == "driver":
                for name in _MODULES:
                    yield from _module_problems(document, (*keys, name), entry.settings.get(name, {}), lab)
                yield from _build_problems(document, keys, entry.settings, file.drop.folder)
            if section == "raid":
                yield from _member_problems(document, keys, entry.settings, lab)
    for number, image in enumerate(file.drop.firmware):
        keys = section_keys(document, "firmware", number)
        yield from _on_problems(document, keys, image.on, lab)
    yield from image_problems(file.drop, file.path)


def bench_problems(file: DropFile, lab: Sequence[Bench], benches: Sequence[Bench]) -> Iterator[str]:
    """What these benches cannot apply of a drop: limits of an emulator, a module for adapters of others."""
    yield from emulator_problems(file, lab, benches)
    document = read_yaml(file.path)
    for number, entry in enumerate(file.drop.sections["driver"]):
        keys = section_keys(document, "driver", number)
        meant = [bench for bench in benches if is_for(entry.on, bench)]
        drivers = [adapter.driver for bench in meant for adapter in bench.adapters.values()]
        for name in _MODULES:
            module = entry.settings.get(name, {}).get("module")
            peers = [bench.name for bench in lab if module in [adapter.driver for adapter in bench.adapters.values()]]
            if module is not None and meant and peers and None not in drivers and module not in drivers:
                here = ", ".join(bench.name for bench in meant)
                sentence = f"module {module!r} drives adapters of {', '.join(peers)} and none of {here}"
                yield document.about((*keys, name), f"{sentence}; choose a bench that it drives (--limit)")


_BUILD_FILES = (
    ("dkms", "package", "DKMS package"),
    ("kmod", "driver_disk", "driver disk"),
    ("module", "file", "kernel module"),
)
_MODULES = ("dkms", "kmod")
"""Kinds of a driver's package that say which module is in it."""


def emulator_problems(file: DropFile, lab: Sequence[Bench], benches: Sequence[Bench]) -> Iterator[str]:
    """Limits of an emulator for benches that are none."""
    document = read_yaml(file.path)
    for number, entry in enumerate(file.drop.sections["virtual"]):
        for bench in (bench for bench in benches if bench.kind != "virtual" and is_for(entry.on, bench)):
            sentence = f"`virtual` is for virtual benches only, and bench {bench.name} is {bench.kind}"
            keys = section_keys(document, "virtual", number)
            yield document.about(keys, f"{sentence}{_NAME_IT * (len(lab) > 1)}")


def _on_problems(document: Document, keys: tuple[str | int, ...], on: On, benches: Sequence[Bench]) -> Iterator[str]:
    for name, text, known in unmatched(on, benches):
        what = "claimed drive" if name == "drives" else name
        yield document.about((*keys, "on", name), _nowhere(what, text, known))
    if on.drives is None and (on.adapter or on.model) and not any(unmatched(on, benches)):
        under = [alias for bench in benches for alias in bench.adapters]
        if on.model and on.adapter and not any(drives_of(on, bench, under) for bench in benches):
            yield document.about((*keys, "on"), f"adapter {on.adapter} has no drive of model {on.model}")


def _nowhere(what: str, text: str, known: Sequence[str]) -> str:
    """A sentence about something that no bench has."""
    there = f"; expected {one_of(known)}" if known else ""
    return f"no bench has {what} {text!r}{did_you_mean(text, known)}{there}"


def _module_problems(
    document: Document, keys: tuple[str | int, ...], package: Mapping[str, Any], lab: Sequence[Bench]
) -> Iterator[str]:
    """A driver drop whose module drives no adapter would qualify nothing."""
    drivers = [adapter.driver for bench in lab for adapter in bench.adapters.values()]
    module = package.get("module")
    if module is not None and None not in drivers and module not in drivers:
        known = sorted({driver for driver in drivers if driver is not None})
        where = ", ".join(bench.name for bench in lab)
        sentence = f"module {module!r} drives no adapter of {where}{did_you_mean(str(module), known)}"
        yield document.about(keys, f"{sentence}; expected {one_of(known)}")


def _build_problems(
    document: Document, keys: tuple[str | int, ...], settings: Mapping[str, Any], folder: str
) -> Iterator[str]:
    """Files of a driver that are not there, and a module file that is not what its SHA-256 says."""
    for section, what in (("kernel", "kernel"), ("kmod", "driver")):
        for number, named in enumerate(settings.get(section, {}).get("files", ())):
            if not Path(folder, named).is_file():
                sentence = f"{what} package {str(Path(folder, named))!r} does not exist"
                yield document.about((*keys, section, "files", number), sentence)
    builds = [name for name in ("dkms", "kmod", "module") if name in settings]
    if len(builds) > 1:
        yield document.about((*keys, builds[1]), f"{' and '.join(builds)} are builds of a driver each; name one")
    for name, key, what in _BUILD_FILES:
        if key not in settings.get(name, ()):
            continue
        file = Path(folder, settings[name][key])
        if not file.is_file():
            yield document.about((*keys, name, key), f"{what} {str(file)!r} does not exist")
        elif "sha256" in settings[name]:
            yield from _digest_problems(document, (*keys, name, "sha256"), file, settings[name]["sha256"])


def _digest_problems(document: Document, keys: Keys, file: Path, declared: str) -> Iterator[str]:
    """A file that is not what its SHA-256 says."""
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if digest != declared.lower():
        # the digest of the file is left out on purpose: who pastes it into the drop trusts a damaged file
        sentence = f"{str(file)!r} does not have the declared SHA-256, so it is damaged or another file"
        yield document.about(
            keys, f"{sentence}; get the file again, and compare with the SHA-256 that the vendor published"
        )


def _member_problems(
    document: Document, keys: tuple[str | int, ...], settings: Mapping[str, Any], benches: Sequence[Bench]
) -> Iterator[str]:
    """A volume with fewer members than its level needs, or with members on two benches."""
    members = settings.get("members", ())
    level = str(settings.get("level"))
    least = LEAST_MEMBERS.get(level, 1)
    if "members" in settings and len(members) < least:
        few = f"RAID {level} needs at least {least} members; {len(members)} given"
        yield document.about((*keys, "members"), few)
    for twice in sorted({str(text) for text in members if members.count(text) > 1}):
        yield document.about((*keys, "members"), f"member {twice} is named twice")
    homes = {
        bench.name: text for text in reversed(members) for bench in benches if find_drive(bench, text) is not None
    }
    if len(homes) > 1:
        where = ", ".join(f"{text!r} on {bench}" for bench, text in sorted(homes.items()))
        yield document.about((*keys, "members"), f"the members are on several benches ({where}); they must be on one")


def _drive_problems(
    document: Document, keys: tuple[str | int, ...], text: str, benches: Sequence[Bench]
) -> Iterator[str]:
    matches = [drive for bench in benches if (drive := find_drive(bench, text)) is not None]
    if any(drive.claim for drive in matches):
        return
    drives = [drive for bench in benches for adapter in bench.adapters.values() for drive in adapter.claimed]
    claimed = [drive.id for drive in drives]
    known = claimed + [drive.serial for drive in drives if drive.serial and drive.serial not in claimed]
    if matches:
        yield document.about(
            keys, f"drive {text!r} is not claimed; set `claim: true` in the inventory, or name another"
        )
    else:
        near = did_you_mean(text, known)
        yield document.about(keys, f"no bench has drive {text!r}{near}; expected {one_of(claimed)}")


def section_keys(document: Document, section: str, number: int) -> tuple[str | int, ...]:
    """Where entry `number` of a section stands: in a list, or alone."""
    data = document.data.get(section) if isinstance(document.data, dict) else None
    return (section, number) if isinstance(data, list) else (section,)


def reference_problems(bench: Bench) -> list[str]:
    if bench.reference is None:
        return []
    drive = find_drive(bench, bench.reference)
    if drive is not None and drive.claim:
        return []
    what = "is not claimed" if drive else "is no drive of this bench"
    return [f"{bench.name}: storqual_reference: {bench.reference!r} {what}; name a claimed drive"]


def file_problems(files: Sequence[DropFile], chosen: Sequence[tuple[Bench, Sequence[str]]]) -> Iterator[str]:
    """Sections for benches whose drives are files: applied there, they would fail late or be passed over."""
    for file in files:
        document = read_yaml(file.path)
        for bench, aliases in chosen:
            if bench.kind != "local":
                continue
            spec = resolve(file.drop, bench, aliases)
            # the number of queued requests is the drives'
            per_drive = ("drive" if file.drop.sections["drive"] else "os") if spec.drive else ""
            system = "os" if set(spec.os) - _ON_ANY_MACHINE else ""
            others = [name for name in ("driver", "nvram", "raid", "firmware", "multipath") if getattr(spec, name)]
            for section in filter(None, dict.fromkeys([*others, per_drive, system])):
                sentence = (
                    f"bench {bench.name} has files for drives, so nothing of section `{section}` can be set there; "
                    f"leave the section out{_OR_NAME_ADAPTERS}"
                )
                yield document.about((section,), sentence)


def queue_problems(
    files: Sequence[DropFile], chosen: Sequence[tuple[Bench, Sequence[str]]], facts: Facts = MappingProxyType({})
) -> Iterator[str]:
    """Queue depths beyond what an adapter takes in all, and settings that NVMe drives do not have."""
    for file in files:
        document = read_yaml(file.path)
        objections: dict[tuple[Keys, str, str], str] = {}
        for bench, aliases in chosen:
            declared: dict[tuple[str, str], tuple[Keys, Any]] = {}
            for number, entry in enumerate(file.drop.sections["drive"]):
                keys = section_keys(document, "drive", number)
                for drive in drives_of(entry.on, bench, aliases):
                    declared |= {(drive.id, name): ((*keys, name), value) for name, value in entry.settings.items()}
            for alias, adapter in bench.adapters.items():
                most = _commands(adapter, bench, facts)
                for drive in adapter.claimed:
                    for (drive_id, name), (at, value) in declared.items():
                        why = _queue_objection(adapter, name, value, most) if drive_id == drive.id else ""
                        if why:
                            objections[at, bench.name, alias] = (
                                f"drive.{name} is declared for {alias} of {bench.name}, {why}"
                            )
        for (at, _, _), sentence in objections.items():
            yield document.about(at, f"{sentence}; declare it for the others by name (`on: {{adapter: [...]}}`)")


def _commands(adapter: Adapter, bench: Bench, facts: Facts) -> int | None:
    """How many commands an adapter takes in all, by what the bench said; None: not known."""
    limits = [
        host["can_queue"]
        for entry in facts.get(bench.name, {}).get("adapters") or ()
        if entry.get("pci") == adapter.address
        for host in entry.get("hosts") or ()
        if isinstance(host.get("can_queue"), int)
    ]
    return min(limits, default=None)


def _queue_objection(adapter: Adapter, name: str, value: object, most: int | None) -> str:
    if adapter.driver == _NVME and (name == "queue_depth" or (SETTINGS[f"drive.{name}"].field and name != "WCE")):
        return "whose drives are NVMe and do not have it"
    if name == "queue_depth" and adapter.driver in FIXED_DEPTH:
        return f"whose driver {adapter.driver} does not let it be changed"
    if name == "queue_depth" and most is not None and int(str(value)) > most:
        return f"which takes {most} commands in all for its drives, and {value} are declared for each"
    return ""


def scheduler_problems(
    files: Sequence[DropFile], chosen: Sequence[tuple[Bench, Sequence[str]]], facts: Facts
) -> Iterator[str]:
    for file in files:
        document = read_yaml(file.path)
        for number, entry in enumerate(file.drop.sections["drive"]):
            wanted, at = entry.settings.get("scheduler"), (*section_keys(document, "drive", number), "scheduler")
            for bench, aliases in chosen if wanted is not None else ():
                listed = facts.get(bench.name, {}).get("drives") or ()
                # the one in brackets is chosen now
                has = {
                    disk["id"]: _BRACKETS.sub("", (disk.get("queue") or {}).get("scheduler") or "") for disk in listed
                }
                lacking = [
                    drive.id
                    for drive in drives_of(entry.on, bench, aliases)
                    if has.get(drive.id) and wanted not in has[drive.id].split()
                ]
                for drive in lacking[:1]:
                    known = ", ".join(has[drive].split())
                    yield document.about(
                        at, f"drive {drive} of {bench.name} has no scheduler {wanted}; it has {known}"
                    )
