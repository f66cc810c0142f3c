# SPDX-License-Identifier: Apache-2.0
"""`trials:` with their `loads:`, and `programs:` of a suite: their shapes, and what fits them and means nothing."""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import Field

from storqual.inputs.fields import Duration, ManyOf, Name, Percent, Size, Text
from storqual.inputs.shape import Shape, did_you_mean, one_of
from storqual.inputs.yaml_file import Document, Keys, as_written
from storqual_core.data.faults import FAULTS
from storqual_core.turns.foreign_program import PLACEHOLDERS

SECTOR = 512
EVERY = "all"
"""In place of the adapters that are spared a fault."""
SWEEP = "integrity"
"""The fault that is none: its load is the test."""
_LONGEST = 64 << 20
_BRACES = re.compile(r"\{([^{}]*)\}")


class IntegrityLoad(Shape):
    """Tagged writes, flushes and reads that are compared; sizes and region in bytes, shares as fractions of I/Os."""

    region: Size = 8 << 20
    workers: Annotated[int, Field(ge=1, le=64)] = 4
    sizes: ManyOf[Size] = (512, 4096, 16384)
    reads: Percent = 0.2
    write_through: Percent = 0.1
    flush_every: Annotated[int, Field(ge=1)] = 16
    time: Annotated[Duration, Field(gt=0)] = 6.0
    sweep: bool = Field(default=False, description="go through sizes, addresses, memory, ways and commands first")
    longest: Size = Field(default=4 << 20, description="of a sweep: the longest write")
    idles: ManyOf[Duration] = Field(
        default=(), description="pauses, after which other commands come first; of a sweep each once"
    )
    memory_commands: int = Field(
        default=800, ge=0, le=1 << 20, description="of a sweep: between which kernel memory is measured"
    )
    limit: Annotated[Duration, Field(gt=0)] = Field(default=90.0, description="of a sweep: no row begins later")


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


class Program(Shape):
    """A foreign test program that runs on the bench against one claimed drive of each adapter.

    `run` are its words with placeholders, `reads` the format of its output, `report` a file below `{out}` with the
    results where they are not printed. `package` is the Debian package that brings it, `checkout` a folder of the
    bench. It is killed after `limit` seconds.
    """

    run: ManyOf[Text]
    reads: Literal["tap", "junit", "cunit", "blktests", "status"]
    report: Text | None = None
    package: Name | None = None
    checkout: Text | None = None
    limit: Duration = 600.0
    repeats: Annotated[int, Field(ge=1, le=1000)] = 1
    adapters: ManyOf[Text] = ()


def trial_problems(document: Document) -> Iterator[str]:
    """Names of faults, ways, loads and programs that there are not, and loads that no bench can run.

    Read from the file as written: told also where its shape is wrong.
    """
    loads, programs = _mapping(document.data, "loads"), _mapping(document.data, "programs")
    trials = _mapping(document.data).get("trials")
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
        sweeps = bool(_mapping(loads, str(trial.get("load"))).get("sweep"))
        if str(trial.get("load")) in loads and sweeps != (trial.get("fault") == SWEEP):
            pair = f"fault {trial.get('fault')} with load {trial.get('load')}"
            yield document.problem((*keys, "load"), pair, f"a load with `sweep: true` for {SWEEP}, and for no other")
    tested = list(dict.fromkeys(str(trial.get("fault")) for trial in listed))
    for name in _mapping(document.data, "profiles"):
        profile = _mapping(_mapping(document.data, "profiles"), name)
        for key, what, known in (
            ("faults", "tested fault", tested),
            ("programs", "program", list(programs)),
            ("leave_out", "tested fault", tested),
            ("candidate_first", "tested fault", tested),
        ):
            given = profile.get(key)
            words = given if isinstance(given, list | dict) else [given]
            named += [(("profiles", name, key), what, word, known) for word in words]
    for where, what, given, known in named:
        word = as_written(given)
        if isinstance(word, str) and word not in known:
            yield document.problem(where, f"no {what} {word!r}", one_of(known) + did_you_mean(word, known))
    for name in loads:
        yield from _load_problems(document, name, _mapping(loads, name))
    for name, program in programs.items():
        yield from _program_problems(document, ("programs", name), _mapping(program))


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
    odd = [size for size in (*load.sizes, load.region, load.longest) if size <= 0 or size % SECTOR]
    if odd:
        yield document.problem(("loads", name), f"{odd[0]} bytes in load {name}", f"multiples of {SECTOR}")
    elif load.region // load.workers < max(*load.sizes, 128 * SECTOR):
        region = f"a region of {load.region} bytes for {load.workers} workers in load {name}"
        yield document.problem(("loads", name), region, "room for the largest write, and 64 KiB, for each worker")
    if load.longest > _LONGEST:
        yield document.problem(("loads", name, "longest"), f"{load.longest} bytes", f"at most {_LONGEST}")
    if load.reads + load.write_through >= 1:
        yield document.problem(("loads", name), f"no plain writes left in load {name}", "shares below 100% in all")


def _program_problems(document: Document, keys: Keys, program: Mapping[str, Any]) -> Iterator[str]:
    words = program.get("run")
    for word in words if isinstance(words, list) else [words]:
        for placeholder in _BRACES.findall(word) if isinstance(word, str) else ():
            if placeholder not in PLACEHOLDERS:
                expected = one_of(f"{{{known}}}" for known in PLACEHOLDERS) + did_you_mean(placeholder, PLACEHOLDERS)
                yield document.problem((*keys, "run"), f"placeholder {{{placeholder}}}", expected)
            elif placeholder == "checkout" and not program.get("checkout"):
                expected = "`checkout`: a folder of the bench"
                yield document.problem((*keys, "run"), "{checkout} without a checkout", expected)
    if program.get("limit") in (0, "0s", "0"):
        yield document.problem((*keys, "limit"), f"no time in {'.'.join(map(str, keys))}.limit", "a time above zero")
    checkout, report = program.get("checkout"), program.get("report")
    if isinstance(checkout, str) and not checkout.startswith("/"):
        yield document.problem((*keys, "checkout"), f"checkout {checkout!r}", "a folder of the bench, from its root")
    if isinstance(report, str) and (report.startswith("/") or ".." in PurePosixPath(report).parts):
        yield document.problem((*keys, "report"), f"report {report!r}", "a name below {out}")
