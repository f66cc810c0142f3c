# SPDX-License-Identifier: Apache-2.0
"""What differs between two configurations of a bench, what a change costs, how a bench switches by itself."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storqual.inputs.inventory import Bench
from storqual.plan.resolve import Resolved
from storqual_core.kit.settings import COSTS, SETTINGS, disturbed_by

_FIRMWARE_COSTS = {"none": "reload", "reset": "reload", "reboot": "reboot", "power cycle": "reboot"}


@dataclass(frozen=True)
class Difference:
    """One setting that two configurations declare differently; None where one of them does not declare it."""

    section: str
    owner: str
    name: str
    first: Any
    second: Any

    @property
    def cost(self) -> str:
        """What changing it costs: instant, reload, rebuild, reboot."""
        if self.section == "firmware":
            return _FIRMWARE_COSTS.get(self.name.rpartition("/")[2], "reboot")
        setting = SETTINGS.get(f"{self.section}.{self.name}")
        return setting.cost if setting is not None else "rebuild"

    @property
    def switchable(self) -> bool:
        """Whether a bench can change it both ways between two launches: a drive's setting that both declare."""
        setting = SETTINGS.get(f"{self.section}.{self.name}")
        return setting is not None and setting.switchable and self.first is not None and self.second is not None

    @property
    def between_batches(self) -> bool:
        """Whether the control node can change it both ways between two batches: what QEMU grants to drives.

        An arm that does not declare it has what the inventory says, so there is always something to change back to.
        """
        return (self.section, self.name) == ("virtual", "iops_limit")


def differences(first: Resolved, second: Resolved) -> list[Difference]:
    """Everything that two configurations of one bench declare differently, in a fixed order."""
    left, right = dict(first.settings()), dict(second.settings())
    keys = dict.fromkeys([*left, *right])
    return [Difference(*key, left.get(key), right.get(key)) for key in keys if left.get(key) != right.get(key)]


def change_cost(changes: Iterable[Difference]) -> str:
    """The costliest change; `none` when nothing differs."""
    return max((difference.cost for difference in changes), key=COSTS.index, default="none")


def interleavable(changes: Sequence[Difference]) -> bool:
    """Whether arms can alternate inside a session: they are equal, or differ in what is switched in an instant."""
    return all(difference.switchable or difference.between_batches for difference in changes)


def switched_between_batches(changes: Iterable[Difference]) -> bool:
    """Whether arms that interleave do so batch by batch: a bench cannot reach what the control node switches."""
    return any(difference.between_batches for difference in changes)


def switch_steps(before: Resolved, after: Resolved, drives: Iterable[str]) -> list[dict[str, Any]]:
    """How the bench gets from one configuration to another: `{drive, setting, value}` of everything that differs.

    What such a write may change is declared with it, where `after` declares it: a new scheduler has a number of
    requests of its own.
    """
    wanted = set(drives)
    steps: dict[tuple[str, str], dict[str, Any]] = {}
    for difference in differences(before, after):
        if difference.owner in wanted and difference.switchable:
            declared = after.drive[difference.owner]
            for name in (difference.name, *disturbed_by("drive", difference.name)):
                if name in declared:
                    step = {"drive": difference.owner, "setting": name, "value": declared[name]}
                    steps[difference.owner, name] = step
    return list(steps.values())


def undeclared(own: Resolved, other: Resolved) -> Mapping[str, Mapping[str, list[str]]]:
    """Settings that only the other arm declares: here they are to be as they were found. By section and owner."""
    mine = dict(own.settings())
    settings: dict[str, dict[str, list[str]]] = {}
    for (section, owner, name), _ in other.settings():
        if (section, owner, name) not in mine:
            settings.setdefault(section, {}).setdefault(owner, []).append(name)
    return settings


def spec_of(
    own: Resolved, other: Resolved, bench: Bench, under_test: Sequence[str], *, arm: str, configuration: str
) -> dict[str, Any]:
    """What the roles of a bench get for a configuration, before the session is added."""
    return {
        "bench": bench.name,
        "kind": bench.kind,
        "arm": arm,
        "configuration": configuration,
        "adapters": list(under_test),
        "expected_drivers": {alias: driver for alias in under_test if (driver := bench.adapters[alias].driver)},
        **own.to_json(),
        # what only the other arm declares is to be as it was found
        "as_found": undeclared(own, other),
    }
