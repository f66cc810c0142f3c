# SPDX-License-Identifier: Apache-2.0
"""The studies that a suite asks for as sections of the page: sentences, tables, pictures; advice with evidence."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from storqual.base.figures import AXIS_NAMES, DASH, NONE, Scale, ShownNumber, count, level_text, percent, scale_for
from storqual.base.table import Table
from storqual.inputs.suite import Suite
from storqual.metrics import METRICS
from storqual.report.charts import Mark, PlottedCurve, curve_panel, size_axis, value_axis
from storqual.report.material import Material
from storqual.report.parts.curves import overlay_chart
from storqual.report.svg import SUBJECTS
from storqual.report.view import DrawnChart
from storqual.statistics.estimates import Estimate, log_levels
from storqual.study.comparisons import Contest
from storqual.study.findings import Findings, findings
from storqual.study.points import PointLine, points_of


@dataclass(frozen=True)
class Study:
    """One study of a suite: sentences (`more` were left out), tables and pictures."""

    ident: str
    title: str
    note: str
    sentences: tuple[str, ...]
    more: ShownNumber | None
    tables: tuple[Table, ...]
    charts: tuple[DrawnChart, ...]


_MOST_SENTENCES = 60


def studies_of(material: Material) -> tuple[tuple[Study, ...], tuple[tuple[str, str], ...]]:
    """The sections, and the advice as (sentence, where its evidence is); nothing for a suite that asks for none."""
    suite = material.suite
    if suite is None or not suite.studies:
        return (), ()
    both = "arms" in suite.studies and len(material.arms) > 1
    points = points_of([(material.run, material.points)], material.arms if both else material.arms[-1:])
    profile = suite.profiles.get(material.run.suite.profile)
    results = findings(
        points,
        suite.studies,
        benches=material.run.benches,
        reports=suite.published,
        margin=profile.margin if profile is not None else 0.03,
    )
    sections = [
        *_method(suite, material),
        *_compared(results),
        *_generators(results),
        *_scaling(results),
        *_demand(results),
        *_ceiling(results),
    ]
    sections += [*_settings(results, material), *_published(results), *_features(results)]
    planned = material.document["plan"].get("advice") or ()
    advice = [(str(text), "#coverage") for text in planned]
    advice += [(line.text, f"#{line.evidence}") for line in results.advice]
    return tuple(sections), tuple(advice)


def _section(
    ident: str,
    title: str,
    note: str,
    *,
    sentences: tuple[str, ...] = (),
    tables: tuple[Table, ...] = (),
    charts: tuple[DrawnChart, ...] = (),
) -> Study:
    more = count(len(sentences) - _MOST_SENTENCES, f"count:{ident}") if len(sentences) > _MOST_SENTENCES else None
    return Study(ident, title, note, sentences[:_MOST_SENTENCES], more, tables, charts)


def _method(suite: Suite, material: Material) -> Iterator[Study]:
    """What is measured after which source, and what an emulation could not stand for."""
    rows = []
    for name, workload in suite.workloads.items():
        skipped = {p.skipped for p in material.run.plan.points if p.workload == name and p.skipped}
        left_out = "; ".join(sorted(skipped))
        if workload.source or left_out:
            rows.append((name, workload.description or "", workload.source or "", left_out))
    if rows:
        heads = ("Workload", "What", "Section and page", "Not measured here, and why")
        note = suite.description or ""
        yield _section("study-method", "Method", note, tables=(Table("Workloads and sources", heads, tuple(rows)),))


def _compared(results: Findings) -> Iterator[Study]:
    if not results.contests:
        return
    charts = []
    for number, contest in enumerate(results.contests):
        charts.append(contest_chart(contest, f"sa-{number}"))
        against = iops_against_cpu(contest, f"sc-{number}") if contest.metric == "iops" else None
        if against is not None:
            charts.append(against)
    sentences = [f"{contest.title}: {text}" for contest in results.contests for text in contest.sentences]
    sentences += [f"{load.title}: {load.sentence}" for load in results.equal_loads]
    note = (
        "Intervals are simultaneous for all pairs and levels of a picture. Equality within 3 % is "
        "shown, never assumed."
    )
    yield _section("study-adapters", "Comparison", note, sentences=tuple(sentences), charts=tuple(charts))


def _generators(results: Findings) -> Iterator[Study]:
    if results.generators:
        charts = tuple(contest_chart(contest, f"sl-{number}") for number, contest in enumerate(results.generators))
        sentences = tuple(f"{contest.title}: {text}" for contest in results.generators for text in contest.sentences)
        note = (
            "The same points by each way of fio to a drive: libaio asynchronous, psync by system calls, "
            "sg by SCSI commands past the block layer. Where they are equal, the program does not decide the figure."
        )
        yield _section("study-generators", "Load generators", note, sentences=sentences, charts=charts)


def _scaling(results: Findings) -> Iterator[Study]:
    if not results.growths:
        return
    rows = []
    for growth in results.growths:
        line = f"{growth.line.subject}, {growth.line.title}"
        for level in growth.scaling.levels:
            where = f"study:scaling:{line}:{level.at:g}"
            added = NONE if level.added is None else percent(100 * level.added.value, where, signed=False)
            rows.append(
                (
                    line,
                    level_text(growth.line.along, int(level.at)),
                    Scale("MB/s").figure(level.value.value, where),
                    percent(100 * level.efficiency.value, where, signed=False),
                    _share_ends(level.efficiency, where),
                    added,
                )
            )
    heads = ("Line", "At", "Throughput, MB/s", "Of linear", "95 % interval", "Each added, of one alone")
    sentences = tuple(
        f"{growth.line.subject}, {growth.line.title}: {sentence}"
        for growth in results.growths
        for sentence in growth.sentences
    )
    note = (
        "Linear is at least 95 % of what the first level gives, times the level; "
        "the knee is where a line meets a plateau."
    )
    table = Table("Scaling", heads, tuple(rows))
    yield _section("study-scaling", "Scaling and saturation", note, sentences=sentences, tables=(table,))


def _share_ends(estimate: Estimate, where: str) -> ShownNumber | str:
    if estimate.low is None or estimate.high is None:
        return DASH
    low, high = (percent(100 * end, "", signed=False) for end in (estimate.low, estimate.high))
    return ShownNumber(f"{low} to {high}", None, f"{where}:interval")


def _demand(results: Findings) -> Iterator[Study]:
    if not results.demands:
        return
    rows: list[tuple[ShownNumber | str, ...]] = []
    for demand in results.demands:
        where = f"study:demand:{demand.point.subject}/{demand.point.point}"
        reach: ShownNumber | str = (
            DASH if demand.cpu_reach is None else Scale("").figure(demand.cpu_reach, f"{where}:interval")
        )
        values = (demand.throughput_mb_s, demand.cpu_percent)
        costs = (demand.us_per_kib, demand.us_per_io, demand.percent_thousandths)
        rate, busy, *costs_shown = (Scale("").figure(value, where) for value in (*values, *costs))
        rows.append((f"{demand.point.subject} {demand.point.point}", rate, busy, reach, *costs_shown))
    heads = ("Point", "MB/s", "CPU, %", "± (95 %)", "µs/KiB", "µs/IO", "% per 1,000 KiB/s")
    note = (
        "MB are 10\u2076 bytes; CPU is of all processors together, above what the idle bench uses. "
        "µs/KiB counts the time of all processors; the last column is the unit of HP's A7173A paper."
    )
    table = Table("Service demand: what the I/O costs the host; lower is better", heads, tuple(rows))
    yield _section("study-demand", "Service demand", note, tables=(table, *_member_ios(results)))


def _member_ios(results: Findings) -> Iterator[Table]:
    """What an I/O of a volume costs its drives, where volumes were measured."""
    rows: list[tuple[ShownNumber | str, ...]] = []
    for demand in results.demands:
        value = demand.point.mean("member_ios_per_io")
        if value is not None:
            where = f"study:members:{demand.point.subject}/{demand.point.point}"
            rows.append((f"{demand.point.subject} {demand.point.point}", Scale("").figure(value, where)))
    if rows:
        title = "I/Os of the members for each of the volume: a small write costs 4 on RAID 5, 2 on RAID 10"
        yield Table(title, ("Point", "Member I/Os per I/O"), tuple(rows))


def _ceiling(results: Findings) -> Iterator[Study]:
    if not results.reached:
        return
    rows = []
    for share in results.reached:
        where = f"study:ceiling:{share.point.subject}/{share.point.point}"
        limit = share.share.limited_by
        rows.append(
            (
                f"{share.point.subject} {share.point.point}",
                Scale("").figure(share.throughput_mb_s, where),
                Scale("").figure(share.ceiling_mb_s, where),
                percent(share.share.percent.value, where, signed=False),
                share.share.lowest.name,
                limit.name if limit is not None else "",
            )
        )
    heads = ("Point", "MB/s", "Ceiling, MB/s", "Of ceiling", "Lowest part", "Limited by the rig")
    note = (
        "The ceiling is the least of slot, links of the ports in use, and the drives together; MB are 10\u2076 bytes."
    )
    yield _section(
        "study-ceiling", "Percent of the ceiling", note, tables=(Table("Percent of the ceiling", heads, tuple(rows)),)
    )


def _settings(results: Findings, material: Material) -> Iterator[Study]:
    not_varied = material.document["plan"].get("not_varied") or {}
    if not results.settings and not not_varied:
        return
    rows = []
    for study in results.settings:
        for rank, effect in enumerate(study.effects, start=1):
            where = f"study:settings:{study.subject}:{study.workload}:{study.metric}:{effect.setting}:{effect.level}"
            shift = effect.shift
            ends: ShownNumber | str = DASH
            if shift.low is not None and shift.high is not None:
                low, high = percent(100 * shift.low, ""), percent(100 * shift.high, "")
                ends = ShownNumber(f"{low} to {high}", None, f"{where}:interval")
            rows.append(
                (
                    f"{study.subject}, {study.workload}, {METRICS[study.metric].label}",
                    count(rank, where),
                    effect.short,
                    percent(100 * shift.value, where),
                    ends,
                    effect.influence,
                )
            )
    heads = ("Where", "Rank", "Setting", "Effect", "95 % interval", "Shown to be")
    sentences = tuple(sentence for study in results.settings for sentence in study.sentences)
    note = (
        "Effects are averages over everything else that was varied; positive is better. "
        "Neutral is shown, never assumed."
    )
    if not rows:
        note = "Nothing was varied whose effect could be ranked."
    tables = [Table("Settings by effect", heads, tuple(rows))] if rows else []
    fixed = tuple((bench, name, why) for bench, reasons in not_varied.items() for name, why in reasons.items())
    if fixed:
        tables.append(Table("Settings that were not varied", ("Bench", "Setting", "Why"), fixed))
    yield _section("study-settings", "Settings ranked by effect", note, sentences=sentences, tables=tuple(tables))


def _published(results: Findings) -> Iterator[Study]:
    if not results.published:
        return
    rows = []
    for figure in results.published:
        where = f"study:published:{figure.report}:{figure.theirs.source}"
        name = METRICS[figure.theirs.metric].label if figure.theirs.metric else ""
        rows.append(
            (
                f"{figure.theirs.source}" + (f" ({figure.theirs.label})" if figure.theirs.label else ""),
                ", ".join(dict.fromkeys(filter(None, (name, figure.theirs.unit)))),
                Scale("").figure(figure.theirs.value, where),
                f"{figure.point.subject} {figure.point.point}",
                Scale("").figure(figure.ours, where),
                Scale("").figure(figure.ratio, where),
            )
        )
    heads = ("Published", "What", "Theirs", "Our point", "Ours", "Measured of published")
    note = (
        "Figures from another machine do not affect the outcome. Curves show the published figures "
        "that lie on them, on a "
        "logarithmic scale where the two are far apart."
    )
    charts = tuple(overlay_chart(overlay, f"sp-{number}") for number, overlay in enumerate(results.overlays))
    table = Table("Published figures beside the measured ones", heads, tuple(rows))
    yield _section("study-published", "Published figures", note, tables=(table,), charts=charts)


def _features(results: Findings) -> Iterator[Study]:
    tables: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    heads: dict[str, tuple[str, ...]] = {}
    for bench, adapters, rows in results.features:
        heads[bench] = ("Feature", *adapters)
        tables[bench] += [(row.name, *row.values) for row in rows]
    if tables:
        by_bench = tuple(Table(f"Adapters of {name}", heads[name], tuple(rows)) for name, rows in tables.items())
        note = "As the bench reads them, else as the inventory declares them, else not known."
        yield _section("study-features", "Features of the adapters", note, tables=by_bench)


def contest_chart(contest: Contest, ident: str) -> DrawnChart:
    """One metric of all subjects over the contest's factor, with 95 % intervals of the mean."""
    metric = METRICS[contest.metric]
    data = {
        line.subject: log_levels(line.values(contest.metric)) for line in contest.lines if line.values(contest.metric)
    }
    scale = scale_for(
        metric.unit, [value for line in contest.lines for v in line.values(contest.metric).values() for value in v]
    )
    curves, rows = [], []
    for at, (subject, levels) in enumerate(data.items()):
        marks = []
        for number, level in enumerate(levels.at):
            mean = levels.estimate(levels.mean[number], 1 / levels.count[number]).exp()
            marks.append(_mark(level, mean.value, mean.low, mean.high, scale))
            where = f"study:{contest.title}:{contest.metric}:{subject}:{level:g}"
            interval = DASH if mean.low is None or mean.high is None else _interval(mean.low, mean.high, scale, where)
            rows.append(
                (
                    level_text(contest.along, int(level)),
                    subject,
                    scale.figure(mean.value, where),
                    interval,
                    count(levels.count[number], f"{where}:launches"),
                )
            )
        curves.append(PlottedCurve(f"subject{at % SUBJECTS}", subject, tuple(marks)))
    over = AXIS_NAMES.get(contest.along, contest.along)
    title = f"{metric.label}, {contest.title}"
    across = size_axis(over, [mark.x for curve in curves for mark in curve.marks], sizes=contest.along == "bs")
    highest = max(mark.high if mark.high is not None else mark.y for curve in curves for mark in curve.marks)
    described = f"{title} over {over}, {', '.join(data)}; numbers in the table below."
    picture = curve_panel(ident, title, described, curves, across, value_axis(scale.unit, highest))
    heads = (over.capitalize(), "Adapter", f"{metric.label}, {scale.unit}", "95 % interval", "Launches")
    return DrawnChart(title, picture, Table(title, heads, tuple(rows)))


