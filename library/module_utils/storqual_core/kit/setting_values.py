# SPDX-License-Identifier: Apache-2.0
"""Check the values that people write for settings: type, unit, range; the names are `settings`'s."""

from __future__ import annotations

import re
from typing import Callable, Collection, Mapping

from .errors import BadInputError
from .module_options import declared_options
from .quantities import is_whole, parse_duration, parse_size
from .settings import SETTINGS, Setting, find

MEMBERS, RAID_LEVEL = "raid.members", "raid.level"
"""The members of a volume, and what may say how many they are."""

_MOST_DRIVES = 4096


def _integer(setting: Setting, value: object) -> int:
    if isinstance(value, bool):
        value = int(value)
    try:
        number = int(str(value), 0)
    except ValueError:
        raise ValueError(f"{value!r} is not a whole number") from None
    unit = f" {setting.unit}" if setting.unit else ""
    if setting.minimum is not None and number < setting.minimum:
        raise ValueError(f"{number}{unit} is below {setting.minimum}{unit}")
    if setting.maximum is not None and number > setting.maximum:
        raise ValueError(f"{number}{unit} is above {setting.maximum}{unit}")
    return number


def _size(setting: Setting, value: object) -> int:
    return _integer(setting, parse_size(str(value)))


def _choice(setting: Setting, value: object) -> str:
    if str(value) not in setting.choices:
        raise ValueError(f"{value!r} is not one of {', '.join(setting.choices)}")
    return str(value)


def _text(_setting: Setting, value: object) -> str:
    if not isinstance(value, (str, int, float)) or isinstance(value, bool) or not str(value).strip():
        raise ValueError(f"{value!r} is not a word or text")
    if not str(value).isprintable():
        raise ValueError(f"{value!r} holds characters that cannot be printed")
    return str(value)


def _list(setting: Setting, value: object) -> list[str]:
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"{value!r} is not a list")  # noqa: TRY004 - a wrong word in a manifest, not a wrong call
    return [_text(setting, item) for item in value]


def _mapping(_setting: Setting, value: object) -> dict[str, object]:
    if not isinstance(value, Mapping) or not value:
        raise ValueError(f"{value!r} is not a mapping")
    return {str(key): item for key, item in value.items()}


def _module_options(setting: Setting, value: object) -> dict[str, dict[str, str]]:
    try:
        return declared_options(_mapping(setting, value))
    except BadInputError as problem:
        raise ValueError("; ".join(problem.problems)) from None


def _fields(setting: Setting, value: object, needed: Collection[str], optional: Collection[str]) -> dict[str, str]:
    """A mapping of texts with exactly these keys."""
    entries = _mapping(setting, value)
    missing = sorted(set(needed) - set(entries))
    unknown = sorted(set(entries) - {*needed, *optional})
    if missing or unknown:
        told = [f"needs {', '.join(missing)}"] * bool(missing) + [f"does not know {', '.join(unknown)}"] * bool(
            unknown
        )
        raise ValueError("; ".join(told))
    return {name: _text(setting, item) for name, item in entries.items()}


_PACKAGE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9+._~-]*\Z")


def _kernel_package(setting: Setting, value: object) -> dict[str, object]:
    """A package that the bench's package manager knows by name; a file would be found out on the bench only."""
    entries = _mapping(setting, value)
    if "package" not in entries:
        raise ValueError("needs package")
    package = _text(setting, entries["package"])
    if not _PACKAGE_NAME.match(package) or package.endswith((".deb", ".rpm")):
        raise ValueError(f"{package!r} is not the name of a package, such as linux-image-6.1.0-47-amd64")
    return entries


def _dkms_package(setting: Setting, value: object) -> dict[str, str]:
    fields = _fields(setting, value, ("package", "module"), ("version",))
    if not fields["package"].endswith(".deb"):
        raise ValueError(f"{fields['package']!r} is not a package file (.deb)")
    return fields


def _module_file(setting: Setting, value: object) -> dict[str, str]:
    fields = _fields(setting, value, ("file", "sha256"), ())
    if not re.search(r"\.ko(?:\.(?:xz|zst|gz))?\Z", fields["file"]):
        raise ValueError(f"{fields['file']!r} is not a kernel module (.ko, plain or compressed)")
    if not re.fullmatch(r"[0-9a-fA-F]{64}", fields["sha256"]):
        raise ValueError(f"{fields['sha256']!r} is not a SHA-256 of 64 hexadecimal digits")
    return fields


