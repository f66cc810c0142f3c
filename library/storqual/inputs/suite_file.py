# SPDX-License-Identifier: Apache-2.0
"""Read a suite; everything that is wrong with it alone, before any bench or drop is looked at."""

import fnmatch
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from storqual.inputs.fields import (
    MetricFacts,
    doubtful_limits,
    fitting_units,
    limit_value,
    metric_facts,
    metric_names,
)
from storqual.inputs.product import AGAINST, Product, read_products
from storqual.inputs.shape import did_you_mean, raise_all, shaped, shown, sound, unknown
from storqual.inputs.suite import (
    WHOLE,
    Criterion,
    Parameters,
    Profile,
    Requirement,
    Suite,
    Workload,
    applies,
    format_level,
    margin_of,
)
from storqual.inputs.trials import trial_problems
from storqual.inputs.yaml_file import Document, Keys, read_yaml
from storqual_core.kit.durable import ALPHABET, is_name
from storqual_core.kit.errors import BadInputError
from storqual_core.kit.quantities import format_percent
from storqual_core.kit.settings import SETTINGS, check_level
from storqual_core.turns.fio_job import read_ask

_NO_KIND = (
    "a suite has no `kind`: workloads, trials and programs stand in one file; remove this line, write `programs` for "
    "`external`, and count the `sessions` of both arms together"
)
_PARTS = ("workloads", "trials", "programs")
_PART_OF: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("criteria", "defaults", "vary", "published", "products", "studies"), _PARTS[:1]),
    **dict.fromkeys(("cells", "levels", "runtime", "ramp", "idle", "launches", "pairs", "until"), _PARTS[:1]),
    **dict.fromkeys(("margin", "indifference", "marginal", "alpha", "noise"), _PARTS[:1]),
    **dict.fromkeys(("precondition", "file", "block"), _PARTS[:1]),
    **dict.fromkeys(("loads", "faults", "leave_out", "candidate_first", "time"), _PARTS[1:2]),
    "repeats": _PARTS[1:],
}
"""Keys of a suite and of its profiles that say something of some of its parts only."""
_SIDES = {"read": ("read",), "write": ("write",), "mixed": ("read", "write"), "trim": ()}


def load_suite(path: Path) -> Suite:
    """Read the suite of a run, whose limits mean what they did when it was planned. Raises BadInputError."""
    suite, problems = read_suite(path, new=False)
    raise_all(problems)
    assert suite is not None  # noqa: S101 - there is one when nothing was wrong
    return suite


def read_suite(path: Path, *, profile: str | None = None, new: bool = True) -> tuple[Suite | None, list[str]]:
    """A suite and all problems with it; `profile` is the one that will be used, when it is known.

    Of a `new` one, limits that probably mean something else are problems, too.

    Raises BadInputError only when the file cannot be read as YAML.
    """
    document = read_yaml(path)
    if isinstance(document.data, dict) and "kind" in document.data:
        return None, [document.about(("kind",), _NO_KIND)]
    suite, problems = shaped(Suite, document)
    looked_at = suite if suite is not None else _sound_part(document)
    problems += [
        *_part_problems(document),
        *_workload_problems(looked_at, document),
        *_criterion_problems(looked_at, document),
        *_profile_problems(looked_at, document, profile),
        *_vary_problems(looked_at, document),
        *_published_problems(looked_at, document),
        *trial_problems(document),
        *(_doubtful_limits(looked_at, document) if new else ()),
    ]
    sheets: Mapping[str, Product] = {}
    if suite is not None and (suite.products or any(criterion.against == AGAINST for criterion in suite.criteria)):
        sheets, wrong = read_products(suite, path, document, new=new)
        problems += wrong
    if suite is None or problems:
        return None, problems
    suite = suite.with_sheets(sheets)
    if suite.name is None:
        name = path.name.split(".")[0]
        if not is_name(name):
            return None, [
                document.about((), f"the suite has no `name`, and its file name cannot be one: use {ALPHABET}")
            ]
        suite = suite.model_copy(update={"name": name})
    profiles = suite.profiles if WHOLE in suite.profiles else {**suite.profiles, WHOLE: Profile()}
    return suite.model_copy(update={"profiles": profiles, "requirements": _requirements(suite)}), problems


