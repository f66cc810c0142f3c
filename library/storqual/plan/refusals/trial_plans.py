# SPDX-License-Identifier: Apache-2.0
"""Trials and programs that cannot be planned: adapters that no bench has, words of drops that only launches apply."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from storqual.inputs.shape import unknown
from storqual.inputs.yaml_file import Keys, read_yaml
from storqual.plan.inputs import PlanInputs
from storqual.plan.refusals.drops import section_keys

_WHILE_MEASURED = ("iops_limit", "unplug")
"""What is done to a virtual bench only while it measures launches; trials have faults for it."""


def turn_problems(read: PlanInputs) -> Iterator[str]:
    """What the trials and programs of a suite name and no bench of the inventory has, and what drops ask in vain."""
    suite, path = read.suite, read.suite_path
    assert suite is not None and path is not None  # noqa: S101, PT018 - read without problems
    if not suite.trials and not suite.programs:
        return
    named: list[tuple[Keys, Sequence[str]]] = []
    named += [(("trials", number, "adapters"), trial.adapters) for number, trial in enumerate(suite.trials)]
    named += [(("programs", name, "adapters"), program.adapters) for name, program in suite.programs.items()]
    document = read_yaml(path)
    for keys, aliases in named:
        for alias in aliases:
            if alias not in read.aliases:
                yield document.about(keys, unknown("adapter", alias, read.aliases))
    for file in read.drops.values():
        document = read_yaml(file.path)
        for number, entry in enumerate(file.drop.sections["virtual"]):
            keys = section_keys(document, "virtual", number)
            for name in _WHILE_MEASURED:
                if name in entry.settings:
                    sentence = f"sessions of trials and programs do not apply virtual.{name}; remove it from the drop"
                    yield document.about((*keys, name), sentence)