def _drive_numbers(setting: Setting, value: object) -> dict[str, int]:
    entries = _mapping(setting, value) if isinstance(value, Mapping) else {"all": value}
    return {drive: _integer(setting, number) for drive, number in entries.items()}


def _cpu_lists(setting: Setting, value: object) -> dict[str, list[int]]:
    """CPU numbers by adapter alias, sorted; none is no list."""
    found = {}
    for alias, cpus in _mapping(setting, value).items():
        if not isinstance(cpus, (list, tuple)) or not cpus:
            raise ValueError(f"{alias}: {cpus!r} is not a list of CPU numbers")
        found[alias] = sorted({_integer(setting, cpu) for cpu in cpus})
    return found


LINK_RATES = ("1.5 Gbit", "3.0 Gbit", "6.0 Gbit", "12.0 Gbit", "22.5 Gbit")
"""Rates of a SAS link, lowest first, in the words of the kernel (scsi_transport_sas)."""


def _link_rate(_setting: Setting, value: object) -> str:
    """`3 Gbit`, `3.0 Gbit/s` and `3` are `3.0 Gbit`."""
    found = re.fullmatch(r"([0-9]{1,2}(?:\.[0-9])?)(?: ?Gbit(?:/s)?)?", str(value).strip())
    rate = f"{float(found.group(1)):.1f} Gbit" if found else ""
    if rate not in LINK_RATES:
        raise ValueError(f"{value!r} is not one of {', '.join(LINK_RATES)}")
    return rate


def _unplug(setting: Setting, value: object) -> dict[str, object]:
    entries = _mapping(setting, value)
    wrong = sorted(set(entries) ^ {"drive", "after_s"})
    if wrong:
        raise ValueError(f"needs exactly `drive` and `after_s` (look at {', '.join(wrong)})")
    return {"drive": _text(setting, entries["drive"]), "after_s": parse_duration(str(entries["after_s"]))}


_KINDS: Mapping[str, Callable[[Setting, object], object]] = {
    "flag": _integer,
    "integer": _integer,
    "size": _size,
    "choice": _choice,
    "cpu_lists": _cpu_lists,
    "text": _text,
    "kernel_package": _kernel_package,
    "link_rate": _link_rate,
    "list": _list,
    "mapping": _mapping,
    "dkms_package": _dkms_package,
    "drive_numbers": _drive_numbers,
    "module_file": _module_file,
    "module_options": _module_options,
    "unplug": _unplug,
}


def check_value(setting: Setting, value: object) -> object:
    """`value` in its plain form: whole numbers, bytes, text. Raises ValueError that names the setting.

    So it does for a setting that nothing here brings about.
    """
    if setting.refused:
        raise ValueError(f"{setting.qualified}: {setting.refused}")
    try:
        return _KINDS[setting.kind](setting, value)
    except ValueError as problem:
        raise ValueError(f"{setting.qualified}: {problem}") from None


def check_level(setting: Setting, level: object) -> object:
    """One level of a setting that a suite varies, in plain form. Raises ValueError that names the setting.

    The members of a volume are varied by their number: a count of the drives that the drop names, or counts by RAID
    level (a mapping of level to tuple).
    """
    if setting.qualified != MEMBERS:
        return check_value(setting, level)
    if not isinstance(level, Mapping):
        return _count(level)
    raid = SETTINGS[RAID_LEVEL]
    return {
        str(check_value(raid, key)): tuple(map(_count, counts if isinstance(counts, (list, tuple)) else [counts]))
        for key, counts in level.items()
    }


def _count(value: object) -> int:
    if isinstance(value, (bool, list, tuple)) or not is_whole(str(value)) or not 1 <= int(str(value)) <= _MOST_DRIVES:
        raise ValueError(f"{MEMBERS}: {value!r} is not a number of drives from 1 to {_MOST_DRIVES}")
    return int(str(value))


def _checked(section: str, name: str, value: object) -> tuple[object, list[str]]:
    try:
        return check_value(find(section, name), value), []
    except BadInputError as problem:
        return None, problem.problems
    except ValueError as problem:
        return None, [str(problem)]


def check_section(section: str, values: Mapping[str, object]) -> dict[str, object]:
    """All values of one section in their plain form. Raises BadInputError with every problem, not only the first."""
    checked = {name: _checked(section, name, value) for name, value in values.items()}
    problems = [problem for _, found in checked.values() for problem in found]
    if problems:
        raise BadInputError(problems)
    return {name: value for name, (value, _) in checked.items()}
