# SPDX-License-Identifier: Apache-2.0
"""Fields in the field's units: text, names, sizes, times, percentages; each says what it expected."""

import math
import re
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Annotated, TypeVar

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from storqual.inputs.yaml_file import as_written
from storqual_core.host.identity import SOFTWARE_INITIATORS, normalise_wwn, port_name
from storqual_core.kit.durable import ALPHABET, is_name
from storqual_core.kit.quantities import parse_duration, parse_percent, parse_size

T = TypeVar("T")


_QUOTES = "text in quotes; digits without quotes become a number, with a leading 0 an octal one"


def _text(value: object) -> object:
    value = as_written(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError(_QUOTES)  # noqa: TRY004 - pydantic gathers ValueError only
    if not isinstance(value, str):
        raise ValueError("text (in quotes)")  # noqa: TRY004 - as above
    if not value.strip():
        raise ValueError("text that is not empty")
    if any(ord(character) < 32 or ord(character) == 127 for character in value):
        raise ValueError("text on one line, without control characters")
    return value


def _marking(value: object) -> object:
    text = _text(value)
    if isinstance(text, str) and text.startswith("/dev/"):
        raise ValueError(
            "what the drive itself says (`storqual facts` shows it): a /dev name changes from boot to boot"
        )
    return text


def _name(value: object) -> object:
    value = _text(value)
    if not is_name(value):
        raise ValueError(f"a name of {ALPHABET}")
    return value


def _role(value: object) -> object:
    value = _text(value)
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,31}", str(value)) or value == "manifest":
        raise ValueError("a role such as technician or release-manager")
    return value


def _size(value: object) -> object:
    try:
        size = parse_size(typing.cast("str | int", value)) if not isinstance(value, bool | float) else 0
    except (ValueError, TypeError):
        raise ValueError("a size such as 512, 4k or 1GiB") from None
    if not 0 < size < 1 << 63:
        raise ValueError("a size above zero, below 8 EiB")
    return int(size)


def _duration(value: object) -> object:
    try:
        seconds = parse_duration(typing.cast("str | float", value))
    except (ValueError, TypeError):
        raise ValueError("a time such as 2s, 500ms, 5m or 2h") from None
    if not 0 <= seconds < 1e8:
        raise ValueError("a time from 0 to three years")
    return float(seconds)


def _percent(value: object) -> object:
    try:
        fraction = parse_percent(value if isinstance(value, str) else "")
    except ValueError:
        raise ValueError("a percentage such as 3% (the sign is needed)") from None
    if not 0 <= fraction < 1:
        raise ValueError("a percentage from 0% to below 100%")
    return fraction


def _loss(value: object) -> object:
    """A time may be many times its limit, so a loss has no upper end."""
    try:
        fraction = parse_percent(value if isinstance(value, str) else "")
    except ValueError:
        fraction = math.nan
    if not 0 <= fraction < math.inf:
        raise ValueError("a percentage from 0%, such as 3% (the sign is needed)")
    return fraction


def _date(value: object) -> object:
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        raise ValueError("a date such as 2027-03-31") from None


_RATE = "bytes per second such as 133MB or 24MiB"
_SLOWEST = 100_000
"""Bytes per second; no slot and no link of a storage adapter is slower."""


def _hexadecimal(value: object) -> object:
    # YAML 1.1, as Ansible reads it, makes a number of an unquoted 0x…; nothing is lost by that
    value = as_written(value)
    return f"0x{value:016x}" if isinstance(value, int) and not isinstance(value, bool) and value > 0 else value


def _wwn(value: object) -> object:
    value = _hexadecimal(value)
    if not isinstance(value, str):
        raise ValueError("a WWN such as 0x5000c50015ea71a0")  # noqa: TRY004 - as above
    return normal_wwn(value)


def _port_name(value: object) -> object:
    value = _hexadecimal(value)
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a WWPN such as 0x2100000e1e000001, an iSCSI name, or an address with its port")
    return port_name(value)


def _pci(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("a PCI address such as 0000:05:00.0 (in quotes)")  # noqa: TRY004 - as above
    return normal_pci(value)


def _rate(value: object) -> object:
    """Bytes per second: `133MB` is decimal as on a data sheet, `24MiB` binary."""
    if isinstance(value, bool | float):
        raise ValueError(_RATE)  # noqa: TRY004 - as above
    text = str(value).strip().removesuffix("/s").strip()
    decimal = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}.get(text[-2:].lower())
    try:
        rate = int(float(text[:-2]) * decimal) if decimal else int(parse_size(text))
    except (ValueError, OverflowError):
        raise ValueError(_RATE) from None
    if 0 < rate < _SLOWEST:
        raise ValueError(f"{_RATE}; a number without a unit is bytes per second")
    return rate


