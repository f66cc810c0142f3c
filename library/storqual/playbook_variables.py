# SPDX-License-Identifier: Apache-2.0
"""Refuse `-e` variables that a playbook of this project does not know: a misspelt wish would silently not be granted.

`-e adpaters=fc0` would provision every adapter. A variable is known when an expression of the playbook or of a role
uses it, or when a role declares it; variables of Ansible itself are left to Ansible.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

import jinja2
import jinja2.nodes
import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["unknown_variables"]

_EXPRESSIONS = frozenset({"when", "that", "until", "failed_when", "changed_when"})
_OF_ANSIBLE = ("ansible_",)
_CUTOFF = 0.6
_READER = jinja2.Environment(autoescape=True)


def unknown_variables(playbook: Path, roles: Path, given: Iterable[str]) -> list[str]:
    """One sentence for each of `given` that neither the playbook nor a role uses or declares."""
    used = set(_used(yaml.safe_load(playbook.read_text(encoding="utf-8"))))
    known = used | set(_declared(roles))
    for path in roles.glob("*/*/*.yml"):
        if path.parent.name in ("defaults", "tasks", "vars"):
            known |= set(_used(yaml.safe_load(path.read_text(encoding="utf-8"))))
    problems = []
    for name in sorted(given):
        if name in known or name.startswith(_OF_ANSIBLE):
            continue
        # what the playbook itself takes is what people misspell
        near = difflib.get_close_matches(name, used, 1, _CUTOFF) or difflib.get_close_matches(name, known, 1, _CUTOFF)
        problems.append(
            f"{name} is not a variable of {playbook.name}" + (f"; did you mean {near[0]}?" if near else "")
        )
    return problems


def _used(value: Any, *, expression: bool = False) -> Iterator[str]:  # noqa: ANN401 - any YAML
    """The variables of every template and condition below a value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _used(inner, expression=key in _EXPRESSIONS)
    elif isinstance(value, list):
        for inner in value:
            yield from _used(inner, expression=expression)
    elif isinstance(value, str) and (expression or "{{" in value or "{%" in value):
        text = value if "{{" in value or "{%" in value else "{{ (" + value + ") }}"
        # only read, never rendered: filters and tests are Ansible's, and need not be known here
        yield from (name.name for name in _READER.parse(text).find_all(jinja2.nodes.Name) if name.ctx == "load")


def _declared(roles: Path) -> Iterator[str]:
    """Every variable in the argument_specs of the roles."""
    for path in sorted(roles.glob("*/meta/argument_specs.yml")):
        for entry in yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"].values():
            yield from entry.get("options", {})
