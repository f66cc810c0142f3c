# SPDX-License-Identifier: Apache-2.0
"""The verifier's terms: who must sign a run and what it must have been measured on, by whose policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from storqual.inputs import load_gate
from storqual.inputs.policy import Requirement, Trust
from storqual.judge.asked import optional_input
from storqual.judge.outcome import required_roles
from storqual.run import Run
from storqual.signoff.statement import kinds_of

OPTION = "--require-role"
_MEASURED_ON = {"virtual": "emulated hardware", "local": "files"}


@dataclass(frozen=True)
class Terms:
    """What makes a run a release: roles that must sign, and what speaks against it whoever signs.

    `policy` names whose roles they are: the verifier's file, the option, or nobody's but the run's own gate.
    `of_verifier` is whether anybody but the run says who must sign.
    """

    roles: tuple[str, ...]
    policy: str
    of_verifier: bool
    problems: tuple[str, ...]


def terms_of(run: Run, trusted: Path, trust: Trust, require_roles: Sequence[str] = ()) -> Terms:
    """The terms of the verifier, who has the file `trusted` and may name further roles, for `run`.

    What the run's own gate asks for counts too, but a gate that asks for less than the verifier is a problem: whoever
    can write a run can rewrite its gate. Raises BadInputError for a gate that cannot be read.
    """
    own = required_roles(run)
    fitting = [one for one in trust.require if _fits(one, run)]
    asked = dict.fromkeys(require_roles, OPTION)
    asked |= {role: trusted.name for one in fitting for role in one.roles}
    problems = []
    if trust.require and not fitting:
        drop = run.arms["candidate"].drop
        problems.append(f"{trusted.name}: nothing under `require` fits drop {drop}, suite {run.suite.name}")
    for by in dict.fromkeys(asked.values()):
        lacking = [role for role, who in asked.items() if who == by and role not in own]
        if lacking:
            told = f"{by} asks for a signature as {' and '.join(lacking)}"
            problems.append(f"inputs/gate.yml: the run's own gate asks for {' and '.join(own)} only, {told}")
    software = [
        f"{bench} is {_MEASURED_ON.get(kind, kind)}" for bench, kind in kinds_of(run).items() if kind != "hardware"
    ]
    if software:
        problems += [f"{by} asks for hardware: {', '.join(software)}" for by in _hardware(run, trusted, fitting)]
    by = " and ".join(dict.fromkeys(asked.values()))
    return Terms(
        roles=tuple(dict.fromkeys((*asked, *own))),
        policy=by or _own_policy(run),
        of_verifier=bool(asked) or bool(trust.require),
        problems=tuple(problems),
    )


def method_only(run: Run) -> str:
    """Why a run says nothing of hardware, naming what it was measured on; empty when it does."""
    found = sorted({_MEASURED_ON.get(kind, kind) for kind in kinds_of(run).values() if kind != "hardware"})
    return f"it was measured on {' and '.join(found)}" if found else ""


def _own_policy(run: Run) -> str:
    """What a run says itself of who must sign, where the verifier says nothing."""
    gate = optional_input(run, "gate")
    if gate is not None and load_gate(gate).signatures:
        return "the run's own gate alone"
    found = "no gate policy" if gate is None else "a gate policy without `signatures`"
    more = "for more, list roles under `signatures` in gate.yml beside the inventory"
    return f"the lab has {found}, so one signature suffices; {more}"


def _fits(one: Requirement, run: Run) -> bool:
    return (
        fnmatchcase(run.arms["candidate"].drop, one.drop)
        and fnmatchcase(run.suite.name, one.suite)
        and any(fnmatchcase(bench, one.bench) for bench in run.benches)
    )


def _hardware(run: Run, trusted: Path, fitting: Sequence[Requirement]) -> Iterator[str]:
    """Whose policy takes no run that software measured."""
    if any(one.hardware for one in fitting):
        yield trusted.name
    gate = optional_input(run, "gate")
    if gate is not None and load_gate(gate).hardware:
        yield "inputs/gate.yml"
