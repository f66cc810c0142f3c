# SPDX-License-Identifier: Apache-2.0
"""Names in a gate policy and in waivers that nothing has: a misspelt one requires, or accepts, nothing.

Warnings, not problems: a lab has one gate for all its suites, and a waiver may be for another lab's bench.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from storqual.base.files import suites_folder
from storqual.base.text import fits_name
from storqual.inputs.inventory import Bench
from storqual.inputs.policy import Gate, Waiver
from storqual.inputs.shape import did_you_mean
from storqual.inputs.suite import Suite
from storqual.inputs.yaml_file import read_yaml
from storqual_core.kit.errors import BadInputError

_SUITE = ".suite.yml"


@dataclass(frozen=True)
class Names:
    """What there is: ids of criteria of all suites, names of suites, benches, adapters; texts of checks."""

    criteria: Collection[str]
    suites: Collection[str]
    benches: Collection[str]
    adapters: Collection[str]
    checks: Sequence[Path]

    @staticmethod
    def of(suite: Suite, path: Path, checks: Sequence[Path], benches: Sequence[Bench]) -> "Names":
        """The names of the planned suite, those beside it, those of this folder and those that come with storqual."""
        folders = dict.fromkeys(folder.absolute() for folder in (path.parent, Path("suites"), suites_folder()))
        others = [_names_of(file) for folder in folders for file in sorted(folder.glob(f"*{_SUITE}"))]
        return Names(
            criteria=dict.fromkeys([rule.name for rule in suite.criteria] + [n for _, ids in others for n in ids]),
            suites=dict.fromkeys([str(suite.name), *(name for name, _ in others)]),
            benches=[bench.name for bench in benches],
            adapters=dict.fromkeys(alias for bench in benches for alias in bench.adapters),
            checks=[*checks, *suites_folder().glob("test_*.py"), *suites_folder().glob("robot/*.robot")],
        )

    def has_criterion(self, pattern: str) -> bool:
        """Whether a criterion or a check may have an id that matches; the ids of checks are known when they ran."""
        if any(fits_name(name, pattern) for name in self.criteria) or set(pattern) & set("*?[.:/"):
            return True
        return any(pattern in path.read_text(encoding="utf-8", errors="replace") for path in self.checks)


def _names_of(file: Path) -> tuple[str, list[str]]:
    """Name and criteria of a suite as it is written; what is wrong with one that is not planned is not told here."""
    try:
        data: Any = read_yaml(file).data
    except BadInputError:
        data = None
    data = data if isinstance(data, dict) else {}
    criteria = data.get("criteria")
    listed = [rule for rule in (criteria if isinstance(criteria, list) else [criteria]) if isinstance(rule, dict)]
    ids = [str(rule.get("id") or rule.get("metric")) for rule in listed]
    return str(data.get("name") or file.name.removesuffix(_SUITE)), ids


def gate_warnings(gate: Gate, path: Path, names: Names) -> Iterator[str]:
    document = read_yaml(path)
    for key in ("required", "informative"):
        for pattern in getattr(gate, key):
            if not names.has_criterion(pattern):
                near = did_you_mean(pattern, names.criteria)
                yield document.about((key,), f"`{key}` names {pattern!r}, and no suite has such a criterion{near}")


def waiver_warnings(waivers: Sequence[Waiver], path: Path, names: Names) -> Iterator[str]:
    """What waivers name and nothing has; an old waiver may be for a drop that is gone."""
    document = read_yaml(path)
    known: Mapping[str, Collection[str]] = {
        "suite": names.suites,
        "bench": names.benches,
        "adapter": names.adapters,
    }
    bare = not isinstance(document.data, dict)
    for number, waiver in enumerate(waivers):
        place = (number,) if bare else ("waivers", number)
        if not names.has_criterion(waiver.criterion):
            near = did_you_mean(waiver.criterion, names.criteria)
            problem = f"this waiver accepts nothing: no suite has a criterion {waiver.criterion!r}{near}"
            yield document.about((*place, "criterion"), problem)
        for key, there in known.items():
            pattern = str(getattr(waiver, key))
            if not any(fnmatchcase(name, pattern) for name in there):
                near = did_you_mean(pattern, there)
                yield document.about(
                    (*place, key), f"this waiver accepts nothing: there is no {key} {pattern!r}{near}"
                )
