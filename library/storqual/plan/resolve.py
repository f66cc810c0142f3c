# SPDX-License-Identifier: Apache-2.0
"""A drop on one bench: every `on` applied, every drive by its id, every value plain."""

import fnmatch
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from storqual.inputs.drop import Drop, DropSection, Firmware, On
from storqual.inputs.fields import normal_wwn
from storqual.inputs.inventory import Adapter, Bench, Drive
from storqual_core.kit.errors import BadInputError
from storqual_core.kit.settings import MEMBERS
from storqual_core.provision.driver import command_limit
from storqual_core.provision.firmware.subject import DRIVE_TOOLS
from storqual_core.provision.raid.layout import MD, volume_tool


@dataclass
class Resolved:
    """What the roles of one bench get; `settings` is the same by (section, owner, name), for comparing two arms."""

    driver: dict[str, Any] = field(default_factory=dict)
    firmware: list[dict[str, Any]] = field(default_factory=list)
    nvram: dict[str, dict[str, Any]] = field(default_factory=dict)
    drive: dict[str, dict[str, Any]] = field(default_factory=dict)
    raid: list[dict[str, Any]] = field(default_factory=list)
    os: dict[str, Any] = field(default_factory=dict)
    multipath: dict[str, Any] = field(default_factory=dict)
    virtual: dict[str, Any] = field(default_factory=dict)

    def settings(self) -> Iterator[tuple[tuple[str, str, str], Any]]:
        """((section, owner, name), value) of everything that is declared; the owner of bench-wide settings is ''.

        Module options belong to their module: arms may declare them for different ones.
        """
        build = {name: value for name, value in self.driver.items() if name != "options"}
        options = {module: {"options": given} for module, given in (self.driver.get("options") or {}).items()}
        owned = (("driver", {"": build}), ("driver", options), ("nvram", self.nvram), ("drive", self.drive))
        for section, owners in owned:
            for owner, values in owners.items():
                for name, value in values.items():
                    yield (section, owner, name), value
        for number, volume in enumerate(self.raid, start=1):
            owner = f"{volume['adapter']}/{volume.get('name', number)}"
            for name, value in volume.items():
                if name != "adapter":
                    yield ("raid", owner, name), value
        for section, values in (("os", self.os), ("multipath", self.multipath), ("virtual", self.virtual)):
            for name, value in values.items():
                if value not in (False, 0, None) or section != "virtual":
                    yield (section, "", name), value
        for image in self.firmware:
            for owner in image.get("drives") or image["adapters"]:
                yield ("firmware", owner, f"{image['component']}/{image['activation']}"), image["sha256"]

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


def resolve(drop: Drop, bench: Bench, under_test: Sequence[str], varied: Mapping[str, Any] | None = None) -> Resolved:
    """`drop` for `bench`; `varied` are settings of the suite that take the drop's place, by qualified name.

    Where two entries of a section say different things about one drive or adapter, the later one holds: first the
    rule, then the exception. Raises BadInputError for a limit of commands that the driver of an adapter cannot have,
    and for a write cache of members that is declared twice.
    """
    spec = Resolved()
    for section in ("driver", "os", "multipath"):
        for entry in drop.sections[section]:
            if is_for(entry.on, bench):
                _merge(getattr(spec, section), _with_files(entry.settings, drop.folder))
    for entry in drop.sections["nvram"]:
        for alias in adapters_of(entry.on, bench, under_test):
            spec.nvram.setdefault(alias, {}).update(entry.settings)
    for entry in drop.sections["drive"]:
        for drive in drives_of(entry.on, bench, under_test):
            spec.drive.setdefault(drive.id, {}).update(entry.settings)
    for entry in drop.sections["raid"]:
        for alias in adapters_of(entry.on, bench, under_test):
            if _owns_members(entry, bench, alias):
                spec.raid.append(
                    {"adapter": alias, "tool": _tool(bench, alias), **_with_members(entry, bench, alias)}
                )
    for entry in drop.sections["virtual"]:
        _merge(spec.virtual, _virtual(entry.settings, entry.on, bench, under_test))
    spec.firmware = [image for entry in drop.firmware for image in _firmware(entry, drop.folder, bench, under_test)]
    for name, value in (varied or {}).items():
        _vary(spec, name, value, bench, under_test)
    _spread_disk_cache(spec, bench, varied=DISK_CACHE in (varied or {}))
    _spread_requests(spec, bench, under_test)
    _limit_commands(spec, bench, under_test)
    return spec