def _requirements(suite: Suite) -> Mapping[str, Requirement]:
    requirements = dict(suite.requirements)
    for trial in suite.trials:
        for name in trial.requirement:
            before = requirements.get(name, Requirement())
            checks = dict.fromkeys((*before.checks, f"trials.{trial.fault}"))
            requirements[name] = before.model_copy(update={"checks": tuple(checks)})
    return requirements


def _part_problems(document: Document) -> Iterator[str]:
    data = document.data if isinstance(document.data, dict) else {}
    if not any(data.get(part) for part in _PARTS):
        yield document.about((), f"this suite has nothing to run; give `{'`, `'.join(_PARTS[:2])}` or `{_PARTS[2]}`")
        return
    if data.get("workloads") and not data.get("criteria"):
        yield document.about(("workloads",), "these workloads have no `criteria`; give at least one")
    for key in data.keys() & _PART_OF.keys():
        yield from _lone_problems(document, (key,), key, data)
    profiles = data.get("profiles")
    for name, profile in profiles.items() if isinstance(profiles, dict) else ():
        for key in Profile.model_fields if isinstance(profile, dict) else ():
            if key in profile:
                yield from _lone_problems(document, ("profiles", name, key), key, data)


def _lone_problems(document: Document, keys: Keys, key: str, data: Mapping[str, Any]) -> Iterator[str]:
    """A key whose part the suite does not have; keys of no part are for all of them."""
    parts = _PART_OF.get(key, ())
    if parts and not any(data.get(part) for part in parts):
        yield document.about(keys, f"`{key}` is for {' and '.join(parts)}, and this suite has none; remove it")


def _sound_part(document: Document) -> Suite:
    """What is sound of a suite that is not: never planned with, only looked at, so that all mistakes are told.

    Workloads and profiles that are not sound stand there by name; criteria keep their places.
    """
    data = document.data if isinstance(document.data, dict) else {}

    def items(name: str) -> dict[str, Any]:
        value = data.get(name)
        return value if isinstance(value, dict) else {}

    criteria = data.get("criteria")
    listed = criteria if isinstance(criteria, list) else [criteria]
    return Suite.model_construct(
        workloads={name: sound(Workload, entry) or _UNREAD for name, entry in items("workloads").items()},
        criteria=tuple(sound(Criterion, entry) or _NO_CRITERION for entry in listed),
        profiles={name: sound(Profile, entry) or Profile() for name, entry in items("profiles").items()},
        default_profile=next((name for name in [data.get("default_profile")] if isinstance(name, str)), None),
        vary={name: tuple(levels) for name, levels in items("vary").items() if isinstance(levels, list)},
    )


_UNREAD = Workload(rw="rw")
_NO_CRITERION = Criterion(metric="unread")


def _workload_problems(suite: Suite, document: Document) -> Iterator[str]:
    for name, workload in suite.workloads.items():
        keys = ("workloads", name)
        if workload.rw is None and "rw" not in workload.factors:
            modes = "read, write, randread, randwrite, rw or randrw"
            yield document.about(keys, f"workload {name} has no `rw`; set it to {modes}")
        for factor in workload.factors:
            if getattr(workload, factor, None) is not None:
                sentence = f"workload {name} has {factor} both as a fixed value and as a factor; remove one of them"
                yield document.about((*keys, factor), sentence)
        if workload.load is not None and workload.load.parameter in workload.factors:
            raised = f"the load of {name} raises {workload.load.parameter}, so it cannot be a factor"
            yield document.about((*keys, "load"), f"{raised}; give it one value, with which the load begins")
        if workload.arrivals == "poisson" and workload.rate_iops is None and "rate_iops" not in workload.factors:
            sentence = f"workload {name} has Poisson arrivals and no `rate_iops`: how many I/Os arrive per second"
            yield document.about((*keys, "arrivals"), sentence)
        if workload.arrivals == "poisson" and workload.load is not None:
            sentence = f"workload {name} has both `arrivals` and `load`; remove one of them"
            yield document.about((*keys, "arrivals"), sentence)
        for problem in _option_problems(workload):
            option, _, rest = problem.removeprefix("options.").partition(": found ")
            value, _, expected = rest.partition(", expected ")
            yield document.problem((*keys, "options", option), f"fio option {option} {value} in {name}", expected)


