# SPDX-License-Identifier: Apache-2.0
"""Levels, criteria and settings of a suite that these benches, drops or arms cannot have."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from storqual.inputs.drop import Drop
from storqual.inputs.inventory import Bench
from storqual.inputs.shape import did_you_mean
from storqual.inputs.suite import Suite, applies
from storqual.inputs.yaml_file import Keys, read_yaml
from storqual.plan.points import IN_VOLUMES, Placed, Point, points_of, shortage, team
from storqual.plan.refusals.volumes import INSTEAD, controller_volumes
from storqual.plan.volumes import Layout, layouts_of
from storqual_core.kit.errors import BadInputError


def level_problems(
    suite: Suite,
    path: Path,
    benches: Sequence[tuple[Bench, Sequence[str]]],
    drops: Sequence[Drop],
    lab: Sequence[Bench],
) -> Iterator[str]:
    """Levels that no adapter can serve: a workload that needs more drives than are claimed anywhere in the lab.

    What only adapters of the lab can serve that are not under test is skipped there, no mistake of the suite. Files
    on volumes are left out, by name, where the drops declare too few and the suite has points on drives.
    """
    document = read_yaml(path)
    layouts = {bench.name: layouts_of(bench, aliases, drops) for bench, aliases in benches}
    elsewhere = list(_elsewhere(benches, drops, lab))
    seen: set[tuple[str, str]] = set()
    raw: dict[str, None] = {}
    points = points_of(suite)
    on_drives = any(not point.pattern.on_volumes for point in points)
    for point in (case for case in points if not (on_drives and case.pattern.on_file_system_of_volume)):
        reasons = [
            f"{alias} of {bench.name} {reason}"
            for bench, aliases in benches
            for alias in aliases
            if (reason := shortage(team(bench, alias, point.pattern), point.pattern, layouts[bench.name][alias]))
        ]
        if not reasons or len(reasons) < sum(len(aliases) for _, aliases in benches):
            continue
        if all(IN_VOLUMES in reason for reason in reasons):
            raw[point.workload] = None
            continue
        if any(
            not shortage(team(bench, alias, point.pattern), point.pattern, has) for bench, alias, has in elsewhere
        ):
            continue
        key = (point.workload, reasons[0])
        if key not in seen:
            seen.add(key)
            factor = next((name for name in ("ports", "adapters") if name in reasons[0]), "drives")
            keys = ("workloads", point.workload, "factors", factor)
            demand = f"workload {point.workload} asks for {factor}={point.pattern.values[factor]}"
            few = f"{demand}, which no adapter under test has: {'; '.join(reasons[:3])}"
            yield document.about(keys, few)
    if raw:
        # one cause, one message: the suite is right, it only measures something else than the drop makes
        tools = sorted({tool for drop in drops for _, _, tool in controller_volumes(drop, benches)})
        advice = (
            f"{' and '.join(tools)} would make them, and volumes of a controller are measured otherwise: {INSTEAD}"
            if tools
            else "to measure the volumes, write `target: volume` in `defaults` or in these workloads, with as many "
            "`drives` as there are volumes"
        )
        few = f"the volumes of the drops leave too few single drives for {', '.join(raw)}; {advice}"
        yield f"{path}:{document.line(('workloads',))}: {few}"


def _elsewhere(
    benches: Sequence[tuple[Bench, Sequence[str]]], drops: Sequence[Drop], lab: Sequence[Bench]
) -> Iterator[tuple[Bench, str, Layout]]:
    tested = {bench.name: aliases for bench, aliases in benches}
    for bench in lab:
        others = [
            a for a, adapter in bench.adapters.items() if adapter.claimed and a not in tested.get(bench.name, ())
        ]
        try:
            layouts = layouts_of(bench, others, drops)
        except BadInputError:
            # a drop that cannot be applied there is told when that bench is planned for
            continue
        for alias in others:
            yield bench.model_copy(update={"under_test": tuple(others)}), alias, layouts[alias]


def criterion_problems(
    suite: Suite,
    path: Path,
    placed: Sequence[Placed],
    skipped: Sequence[tuple[Placed, str]] = (),
    left_out: Sequence[Point] = (),
    absent: Sequence[str] = (),
) -> Iterator[str]:
    """Criteria that are judged at no point, planned or skipped, nor at one that the profile leaves out.

    `absent` are adapters of the lab that an option left out: what is judged there alone is no mistake either.
    """
    document = read_yaml(path)
    planned = [(p.point, p.adapter) for p in (*placed, *(place for place, _ in skipped))]
    planned += [(point, alias) for point in left_out for alias in {p.adapter for p in placed}]
    planned += [(point, alias) for point in points_of(suite) for alias in absent]
    for number, criterion in suite.numbered:
        if not any(applies(criterion, point.workload, dict(point.factors), alias) for point, alias in planned):
            near = sorted({p.adapter for p in placed}) if criterion.adapters else []
            hint = did_you_mean(criterion.adapters[0], near) if near else ""
            sentence = f"{criterion.name} applies to no planned point; check its workloads, levels and adapters"
            yield document.about(("criteria", number), sentence + hint)


def unjudged_criteria(
    suite: Suite, path: Path, placed: Sequence[Placed], skipped: Sequence[tuple[Placed, str]]
) -> Iterator[str]:
    """Criteria all of whose points are skipped, with the first reason."""
    document = read_yaml(path)
    for number, criterion in suite.numbered:
        if any(applies(criterion, p.point.workload, dict(p.point.factors), p.adapter) for p in placed):
            continue
        for place, why in skipped:
            if applies(criterion, place.point.workload, dict(place.point.factors), place.adapter):
                at = f"{place.adapter}/{place.point.name}"
                sentence = f"{criterion.name} is judged at no point that can be measured: {at} {why}"
                yield document.about(("criteria", number), sentence)
                break


def baseline_problems(suite: Suite, path: Path) -> Iterator[str]:
    document = read_yaml(path)
    for number, criterion in suite.numbered:
        if criterion.against == "baseline":
            needed = f"{criterion.name} is judged against the baseline; name a baseline drop (--baseline)"
            yield document.about(("criteria", number), f"{needed}, or choose a suite without such criteria")


def peer_problems(suite: Suite, path: Path, benches: Sequence[tuple[Bench, Sequence[str]]]) -> Iterator[str]:
    """Criteria against peers where an adapter has none."""
    if any(len(aliases) > 1 for _, aliases in benches):
        return
    document = read_yaml(path)
    for number, criterion in suite.numbered:
        if criterion.against == "peers":
            needed = (
                f"{criterion.name} is judged against peers; this needs at least two adapters under test on a bench"
            )
            yield document.about(("criteria", number), needed)


def vary_problems(suite: Suite, path: Path, keys: Keys, drops: Sequence[Drop]) -> Iterator[str]:
    """Settings of volumes that a suite varies although a drop declares none; `keys` are those of `vary`."""
    document = read_yaml(path)
    without = [drop.name for drop in drops if not drop.sections["raid"]]
    for name in suite.vary:
        if name.startswith("raid.") and without:
            named = " and ".join(dict.fromkeys(without))
            sentence = f"{name} is varied, and no volume is declared in drop {named}; add a section `raid`"
            yield document.about((*keys, name), sentence)
