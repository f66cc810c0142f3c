# SPDX-License-Identifier: Apache-2.0
"""The one message of a campaign, to a webhook or a program of the lab's own (`storqual_notify`)."""

import json
import subprocess
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from storqual.base import child
from storqual.base.web import web_answer
from storqual.inputs.inventory import Notify
from storqual.inputs.shape import shaped
from storqual.inputs.yaml_file import Document
from storqual.run.files import DAMAGE, read_object
from storqual_core.kit.errors import EXIT_BENCH_LOST

_LIMIT_S = 20.0
_FAIL = 1


def campaign_message(run: Path | None, code: int, benches: Sequence[str], lost: Sequence[str]) -> dict[str, Any]:
    """What is sent: names and outcomes, and no text of a tool, a device or a log, which may hold anything.

    `text` is the same as one sentence, which chat rooms show.
    """
    verdict: Mapping[str, Any] = {}
    with suppress(*DAMAGE):
        verdict = read_object(run, "verdict.json") if run is not None else {}
    outcome = str(verdict.get("outcome") or "")
    counted = Counter(str(entry.get("outcome")) for entry in verdict.get("criteria") or ())
    name = run.name if run is not None else ""
    on = f" on {', '.join(benches)}" if benches else ""
    away = f"; out of service: {', '.join(lost)}" if lost else ""
    ended = f"ended with {outcome or 'no verdict'}, exit code {code}"
    text = f"storqual: {name or 'a campaign without a run'}{on} {ended}{away}"
    return {
        "schema": "storqual.message/1",
        "run": name,
        "outcome": outcome or None,
        "exit_code": code,
        "benches": list(benches),
        "benches_lost": list(lost),
        "criteria": counted,
        "report": str(run / "report.html") if run is not None and (run / "report.html").is_file() else None,
        "text": text,
    }


def read_notify(value: object) -> Notify | None:
    """`storqual_notify` as Ansible filled it in; None for one that is missing or wrong, which the plan has told."""
    if not value:
        return None
    return shaped(Notify, Document("storqual_notify", value, {}))[0]


def send_message(notify: Notify, message: Mapping[str, Any]) -> str:
    """Send it where it is wanted; why it could not be sent, without the address, which may hold a token."""
    occasions = {"end", *(["fail"] if message["exit_code"] == _FAIL else [])}
    occasions |= {"bench_lost"} if message["exit_code"] == EXIT_BENCH_LOST or message["benches_lost"] else set()
    if not occasions & set(notify.on):
        return ""
    body = json.dumps(message).encode()
    problems = []
    if notify.url is not None:
        request = urllib.request.Request(notify.url, body, {"Content-Type": "application/json"})  # noqa: S310 - http and https only, by its shape
        try:
            web_answer(request, limit_s=_LIMIT_S)
        except urllib.error.HTTPError as problem:
            problems.append(f"the webhook answered {problem.code}")
        except OSError as problem:
            problems.append(f"the webhook does not answer ({type(problem).__name__})")
    if notify.command is not None:
        try:
            ended = child.run(list(notify.command), input=body, capture_output=True, timeout=_LIMIT_S)
        except (OSError, subprocess.TimeoutExpired) as problem:
            problems.append(f"{notify.command[0]} failed ({type(problem).__name__})")
        else:
            problems += [f"{notify.command[0]} ended with {ended.returncode}"] if ended.returncode else []
    return "; ".join(problems)
