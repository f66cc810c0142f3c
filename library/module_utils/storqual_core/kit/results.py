# SPDX-License-Identifier: Apache-2.0
"""What modules take and give: arguments, one record per setting, and the failure that says how far a step came."""

from __future__ import annotations

import traceback
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence

from .errors import GuardRefusalError, StorqualError
from .machine import visible

NOT_SHOWN = "read back, effect not shown"
"""What is said of every declared setting that nothing shows in effect."""


@dataclass(frozen=True)
class Provisioned:
    """One setting of one thing: what was declared, what it was, what it is now, and whether that is shown in effect.

    `proven` is True or False when the effect was observed, None when it was not; `proof` says how, or why not.
    `declared` None: only read.
    """

    name: str
    declared: object
    before: object
    read_back: object
    drive: str = ""
    adapter: str = ""
    changed: bool = False
    proven: bool | None = None
    proof: str = ""

    @property
    def as_declared(self) -> bool:
        return self.declared is None or self.declared == self.read_back

    @property
    def owner(self) -> str:
        """The drive or adapter whose setting this is; `bench` for the bench's own."""
        return self.drive or self.adapter or "bench"

    def record(self) -> dict[str, Any]:
        """The entry of run.json: without the empty one of drive and adapter."""
        entry = asdict(self)
        if self.declared is not None and self.proven is None:
            entry["proof"] = ": ".join(filter(None, (NOT_SHOWN, self.proof)))
        return {key: value for key, value in entry.items() if key not in ("drive", "adapter") or value}

    def with_proof(self, proven: bool | None, proof: str) -> Provisioned:
        return replace(self, proven=proven, proof=proof)


class PartialError(StorqualError):
    """A step failed after its first write: what was done, and the state that was read back afterwards."""

    def __init__(self, message: str, *, steps: Sequence[str], settings: Sequence[Provisioned]) -> None:
        self.steps = list(steps)
        self.settings = list(settings)
        super().__init__(message)


@contextmanager
def partial_errors(steps: Sequence[str], left: Callable[[], Sequence[Provisioned]] = tuple) -> Iterator[None]:
    """After the first write: a failure in here is told with `steps` and with what `left` can still read."""
    try:
        yield
    except StorqualError as problem:
        settings: Sequence[Provisioned] = ()
        # the failure that is being reported names the thing; what no longer answers has no state to tell
        with suppress(StorqualError):
            settings = left()
        raise PartialError(str(problem), steps=steps, settings=settings) from problem


def refuse_unlike(settings: Sequence[Provisioned], steps: Sequence[str]) -> None:
    wrong = [
        f"{entry.owner}: {entry.name} was set to {entry.declared} and reads back {entry.read_back}"
        for entry in settings
        if not entry.as_declared
    ]
    if wrong:
        raise PartialError("\n".join(wrong), steps=steps, settings=settings)


class TrialFailedError(StorqualError):
    """A kernel on trial did not come up: what the bench runs instead, and what is left of the trial's last words."""

    def __init__(self, message: str, *, facts: Mapping[str, Any], evidence: Sequence[Mapping[str, str]]) -> None:
        self.facts = dict(facts)
        self.evidence = [dict(entry) for entry in evidence]
        super().__init__(message)


def changed(settings: Iterable[Provisioned]) -> bool:
    return any(setting.changed for setting in settings)


def _unexpected(problem: Exception) -> str:
    """A fault of the program's own as one sentence: what it was and where. What was changed is not known then."""
    file, line, *_ = traceback.extract_tb(problem.__traceback__)[-1]
    words = visible(": ".join(filter(None, (type(problem).__name__, str(problem)))))
    return f"unexpected error at {file.rpartition('/')[2]}:{line}: {words}; check the bench before you continue"


def finish(
    module: Any,  # noqa: ANN401 - Ansible's class is not typed
    work: Callable[[], Mapping[str, Any]],
    done: Callable[[], Mapping[str, Any]] = dict,
) -> None:
    """Do `work` and leave the module with its result.

    A failure before the first write is unchanged; one after it says what was done and what was read back. `done` is
    what earlier steps of the same call did (`steps`, `settings`). The exit code of the playbook run (2 could not
    judge, 3 bad input, 4 refused) travels as `storqual_exit_code`.
    """
    try:
        result = dict(work())
    except Exception as problem:  # noqa: BLE001 - Ansible tells one without words as "Module failed" and no more
        module.fail_json(**_failure(problem, done()))
        return
    module.exit_json(**result)


def _failure(problem: Exception, done: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(problem, StorqualError):
        failure = {"msg": _unexpected(problem), "exception": traceback.format_exc(), "storqual_exit_code": 2}
        return {**done, **failure, "changed": True}
    words = "\n".join(map(visible, str(problem).split("\n")))
    result = {"msg": words, "changed": False, **done, "storqual_exit_code": problem.exit_code}
    if isinstance(problem, PartialError):
        result["steps"] = [*done.get("steps", ()), *problem.steps]
        result["settings"] = [*done.get("settings", ()), *(entry.record() for entry in problem.settings)]
        result["changed"] = result["changed"] or bool(problem.steps) or changed(problem.settings)
    elif isinstance(problem, GuardRefusalError):
        result["refusals"] = problem.refusals
    elif isinstance(problem, TrialFailedError):
        result.update(facts=problem.facts, evidence=problem.evidence)
    return result


Spec = Mapping[str, Mapping[str, Any]]

WORDS: Mapping[str, Any] = {"type": "list", "elements": "str", "default": []}
"""A list of words that may be empty."""

STATE_DIR: Spec = {"state_dir": {"type": "path", "default": "/var/lib/storqual"}}
"""For every module that works on a bench."""

STEP: Spec = {**STATE_DIR, "run": {"type": "str", "default": "provision"}}
"""For a step that is taken back by a restore."""

ADAPTERS: Spec = {"adapters": {"type": "dict", "required": True}}

FIRMWARE: Spec = {
    "tool": {"type": "str", "required": True},
    "path": {"type": "path", "required": True},
    "sha256": {"type": "str", "required": True},
    "version": {"type": "str", "required": True},
    "component": {"type": "str", "default": "firmware"},
    "signature": {"type": "path", "default": ""},
    "key": {"type": "path", "default": ""},
    "from": WORDS,
    "rollback": {"type": "list", "elements": "dict", "default": []},
    "activation": {"type": "str", "choices": ["none", "reset", "reboot", "power cycle"], "default": "reset"},
    "consent": WORDS,
    "state": {"type": "str", "choices": ["present", "proven"], "default": "present"},
    "soak_s": {"type": "float", "default": 30},
    "log_rules": {"type": "list", "elements": "dict"},
}
"""For a module that flashes."""
