# SPDX-License-Identifier: Apache-2.0
"""The page of playbooks: what each says of itself, and the variables that a person gives it."""

from __future__ import annotations

import re
from collections.abc import Mapping

import yaml
from sources import PROJECT

from storqual.cli.playbook.playbook import playbook_names

INTRODUCTION = """\
`storqual playbook NAME -i inventories/LAB [OPTIONS]` runs one of these from every folder, with any options of
`ansible-playbook` (`--check`, `--diff`, `--limit`, `--tags`, `-e`). In a checkout,
`ansible-playbook -i inventories/LAB playbooks/NAME.yml` does the same. The exit codes are those of all commands."""

_MEANINGS: Mapping[str, str] = {
    "health": "true: see which of power, console, watchdog, pstore and kdump work",
    "from": "a saved state that `setup` set aside, to undo it",
    "lease": "the reservation of a bench that you have taken, as `storqual bench take` prints it",
    "prepare": "true: make a bench of an installed system",
    "prove": "true: let the watchdog fire and the kernel panic, which starts each bench again twice",
    "prove_s": "seconds for which each setting is observed to show that it is in effect; 0: not at all",
    "run": "the run directory",
}
_NAME = re.compile(r"(?:\{\{|\() ?\(?([a-z_]+)(?: \| default\(| \}\}|\))")
_RESULTS = re.compile(r"inventory_hostname|(?:plan|campaign|blocks|ansible|storqual|virtual_bench|facts|look)_\w+")
"""What playbooks fill in themselves."""


def playbooks_page() -> str:
    """Every playbook that people run, with its variables."""
    parts = ["# Playbooks", INTRODUCTION]
    for name in playbook_names():
        text = (PROJECT / "playbooks" / f"{name}.yml").read_text(encoding="utf-8")
        said = re.match(r"(?:# .*\n)+", text)
        if said is None:
            raise LookupError(f"{name}.yml does not say what it does")
        parts += [f"## {name}", _escaped(re.sub(r"^# ", "", said[0], flags=re.MULTILINE))]
        roles = dict.fromkeys(re.findall(r"^ +(?:name: |- role: |roles: \[)([a-z_]+)\]?$", text, flags=re.MULTILINE))
        if name != "plan":
            roles.pop("plan", None)
        variables = {key: meaning for role in roles for key, meaning in _of_role(role).items()} | _own(text)
        if name == "qualify":
            parts.append("It takes the variables of [plan](#plan), and:")
        if variables:
            rows = [f"| `-e {key}=` | {meaning} |" for key, meaning in variables.items()]
            parts.append("\n".join(["| variable | meaning |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;")


def _own(text: str) -> dict[str, str]:
    """The variables of a playbook. Raises LookupError for one that nobody described: the build stops."""
    literals = ("true", "false")
    found = dict.fromkeys(
        name for name in _NAME.findall(text) if not _RESULTS.fullmatch(name) and name not in literals
    )
    lacking = [name for name in found if name not in _MEANINGS]
    if lacking:
        raise LookupError(f"{', '.join(lacking)}: no meaning in ci/docs/playbooks.py")
    return {name: _MEANINGS[name] for name in found}


def _of_role(name: str) -> dict[str, str]:
    """What the defaults of a role take from a playbook, by the names for `-e`, from the role's own description."""
    role = PROJECT / "roles" / name
    defaults = yaml.safe_load((role / "defaults" / "main.yml").read_text(encoding="utf-8"))
    options = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))
    told = options["argument_specs"]["main"]["options"]
    names = {key: re.search(r"\{\{ \(?(\w+) \| default", str(value)) for key, value in defaults.items()}
    meanings = {}
    for key, given in names.items():
        if given and not given[1].startswith(("plan_", "storqual_", "virtual_bench_")):
            meaning = re.sub(r"C\(([^)]*)\)", r"`\1`", told[key]["description"])
            choices = ", ".join(told[key].get("choices", ()))
            meanings[given[1]] = f"{meaning} Of: {choices}." if choices else meaning
    return meanings
