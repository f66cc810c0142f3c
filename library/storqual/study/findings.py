# SPDX-License-Identifier: Apache-2.0
"""All studies that a suite asks for over the points of a run; features and places of its adapters; advice."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storqual.base.figures import percent_range, together
from storqual.inputs.references import PublishedValue, overlays
from storqual.study.comparisons import Contest, EqualLoad, contests, equal_loads, generator_contests
from storqual.study.demand import (
    CeilingShare,
    Demand,
    Growth,
    demands,
    growths,
    known_ceiling,
    reached,
    read_adapter,
    saturation_advice,
)
from storqual.study.points import STUDIED, Levels, PointLine, StudyPoint, first_axis, lines_of
from storqual.study.settings import SettingStudy, setting_studies
from storqual_core.host.fabric import port_key, port_words
from storqual_core.kit.quantities import format_percent, format_size, is_whole, parse_size

_WORDS = {"single": ("ports", "1"), "dual": ("ports", "2"), "read": ("rw", "read"), "write": ("rw", "write")}


@dataclass(frozen=True)
class Beside:
    """A published figure and the point of ours that is most like it; `ours` is a mean, in the same unit."""

    report: str
    theirs: PublishedValue
    point: StudyPoint
    ours: float

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs.value


@dataclass(frozen=True)
class Overlay:
    """A curve of ours, a line per subject, and what was published of its points: source -> level -> value.

    Both are in the unit of `metric`.
    """

    title: str
    metric: str
    along: str
    lines: tuple[PointLine, ...]
    theirs: Mapping[str, Mapping[float, float]]


def beside(points: Sequence[StudyPoint], reports: Sequence[str]) -> list[Beside]:
    """Every published figure with each subject's matching point. Raises BadInputError for an unknown report."""
    figures = []
    for report in reports:
        for metric in STUDIED:
            for theirs in overlays(report, metric):
                factors = dict(_factors_of(theirs))
                if "rw" not in factors or theirs.value <= 0:
                    continue
                for point in _matching(points, factors):
                    ours = point.mean(metric)
                    if ours is not None:
                        figures.append(Beside(report, theirs, point, ours))
    return figures


def overlays_of(points: Sequence[StudyPoint], figures: Sequence[Beside]) -> list[Overlay]:
    """The curves on which published figures lie; a figure whose point stands alone, on no curve, is in none."""
    series: defaultdict[tuple[str, str, str], list[Beside]] = defaultdict(list)
    for figure in figures:
        if figure.theirs.metric is not None:
            series[figure.theirs.metric, figure.point.workload, figure.theirs.source].append(figure)
    curves: dict[tuple[str, str, str], tuple[list[PointLine], dict[str, dict[float, float]]]] = {}
    for (metric, workload, source), members in series.items():
        here = [point for point in points if point.workload == workload]
        along = first_axis([figure.point for figure in members]) or first_axis(here)
        groups: defaultdict[Levels, list[PointLine]] = defaultdict(list)
        for line in lines_of(here, along) if along is not None else ():
            groups[line.rest].append(line)
        for rest, lines in groups.items():
            on_it = {
                _level(figure.point, line.along): figure.theirs.value
                for figure in members
                for line in lines
                if figure.point in line.points
            }
            if on_it:
                _, theirs = curves.setdefault((together(workload, rest), metric, lines[0].along), (lines, {}))
                theirs[source] = on_it
    return [
        Overlay(title, metric, along, tuple(lines), theirs)
        for (title, metric, along), (lines, theirs) in curves.items()
    ]


def _level(point: StudyPoint, along: str) -> float:
    return float(point.levels[along])


def _factors_of(value: PublishedValue) -> Iterator[tuple[str, str]]:
    """Factors that the figure's own text gives, and those that its label says in words."""
    for name, text in value.point.items():
        if name == "operation":
            yield "rw", text
        else:
            yield name, text
    for word in (value.label or "").lower().split():
        if word in _WORDS:
            yield _WORDS[word]
        elif word.endswith("kb") and is_whole(word[:-2]):
            yield "bs", f"{word[:-2]}k"


def _matching(points: Sequence[StudyPoint], factors: Mapping[str, str]) -> Iterator[StudyPoint]:
    """Per subject the first point with all that is wanted; what the figure does not say is free."""
    subjects: set[str] = set()
    for point in points:
        if point.subject not in subjects and all(_is(point, name, text) for name, text in factors.items()):
            subjects.add(point.subject)
            yield point


