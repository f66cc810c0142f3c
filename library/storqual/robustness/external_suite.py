# SPDX-License-Identifier: Apache-2.0
"""`external:` of a suite: programs of others, what each prints, for how long and how often it may run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import Field

from storqual.inputs.fields import Duration, ManyOf, Name, Text
from storqual.inputs.shape import Shape, did_you_mean, one_of
from storqual.inputs.yaml_file import Document, Keys
from storqual_core.turns.program import PLACEHOLDERS

_BRACES = re.compile(r"\{([^{}]*)\}")


class External(Shape):
    """A program that runs on the bench against one claimed drive of each adapter.

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


def external_problems(document: Document, given: Mapping[str, Any]) -> Iterator[str]:
    """What fits the shape of a program and means nothing; told also where the shape is wrong."""
    for name, program in given.items():
        keys: Keys = ("external", name)
        if not isinstance(program, dict):
            continue
        words = program.get("run")
        for word in words if isinstance(words, list) else [words]:
            for placeholder in _BRACES.findall(word) if isinstance(word, str) else ():
                yield from _placeholder_problems(document, keys, placeholder, program)
        limit = program.get("limit")
        if limit in (0, "0s", "0"):
            yield document.problem((*keys, "limit"), f"no time in external.{name}.limit", "a time above zero")
        checkout, report = program.get("checkout"), program.get("report")
        if isinstance(checkout, str) and not checkout.startswith("/"):
            yield document.problem(
                (*keys, "checkout"), f"checkout {checkout!r}", "a folder of the bench, from its root"
            )
        if isinstance(report, str) and (report.startswith("/") or ".." in PurePosixPath(report).parts):
            yield document.problem((*keys, "report"), f"report {report!r}", "a name below {out}")


def _placeholder_problems(
    document: Document, keys: Keys, placeholder: str, program: Mapping[str, Any]
) -> Iterator[str]:
    if placeholder not in PLACEHOLDERS:
        expected = one_of(f"{{{one}}}" for one in PLACEHOLDERS) + did_you_mean(placeholder, PLACEHOLDERS)
        yield document.problem((*keys, "run"), f"placeholder {{{placeholder}}}", expected)
    elif placeholder == "checkout" and not program.get("checkout"):
        yield document.problem((*keys, "run"), "{checkout} without a checkout", "`checkout`: a folder of the bench")
