# SPDX-License-Identifier: Apache-2.0
"""Volumes that cannot be made: numbers of members, and strips, policies or levels that no tool takes."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from storqual.inputs.drop import Drop, DropSection
from storqual.inputs.inventory import Bench
from storqual.inputs.suite import Suite
from storqual.inputs.yaml_file import Keys, read_yaml
from storqual.plan.inputs import DropFile
from storqual.plan.points import points_of
from storqual.plan.refusals.drops import LEAST_MEMBERS, section_keys
from storqual.plan.resolve import resolve
from storqual.plan.sessions import combinations
from storqual_core.kit.quantities import format_size
from storqual_core.kit.settings import MEMBERS, RAID_LEVEL, SETTINGS, check_level
from storqual_core.provision.raid.layout import MD, count_objection, volume_objection
from storqual_core.provision.raid.volume_plan import POLICIES
from storqual_core.tools.capabilities import VolumeRequest

_SECTION = "raid"
INSTEAD = (
    f"write `tool: {MD}` in the drop for a Linux md array, or make the volume with `storqual playbook setup`, claim "
    "it in the inventory by its own WWN, and leave section `raid` out of the drops"
)
"""What to do with a volume of a controller, which a campaign does not measure as one of its own."""
_SECTOR = 512


def member_problems(
    suite: Suite, path: Path, keys: Keys, chosen: Sequence[tuple[Bench, Sequence[str]]], drops: Sequence[Drop]
) -> Iterator[str]:
    """Numbers of members that a level, a drop, or the suite itself has no place for; `keys` are those of `vary`."""
    if MEMBERS not in suite.vary:
        return
    document, keys = read_yaml(path), (*keys, MEMBERS)
    wrong = _unbound(suite)
    if wrong:
        yield document.about(keys, wrong)
        return
    varied = [dict(combination) for combination in combinations(suite.vary)[0]]
    errors: dict[str, str] = {}
    for bench, aliases in chosen:
        for drop in drops:
            for volume in resolve(drop, bench, aliases).raid:
                alias, named = str(volume["adapter"]), len(volume["members"])
                for levels in varied:
                    count, level = int(levels[MEMBERS]), str(levels.get(RAID_LEVEL, volume.get("level", "0")))
                    least = LEAST_MEMBERS.get(level, 1)
                    objection = count_objection(volume["tool"], level, count)
                    if count > named:
                        few = f"drop {drop.name} gives the volume of {alias} on {bench.name} only {named}"
                        errors[f"{count} members"] = f"{count} members are asked for, and {few}"
                    elif count < least:
                        errors[f"{count} of {level}"] = f"RAID {level} needs at least {least} members; {count} given"
                    elif objection:
                        errors[f"{count} of {level}"] = objection
    for sentence in errors.values():
        yield document.about(keys, sentence)


def _unbound(suite: Suite) -> str:
    """What is wrong with counts by RAID level; nothing where any count goes with any level."""
    entries = [check_level(SETTINGS[MEMBERS], level) for level in suite.vary[MEMBERS]]
    bound = [entry for entry in entries if isinstance(entry, dict)]
    if not bound:
        return ""
    if len(entries) > 1:
        return f"{MEMBERS} mixes counts by {RAID_LEVEL} with plain counts; use one mapping, or plain counts only"
    varied = [str(level) for level in suite.vary.get(RAID_LEVEL, ())]
    if sorted(bound[0]) != sorted(varied):
        given = f"{MEMBERS} gives counts for {RAID_LEVEL} {', '.join(bound[0])}"
        return (
            f"{given}, and {RAID_LEVEL} varies over {', '.join(varied)}"
            if varied
            else f"{given}; vary {RAID_LEVEL} too"
        )
    return ""


def controller_problems(
    suite: Suite, path: Path, chosen: Sequence[tuple[Bench, Sequence[str]]], files: Sequence[DropFile]
) -> Iterator[str]:
    """Volumes that the tool of a controller makes, where a suite measures volumes: those are md arrays."""
    workload = next((point.workload for point in points_of(suite) if point.pattern.on_volumes), None)
    if workload is None:
        return
    place = read_yaml(path).about(("workloads", workload), "").partition(": ")[0]
    for file in files:
        document = read_yaml(file.path)
        for number, entry in enumerate(file.drop.sections[_SECTION]):
            for alias, bench, tool in sorted(controller_volumes(_alone(file.drop, entry), chosen)):
                keys = section_keys(document, _SECTION, number)
                yield document.about(
                    (*keys, "tool") if "tool" in entry.settings else keys,
                    f"{tool} makes the volume of {alias} of {bench}, and `target: volume` ({place}) measures Linux "
                    f"md arrays only; {INSTEAD}",
                )


def controller_volumes(drop: Drop, chosen: Sequence[tuple[Bench, Sequence[str]]]) -> set[tuple[str, str, str]]:
    """Adapter, bench and tool of the volumes of a drop that md does not make."""
    return {
        (str(volume["adapter"]), bench.name, str(volume["tool"]))
        for bench, aliases in chosen
        for volume in resolve(drop, bench, aliases).raid
        if volume["tool"] != MD
    }


def tool_problems(
    suite: Suite, path: Path, keys: Keys, chosen: Sequence[tuple[Bench, Sequence[str]]], files: Sequence[DropFile]
) -> Iterator[str]:
    """What tools refuse of the volumes of the drops, and of those that a suite varies; `keys` are those of `vary`."""
    varied = {name: levels for name, levels in suite.vary.items() if name.startswith(f"{_SECTION}.")}
    yield from drop_tool_problems(chosen, files, varied)
    for file in files if varied else ():
        for entry in file.drop.sections[_SECTION]:
            for settings in (dict(levels) for levels in combinations(varied)[0]):
                for sentence in sorted(set(_objections(_alone(file.drop, entry), chosen, settings))):
                    with_levels = " and ".join(f"{name} {_shown(value)}" for name, value in settings.items())
                    yield read_yaml(path).about((*keys, next(iter(varied))), f"with {with_levels}, {sentence}")


def drop_tool_problems(
    chosen: Sequence[tuple[Bench, Sequence[str]]], files: Sequence[DropFile], varied: Collection[str] = ()
) -> Iterator[str]:
    """What tools refuse of the volumes as the drops declare them; a suite that varies some settings has the say."""
    for file in files:
        document = read_yaml(file.path)
        for number, entry in enumerate(file.drop.sections[_SECTION]):
            keys = section_keys(document, _SECTION, number)
            if "level" not in entry.settings and RAID_LEVEL not in varied:
                yield document.about(keys, "the volume has no `level`; give its RAID level")
            elif not varied:
                objections = sorted(set(_objections(_alone(file.drop, entry), chosen, {})))
                at = (*keys, "strip") if any("strip" in sentence for sentence in objections) else keys
                yield from (document.about(at, sentence) for sentence in objections)


def _shown(level: object) -> str:
    """A level as a suite writes it: of these settings, only sizes are larger than a sector."""
    return format_size(level) if isinstance(level, int) and level >= _SECTOR else str(level)


def _alone(drop: Drop, entry: DropSection) -> Drop:
    """A drop that declares one volume and nothing else."""
    return drop.model_copy(update={"sections": {**dict.fromkeys(drop.sections, ()), _SECTION: (entry,)}})


def _objections(
    drop: Drop, chosen: Sequence[tuple[Bench, Sequence[str]]], levels: Mapping[str, Any]
) -> Iterator[str]:
    for bench, aliases in chosen:
        for volume in resolve(drop, bench, aliases, levels).raid:
            tool = str(volume["tool"])
            objection = volume_objection(tool, _request(volume))
            if objection:
                named = any("tool" in entry.settings for entry in drop.sections[_SECTION])
                whose = "" if named or tool == MD else f", the tool of adapter {volume['adapter']} of {bench.name},"
                hint = "" if named or tool == MD else f"; for a Linux md array, write `tool: {MD}`"
                yield f"{tool}{whose} cannot make this volume: {objection}{hint}"


def _request(volume: Mapping[str, Any]) -> VolumeRequest:
    """What a tool would be asked, with drives by their ids."""
    return VolumeRequest(
        level=str(volume.get("level", "")),
        members=tuple(volume["members"]),
        strip=volume.get("strip"),
        name=volume.get("name", ""),
        policies={name: volume[name] for name in POLICIES if name in volume},
        initialisation=volume.get("initialisation", ""),
        spares=tuple(volume.get("hot_spares", ())),
    )