def _is(point: StudyPoint, name: str, text: str) -> bool:
    value = point.ports if name == "ports" else point.pattern.get(name)
    if name == "bs" and isinstance(value, int):
        try:
            return format_size(parse_size(text)) == format_size(value)
        except ValueError:
            return False
    return str(value) == text


NOT_KNOWN = "not known"


@dataclass(frozen=True)
class Feature:
    """One feature and what each adapter has, in words; `NOT_KNOWN` where nobody says."""

    name: str
    values: tuple[str, ...]


def features(bench: Mapping[str, Any], adapters: Sequence[str]) -> list[Feature]:
    """The features of a bench's adapters from run.json: what the bench read, else what the inventory declares."""
    columns = [dict(_of(bench, alias)) for alias in adapters]
    names = dict.fromkeys(name for column in columns for name in column)
    return [Feature(name, tuple(column.get(name) or NOT_KNOWN for column in columns)) for name in names]


def _of(bench: Mapping[str, Any], alias: str) -> Iterator[tuple[str, str]]:
    declared: Mapping[str, Any] = (bench.get("adapters") or {}).get(alias) or {}
    read = read_adapter(bench, alias)
    module = read.get("module") or {}
    link = read.get("link") or {}
    drives: Mapping[str, Mapping[str, Any]] = read.get("drives") or {}
    yield "Model", str(declared.get("model") or "")
    yield "Board", str(read.get("board") or "")
    yield "Subsystem", str(read.get("subsystem") or "").strip(":")
    yield "Driver", " ".join(filter(None, [str(read.get("driver") or declared.get("driver") or ""), _text(module)]))
    yield "Firmware", str(read.get("firmware") or "")
    yield "PCI link", _link(link)
    yield "FC ports", ", ".join(map(port_words, read.get("fc_ports") or ()))
    yield "Ports with drives", str(len({port_key(drive.get("port")) for drive in declared.get("drives") or ()}) or "")
    yield "Drives", str(len(declared.get("drives") or ()) or "")
    yield "Queue depth per drive", _several(drive.get("queue_depth") for drive in drives.values())
    yield "Requests per hardware queue", _several(drive.get("nr_requests") for drive in drives.values())
    yield "Drive write cache", _several(drive.get("write_cache") for drive in drives.values())
    yield "Commands per adapter", _several(read.get("can_queue") or ())
    yield "Configured by", str(declared.get("tool") or "")
    yield from _boot(declared.get("boot") or {}, read)


