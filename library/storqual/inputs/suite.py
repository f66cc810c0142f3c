# SPDX-License-Identifier: Apache-2.0
"""The shape of a suite: workloads with factors, criteria, profiles, settings to vary."""

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol, get_args

from pydantic import BeforeValidator, Field, PrivateAttr, WithJsonSchema

from storqual.inputs.fields import SIZE, Alpha, Duration, ManyOf, Name, Percent, Size, Text, limit_value, written
from storqual.inputs.shape import Shape, did_you_mean
from storqual.inputs.trials import IntegrityLoad, Program, Trial
from storqual.inputs.yaml_file import as_written
from storqual_core.kit.quantities import format_size, parse_size

_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,4})?)\Z")
_PARAMETER = {"iodepth": "iodepth", "processes": "numjobs"}
_MOST = {"iodepth": 4096, "processes": 1024}
_PPM = 10_000


def _of(value: object) -> object:
    match = _PERCENTILE.match(str(value))
    if value != "mean" and (match is None or float(match.group(1)) <= 0):
        raise ValueError("mean, or a percentile such as p99")
    return value


class Load(Shape):
    """Outstanding I/Os or issuing processes are added until the response time passes `to` (seconds)."""

    to: Annotated[Duration, Field(gt=0)]
    of: Annotated[str, BeforeValidator(_of), written("`mean` or a percentile", "p99", pattern="^(mean|p[0-9])")] = (
        "mean"
    )
    by: Literal["iodepth", "processes"] = "iodepth"
    most: int | None = Field(default=None, gt=0, le=65536, description="the largest load to try, per drive")

    @property
    def parameter(self) -> str:
        return _PARAMETER[self.by]

    def to_batch(self, least: int) -> dict[str, Any]:
        most = self.most or _MOST[self.by]
        return {
            "cap_ns": round(self.to * 1e9),
            "share_ppm": 0 if self.of == "mean" else round(float(self.of[1:]) * _PPM),
            "by": self.parameter,
            "least": least,
            "most": max(most, least),
        }


_FILL_BLOCK = 128 * 1024


class Steady(Shape):
    """The load whose rate must be level, and how long it may take. Sizes in bytes, times in seconds."""

    rw: Literal["write", "randwrite", "rw", "randrw"] = "randwrite"
    bs: Size = 4096
    iodepth: int = Field(default=32, gt=0, le=65536)
    numjobs: int = Field(default=1, gt=0, le=4096)
    rwmixread: int | None = Field(default=None, ge=0, le=100)
    round: Annotated[Duration, Field(gt=0)] = 60.0
    volume: float = Field(default=1.0, ge=0, le=100, description="capacities to write before the first test")
    at_most: Annotated[Duration, Field(gt=0)] = 4 * 3600.0


