# SPDX-License-Identifier: Apache-2.0
"""How many drives a volume has where a suite varies that: counts, alone or by RAID level, and which cannot be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from storqual.inputs.drop import Drop
from storqual.inputs.inventory import Bench
from storqual.inputs.suite import Suite
from storqual.inputs.yaml_file import Keys, read_yaml
from storqual.plan.checks import LEAST_MEMBERS
from storqual.plan.resolve import resolve
from storqual.plan.sessions import Varied, split
from storqual_core.kit.settings import MEMBERS, RAID_LEVEL, SETTINGS, check_level
from storqual_core.provision.raid.layout import count_objection, possible_tools


def combinations(vary: Mapping[str, Sequence[Any]]) -> tuple[list[Varied], list[Varied]]:
    """`split` of a suite's levels in plain form; where counts are bound to RAID levels, those that go together."""
    plain = {name: [check_level(SETTINGS[name], level) for level in levels] for name, levels in vary.items()}
    bound = next((entry for entry in plain.get(MEMBERS, ()) if isinstance(entry, dict)), None)
    if bound is None:
        return split(plain)
    slow, quick = split(
        {**plain, MEMBERS: list(dict.fromkeys(count for counts in bound.values() for count in counts))}
    )
    return [one for one in slow if _go_together(dict(one), bound)], quick


def _go_together(levels: Mapping[str, Any], bound: Mapping[str, Sequence[int]]) -> bool:
    return levels[MEMBERS] in bound.get(str(levels.get(RAID_LEVEL)), ())


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
    varied = [dict(one) for one in combinations(suite.vary)[0]]
    told: dict[str, str] = {}
    for bench, aliases in chosen:
        for drop in drops:
            for volume in resolve(drop, bench, aliases).raid:
                alias, named = str(volume["adapter"]), len(volume["members"])
                tools = possible_tools(str(volume.get("tool", "")), bench.adapters[alias].driver or "")
                for levels in varied:
                    count, level = int(levels[MEMBERS]), str(levels.get(RAID_LEVEL, volume.get("level", "0")))
                    least = LEAST_MEMBERS.get(level, 1)
                    objection = count_objection(tools, level, count)
                    if count > named:
                        few = f"drop {drop.name} gives the volume of {alias} on {bench.name} only {named}"
                        told[f"{count} members"] = f"{count} members are asked for, and {few}"
                    elif count < least:
                        told[f"{count} of {level}"] = f"RAID {level} needs at least {least} members; {count} given"
                    elif objection:
                        told[f"{count} of {level}"] = objection
    for sentence in told.values():
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
