# SPDX-License-Identifier: Apache-2.0
"""Gate policy and waivers: what a decision needs, and which failures somebody has accepted, until when."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from storqual.model.fields import Day, ManyOf, Name, Percent, Role, Text
from storqual.model.shape import Shape, raise_all, shaped
from storqual.model.yaml_file import Document, read_yaml

__all__ = ["Gate", "Waiver", "load_gate", "load_waivers", "read_gate", "read_waivers"]


def _days(value: object) -> object:
    text = str(value).strip().lower().removesuffix("days").removesuffix("day").removesuffix("d").strip()
    if isinstance(value, bool) or not text.isdigit() or len(text) > 5:
        raise ValueError("a number of days such as 90d")
    return int(text)


def _each_once(roles: tuple[str, ...]) -> tuple[str, ...]:
    """Somebody signs in each role; a role named twice would look like two signatures and be one."""
    if len(set(roles)) < len(roles):
        raise ValueError("each role once")
    return roles


Days = Annotated[int, BeforeValidator(_days)]


class Gate(Shape):
    """Which criteria a decision needs; `required` and `informative` are patterns of ids and override the suite."""

    name: Name = "default"
    description: Text | None = None
    required: ManyOf[Text] = ()
    informative: ManyOf[Text] = ()
    marginal_passes: bool = True
    baseline_max_age_days: Days | None = Field(default=None, alias="baseline_max_age")
    signatures: Annotated[ManyOf[Role], AfterValidator(_each_once)] = ()
    suites: ManyOf[Name] = ()


class Waiver(Shape):
    """One accepted failure. Scope fields are patterns; a field left out means any."""

    adapter: Text = "*"
    bench: Text = "*"
    drop: Text = "*"
    suite: Text = "*"
    point: Text = "*"
    criterion: Text = Field(description="the criterion's id")
    owner: Text = Field(description="who answers for it")
    reason: Text = Field(description="why it is accepted")
    reference: Text = Field(description="ticket or document")
    expiry: Day = Field(description="the last day on which it counts")
    max_loss: Percent | None = Field(default=None, description="the largest loss that is accepted")


class _Waivers(Shape):
    """The file: a list under `waivers`."""

    waivers: tuple[Waiver, ...] = Field(default=(), strict=False)


def load_gate(path: Path) -> Gate:
    """Read a gate policy. Raises BadInputError with every problem."""
    gate, problems = read_gate(path)
    raise_all(problems)
    return gate or Gate()


def read_gate(path: Path) -> tuple[Gate | None, list[str]]:
    """A gate policy and all problems with it."""
    document = read_yaml(path)
    return shaped(Gate, document)


def load_waivers(path: Path) -> tuple[Waiver, ...]:
    """Read waivers; an expired one is no error here, the judge says so. Raises BadInputError with every problem."""
    waivers, problems = read_waivers(path)
    raise_all(problems)
    return waivers


def read_waivers(path: Path) -> tuple[tuple[Waiver, ...], list[str]]:
    """Waivers and all problems with them."""
    document = read_yaml(path)
    if document.data is not None and not isinstance(document.data, dict):
        document = Document(document.name, {"waivers": document.data}, _below(document), document.problems)
    file, problems = shaped(_Waivers, document)
    return (file.waivers if file is not None else ()), problems


def _below(document: Document) -> dict[tuple[str | int, ...], int]:
    """The lines of a bare list as if it stood under `waivers`."""
    return {("waivers", *place): line for place, line in document.lines.items()}