def _option_problems(workload: Parameters) -> list[str]:
    """What the bench would refuse of the options passed on to fio: its program keeps the list of harmless ones."""
    ask = {"rw": "read", "bs": 4096, "runtime_s": 1.0, "options": dict(workload.options)}
    problems: list[str] = []
    read_ask(ask, "", problems)
    return [problem.removeprefix(": ") for problem in problems]


def _criterion_problems(suite: Suite, document: Document) -> Iterator[str]:
    names: dict[str, int] = {}
    for number, criterion in enumerate(suite.criteria):
        if criterion is _NO_CRITERION:
            continue
        keys: Keys = ("criteria", number)
        if criterion.id is not None and criterion.id in names:
            sentence = f"another criterion already has the id {criterion.id!r}; give each its own"
            yield document.about((*keys, "id"), sentence)
        names[criterion.name] = number
        yield from _reach_problems(suite, criterion, document, keys)
        facts = metric_facts(criterion.metric)
        if facts is None:
            yield document.about((*keys, "metric"), unknown("metric", criterion.metric, metric_names()))
            continue
        yield from _limit_problems(suite, criterion, facts, document, keys)
        yield from _answer_problems(suite, criterion, facts, document, keys)


def _reach_problems(suite: Suite, criterion: Criterion, document: Document, keys: Keys) -> Iterator[str]:
    """Workloads and levels that a criterion names and the suite does not have."""
    for pattern in criterion.workloads:
        if not fnmatch.filter(suite.workloads, pattern):
            yield document.about((*keys, "workloads"), unknown("workload", pattern, suite.workloads))
    for name in criterion.profiles:
        if name not in suite.profiles:
            yield document.about((*keys, "profiles"), unknown("profile", name, suite.profiles))
    chosen = _chosen(suite, criterion)
    if any(workload is _UNREAD for workload in chosen):
        return
    for name, levels in criterion.at.items():
        have = {level for workload in chosen for level in workload.factors.get(name, ())}
        if chosen and not have:
            yield document.about((*keys, "at", name), f"no workload of this criterion has a factor {name!r}")
            continue
        for level in levels:
            if chosen and level not in have:
                known = ", ".join(str(item) for item in sorted(have, key=str))
                sentence = f"no workload of this criterion has {name} {level}; their levels: {known}"
                yield document.about((*keys, "at", name), sentence)


def _limit_problems(
    suite: Suite, criterion: Criterion, facts: MetricFacts, document: Document, keys: Keys
) -> Iterator[str]:
    """Limits: there where they are needed, in a unit that fits."""
    if criterion.reference is not None:
        yield from _reference_problems(criterion, document, keys)
        return
    if criterion.unit is not None and criterion.unit not in fitting_units(facts.unit):
        fits = " or ".join(fitting_units(facts.unit)) or "no unit"
        yield document.about((*keys, "unit"), f"{criterion.unit!r} is no unit of {facts.name}; it has {fits}")
        return
    values: dict[str, float] = {}
    for name in ("min", "max"):
        text = getattr(criterion, name)
        if text is None:
            continue
        try:
            values[name] = limit_value(text, criterion.metric, criterion.unit)
        except ValueError as problem:
            yield document.problem(
                (*keys, name), f"{name} {shown(text)} for {facts.name} ({facts.unit})", str(problem)
            )
    for name, value in values.items():
        if value < 0:
            yield document.about(
                (*keys, name), f"{name} {shown(getattr(criterion, name))} is negative; use 0 or more"
            )
    if len(values) == 2 and values["min"] > values["max"]:
        yield document.about((*keys, "min"), f"min {shown(criterion.min)} is above max {shown(criterion.max)}")
    limits = criterion.min is not None or criterion.max is not None
    if criterion.against in ("absolute", "published") and not limits:
        sentence = f"{criterion.name} against {criterion.against} has no limit; give `min` or `max`"
        yield document.about(keys, sentence)
    if criterion.against in ("baseline", "peers", AGAINST) and limits:
        word = "min" if criterion.min is not None else "max"
        other = f"`{word}` cannot be used against {criterion.against}; a limit needs `against: absolute`"
        yield document.about((*keys, word), other)
    if criterion.against == "published" and criterion.source is None:
        sentence = f"{criterion.name} has no `source`; say where the figure was published"
        yield document.about(keys, sentence)
    yield from _scaling_problems(criterion, document, keys)
    margins = [margin_of(criterion, profile) for name, profile in suite.profiles.items() if criterion.is_asked(name)]
    if criterion.indifference is not None and criterion.indifference >= min(margins, default=1.0):
        sentence = "the indifference zone is as wide as the margin; it must be smaller"
        yield document.about((*keys, "indifference"), sentence)


