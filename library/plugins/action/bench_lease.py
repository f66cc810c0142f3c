# SPDX-License-Identifier: Apache-2.0
"""Reserve a bench for a campaign, keep it, and give it back."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ansible.utils.display import Display

from storqual.base.text import terminal_text, visible_text
from storqual.bench.bench_action import BenchAction
from storqual.bench.labgrid import PlaceBook, release_place
from storqual.bench.lease import (
    Ask,
    Keeper,
    Waiting,
    bench_book,
    campaign_seconds,
    folder_book,
    look_command,
    new_owner,
    put_out,
    queue_folder,
    refuse_out_of_service,
    renewing,
    reserve,
)
from storqual.inputs.labgrid import LabgridPlace, queue_place
from storqual.run import append_event, read_run
from storqual_core.kit.errors import BadInputError, StorqualError
from storqual_core.kit.quantities import parse_duration

display = Display()


class ActionModule(BenchAction):
    """Reserve a bench, or give it back.

    Arguments: `run` (the campaign's run directory), `state_dir` and `python` (of the bench), `wait` (such as 8h: for
    how long a bench that somebody else has is waited for), `queued` (what an earlier call reserved where
    `storqual_queue` says), `only_queue` (the bench itself is reserved later), `take` (that folder decides, whatever
    the bench itself remembers). Returns `lease` and `queued`, which are empty where nothing was reserved. With
    `release` both are given back, and a bench whose drive fails, or whose control chart left its limits in `run`, is
    put out of service.
    """

    _VALID_ARGS = frozenset(
        {"lease", "only_queue", "python", "queued", "release", "run", "state_dir", "take", "wait"}
    )
    _supports_check_mode = True
    _variables: Mapping[str, Any] = MappingProxyType({})

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        # a bench that is reserved later may be off until then: no folder for files is made on it
        self.TRANSFERS_FILES = not self._task.args.get("only_queue")
        result: dict[str, Any] = super().run(tmp, task_vars)
        if self._task.check_mode:
            return {**result, "changed": False, "lease": "", "queued": "", "msg": "nothing is reserved in check mode"}
        self._variables = task_vars or {}
        bench = str(self._variables.get("inventory_hostname", ""))
        try:
            variables = self._filled(self._variables)
            queue = queue_folder(bench, variables)
            place = queue_place(variables.get("storqual_queue"), bench)
            release = self._task.args.get("release")
            done = self._release(bench, queue) if release else self._reserve(bench, queue, place)
        except StorqualError as problem:
            return {
                **result,
                "failed": True,
                "msg": visible_text(str(problem)),
                "storqual_exit_code": problem.exit_code,
            }
        return {**result, "changed": True, **done}

    def _reserve(self, bench: str, queue: str, place: LabgridPlace | None) -> dict[str, Any]:
        arguments = self._task.args
        run = Path(str(arguments["run"]))
        refuse_out_of_service(bench, queue)
        seconds = campaign_seconds(read_run(run).plan.expected_seconds)
        later = bool(arguments.get("only_queue"))
        lasting = None if later else self._lasting_or_none()
        owner = new_owner(f"campaign {run.name}", seconds, run=run.name, kept=later or lasting is not None)
        queued, lease = str(arguments.get("queued") or ""), ""
        wait_s = _seconds(str(arguments.get("wait") or ""))
        if queue and not queued:
            ask = folder_book(Path(queue))
            answer = reserve(ask, bench, owner, Waiting(wait_s, display.display, look_s=2.0))
            queued = f"{answer['lease']['number']}@{queue}"
            if place is not None:
                book = PlaceBook(place, Path(queue), int(answer["lease"]["number"]))
                self._or_give_back(
                    queued, reserve, book, bench, owner, Waiting(wait_s, display.display, book.look, 1.0)
                )
        if later:
            where = f"is reserved in {queue}" if queue else "has no queue of its own"
            return {"lease": "", "queued": queued, "msg": f"{bench} {where}"}
        lease = self._or_give_back(queued, self._on_bench, bench, run, owner, wait_s)
        tokens = [token for token in (queued, lease) if token]
        if lasting is not None:
            renewals = [lasting.words(renewing(lease)), *(["sh", "-c", renewing(token)] for token in tokens[:-1])]
            # the process of which this worker is one: the campaign lives as long as it does
            Keeper(lease, bench).start(renewals, os.getppid())
        return {"lease": lease, "queued": queued, "msg": f"{bench} is reserved until {owner.until}"}

    def _on_bench(self, bench: str, run: Path, owner: Any, wait_s: float) -> str:
        state_dir = str(self._task.args["state_dir"])
        waiting = Waiting(wait_s, display.display, look=self._look(state_dir))
        answer = reserve(self._ask(state_dir), bench, owner, waiting, take=bool(self._task.args.get("take")))
        for sentence in answer["ended"]:
            display.display(terminal_text(f"{bench}: {sentence}"))
            append_event(run, "note", {"bench": bench, "text": sentence})
        return f"{answer['lease']['number']}@{state_dir}"

    def _ask(self, state_dir: str) -> Ask:
        """Requests to the bench itself, by the program that it has for everything else."""
        program = [self._python(self._variables), f"{state_dir}/{self._send_program(state_dir)}"]
        return bench_book(self._shell, program, state_dir)

    def _look(self, state_dir: str) -> Any:
        def look(ticket: str, number: int) -> bool:
            rc, out, _ = self._shell(look_command(state_dir, ticket, number))
            return rc != 0 or out.strip() != "same"

        return look

    def _release(self, bench: str, queue: str) -> dict[str, Any]:
        arguments = self._task.args
        lease = str(arguments.get("lease") or "")
        trouble = ""
        if lease:
            try:
                self._put_out_unfit(bench, lease.partition("@")[2], queue)
            except StorqualError as problem:
                why = terminal_text(str(problem))
                display.warning(f"{bench}: nobody knows whether it is fit for another campaign: {why}")
            Keeper(lease, bench).stop()
            number, _, state_dir = lease.partition("@")
            try:
                self._ask(state_dir)({"act": "release", "number": int(number)})
            except StorqualError as problem:
                # it lapses by itself
                trouble = f": {problem}"
        self._give_back(str(arguments.get("queued") or ""))
        return {"msg": f"{bench} was given back{trouble}"}

    def _put_out_unfit(self, bench: str, state_dir: str, queue: str) -> None:
        """Put a bench out of service, here and on itself, that no campaign should rely on."""
        from storqual.campaign.unfit_bench import unfit_reasons  # noqa: PLC0415 - what a reservation needs not is not imported

        run = Path(str(self._task.args["run"]))
        reasons = unfit_reasons(read_run(run), bench)
        if not reasons:
            return
        out = put_out(bench, "; ".join(reasons), queue)
        text = f"{bench} is {out.describe()}"
        display.warning(terminal_text(text))
        append_event(run, "note", {"bench": bench, "text": text})
        self._ask(state_dir)({"act": "out", "out": asdict(out)})

    def _or_give_back(self, queued: str, reserves: Callable[..., Any], *arguments: object) -> Any:
        try:
            return reserves(*arguments)
        except StorqualError:
            self._give_back(queued)
            raise

    @staticmethod
    def _give_back(queued: str) -> None:
        if queued:
            number, _, folder = queued.partition("@")
            try:
                release_place(Path(folder), int(number))
            except StorqualError as problem:
                display.warning(terminal_text(f"the place is not released: {problem}"))
            folder_book(Path(folder))({"act": "release", "number": int(number)})

    def _lasting_or_none(self) -> Any:
        """None for a connection that asks for passwords: its reservation is not renewed, and lasts for its time."""
        try:
            return self._lasting()
        except StorqualError:
            return None


def _seconds(text: str) -> float:
    try:
        return float(parse_duration(text)) if text else 0.0
    except ValueError as problem:
        raise BadInputError([f"wait: {problem}"]) from None
