# SPDX-License-Identifier: Apache-2.0
"""What the drives of a bench let be set, by what the bench said: varied fields of mode pages, schedulers of drops.

Without facts (`storqual facts --deep --json`) all are planned: a drive that does not let one be changed says so by
its changeable mask when it is to be set, and that ends the session.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from storqual.inputs.find import read_json
from storqual.inputs.inventory import Bench
from storqual.inputs.suite import Suite
from storqual_core.kit.errors import BadInputError
from storqual_core.kit.settings import SETTINGS

_LINK_RATE = "drive.link_rate"

Facts = Mapping[str, Mapping[str, Any]]
"""By bench, what `storqual facts --deep --json` says of it."""


def read_facts(path: Path) -> tuple[Facts, bytes]:
    """The facts of a file, and its bytes. Raises BadInputError for one that is no answer of `storqual facts`."""
    wanted = "--facts takes the output of `storqual facts --deep --json`"
    fact_sets, data = read_json(path, wanted)
    try:
        fits = bool(fact_sets) and all(isinstance(facts["drives"], list) for facts in fact_sets.values())
    except (KeyError, TypeError, AttributeError):
        fits = False
    if not fits:
        raise BadInputError([f"{path}: this file holds no facts; {wanted}"])
    return fact_sets, data


def unasked(suite: Suite) -> Iterator[str]:
    """What a plan without facts says of varied fields that many drives keep as they are."""
    named = [
        name
        for name in suite.vary
        if name == _LINK_RATE or (SETTINGS[name].field is not None and name != "drive.WCE")
    ]
    if named:
        yield (
            f"it is not known whether the drives allow {', '.join(named)} to be changed, and a drive that "
            "does not ends "
            "its session; give --facts, the output of `storqual facts --deep --json`"
        )


def settable(suite: Suite, bench: Bench, under_test: Sequence[str], facts: Facts) -> tuple[Suite, dict[str, str]]:
    reasons: dict[str, list[str]] = {}
    for entry in facts.get(bench.name, {}).get("drives") or ():
        mine = [drive.id for alias in under_test for drive in bench.adapters[alias].claimed]
        for name, why in _fixed(suite.vary, entry) if entry.get("id") in mine else ():
            reasons.setdefault(name, []).append(f"{entry['id']} ({why})")
    vary = {name: levels for name, levels in suite.vary.items() if name not in reasons}
    sentences = {
        name: f"not changeable on drive{'s' * (len(drives) > 1)} {', '.join(drives[:4])}"
        + (f" and {len(drives) - 4} more" if len(drives) > 4 else "")
        for name, drives in reasons.items()
    }
    return (suite.model_copy(update={"vary": vary}) if sentences else suite), sentences


def _fixed(vary: Mapping[str, Sequence[Any]], entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The varied fields of mode pages that a drive keeps as they are, each with what the drive says of it.

    And the rate of its link, where it is on no SAS link.
    """
    pages = entry.get("mode_pages") or {}
    for name, levels in vary.items():
        setting = SETTINGS[name]
        if name == _LINK_RATE and "link" in entry and not entry["link"].get("rate_max"):
            yield name, "it is on no SAS link"
        if setting.field is None or not pages:
            continue
        field = pages.get(setting.name)
        if field is None:
            yield name, "it has no such field"
        elif field.get("changeable") is False and any(level != field.get("value") for level in levels):
            yield name, f"its value is {field.get('value')}, and its changeable mask does not allow another"
