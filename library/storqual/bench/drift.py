# SPDX-License-Identifier: Apache-2.0
"""The drift report: which benches are as declared, which are not and in what, which could not be read."""

import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from storqual.base.text import terminal_text
from storqual.bench.ansible_run import none_of_them, read_events, run_playbook, silent_benches
from storqual.bench.lease import kept_here, stamp
from storqual_core.kit.durable import replace_file
from storqual_core.kit.errors import StorqualError


def drift_table(drifts: Mapping[str, Sequence[str]], unseen: Mapping[str, str]) -> list[str]:
    """Lines of a table with a row per bench, in the order of names.

    `drifts` has the differences of each bench that was looked at, none for one that is as declared; `unseen` says why
    a bench was not read: it is a row of its own, because a bench nobody saw is not a bench without drift.
    """
    drifted = sum(bool(lines) for lines in drifts.values())
    total = len(drifts.keys() | unseen.keys())
    head = f"drift: {drifted} of {total} benches differ from what is declared"
    if unseen:
        head += f", {len(unseen)} could not be read"
    width = max((len(terminal_text(name)) for name in (*drifts, *unseen, "bench")), default=0)
    rows = [head, f"{'bench':{width}}  state"]
    for name in sorted(drifts.keys() | unseen.keys()):
        label = f"{terminal_text(name):{width}}"
        if name in unseen:
            rows.append(f"{label}  not read: {terminal_text(unseen[name].strip().partition(chr(10))[0])}")
            continue
        lines = drifts[name]
        rows.append(f"{label}  {_differences(len(lines))}")
        rows += [f"{'':{width}}    {terminal_text(line)}" for line in lines]
    return rows


def _differences(count: int) -> str:
    return {0: "as declared", 1: "1 difference"}.get(count, f"{count} differences")


@dataclass(frozen=True)
class Drift:
    """Differences by bench, none for one that is as declared; why a bench was not looked at, by bench."""

    differences: Mapping[str, Sequence[str]]
    unseen: Mapping[str, str]


def keep_drift(drifts: Mapping[str, Sequence[str]], sources: Sequence[str], *, compared: bool) -> None:
    """Remember what was seen of each bench for `last_drift`; what was applied instead of compared ends it."""
    for name, lines in drifts.items():
        file = _kept(name, sources)
        file.unlink(missing_ok=True)
        if compared:
            file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(file, json.dumps({"at": stamp(), "differences": len(lines)}), durable=False)


def last_drift(name: str, sources: Sequence[str]) -> str:
    """How a bench of these inventories differed from a drop when they were compared last; empty where nobody did."""
    try:
        kept = json.loads(_kept(name, sources).read_text(encoding="utf-8"))
        return f"{_differences(int(kept['differences']))} at {kept['at']}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _kept(name: str, sources: Sequence[str]) -> Path:
    """Benches of one name in two inventories are two."""
    paths = "\n".join(sorted(str(Path(source).resolve()) for source in sources))
    return kept_here(name) / f"drift-{hashlib.sha256(paths.encode()).hexdigest()[:12]}.json"


def look_for_drift(inventories: Sequence[str], drop: str, *, limit: str | None = None) -> Drift:
    """Compare benches with `drop`. Raises StorqualError with each bench's reason when none could be compared."""
    with tempfile.TemporaryDirectory(prefix="storqual-drift-") as folder:
        log, events = Path(folder) / "log", Path(folder) / "events.jsonl"
        run_playbook(
            "setup.yml",
            inventories=inventories,
            variables={"drop": drop},
            options=["--check", *(["--limit", limit] if limit else [])],
            environment={"STORQUAL_PROGRESS_FILE": str(events)},
            output=log,
        )
        happened = read_events(events)
        reports = [event for event in happened if event.get("kind") == "drift" and event.get("benches")]
        log_lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    if not reports:
        last = log_lines[-1] if log_lines else "Ansible said nothing"
        silent = silent_benches(happened)
        raise StorqualError(none_of_them(f"no bench could be compared with {drop}", silent, last))
    return Drift(reports[-1]["benches"], reports[-1]["unseen"])
