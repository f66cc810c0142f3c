# SPDX-License-Identifier: Apache-2.0
"""A suite of kind `robustness`: loads, trials, profiles; read by the one YAML loader, all errors at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from storqual.inputs.fields import Duration, ManyOf, Name, Percent, Size, Text
from storqual.inputs.shape import Shape, did_you_mean, one_of, raise_all, shaped
from storqual.inputs.suite import Requirement
from storqual.inputs.yaml_file import Document, Keys, read_yaml
from storqual.robustness.external_suite import External, external_problems
from storqual_core.data.faults import FAULTS

KIND = "robustness"
SECTOR = 512
EVERY = "all"
"""In place of the adapters that are spared a fault."""
_WHOLE = "all"
"""What a suite without profiles is planned by, and a user may ask of any."""


class IntegrityLoad(Shape):
    """Tagged writes, flushes and reads that are compared; sizes and region in bytes, shares as fractions of I/Os."""

    region: Size = 8 << 20
    workers: Annotated[int, Field(ge=1, le=64)] = 4
    sizes: ManyOf[Size] = (512, 4096, 16384)
    reads: Percent = 0.2
    write_through: Percent = 0.1
    flush_every: Annotated[int, Field(ge=1)] = 16
    time: Annotated[Duration, Field(gt=0)] = 6.0


class Expectation(Shape):
    """What a trial may show: seconds to recovery, the longest stall; `errors: none` where no I/O may fail."""

    recovery: Duration = 60.0
    stall: Duration = 60.0
    errors: Literal["none", "any"] | None = None


class Trial(Shape):
    """A load, a fault at a drawn moment, and what is expected; without `way` the first that the bench has."""

    fault: Name
    way: Name | None = None
    load: Name
    away: Duration = 1.0
    repeats: Annotated[int, Field(ge=1)] = 1
    adapters: ManyOf[Text] = ()
    expect: Expectation = Expectation()
    requirement: ManyOf[Text] = Field(default=(), description="the requirements that it answers, such as REQ-123")


class RobustnessProfile(Shape):
    """How much of it: which faults and programs (all without), how many adapters, repeats and sessions.

    `time` is how long loads last, in place of their own; `leave_out` names adapters, or `all`, by the fault that they
    are spared.
    """

    description: Text | None = None
    faults: ManyOf[Name] = ()
    external: ManyOf[Name] = ()
    leave_out: dict[Name, ManyOf[Text]] = Field(default={})
    adapters: Annotated[int | None, Field(ge=1)] = None
    repeats: Annotated[int, Field(ge=1)] = 1
    sessions: Annotated[int, Field(ge=1)] = 2
    time: Annotated[Duration, Field(gt=0)] | None = None


class RobustnessSuite(Shape):
    """The whole file."""

    kind: Literal["robustness"]
    name: Name | None = None
    description: Text | None = None
    default_profile: Name | None = None
    loads: dict[Name, IntegrityLoad] = Field(default={})
    trials: tuple[Trial, ...] = Field(default=(), strict=False)
    external: dict[Name, External] = Field(default={})
    profiles: dict[Name, RobustnessProfile] = Field(default={})
    requirements: dict[Name, Requirement] = Field(
        default={}, description="what the release is held to; one without a result is red in the traceability matrix"
    )

    def profile(self, name: str | None) -> tuple[str, RobustnessProfile]:
        """The profile of that name, or the default one; `all` is the suite as it stands, unless it is one.

        Raises KeyError for one that is not there.
        """
        chosen = name or self.default_profile or next(iter(self.profiles), _WHOLE)
        return chosen, RobustnessProfile() if chosen == _WHOLE not in self.profiles else self.profiles[chosen]


def is_robustness(path: Path) -> bool:
    """Whether a suite file says that it is of this kind. Raises BadInputError for one that cannot be read."""
    data = read_yaml(path).data
    return isinstance(data, dict) and data.get("kind") == KIND


def load_robustness(path: Path, *, profile: str | None = None) -> RobustnessSuite:
    """Read a suite; `profile` is the one that will be used. Raises BadInputError with every problem."""
    document = read_yaml(path)
    suite, problems = shaped(RobustnessSuite, document)
    problems += _problems(document, profile)
    raise_all(problems)
    assert suite is not None  # noqa: S101 - there is one when nothing was wrong
    return suite if suite.name else suite.model_copy(update={"name": path.name.split(".")[0]})


def _problems(document: Document, profile: str | None) -> Iterator[str]:
    """What fits its shape and means nothing: names of faults, ways, loads and profiles; told also for a bad shape."""
    loads, profiles = _mapping(document.data, "loads"), _mapping(document.data, "profiles")
    programs = _mapping(document.data, "external")
    trials = _mapping(document.data).get("trials")
    if not trials and not programs:
        yield document.problem((), "neither trials nor programs", "`trials` with `loads`, `external`, or both")
    yield from external_problems(document, programs)
    listed = [trial if isinstance(trial, dict) else {} for trial in trials] if isinstance(trials, list) else []
    named: list[tuple[Keys, str, object, list[str]]] = []
    for number, trial in enumerate(listed):
        keys: Keys = ("trials", number)
        named.append(((*keys, "fault"), "fault", trial.get("fault"), list(FAULTS)))
        fault = FAULTS.get(str(trial.get("fault")))
        if fault is not None:
            ways = [way.name for way in fault.ways]
            named.append(((*keys, "way"), f"way of {fault.name}", trial.get("way"), ways))
        named.append(((*keys, "load"), "load", trial.get("load"), list(loads)))
    tested = list(dict.fromkeys(str(trial.get("fault")) for trial in listed))
    for name in profiles:
        faults = _mapping(profiles, name).get("faults")
        words = faults if isinstance(faults, list) else [faults]
        named += [(("profiles", name, "faults"), "tested fault", word, tested) for word in words]
        chosen = _mapping(profiles, name).get("external")
        words = chosen if isinstance(chosen, list) else [chosen]
        named += [(("profiles", name, "external"), "program", word, list(programs)) for word in words]
        spared = _mapping(_mapping(profiles, name), "leave_out")
        named += [(("profiles", name, "leave_out"), "tested fault", word, tested) for word in spared]
    default = _mapping(document.data).get("default_profile")
    named.append((("default_profile",), "profile", default, list(profiles)))
    named.append(((), "profile", None if profile == _WHOLE else profile, list(profiles)))
    for where, what, word, known in named:
        if isinstance(word, str) and word not in known:
            yield document.problem(where, f"no {what} {word!r}", one_of(known) + did_you_mean(word, known))
    for name in loads:
        yield from _load_problems(document, name, _mapping(loads, name))


def _mapping(data: object, key: str | None = None) -> dict[str, Any]:
    """A mapping, or the one below `key`; an empty one where there is none."""
    if key is not None:
        data = _mapping(data).get(key)
    return data if isinstance(data, dict) else {}


def _load_problems(document: Document, name: str, given: dict[str, Any]) -> Iterator[str]:
    try:
        load = IntegrityLoad.model_validate(given)
    except ValueError:
        return
    odd = [size for size in (*load.sizes, load.region) if size <= 0 or size % SECTOR]
    if odd:
        yield document.problem(("loads", name), f"{odd[0]} bytes in load {name}", f"multiples of {SECTOR}")
    elif load.region // load.workers < max(*load.sizes, 128 * SECTOR):
        found = f"a region of {load.region} bytes for {load.workers} workers in load {name}"
        yield document.problem(("loads", name), found, "room for the largest write, and 64 KiB, for each worker")
    if load.reads + load.write_through >= 1:
        yield document.problem(("loads", name), f"no plain writes left in load {name}", "shares below 100% in all")