def _boot(declared: Mapping[str, Any], read: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Boot code (BIOS) and what it offers. A ROM says that there may be such code, not what it can do."""
    rom = "" if read.get("rom") is None else "a ROM, its version not known" if read["rom"] else "no ROM on the card"
    bios = str(read.get("boot_code") or "") or _declared(declared.get("bios"))
    cdroms, cdrom = read.get("cdroms"), declared.get("cdrom")
    yield "BIOS", bios or rom
    yield "BIOS options", _declared(", ".join(declared.get("options") or ()))
    yield "Boot from CD-ROM", "" if cdrom is None else _declared("yes" if cdrom else "no")
    yield "CD-ROM drives", "" if cdroms is None else str(cdroms or "none")
    yield "Boot from drives", _declared(declared.get("drives"))


def _declared(text: object) -> str:
    """What the inventory says, and that it is the inventory that says it."""
    return f"{text} (inventory)" if text else ""


def _text(module: Mapping[str, Any]) -> str:
    return str(module.get("version") or "")


def _link(link: Mapping[str, Any]) -> str:
    speed, width = str(link.get("speed") or ""), str(link.get("width") or "")
    return f"{speed} x{width}" if speed and width else ""


def _several(values: Iterable[object]) -> str:
    return " or ".join(dict.fromkeys(str(value) for value in values if value not in (None, "")))


_MB = 1_000_000
_LANE = {2.5: 250e6, 5.0: 500e6, 8.0: 984.6e6, 16.0: 1969.2e6, 32.0: 3938.5e6, 64.0: 7562.5e6}
"""Bytes per second of one PCIe lane and direction after its line code, by transfers per second (GT/s)."""


def placement_advice(alias: str, declared: Mapping[str, Any], read: Mapping[str, Any]) -> Iterator[str]:
    """Sentences about one adapter: `declared` is its entry of the inventory, `read` what the bench read of it.

    A slot that carries less than its ports' links together is the limit however many drives are attached (HP A6826A
    paper, p. 2 and 7: 412 MB/s of two ports in a slot of 528 MB/s).
    """
    ceiling = known_ceiling(declared, read)
    slot, link = ceiling.get("slot", 0.0), ceiling.get("link", 0.0)
    ports = len({port_key(drive.get("port")) for drive in declared.get("drives") or ()})
    if slot and link:
        fed = int(slot // link)
        carries = f"{alias}: its slot carries {slot / _MB:.0f} MB/s, a port {link / _MB:.0f} MB/s"
        if fed >= max(ports, 1):
            yield f"{carries}: the slot feeds all {ports} port{'s' if ports != 1 else ''} at full rate."
        elif fed:
            yield f"{carries}: it feeds {fed} of {ports} ports at full rate; spread the others over another slot."
        else:
            yield (
                f"{carries}: no port runs at full rate here; a faster slot may give {link / slot:.1f} times the rate."
            )
    lane = read.get("link") or {}
    for what, name in (("speed", "speed"), ("width", "width")):
        now, best = str(lane.get(name) or ""), str(lane.get(f"{name}_max") or "")
        if now and best and now != best:
            yield f"{alias}: its PCI link runs at {what} {now}, the card can {best}: another slot may give more."


def shared_advice(bench: str, adapters: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Sentences about the tested cards of a bench together: `adapters` is what it read of each adapter, by alias.

    Behind each PCI root how many cards are, and for each bridge that several share whether it carries what they can
    (HP A6826A paper, p. 6 and 7: so many cards in each half of an I/O backplane). Functions of one card are one card.
    """
    cards: dict[str, list[str]] = {}
    for alias, adapter in adapters.items():
        if adapter.get("pci") and adapter.get("root"):
            cards.setdefault(str(adapter["pci"]).rpartition(".")[0], []).append(alias)
    first = {card: adapters[aliases[0]] for card, aliases in cards.items()}
    names = {card: "/".join(aliases) for card, aliases in cards.items()}
    if len(cards) < 2 or not any(_carries(facts.get("link")) or facts.get("bridges") for facts in first.values()):
        return
    yield f"{bench}: of {len(cards)} tested cards {_by_root(first, names)}."
    shared: dict[str, list[str]] = {}
    for card, facts in first.items():
        for bridge in facts.get("bridges") or ():
            shared.setdefault(bridge["pci"], []).append(card)
    reported: list[list[str]] = []
    links = {bridge["pci"]: bridge for facts in first.values() for bridge in facts.get("bridges") or ()}
    # the narrowest link that the same cards share is the one that limits them
    for pci in sorted(shared, key=lambda pci: _carries(links[pci]) or float("inf")):
        behind = shared[pci]
        if len(behind) > 1 and behind not in reported:
            reported.append(behind)
            yield _of_bridge(bench, links[pci], {names[card]: first[card].get("link") or {} for card in behind})


def _by_root(first: Mapping[str, Mapping[str, Any]], names: Mapping[str, str]) -> str:
    roots: dict[str, list[str]] = {}
    for card, facts in first.items():
        node = facts.get("numa_node")
        where = f"PCI root {facts['root']}" + (f" of NUMA node {node}" if isinstance(node, int) and node >= 0 else "")
        roots.setdefault(where, []).append(names[card])
    return ", ".join(
        f"{len(behind)} {'is' if len(behind) == 1 else 'are'} behind {where} ({', '.join(behind)})"
        for where, behind in roots.items()
    )


def _of_bridge(bench: str, bridge: Mapping[str, Any], links: Mapping[str, Mapping[str, Any]]) -> str:
    start = f"{bench}: {', '.join(links)} share "
    upstream = _carries(bridge)
    if upstream is None:
        return f"{start}the bus behind PCI bridge {bridge['pci']}: all that it carries is divided among them"
    start += f"PCI bridge {bridge['pci']} ({_link_text(bridge)}, {upstream / _MB:.0f} MB/s)"
    rates = {name: _carries(link) for name, link in links.items()}
    known_rates = [rate for rate in rates.values() if rate is not None]
    if len(known_rates) < len(rates):
        return f"{start}; the link of {', '.join(name for name, rate in rates.items() if rate is None)} is not known."
    cards = ", ".join(f"{name} {rate / _MB:.0f}" for name, rate in rates.items() if rate is not None)
    if sum(known_rates) <= upstream:
        return f"{start}, enough for what their own links carry ({cards} MB/s)."
    return f"{start}, less than their own links together ({cards} MB/s): put one behind another root port."