def _pseudo(value: object) -> object:
    if not isinstance(value, str) or not (re.fullmatch(r"adapter[0-9]{1,3}", value) or value in SOFTWARE_INITIATORS):
        initiators = ", ".join(SOFTWARE_INITIATORS)
        raise ValueError(f"a host of scsi_debug as the kernel names it, such as adapter0, or one of {initiators}")
    return value


def _many(value: object) -> object:
    """A list as a tuple; a single value is a list of one."""
    if isinstance(value, list | tuple):
        return tuple(value)
    return value if value is None else (value,)


class _OneOrMany:
    """In a JSON Schema: one value, or a list of them."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        many = handler(schema)
        return {"anyOf": [many["items"], many]}


def written(title: str, *examples: str, **schema: object) -> WithJsonSchema:
    """How a field is written: what it is called, examples, and the keywords of its JSON Schema.

    The schema may take more than the reader does, never less.
    """
    return WithJsonSchema({"title": title, **({"examples": list(examples)} if examples else {}), **schema})


def _number_or_text(pattern: str, **number: object) -> dict[str, object]:
    return {"anyOf": [number, {"type": "string", "pattern": pattern}]}


WORD: Mapping[str, object] = {"type": ["string", "number"], "minLength": 1}
"""Text of which a number may be part: its digits stay as they were written."""
SIZE = _number_or_text(r"^\s*[0-9]{1,30}\s*[kKmMgGtTpP]?([iI]?[bB])?\s*$", type="integer")
_TIME = _number_or_text(
    r"^\s*[0-9]{1,30}(\.[0-9]{1,30})?\s*([mM]?[sShHmM]?|[mM][iI][nN])\s*$", type="number", minimum=0
)
_PERCENTAGE = r"^\s*-?[0-9]{1,30}(\.[0-9]{1,30})?\s*%\s*$"
_DAY = r"^[0-9]{4}(-?[0-9]{2}-?[0-9]{2}|-?W[0-9]{2}(-?[0-9])?)$"

Text = Annotated[str, BeforeValidator(_text), written("text", **WORD)]
Marking = Annotated[str, BeforeValidator(_marking), written("text", **WORD, pattern="^(?!/dev/)")]
"""What a drive says of itself."""
Name = Annotated[str, BeforeValidator(_name), written("name", **WORD, pattern="^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
Role = Annotated[
    str, BeforeValidator(_role), written("role", "release-manager", type="string", pattern="^[a-z][a-z0-9-]{0,31}$")
]
"""In what capacity somebody signs; part of a file name."""
Size = Annotated[int, BeforeValidator(_size), written("size", "4k", "1GiB", **SIZE)]
"""Bytes; written `4k`, `1GiB` or as a number."""
Duration = Annotated[float, BeforeValidator(_duration), written("duration", "500ms", "2s", "5m", **_TIME)]
"""Seconds; written `2s`, `500ms`, `5m` or as a number."""
Percent = Annotated[float, BeforeValidator(_percent), written("percentage", "3%", type="string", pattern=_PERCENTAGE)]
"""A fraction; written with the sign: `3%`."""
Alpha = Annotated[Percent, Field(gt=0, lt=0.5)]
"""A probability of error: at one half an interval has no width, and beyond it its ends change places."""
Loss = Annotated[float, BeforeValidator(_loss), written("percentage", "3%", type="string", pattern=_PERCENTAGE)]
"""A fraction that may be above one; written with the sign: `150%`."""
Day = Annotated[date, BeforeValidator(_date), written("date", "2027-03-31", type=["string", "number"], pattern=_DAY)]
"""A day of the calendar; written `2027-03-31`."""
Wwn = Annotated[
    str,
    BeforeValidator(_wwn),
    written(
        "WWN",
        '"0x5000c50015ea71a0"',
        "eui.0025385b71b0a1c2",
        type=["string", "integer"],
        minLength=5,
        pattern="^(?!/)",
    ),
]
PortName = Annotated[
    str,
    BeforeValidator(_port_name),
    written(
        "port of a fabric",
        *('"0x2100000e1e000001"', "iqn.2003-01.org.example:t1", '"192.0.2.1:4420"'),
        type=["string", "integer"],
        minLength=1,
    ),
]
Pci = Annotated[
    str,
    BeforeValidator(_pci),
    written(
        "PCI address",
        '"0000:05:00.0"',
        type="string",
        pattern=r"^\s*([0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]\s*$",
    ),
]
Pseudo = Annotated[
    str,
    BeforeValidator(_pseudo),
    written(
        "host of scsi_debug, or a software initiator",
        *("adapter0", "fcoe"),
        type="string",
        pattern=f"^(adapter[0-9]|{'|'.join(SOFTWARE_INITIATORS)})",
    ),
]
Rate = Annotated[
    int,
    BeforeValidator(_rate),
    Field(gt=0),
    written("rate in bytes per second", "133MB", "24MiB", **_number_or_text("[0-9]", type="integer")),
]
ManyOf = Annotated[tuple[T, ...], BeforeValidator(_many), Field(min_length=1), _OneOrMany()]
"""A list, or one value that stands for a list of one."""


_PCI = re.compile(r"(?:([0-9a-f]{4}):)?([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])\Z")


def normal_wwn(text: str) -> str:
    """A WWN as benches report it: `0x5000c500…`, `eui.…`, `uuid.…`. Raises ValueError that says what was expected."""
    try:
        wwn = normalise_wwn(text)
    except ValueError:
        wwn = ""
    if not wwn:
        raise ValueError("a WWN such as 0x5000c50015ea71a0 (16 or 32 hexadecimal digits), eui.… or uuid.…")
    return wwn


def normal_pci(text: str) -> str:
    """`0000:05:00.0` with its domain, in small letters. Raises ValueError."""
    match = _PCI.match(text.strip().lower())
    if match is None:
        raise ValueError("a PCI address such as 0000:05:00.0")
    domain, bus, device, function = match.groups()
    return f"{domain or '0000'}:{bus}:{device}.{function}"


@dataclass(frozen=True)
class MetricFacts:
    """What a plan must know of a metric: its unit, its better direction, and the primitives and series it needs."""

    name: str
    unit: str
    better: str
    needs: tuple[str, ...]


@cache
def _table() -> dict[str, MetricFacts]:
    from storqual.metrics import METRICS  # noqa: PLC0415 - they bring numpy, and most commands read no suite

    return {
        name: MetricFacts(name, str(metric.unit), str(metric.better), tuple(metric.needs))
        for name, metric in METRICS.items()
    }


def metric_facts(name: str) -> MetricFacts | None:
    """The metric called `name`, or None."""
    return _table().get(name)


def metric_names() -> list[str]:
    return list(_table())


_NUMBER = re.compile(r"\s*([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)\s*(\S.*)?\Z")

_FAMILIES: tuple[Mapping[str, float], ...] = (
    {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9},
    {
        "B/s": 1.0,
        "kB/s": 1e3,
        "KB/s": 1e3,
        "MB/s": 1e6,
        "GB/s": 1e9,
        "KiB/s": 1024.0,
        "MiB/s": 1024.0**2,
        "GiB/s": 1024.0**3,
    },
    {"IOPS": 1.0, "1/s": 1.0, "I/O/s": 1.0, "kIOPS": 1e3},
    {"%": 1.0},
    {"ns/IO": 1.0, "us/IO": 1e3, "µs/IO": 1e3},
    {"ns/KiB": 1.0, "us/KiB": 1e3, "µs/KiB": 1e3},
)


def convert(value: float, unit: str, to: str) -> float:
    """`value` in another unit of the same kind. Raises ValueError when they are not of one kind."""
    for family in _FAMILIES:
        if unit in family and to in family:
            return value * family[unit] / family[to]
    if unit == to:
        return value
    raise ValueError(f"a limit in {' or '.join(fitting_units(to)) or 'plain numbers'}")


def fitting_units(unit: str) -> list[str]:
    """The units that a limit of a metric in `unit` may be written in."""
    for family in _FAMILIES:
        if unit in family:
            return list(family)
    return [unit] if unit else []


_ONE_SCALE = ("IOPS", "1/s", "I/O/s", "kIOPS")
"""I/Os are counted: a number without a unit cannot be meant in another one."""


def doubtful_limits(
    metric: str, low: str | None, high: str | None, unit: str | None = None
) -> Iterator[tuple[str, str]]:
    """Limits that probably mean something else, each as its key and a sentence.

    A number without a unit, where it may be meant in another one than the metric's; a lone least latency, a lone
    greatest throughput.
    """
    facts = metric_facts(metric)
    if facts is None:
        return
    given = {name: text for name, text in (("min", low), ("max", high)) if text is not None}
    scaled = any(facts.unit in family for family in _FAMILIES) and facts.unit not in _ONE_SCALE
    for name, text in given.items():
        match = _NUMBER.match(text)
        if scaled and not unit and match is not None and not match.group(2) and float(match.group(1)):
            yield name, f"{name} {text} of {metric} has no unit; write it, such as {match.group(1)} {facts.unit}"
    wrong, right = ("min", "max") if facts.better == "lower" else ("max", "min")
    if list(given) == [wrong]:
        yield (
            wrong,
            f"`{wrong}` alone sets no limit on {metric}, which is better when it is {facts.better}; use `{right}`",
        )


def limit_value(text: str, metric: str, unit: str | None = None) -> float:
    """A limit as a number in the metric's unit. Raises ValueError that says what was expected."""
    facts = metric_facts(metric)
    own = facts.unit if facts is not None else (unit or "")
    match = _NUMBER.match(text)
    # also in the metric's unit: an infinite limit is none
    number = convert(float(match[1]), (match[2] or unit or own).strip(), own) if match is not None else math.nan
    if not math.isfinite(number):
        raise ValueError(f"a number in {own}" if own else "a number")
    return number