DISK_CACHE = "raid.disk_cache"
_WRITE_CACHE = {"enable": 1, "disable": 0}


def _spread_disk_cache(spec: Resolved, bench: Bench, *, varied: bool) -> None:
    """`raid.disk_cache` of a volume that md makes is the write cache of its members: `WCE`, which each drive keeps.

    Raises BadInputError where the drop says something else of a member; what a suite varies takes its place.
    """
    problems: list[str] = []
    for volume in spec.raid:
        cache = volume.get("disk_cache")
        if cache not in _WRITE_CACHE or volume["tool"] != MD:
            continue
        on = _WRITE_CACHE[volume.pop("disk_cache")]
        for drive in volume["members"]:
            settings = spec.drive.setdefault(drive, {})
            if not varied and settings.get("WCE", on) != on:
                meant = f"raid.disk_cache {cache} means WCE={on} on member {drive}"
                problems.append(f"{bench.name}: {meant}, but the drop declares WCE={settings['WCE']} for it")
            settings["WCE"] = on
    if problems:
        raise BadInputError(problems)


def _spread_requests(spec: Resolved, bench: Bench, under_test: Sequence[str]) -> None:
    """`os.nr_requests` is one word for all drives under test; what a drive declares itself holds."""
    requests = spec.os.pop("nr_requests", None)
    for alias in under_test if requests is not None else ():
        for drive in bench.adapters[alias].claimed:
            spec.drive.setdefault(drive.id, {}).setdefault("nr_requests", requests)


def _limit_commands(spec: Resolved, bench: Bench, under_test: Sequence[str]) -> None:
    commands = spec.driver.pop("can_queue", None)
    problems: list[str] = []
    for alias in under_test if commands is not None else ():
        module = bench.adapters[alias].driver or "(no driver in the inventory)"
        options = dict(spec.driver.get("options", {}).get(module, {}))
        try:
            meant = command_limit(module, commands)
        except ValueError as problem:
            problems.append(f"{bench.name}: driver.can_queue {commands} for adapter {alias}: {problem}")
            continue
        problems += [
            (
                f"{bench.name}: driver.can_queue {commands} means {module}.{name}={value}, but the drop "
                f"declares {options[name]}"
            )
            for name, value in meant.items()
            if options.get(name, value) != value
        ]
        _merge(spec.driver, {"options": {module: {**options, **meant}}})
    if problems:
        raise BadInputError(problems)


def adapters_of(on: On, bench: Bench, under_test: Sequence[str]) -> list[str]:
    """The adapters a section is for: those it names, else those under test; all conditions must hold."""
    named = on.adapter if on.adapter is not None else under_test
    listed = []
    for alias, adapter in bench.adapters.items():
        if alias not in named:
            continue
        if on.model is not None and not _model_fits(on.model, adapter.model, adapter.drives):
            continue
        if on.drives is not None and not any(_is(drive, text) for drive in adapter.drives for text in on.drives):
            continue
        listed.append(alias)
    return listed


def drives_of(on: On, bench: Bench, under_test: Sequence[str]) -> list[Drive]:
    """The claimed drives a section is for, in inventory order."""
    listed = []
    for alias, adapter in bench.adapters.items():
        if alias not in (on.adapter if on.adapter is not None else under_test):
            continue
        for drive in adapter.claimed:
            if on.model is not None and not _fits(on.model, drive.model) and not _fits(on.model, adapter.model):
                continue
            if on.drives is not None and not any(_is(drive, text) for text in on.drives):
                continue
            listed.append(drive)
    return listed