def _mark(x: float, value: float, low: float | None, high: float | None, scale: Scale) -> Mark:
    ends = (None if end is None else end / scale.divisor for end in (low, high))
    return Mark(x, value / scale.divisor, *ends)


def _interval(low: float, high: float, scale: Scale, where: str) -> ShownNumber:
    return ShownNumber(f"{scale.figure(low, '')} to {scale.figure(high, '')}", None, f"{where}:interval")


def iops_against_cpu(contest: Contest, ident: str) -> DrawnChart | None:
    """IOPS over the CPU that they took, one mark per level (QLA1040 report, figure 10); None where CPU is unknown."""
    curves, rows = [], []
    for at, line in enumerate(contest.lines):
        marks = sorted(_loads(line))
        if marks:
            curves.append(
                PlottedCurve(f"subject{at % SUBJECTS}", line.subject, tuple(Mark(x, y) for x, y, _ in marks))
            )
            for x, y, level in marks:
                where = f"study:{contest.title}:iops-cpu:{line.subject}:{level}"
                rows.append((level, line.subject, Scale("%").figure(x, where), Scale("IOPS").figure(y, where)))
    if len(curves) < 2:
        return None
    title = f"IOPS against CPU, {contest.title}"
    across = value_axis("CPU, %", max(mark.x for curve in curves for mark in curve.marks))
    up = value_axis("IOPS", max(mark.y for curve in curves for mark in curve.marks))
    picture = curve_panel(ident, title, f"{title}; numbers in the table below.", curves, across, up)
    heads = (AXIS_NAMES.get(contest.along, contest.along).capitalize(), "Adapter", "CPU, %", "IOPS")
    return DrawnChart(title, picture, Table(title, heads, tuple(rows)))


def _loads(line: PointLine) -> Iterator[tuple[float, float, str]]:
    """CPU in percent, IOPS and the level's name, means of each level."""
    for point in line.points:
        busy, rate = point.mean("cpu_percent"), point.mean("iops")
        if busy is not None and rate is not None:
            yield busy, rate, level_text(line.along, point.levels[line.along])
