# SPDX-License-Identifier: Apache-2.0
"""The health of a controller as arcconf tells it: its own status, its battery or capacitor, its temperature.

`Controller Status: Optimal` is printed beside a battery that failed, and the write cache of volumes rests on that.
"""

from __future__ import annotations

import re
from typing import Iterator

from ...kit.labelled_text import Fields

STATUS = "Controller Status"
_WELL = ("optimal", "okay", "ok")
# battery, ZMM (zero-maintenance module), cache backup unit and green backup: what keeps the cache without power
_BACKUP = re.compile(
    r"^[^:]*\b(?:battery|zmm|backup|supercap|cache properties(?=: cache status))\b.*: (?P<label>[^:#]+?)(?: #\d+)?$",
    re.IGNORECASE,
)
_BACKUP_WELL = {
    "over temperature": ("no",),
    "hardware error": ("no error",),
    "cache status": (*_WELL, "enabled", "disabled", "not configured", "not applicable", "not present"),
    # a capacitor that is measured is not ill
    "learn status": (),
    "status": (*_WELL, "ready", "zmm optimal", "not installed", "zmm not installed", "not present"),
}
_HEAT = re.compile(r"\((?P<word>[A-Za-z ]+)\)$")


def controller_health(fields: Fields, below: Fields) -> str:
    """What is wrong with a controller, or its status; `below` are the labels of its parts, by `title: label`.

    A word that is not known of its battery, capacitor or temperature is told as wrong.
    """
    status, wrong = fields.get(STATUS), [*_backup(below), *_temperature(fields)]
    if wrong and status and status.lower() not in _WELL:
        wrong.insert(0, f"{STATUS}: {status}")
    return "; ".join(wrong) or status


def _backup(below: Fields) -> Iterator[str]:
    for label, value in below.printed().items():
        match = _BACKUP.match(label)
        name = match.group("label").lower() if match else ""
        well = _BACKUP_WELL.get(name, _BACKUP_WELL["status"] if name.endswith("status") else ())
        # `Health Status: 88 percent` is no word
        if well and value.lower() not in well and not value.endswith("percent"):
            yield f"{label}: {value}"


def _temperature(fields: Fields) -> Iterator[str]:
    """`42 C/ 107 F (Normal)`; a controller without a sensor says `Not Supported`."""
    value = fields.get("Temperature")
    heat = _HEAT.search(value)
    if heat and heat.group("word").lower() != "normal":
        yield f"Temperature: {value}"