def narrowed(drop: Drop, left_out: Collection[str]) -> Drop:
    """A drop that declares nothing by name for adapters that an option leaves out; its entries keep their places."""

    def on(entry: DropSection | Firmware) -> dict[str, On]:
        names = entry.on.adapter
        kept = None if names is None else tuple(alias for alias in names if alias not in left_out)
        return {"on": entry.on.model_copy(update={"adapter": kept})}

    sections = {
        section: tuple(entry.model_copy(update=on(entry)) for entry in entries)
        for section, entries in drop.sections.items()
    }
    images = tuple(image.model_copy(update=on(image)) for image in drop.firmware)
    return drop.model_copy(update={"sections": sections, "firmware": images})


def find_drive(bench: Bench, text: str) -> Drive | None:
    """The drive that `text` names: WWN in any form, serial, or the path of a file."""
    for adapter in bench.adapters.values():
        for drive in adapter.drives:
            if _is(drive, text):
                return drive
    return None


def unmatched(on: On, benches: Sequence[Bench]) -> Iterator[tuple[str, str, list[str]]]:
    """What `on` names and no bench has, as (field, text, what there is)."""
    aliases = [alias for bench in benches for alias in bench.adapters]
    for alias in on.adapter or ():
        if alias not in aliases:
            yield "adapter", alias, aliases
    models = [adapter.model for bench in benches for adapter in bench.adapters.values()]
    models += [
        drive.model
        for bench in benches
        for adapter in bench.adapters.values()
        for drive in adapter.drives
        if drive.model
    ]
    for pattern in on.model or ():
        if not any(_fits([pattern], model) for model in models):
            yield "model", pattern, list(dict.fromkeys(models))
    for text in on.drives or ():
        matches = [drive for bench in benches if (drive := find_drive(bench, text)) is not None]
        if not any(drive.claim for drive in matches):
            claimed = [
                drive.id for bench in benches for adapter in bench.adapters.values() for drive in adapter.claimed
            ]
            yield "drives", text, claimed


def _is(drive: Drive, text: str) -> bool:
    if text in (drive.id, drive.serial):
        return True
    if drive.file is not None:
        return drive.file.endswith("/" + text)
    try:
        return drive.wwn is not None and normal_wwn(text) == drive.wwn
    except ValueError:
        return False


def _fits(patterns: Sequence[str], model: str | None) -> bool:
    return any(fnmatch.fnmatchcase((model or "").lower(), pattern.lower()) for pattern in patterns)


def _model_fits(patterns: Sequence[str], model: str, drives: Sequence[Drive]) -> bool:
    return _fits(patterns, model) or any(_fits(patterns, drive.model) for drive in drives)


def is_for(on: On, bench: Bench) -> bool:
    """Whether a bench-wide section is for this bench: for all, or for adapters that it has."""
    everywhere = on.adapter is None and on.model is None and on.drives is None
    return everywhere or bool(adapters_of(on, bench, list(bench.adapters)))


def _merge(into: dict[str, Any], values: Mapping[str, Any]) -> None:
    """Later values hold; mappings (module options, limits by drive) are merged one level down, packages never are."""
    for name, value in values.items():
        if name not in ("kernel", "kmod") and isinstance(value, dict) and isinstance(into.get(name), dict):
            into[name] = {**into[name], **value}
        else:
            into[name] = value


