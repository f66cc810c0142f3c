# SPDX-License-Identifier: Apache-2.0
"""All studies that a suite asks for, over the points of a run, and the advice that follows from them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storqual.study.adapters import Contest, EqualLoad, contests, equal_loads, generator_contests
from storqual.study.demand import Demand, Reached, demands, reached
from storqual.study.features import Feature, features
from storqual.study.placement import placement_advice, shared_advice
from storqual.study.points import Point
from storqual.study.published import Beside, Overlay, beside, overlays_of
from storqual.study.scale import Growth, growths, saturation_advice
from storqual.study.settings import SettingStudy, setting_studies

_CACHE = ("WCE", "RCD", "DRA", "NCS", "read_policy", "write_policy", "io_policy", "disk_cache")


@dataclass(frozen=True)
class Advice:
    """One thing to do or to leave; `evidence` names the study that shows it (an anchor of the report)."""

    text: str
    evidence: str


@dataclass(frozen=True)
class Findings:
    """What was found; a study that was not asked for, or that found nothing, is empty."""

    contests: tuple[Contest, ...]
    equal_loads: tuple[EqualLoad, ...]
    generators: tuple[Contest, ...]
    growths: tuple[Growth, ...]
    demands: tuple[Demand, ...]
    reached: tuple[Reached, ...]
    settings: tuple[SettingStudy, ...]
    features: tuple[tuple[str, tuple[str, ...], tuple[Feature, ...]], ...]
    published: tuple[Beside, ...]
    overlays: tuple[Overlay, ...]
    advice: tuple[Advice, ...]


def findings(
    points: Sequence[Point],
    studies: Collection[str],
    *,
    benches: Mapping[str, Mapping[str, Any]],
    reports: Sequence[str] = (),
    margin: float = 0.03,
) -> Findings:
    """`points` of one arm, `benches` as run.json has them, `reports` the published reports to set beside.

    Raises BadInputError for a published report that there is none of.
    """
    ceilings = {
        (bench, alias): adapter.get("ceiling") or {}
        for bench, entry in benches.items()
        for alias, adapter in (entry.get("adapters") or {}).items()
    }
    compared = bool({"adapters", "arms"} & set(studies))
    scaled = growths(points) if "scaling" in studies else []
    ranked = setting_studies(points, margin=margin) if "settings" in studies else []
    shares = reached(points, ceilings) if "ceiling" in studies else []
    figures = beside(points, reports) if "published" in studies else []
    return Findings(
        contests=tuple(contests(points) if compared else ()),
        equal_loads=tuple(equal_loads(points) if compared else ()),
        generators=tuple(generator_contests(points) if "generators" in studies else ()),
        growths=tuple(scaled),
        demands=tuple(demands(points) if "service_demand" in studies else ()),
        reached=tuple(shares),
        settings=tuple(ranked),
        features=tuple(_features(points, benches) if "features" in studies else ()),
        published=tuple(figures),
        overlays=tuple(overlays_of(points, figures)),
        advice=(
            *(Advice(text, "study-scaling") for text in saturation_advice(scaled)),
            *_from_settings(ranked, margin),
            *_from_ceiling(shares),
            *(_placement(points, benches) if "ceiling" in studies else ()),
        ),
    )


def _features(
    points: Sequence[Point], benches: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, tuple[str, ...], tuple[Feature, ...]]]:
    for bench, entry in benches.items():
        adapters = tuple(dict.fromkeys(point.adapter for point in points if point.bench == bench))
        if adapters:
            yield bench, adapters, tuple(features(entry, adapters))


def _from_settings(found: Sequence[SettingStudy], margin: float) -> Iterator[Advice]:
    """What to set, with the gain; what to leave; neutral settings are named once per subject and workload."""
    for study in found:
        if study.metric != "iops":
            continue
        where = f"{study.subject}, {study.workload}"
        for effect in study.effects:
            name = effect.setting.partition(".")[2]
            what = "Cache policy" if name in _CACHE else "Setting"
            low, high = effect.shift.low, effect.shift.high
            if effect.influence not in ("better", "worse") or low is None or high is None:
                continue
            better = effect.influence == "better"
            (level, along), (other, other_along) = (effect.levels(base=not better), effect.levels(base=better))
            gains = (
                [effect.shift.value, low, high]
                if better
                else [1 / (1 + s) - 1 for s in (effect.shift.value, high, low)]
            )
            yield Advice(
                f"{what} for {where}: {effect.setting} {level}{along} gives {100 * gains[0]:.1f} % more IOPS than "
                f"{other}{other_along} "
                f"(interval {100 * gains[1]:.1f} to {100 * gains[2]:.1f} %).",
                "study-settings",
            )
        for sentence in _neutral(study, f"no difference of {100 * margin:g} % or more"):
            yield Advice(f"{where}: {sentence}.", "study-settings")


def _neutral(study: SettingStudy, none: str) -> Iterator[str]:
    """Settings whose every level is shown to make no difference, and levels of others that make none."""
    for setting in dict.fromkeys(one.setting for one in study.effects):
        effects = [one for one in study.effects if one.setting == setting]
        alike = ["".join(one.levels(base=False)) for one in effects if one.influence == "neutral"]
        if len(alike) == len(effects):
            with_it = " and ".join(dict.fromkeys(name for one in effects for name, _, _ in one.along))
            yield f"{setting}{f' with {with_it}' if with_it else ''} makes {none}; leave it"
        elif alike:
            yield f"{setting} {' and '.join([''.join(effects[0].levels(base=True)), *alike])} make {none}"


def _from_ceiling(found: Sequence[Reached]) -> Iterator[Advice]:
    """Where the rig was the limit: more of the tested part would show nothing there."""
    for name in dict.fromkeys(one.point.subject for one in found):
        limits: dict[str, list[str]] = {}
        for one in found:
            if one.point.subject == name and one.share.limited_by is not None:
                limits.setdefault(one.share.limited_by.name, []).append(one.point.point)
        for part, names in limits.items():
            many = f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]
            yield Advice(f"{name}: the limit at {many} is {part}, not the adapter.", "study-ceiling")


def _placement(points: Sequence[Point], benches: Mapping[str, Mapping[str, Any]]) -> Iterator[Advice]:
    tested: dict[str, list[str]] = {}
    for bench, alias in dict.fromkeys((point.bench, point.adapter) for point in points):
        tested.setdefault(bench, []).append(alias)
    for bench, aliases in tested.items():
        entry = benches.get(bench) or {}
        before = (entry.get("environment") or {}).get("before") or {}
        found = {alias: (before.get("adapters") or {}).get(alias) or {} for alias in aliases}
        for alias in aliases:
            declared = (entry.get("adapters") or {}).get(alias) or {}
            for text in placement_advice(alias, declared, found[alias]):
                yield Advice(text, "study-ceiling")
        for text in shared_advice(bench, found):
            yield Advice(text, "study-ceiling")