def _doubtful_limits(suite: Suite, document: Document) -> Iterator[str]:
    for number, criterion in enumerate(suite.criteria):
        # limits in percent of a published figure have their sign
        unit = "%" if criterion.reference is not None else criterion.unit
        if criterion.against in ("absolute", "published"):
            for name, sentence in doubtful_limits(criterion.metric, criterion.min, criterion.max, unit):
                yield document.about(("criteria", number, name), sentence)


def _reference_problems(criterion: Criterion, document: Document, keys: Keys) -> Iterator[str]:
    """A published figure as the limit: it exists, it is of that metric, the limits are percentages of it."""
    from storqual.inputs.references import limits_from  # noqa: PLC0415 - most criteria have no reference

    if criterion.against != "published":
        other = f"`reference` cannot be used against {criterion.against}; it needs `against: published`"
        yield document.about((*keys, "reference"), other)
    if criterion.min is None and criterion.max is None:
        sentence = f"{criterion.name} has no limit; give `min` or `max` in percent of the reference"
        yield document.about(keys, sentence)
    try:
        limits_from(criterion.reference or "", criterion.metric, criterion.min, criterion.max)
    except BadInputError as problem:
        for reason in problem.problems:
            yield document.about((*keys, "reference"), reason)
    except ValueError as problem:
        yield document.problem((*keys, "reference"), f"{criterion.reference!r} for {criterion.name}", str(problem))


def _scaling_problems(criterion: Criterion, document: Document, keys: Keys) -> Iterator[str]:
    """A scaling criterion without its factor or its level, or another with them."""
    for name in ("over", "linear_to"):
        given = getattr(criterion, name) is not None
        if given and criterion.against != "scaling":
            other = f"`{name}` cannot be used against {criterion.against}; it needs `against: scaling`"
            yield document.about((*keys, name), other)
        elif not given and criterion.against == "scaling":
            needed = "the factor" if name == "over" else "the level up to which it has to be linear"
            yield document.about(keys, f"{criterion.name} against scaling has no `{name}`; give {needed}")


def _answer_problems(
    suite: Suite, criterion: Criterion, facts: MetricFacts, document: Document, keys: Keys
) -> Iterator[str]:
    """A criterion that no sample of its workloads can ever answer: latency of writes where nothing is written."""
    chosen = _chosen(suite, criterion)
    if criterion.against == "scaling" and criterion.over is not None and criterion.linear_to is not None:
        levels = {level for workload in chosen for level in workload.factors.get(criterion.over, ())}
        if criterion.linear_to not in levels or min(levels) >= criterion.linear_to:
            known = ", ".join(str(level) for level in sorted(levels)) or "none"
            problem = f"`linear_to` is {criterion.linear_to}, and the levels of {criterion.over} are {known}"
            yield document.about((*keys, "linear_to"), f"{problem}; it must be one of them, and not the smallest")
    if "load_steps" in facts.needs and not all(workload is _UNREAD or workload.load for workload in chosen):
        problem = f"{facts.name} needs a load that is raised up to a cap; name `workloads` that have such a `load`"
        yield document.about((*keys, "metric"), problem)
        return
    sides = {side for workload in chosen for side in _sides(workload)}
    for need in facts.needs:
        # alternatives of one need: `read_ios|write_ios` is answered by either
        wanted = {name.split("_")[0] for name in need.split("|") if name.startswith(("read_", "write_"))}
        if wanted and sides and len(wanted) == len(need.split("|")) and not wanted & sides:
            lack, have = " or ".join(sorted(wanted)), " and ".join(sorted(sides))
            problem = f"{facts.name} needs {lack}s, and the workloads of this criterion only {have}"
            yield document.about((*keys, "metric"), problem)
            return