class Precondition(Shape):
    """Purge, fill and steady state; SNIA's values where nothing is said."""

    purge: Literal["none", "discard", "format"] = "none"
    fill: int | None = Field(default=2, gt=0, le=100, description="capacities of sequential writes; null: none")
    steady: Steady | None = Steady()
    media: Literal["all", "flash"] = Field(default="all", description="flash: only solid state drives")

    def to_batch(self, consent: tuple[str, ...], fallback: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
        """The `precondition` of a batch file; `fallback` is what may be used instead of libaio and O_DIRECT."""
        return {
            "purge": self.purge,
            "consent": list(consent),
            "fill": None if self.fill is None else {"bs": _FILL_BLOCK, "times": self.fill},
            "steady": None if self.steady is None else _steady(self.steady, fallback),
            "media": self.media,
        }


def _steady(ask: Steady, fallback: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    fio: dict[str, Any] = {name: getattr(ask, name) for name in ("rw", "bs", "iodepth", "numjobs", "rwmixread")}
    fio |= {"ioengine": "libaio", "direct": 1, "runtime_s": ask.round, "ramp_s": 0.0, "options": {}}
    if fallback:
        fio["fallback"] = list(fallback)
    return {"fio": fio, "volume": ask.volume, "rounds": max(1, round(ask.at_most / ask.round))}


Rw = Literal["read", "write", "randread", "randwrite", "rw", "randrw", "trim", "randtrim"]
Target = Literal["raw", "volume", "xfs", "ext4", "xfs_on_volume", "ext4_on_volume"]
Study = Literal[
    "adapters", "arms", "scaling", "service_demand", "ceiling", "settings", "features", "published", "generators"
]
Engine = Literal["libaio", "io_uring", "sync", "psync", "sg", "posixaio"]

_REFUSED = dict.fromkeys(
    ("dd", "sg_dd", "sgp_dd"), " (a program of its own and no engine of fio: a suite names it under `programs`)"
)
"""Why a word is none of a factor's, where somebody may look for it."""


@dataclass(frozen=True)
class Factor:
    """One thing a workload may vary: its kind, and its smallest and largest whole number."""

    name: str
    kind: Literal["size", "integer", "word", "flag"]
    minimum: int = 1
    maximum: int = 1 << 31
    words: tuple[str, ...] = ()

    def level(self, value: object) -> int | str | bool:
        """A level in plain form. Raises ValueError that says what was expected."""
        if self.kind == "flag":
            if not isinstance(value, bool):
                raise ValueError(f"{self.name} as true or false")
            return value
        if self.kind == "word":
            if value not in self.words:
                refused = _REFUSED.get(str(value), "")
                raise ValueError(f"{self.name} as one of {', '.join(self.words)}{refused}")
            return str(value)
        try:
            if isinstance(value, bool | float):
                raise ValueError  # noqa: TRY004, TRY301 - told as every other wrong level
            number = parse_size(str(as_written(value))) if self.kind == "size" else int(str(value))
        except ValueError:
            number = self.minimum - 1
        if not self.minimum <= number <= self.maximum:
            what = "sizes such as 4k" if self.kind == "size" else "whole numbers"
            most = format_size(self.maximum) if self.kind == "size" else self.maximum
            raise ValueError(f"{self.name} as {what} from {self.minimum} to {most}")
        return number

    def json_schema(self) -> dict[str, Any]:
        if self.kind == "flag":
            return {"type": "boolean"}
        if self.kind == "word":
            return {"enum": list(self.words)}
        if self.kind == "size":
            return {"title": "size", "examples": ["4k", "1m"], **SIZE}
        whole = {"type": "integer", "minimum": self.minimum, "maximum": self.maximum}
        return {"title": "whole number", "anyOf": [whole, {"type": "string", "pattern": "^[^.]*$"}]}


FACTORS: Mapping[str, Factor] = {
    factor.name: factor
    for factor in (
        Factor("adapters", "integer", 1, 64),
        Factor("bs", "size", 512, 1 << 30),
        Factor("direct", "flag"),
        Factor("drives", "integer", 1, 4096),
        Factor("drives_per_port", "integer", 1, 4096),
        Factor("engine", "word", words=get_args(Engine)),
        Factor("iodepth", "integer", 1, 65536),
        Factor("numjobs", "integer", 1, 4096),
        Factor("ports", "integer", 1, 64),
        Factor("rate_iops", "integer"),
        Factor("rw", "word", words=("read", "write", "randread", "randwrite", "rw", "randrw", "trim", "randtrim")),
        Factor("rwmixread", "integer", 0, 100),
        Factor("target", "word", words=get_args(Target)),
        Factor("zones", "flag"),
    )
}


def point_name(workload: str, levels: Mapping[str, Any]) -> str:
    """The name of a point: all declared factors and varied settings in alphabetical order, sizes in exact units."""
    inside = ",".join(f"{name}={format_level(name, levels[name])}" for name in sorted(levels))
    return f"{workload}[{inside}]" if inside else workload


def format_level(name: str, value: object) -> str:
    """A level as it stands in a point's name: sizes in the largest exact binary unit."""
    factor = FACTORS.get(name)
    if factor is not None and factor.kind == "size" and isinstance(value, int):
        return format_size(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _plainly(listed: object) -> str:
    return "[" + ", ".join(map(str, listed)) + "]" if isinstance(listed, list) else repr(listed)


def _factors(value: object) -> object:
    """Factors in plain form; all wrong ones are told in one message."""
    if not isinstance(value, dict):
        raise ValueError("a mapping of factors")  # noqa: TRY004 - pydantic gathers ValueError only
    levels: dict[str, tuple[Any, ...]] = {}
    problems = []
    for name, listed in value.items():
        factor = FACTORS.get(name)
        if factor is None:
            problems.append(f"factors named {', '.join(FACTORS)} (not {name!r}){did_you_mean(str(name), FACTORS)}")
            continue
        try:
            levels[name] = tuple(factor.level(item) for item in (listed if isinstance(listed, list) else [listed]))
        except ValueError as problem:
            problems.append(f"{problem}, not {_plainly(listed)}")
            continue
        if not levels[name]:
            problems.append(f"at least one level of {name}")
        elif len(set(levels[name])) < len(levels[name]):
            problems.append(f"each level of {name} once")
    if problems:
        raise ValueError("; ".join(problems))
    return levels


def _levels() -> WithJsonSchema:
    levels = {name: factor.json_schema() for name, factor in FACTORS.items()}
    lists = {name: {"type": "array", "items": level, "minItems": 1} for name, level in levels.items()}
    named = {name: {"anyOf": [levels[name], lists[name]]} for name in FACTORS}
    return written("factors with their levels", type="object", properties=named, additionalProperties=False)


def _single(name: str) -> BeforeValidator:
    """A validator for one level of a factor given as a fixed parameter."""

    def check(value: object) -> object:
        return None if value is None else FACTORS[name].level(value)

    return BeforeValidator(check)


def _limit(value: object) -> object:
    """A number, or a number with its unit: `5 ms`. The unit is compared with the metric's later."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("a number, or a number with its unit such as 5 ms")  # noqa: TRY004 - as above
    return str(as_written(value))


def _cells(value: object) -> object:
    if value == "all":
        return None
    if isinstance(value, str):
        raise ValueError("`all` or a whole number of points")  # noqa: TRY004 - pydantic gathers ValueError only
    return value


def _required(value: object) -> object:
    if value is True or value is False or value == "hardware":
        return value
    raise ValueError("true, false, or `hardware`: on benches of hardware")


def _one_level(name: str) -> WithJsonSchema:
    level = FACTORS[name].json_schema()
    return WithJsonSchema({"anyOf": [level, {"type": "null"}]})


Levels = Annotated[dict[str, tuple[Any, ...]], BeforeValidator(_factors), _levels()]
Limit = Annotated[
    str, BeforeValidator(_limit), written("limit with its unit", "5 ms", "50 kIOPS", type=["number", "string"])
]


class Parameters(Shape):
    """Fixed parts of an access pattern; what is not said here or in `defaults` is the plan's default.

    `adapters` works on the drives of so many adapters under test at once, `drives` and `ports` then count over all of
    them; `drives_per_port` takes so many drives of every port in use instead of `drives` in all; `zones` gives each
    job of a drive a part of its own.
    """

    adapters: Annotated[int | None, _single("adapters"), _one_level("adapters")] = None
    bs: Annotated[int | None, _single("bs"), _one_level("bs")] = None
    direct: Annotated[bool | None, _single("direct"), _one_level("direct")] = None
    drives: Annotated[int | None, _single("drives"), _one_level("drives")] = None
    drives_per_port: Annotated[int | None, _single("drives_per_port"), _one_level("drives_per_port")] = None
    engine: Annotated[Engine | None, _single("engine"), _one_level("engine")] = None
    iodepth: Annotated[int | None, _single("iodepth"), _one_level("iodepth")] = None
    numjobs: Annotated[int | None, _single("numjobs"), _one_level("numjobs")] = None
    ports: Annotated[int | None, _single("ports"), _one_level("ports")] = None
    rate_iops: Annotated[int | None, _single("rate_iops"), _one_level("rate_iops")] = None
    rwmixread: Annotated[int | None, _single("rwmixread"), _one_level("rwmixread")] = None
    target: Annotated[Target | None, _single("target"), _one_level("target")] = None
    zones: Annotated[bool | None, _single("zones"), _one_level("zones")] = None
    options: dict[Name, Text | int | float] = Field(default={}, description="more fio options, passed on as they are")


class Workload(Parameters):
    """A named access pattern. Factors are part of a point's name, fixed parameters are not."""

    rw: Rw | None = Field(default=None, description="how fio accesses: read, write, randread, randwrite, rw, randrw")
    description: Text | None = None
    source: Text | None = None
    hardware_only: Text | None = Field(default=None, description="why an emulation cannot replace hardware here")
    load: Load | None = Field(default=None, description="raise the load until a response time is exceeded")
    arrivals: Literal["closed", "poisson"] = Field(
        default="closed", description="poisson: I/Os arrive at `rate_iops`, however many are outstanding"
    )
    factors: Levels = Field(default={})


class Criterion(Shape):
    """One rule. Fractions where a percentage was written; limits as written, until the metric's unit is known."""

    metric: Text
    id: Name | None = None
    description: Text | None = None
    workloads: ManyOf[Text] = ()
    at: Levels = Field(default={})
    adapters: ManyOf[Text] = ()
    against: Literal["baseline", "absolute", "peers", "published", "product", "scaling"] = "baseline"
    over: Literal["adapters", "ports", "drives", "numjobs", "iodepth"] | None = Field(
        default=None, description="against scaling: the factor in which throughput is to grow"
    )
    linear_to: int | None = Field(default=None, gt=1, description="against scaling: up to which level")
    margin: Percent | None = None
    indifference: Percent | None = None
    marginal: Percent | None = None
    alpha: Alpha | None = None
    min: Limit | None = None
    max: Limit | None = None
    reference: Text | None = Field(default=None, description="a published figure such as a6826a:iops.read[2]")
    hardware_only: Text | None = Field(default=None, description="why an emulation cannot replace hardware here")
    unit: Text | None = None
    required: Annotated[bool | Literal["hardware"], BeforeValidator(_required)] = True
    source: Text | None = None
    requirement: ManyOf[Text] = Field(default=(), description="the requirements that it covers, such as REQ-123")
    profiles: ManyOf[Name] = Field(default=(), description="judged under these profiles only (default: all)")

    @property
    def name(self) -> str:
        """Its id; the metric where none is given."""
        return self.id or self.metric

    def is_required(self, kind: str) -> bool:
        """Whether it decides on a bench of that kind; `hardware` means what an emulation can only tell."""
        return kind == "hardware" if self.required == "hardware" else self.required

    def is_asked(self, profile: str) -> bool:
        """Whether it is judged in campaigns of that profile."""
        return not self.profiles or profile in self.profiles


class Requirement(Shape):
    """A requirement that a release is held to; criteria name it themselves, hand-written checks are named here."""

    text: Text = ""
    checks: ManyOf[Text] = Field(default=(), description="patterns of ids of hand-written checks that cover it")


_MOST_REPEATS = 1000
"""Sessions, launches, pairs: a plan of more takes longer to make than anybody waits, and years to measure."""
WHOLE = "all"
"""The profile of a suite as it stands, unless the suite declares another one of that name."""


class Profile(Shape):
    """How much is measured and tried; times in seconds, fractions where a percentage was written."""

    description: Text | None = None
    cells: Annotated[
        int | None,
        BeforeValidator(_cells),
        written("whole number or `all`", anyOf=[{"type": "integer", "minimum": 1}, {"enum": ["all", None]}]),
    ] = Field(default=None, gt=0)
    """None: the whole matrix, written `all`; else at most so many over all adapters of a bench."""
    adapters: int | None = Field(default=None, gt=0, description="how many adapters are under test")
    levels: Levels = Field(default={}, description="only these levels of the factors that it names")
    vary: dict[Text, ManyOf[Any]] | None = Field(default=None, description="instead of the suite's own")
    runtime: Duration = 30.0
    ramp: Duration = 5.0
    idle: Duration = 2.0
    sessions: int = Field(default=4, ge=2, le=_MOST_REPEATS, multiple_of=2, description="of both arms together")
    launches: int = Field(default=1, gt=0, le=_MOST_REPEATS, description="launches per point in one session")
    pairs: int = Field(
        default=2, gt=0, le=_MOST_REPEATS, description="pairs per point where arms interleave inside a session"
    )
    until: Literal["planned", "decided"] = Field(
        default="planned", description="decided: sessions and pairs are the most that a point may get"
    )
    margin: Percent = 0.03
    indifference: Percent = 0.01
    marginal: Percent | None = None
    alpha: Alpha = 0.05
    noise: Percent | None = Field(default=None, description="expected spread of one launch, from history or a trial")
    precondition: Precondition | None = Field(
        default=None, description="what is done to the drives before the first launch"
    )
    budget: Duration | None = None
    file: Size = Field(
        default=1 << 30, ge=1 << 20, description="the file of each drive, where a target is a file system"
    )
    block: Duration = Field(default=600.0, gt=0, description="the longest batch")
    faults: ManyOf[Name] = Field(default=(), description="only trials with these faults")
    programs: ManyOf[Name] = Field(default=(), description="only these programs")
    leave_out: dict[Name, ManyOf[Text]] = Field(
        default={}, description="by fault: the adapters that are spared it, or `all`"
    )
    candidate_first: ManyOf[Name] = Field(
        default=(), description="faults that are tried with the baseline only when the candidate failed"
    )
    repeats: int = Field(default=1, ge=1, le=_MOST_REPEATS, description="of each trial and program in each arm")
    time: Duration | None = Field(
        default=None, gt=0, description="how long the loads of trials last, in place of their own"
    )
    covers: Literal["pairs", "triples"] = Field(
        default="pairs", description="of levels that a load with `sweep` goes through; triples in parts, one a repeat"
    )
    costs: dict[Literal["reboot", "reload", "rebuild", "instant", "launch"], Duration] = Field(default={})


class Suite(Shape):
    """Workloads with criteria, trials with loads, foreign programs: any of the three."""

    name: Name | None = None
    description: Text | None = None
    defaults: Parameters = Parameters()
    workloads: dict[Name, Workload] = Field(default={})
    criteria: ManyOf[Criterion] = ()
    loads: dict[Name, IntegrityLoad] = Field(default={}, description="what runs while a trial causes its fault")
    trials: tuple[Trial, ...] = Field(default=(), strict=False)
    programs: dict[Name, Program] = Field(default={})
    profiles: dict[Name, Profile] = Field(default={})
    default_profile: Name | None = None
    vary: dict[Text, ManyOf[Any]] = Field(default={})
    published: ManyOf[Name] = Field(
        default=(), description="published reports whose figures are shown beside the measured ones"
    )
    products: ManyOf[Name] = Field(default=(), description="spec sheets beside the suite: <name>.product.yml")
    _sheets: Mapping[str, Any] = PrivateAttr(default_factory=dict)
    _numbers: tuple[int, ...] | None = PrivateAttr(default=None)
    requirements: dict[Name, Requirement] = Field(
        default={}, description="requirements of the release; one without a result is red in the traceability matrix"
    )
    studies: ManyOf[Study] = Field(default=(), description="what the report concludes from the curves")

    def under(self, name: str) -> "Suite":
        """The suite with what the profile `name` has of levels and criteria, and with the settings that it varies."""
        profile = self.profiles[name]
        criteria = {number: criterion for number, criterion in enumerate(self.criteria) if criterion.is_asked(name)}
        vary = self.vary if profile.vary is None else profile.vary
        workloads = {
            name: workload.model_copy(
                update={
                    "factors": {
                        factor: tuple(level for level in levels if level in profile.levels.get(factor, levels))
                        for factor, levels in workload.factors.items()
                    }
                }
            )
            for name, workload in self.workloads.items()
        }
        suite = self.model_copy(update={"workloads": workloads, "vary": vary, "criteria": tuple(criteria.values())})
        suite._numbers = tuple(criteria)  # noqa: SLF001 - its own
        return suite

    def only(self, *parts: str) -> "Suite":
        empty: dict[str, Any] = {"workloads": {}, "trials": (), "programs": {}}
        suite = self.model_copy(update={name: nothing for name, nothing in empty.items() if name not in parts})
        if "workloads" in parts:
            return suite
        suite = suite.model_copy(update={"criteria": (), "vary": {}})
        suite._numbers = ()  # noqa: SLF001 - its own
        return suite

    @property
    def numbered(self) -> Iterable[tuple[int, Criterion]]:
        return zip(range(len(self.criteria)) if self._numbers is None else self._numbers, self.criteria, strict=True)

    def profile_name(self, name: str | None = None) -> str:
        """The profile to use: the one asked for, else the default, else `quick`, else the first."""
        return name or self.default_profile or ("quick" if "quick" in self.profiles else next(iter(self.profiles)))

    @property
    def sheets(self) -> Mapping[str, Any]:
        """The spec sheets that it names, by name: each a `Product`, which is built on this file."""
        return self._sheets

    def with_sheets(self, sheets: Mapping[str, Any]) -> "Suite":
        """The same with the spec sheets that it names."""
        suite = self.model_copy()
        suite._sheets = sheets  # noqa: SLF001 - its own
        return suite


class PointLike(Protocol):
    """What a point must have to find its criteria."""

    @property
    def workload(self) -> str:
        """The workload's name."""

    @property
    def factors(self) -> Mapping[str, Any]:
        """The level of each factor."""

    @property
    def adapter(self) -> str:
        """The adapter's alias."""


def applies(criterion: Criterion, workload: str, factors: Mapping[str, Any], adapter: str) -> bool:
    """Whether a criterion is judged at this workload, these levels and this adapter."""
    if criterion.workloads and not _matches(workload, criterion.workloads):
        return False
    if criterion.adapters and not _matches(adapter, criterion.adapters):
        return False
    return all(factors.get(name) in levels for name, levels in criterion.at.items())


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


LINEAR_TOLERANCE = 0.05
"""Linear is at least 95 % of the share that the first level gives, as in `storqual.statistics.scaling`."""


@dataclass(frozen=True)
class EffectiveCriterion:
    """A criterion with everything decided: fractions, and limits in the metric's unit."""

    id: str
    metric: str
    against: str
    margin: float
    indifference: float
    marginal: float | None
    alpha: float
    min: float | None
    max: float | None
    required: bool
    source: str
    hardware_only: str = ""
    over: str = ""
    linear_to: int | None = None
    unstated: str = ""


def effective(criterion: Criterion, profile: Profile, kind: str) -> EffectiveCriterion:
    """`criterion` under `profile` on a bench of `kind`; a limit's unit was checked when the suite was planned."""
    if criterion.reference is not None:
        from storqual.inputs.references import limits_from  # noqa: PLC0415 - most criteria have no reference

        low, high, published = limits_from(criterion.reference, criterion.metric, criterion.min, criterion.max)
        source = "; ".join(filter(None, [published, criterion.source]))
    else:
        low, high = (
            None if text is None else limit_value(text, criterion.metric, criterion.unit)
            for text in (criterion.min, criterion.max)
        )
        source = criterion.source or ""
    return EffectiveCriterion(
        id=criterion.name,
        metric=criterion.metric,
        against=criterion.against,
        margin=margin_of(criterion, profile),
        indifference=_below(criterion, profile),
        marginal=profile.marginal if criterion.marginal is None else criterion.marginal,
        alpha=profile.alpha if criterion.alpha is None else criterion.alpha,
        min=low,
        max=high,
        required=criterion.is_required(kind),
        source=source,
        hardware_only=criterion.hardware_only or "",
        over=criterion.over or "",
        linear_to=criterion.linear_to,
    )


def margin_of(criterion: Criterion, profile: Profile) -> float:
    """The margin; of a scaling criterion it is the tolerance for what is called linear."""
    if criterion.margin is not None:
        return criterion.margin
    return LINEAR_TOLERANCE if criterion.against == "scaling" else profile.margin


def _below(criterion: Criterion, profile: Profile) -> float:
    """The indifference zone; one that the criterion does not name is at most half of its margin."""
    if criterion.indifference is not None:
        return criterion.indifference
    margin = profile.margin if criterion.margin is None else criterion.margin
    return min(profile.indifference, margin / 2)
