# SPDX-License-Identifier: Apache-2.0
"""Read or switch the power of a bench by the backends of its inventory."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible.utils.display import Display

from storqual.base.text import terminal_text
from storqual.bench.bench_action import BenchAction
from storqual.bench.follow import ConnectionLostError
from storqual.bench.lease import kept_here, lease_question, new_owner, queue_folder, unpack_lease
from storqual.bench.reached import lasting_connection, refuse_held
from storqual.power.cycling import outcome_fields, reached, step_fields
from storqual.power.inventory_entry import power_of_bench
from storqual_core.kit.durable import replace_file
from storqual_core.kit.errors import BadInputError, StorqualError
from storqual_core.kit.lease import LeaseBook, ReservedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from storqual.power.switch import PowerOutcome

display = Display()


class ActionModule(BenchAction):
    """Switch a bench by `storqual_power`, which is read here: a password in arguments would be one in a log.

    Arguments: `switch` (state, on, off or cycle), `reason`, `run` (an open run that records each step), `boot_s` (the
    usual time of a boot, in seconds), `answer` (a file for the answer of the command), `answers_within` (seconds for
    which each backend may be silent, where its entry does not allow more). Fails where what was asked for is not so
    by evidence.
    """

    _VALID_ARGS = frozenset({"answer", "answers_within", "boot_s", "reason", "run", "switch"})
    _supports_check_mode = False
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        try:
            outcome = self._switch(str(variables["inventory_hostname"]), variables)
        except StorqualError as problem:
            answer: dict[str, Any] = {"errors": str(problem).splitlines(), "exit_code": problem.exit_code}
        else:
            action = str(self._task.args["switch"])
            fields = outcome_fields(action, str(self._task.args.get("reason") or ""), outcome)
            steps = [{"time": step.time.isoformat(timespec="seconds"), **step_fields(step)} for step in outcome.steps]
            answer = {**fields, "steps": steps, "exit_code": 0 if reached(action, outcome) else 2}
        if self._task.args.get("answer"):
            replace_file(Path(str(self._task.args["answer"])), json.dumps(answer), durable=False)
        message = "\n".join(answer.get("errors", ())) or answer["conclusion"]
        changed = any(step["action"] in ("on", "off") and "backend" in step for step in answer.get("steps", ()))
        failed = {"failed": True, "storqual_exit_code": answer["exit_code"]} if answer["exit_code"] else {}
        return {**result, **failed, "changed": changed, "msg": message, "power": answer}

    def _switch(self, bench: str, variables: Mapping[str, Any]) -> PowerOutcome:
        arguments = self._task.args
        address = str(self._play_context.remote_addr)
        usual = arguments.get("boot_s")
        usual_boot_s = float(usual) if usual else None
        power = power_of_bench(
            *(bench, variables, self._templar, self._connection, address),
            usual_boot_s=usual_boot_s,
            answers_within_s=float(arguments.get("answers_within") or 0.0),
        )
        if power is None:
            remedy = "name its backends there, such as `- ipmi: {host: ..., user: ..., password: ...}`"
            by_hand = "or disconnect its power for half a minute, power it on, and run this again"
            raise BadInputError([f"{bench} has no `storqual_power` in the inventory; {remedy}, {by_hand}"])
        action = str(arguments["switch"])
        if action != "state":
            self._refuse_reserved(bench, kept_here(bench, queue_folder(bench, self._filled(variables))))
        if action != "state" and power.evidence.boot() is not None:
            state_dir = self._templar.template(variables.get("storqual_state_dir") or "/var/lib/storqual")
            self._refuse_reserved_there(bench, address, str(state_dir))
            refuse_held(lasting_connection(self._connection, address), str(state_dir))
        return power.switch(
            action,
            str(arguments.get("reason") or ""),
            run=Path(str(arguments["run"])) if arguments.get("run") else None,
            say=lambda line: display.display(terminal_text(line)),
        )

    def _refuse_reserved(self, bench: str, folder: Path, **clock: Callable[[], float]) -> None:
        """Raise ReservedError where somebody else has the bench; a play under its reservation is its owner."""
        owner, me = LeaseBook(folder, name=bench, **clock).read().owner, new_owner("", 0.0)
        if owner is not None and not self._lease() and (owner.who, owner.where) != (me.who, me.where):
            raise ReservedError(f"{bench} is reserved by {owner.describe()}; it can be taken: storqual bench take")

    def _refuse_reserved_there(self, bench: str, address: str, state_dir: str) -> None:
        with tempfile.TemporaryDirectory(prefix="storqual-lease-") as folder:
            try:
                answer = lasting_connection(self._connection, address).run(lease_question(state_dir))
            except ConnectionLostError:
                return
            now, boot = unpack_lease(answer, Path(folder))[:2]
            self._refuse_reserved(bench, Path(folder), clock=lambda: now, boot_time=lambda: boot)