def _sides(workload: Workload) -> Iterable[str]:
    for rw in workload.factors.get("rw", (workload.rw,)):
        kind = (
            "trim"
            if "trim" in str(rw)
            else "mixed"
            if rw in ("rw", "randrw")
            else "write"
            if "write" in str(rw)
            else "read"
        )
        yield from _SIDES[kind]


def _chosen(suite: Suite, criterion: Criterion) -> list[Workload]:
    plain = criterion.model_copy(update={"at": {}, "adapters": ()})
    return [workload for name, workload in suite.workloads.items() if applies(plain, name, {}, "")]


def _profile_problems(suite: Suite, document: Document, request: str | None) -> Iterator[str]:
    for name, keys in ((request, ("profiles",)), (suite.default_profile, ("default_profile",))):
        if name not in (None, WHOLE) and name not in suite.profiles:
            yield document.about(keys, unknown("profile", str(name), suite.profiles))
    for name, profile in suite.profiles.items():
        if profile.runtime <= 0:
            sentence = f"profile {name} has no `runtime` above zero"
            yield document.about(("profiles", name, "runtime"), sentence)
        if profile.indifference >= profile.margin:
            zone, margin = format_percent(profile.indifference), format_percent(profile.margin)
            sentence = f"`indifference` is {zone}; it must be less than the margin, {margin}"
            yield document.about(("profiles", name, "indifference"), sentence)
        yield from _level_problems(suite, document, name, profile)
        if profile.cells is not None and profile.cells < len(suite.workloads):
            few = f"{profile.cells} cells for {len(suite.workloads)} workloads; each needs at least one"
            yield document.about(("profiles", name, "cells"), few)


def _level_problems(suite: Suite, document: Document, name: str, profile: Profile) -> Iterator[str]:
    for factor, levels in profile.levels.items():
        keys = ("profiles", name, "levels", factor)
        having = {
            key: workload.factors[factor] for key, workload in suite.workloads.items() if factor in workload.factors
        }
        known = {level for listed in having.values() for level in listed}
        for level in levels:
            if level not in known:
                listed = ", ".join(format_level(factor, value) for value in sorted(known, key=str))
                sentence = f"no workload has {factor} {format_level(factor, level)}, as profile {name} asks"
                yield document.about(keys, f"{sentence}; their levels: {listed}" if known else sentence)
        for key, own in having.items():
            if not set(own) & set(levels):
                few = f"profile {name} has no level of {factor} that workload {key} has; it needs at least one"
                yield document.about(keys, few)


def _published_problems(suite: Suite, document: Document) -> Iterator[str]:
    """Published reports that there are no figures of."""
    if not suite.published:
        return
    from storqual.inputs.references import published_reports  # noqa: PLC0415 - most suites name none

    known = published_reports()
    for name in suite.published:
        if name not in known:
            yield document.about(("published",), unknown("published report", name, known))


def _vary_problems(suite: Suite, document: Document) -> Iterator[str]:
    yield from _varied_problems(suite.vary, document, ())
    for name, profile in suite.profiles.items():
        yield from _varied_problems(profile.vary or {}, document, ("profiles", name))


def _varied_problems(vary: Mapping[str, Sequence[Any]], document: Document, inside: Keys) -> Iterator[str]:
    for name, levels in vary.items():
        setting = SETTINGS.get(name)
        if setting is None:
            form = "it is written section.name, as in a drop"
            sentence = f"unknown setting {name!r}{did_you_mean(name, SETTINGS)}; {form}"
            yield document.about((*inside, "vary", name), sentence)
            continue
        for number, level in enumerate(levels):
            try:
                check_level(setting, level)
            except (ValueError, TypeError, OverflowError) as problem:
                yield document.about((*inside, "vary", name, number), f"{problem} ({setting.summary})")