def _link_text(link: Mapping[str, Any]) -> str:
    return f"{str(link['speed']).replace(' PCIe', '')} x{link['width']}"


def _carries(link: Mapping[str, Any] | None) -> float | None:
    """Bytes per second of a PCIe link and direction, before packets' own overhead; None where it is not known."""
    speed = re.match(r"([0-9.]+) GT/s", str((link or {}).get("speed") or ""))
    width = str((link or {}).get("width") or "")
    lane = _LANE.get(float(speed.group(1))) if speed else None
    return lane * int(width) if lane is not None and is_whole(width) and int(width) > 0 else None


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
    reached: tuple[CeilingShare, ...]
    settings: tuple[SettingStudy, ...]
    features: tuple[tuple[str, tuple[str, ...], tuple[Feature, ...]], ...]
    published: tuple[Beside, ...]
    overlays: tuple[Overlay, ...]
    advice: tuple[Advice, ...]


def findings(
    points: Sequence[StudyPoint],
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
        (bench, alias): known_ceiling(adapter, read_adapter(entry, alias))
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
    points: Sequence[StudyPoint], benches: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, tuple[str, ...], tuple[Feature, ...]]]:
    for bench, entry in benches.items():
        adapters = tuple(dict.fromkeys(point.adapter for point in points if point.bench == bench))
        if adapters:
            yield bench, adapters, tuple(features(entry, adapters))


def _from_settings(studies: Sequence[SettingStudy], margin: float) -> Iterator[Advice]:
    """What to set, with the gain; what to leave; neutral settings are named once per subject and workload."""
    for study in studies:
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
                f"{what} for {where}: {effect.setting} {level}{along} gives {format_percent(gains[0])} more IOPS "
                f"than {other}{other_along} "
                f"(interval {percent_range(gains[1], gains[2])}).",
                "study-settings",
            )
        for sentence in _neutral(study, f"no difference of {format_percent(margin)} or more"):
            yield Advice(f"{where}: {sentence}.", "study-settings")


def _neutral(study: SettingStudy, none: str) -> Iterator[str]:
    """Settings whose every level is shown to make no difference, and levels of others that make none."""
    for setting in dict.fromkeys(effect.setting for effect in study.effects):
        effects = [effect for effect in study.effects if effect.setting == setting]
        alike = ["".join(effect.levels(base=False)) for effect in effects if effect.influence == "neutral"]
        if len(alike) == len(effects):
            with_it = " and ".join(dict.fromkeys(name for effect in effects for name, _, _ in effect.along))
            yield f"{setting}{f' with {with_it}' if with_it else ''} makes {none}; leave it"
        elif alike:
            yield f"{setting} {' and '.join([''.join(effects[0].levels(base=True)), *alike])} make {none}"


def _from_ceiling(shares: Sequence[CeilingShare]) -> Iterator[Advice]:
    """Where the rig was the limit: more of the tested part would show nothing there."""
    for name in dict.fromkeys(share.point.subject for share in shares):
        limits: dict[str, list[str]] = {}
        for share in shares:
            if share.point.subject == name and share.share.limited_by is not None:
                limits.setdefault(share.share.limited_by.name, []).append(share.point.point)
        for part, names in limits.items():
            many = f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]
            yield Advice(f"{name}: the limit at {many} is {part}, not the adapter.", "study-ceiling")


def _placement(points: Sequence[StudyPoint], benches: Mapping[str, Mapping[str, Any]]) -> Iterator[Advice]:
    tested: dict[str, list[str]] = {}
    for bench, alias in dict.fromkeys((point.bench, point.adapter) for point in points):
        tested.setdefault(bench, []).append(alias)
    for bench, aliases in tested.items():
        entry = benches.get(bench) or {}
        before = (entry.get("environment") or {}).get("before") or {}
        adapters = {alias: (before.get("adapters") or {}).get(alias) or {} for alias in aliases}
        for alias in aliases:
            declared = (entry.get("adapters") or {}).get(alias) or {}
            for text in placement_advice(alias, declared, adapters[alias]):
                yield Advice(text, "study-ceiling")
        for text in shared_advice(bench, adapters):
            yield Advice(text, "study-ceiling")