def _with_files(settings: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """The settings with the files of kernels and drivers where they are: relative ones begin at the manifest."""
    named = dict(settings)
    for name in ("kernel", "kmod"):
        if "files" in named.get(name, ()):
            named[name] = {**named[name], "files": [str(Path(folder, file)) for file in named[name]["files"]]}
    for name, key in (("dkms", "package"), ("kmod", "driver_disk"), ("module", "file")):
        if key in named.get(name, ()):
            named[name] = {**named[name], key: str(Path(folder, named[name][key]))}
    return named


def _tool(bench: Bench, alias: str) -> str:
    """What makes the volumes of an adapter whose drop names no tool."""
    adapter = bench.adapters[alias]
    # an emulated controller has no firmware that makes volumes, and the kernel sees its drives
    return volume_tool(adapter.tool or "", "" if bench.kind == "virtual" else adapter.driver or "")


def _owns_members(entry: DropSection, bench: Bench, alias: str) -> bool:
    """Whether a volume is this adapter's: it is said so, or its first member is."""
    members = entry.settings.get("members") or ()
    if not members or entry.on.adapter is not None:
        return True
    return any(_is(drive, members[0]) for drive in bench.adapters[alias].drives)


def _with_members(entry: DropSection, bench: Bench, alias: str) -> dict[str, Any]:
    """The settings of a volume with its members as drive ids: by default all claimed drives that are no spares."""
    named = dict(entry.settings)
    for name in ("members", "hot_spares"):
        if name in named:
            named[name] = [
                drive.id if (drive := find_drive(bench, text)) is not None else text for text in named[name]
            ]
    if "members" not in named:
        spares = named.get("hot_spares", ())
        named["members"] = [drive.id for drive in drives_of(entry.on, bench, [alias]) if drive.id not in spares]
    return named


def _virtual(settings: Mapping[str, Any], on: On, bench: Bench, under_test: Sequence[str]) -> dict[str, Any]:
    """The `virtual` section with every drive by its id; `all` are the drives that the section is for."""
    named = dict(settings)
    limits: dict[str, int] = {}
    for text, limit in (named.get("iops_limit") or {}).items():
        if text == "all":
            limits.update({drive.id: limit for drive in drives_of(on, bench, under_test)})
        elif (drive := find_drive(bench, text)) is not None:
            limits[drive.id] = limit
    if "iops_limit" in named:
        named["iops_limit"] = limits
    if "panic_at_boot" in named:
        named["panic_at_boot"] = bool(named["panic_at_boot"])
    if "unplug" in named:
        drive = find_drive(bench, str(named["unplug"]["drive"]))
        if drive is None:
            del named["unplug"]
        else:
            named["unplug"] = {"drive": drive.id, "after_s": named["unplug"]["after_s"]}
    return named


def _firmware(entry: Firmware, folder: str, bench: Bench, under_test: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The images that are for this bench, their files by absolute path; the tool says whether drives are meant."""
    image = entry.model_dump(mode="json", by_alias=True, exclude={"on"}, exclude_none=True)
    image.setdefault("component", "firmware")
    for part in (image, *image.get("rollback", ())):
        part["file"] = str(Path(folder, part["file"]))
        if "signature" in part:
            part["signature"] = {name: str(Path(folder, path)) for name, path in part["signature"].items()}
    if entry.on.drives is not None or entry.tool in DRIVE_TOOLS:
        drives = [drive.id for drive in drives_of(entry.on, bench, under_test)]
        if drives:
            yield {"adapters": [], "drives": drives, **image}
        return
    adapters = adapters_of(entry.on, bench, under_test)
    if adapters:
        yield {"adapters": adapters, **image}


def _vary(spec: Resolved, qualified: str, value: object, bench: Bench, under_test: Sequence[str]) -> None:
    """Put one level of a varied setting in the drop's place, on everything under test."""
    section, _, name = qualified.partition(".")
    if qualified == "os.nr_requests":
        section = "drive"
    adapters: dict[str, Adapter] = {alias: bench.adapters[alias] for alias in under_test}
    owners: defaultdict[str, list[str]] = defaultdict(list)
    owners["nvram"] = list(adapters)
    owners["drive"] = [drive.id for adapter in adapters.values() for drive in adapter.claimed]
    if section in ("nvram", "drive"):
        for owner in owners[section]:
            getattr(spec, section).setdefault(owner, {})[name] = value
    elif section == "raid":
        for volume in spec.raid:
            # members are varied by their number
            volume[name] = volume[name][: int(str(value))] if qualified == MEMBERS else value
    else:
        _merge(getattr(spec, section), {name: value})
