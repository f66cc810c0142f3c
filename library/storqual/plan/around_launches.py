# SPDX-License-Identifier: Apache-2.0
"""What a bench runs around the launches of the arms: preconditioning first, the golden reference in every session.

The golden reference is one drive and one load that never changes, first and last in every session.
"""

from collections.abc import Sequence
from typing import Any

from storqual.inputs.inventory import Bench
from storqual.inputs.suite import Precondition
from storqual.plan.batches import LOCAL_FALLBACK, claim
from storqual.plan.budget import WRITTEN_BYTES_S
from storqual.plan.resolve import find_drive
from storqual.run.records import REFERENCE_POINT
from storqual_core.turns.precondition import FEWEST_SECONDS

_LOAD = {
    "rw": "randread",
    "bs": 4096,
    "iodepth": 4,
    "numjobs": 1,
    "ioengine": "libaio",
    "direct": 1,
    "runtime_s": 5.0,
    "ramp_s": 1.0,
    "rwmixread": None,
    "options": {},
}


def with_reference(bench: Bench, batches: Sequence[dict[str, Any]], session: int) -> list[dict[str, Any]]:
    """The batches of a session (numbered from 1) with the reference before the first launch and after the last."""
    drive = None if bench.reference is None else find_drive(bench, bench.reference)
    if drive is None or not batches:
        return list(batches)
    alias = next(alias for alias, adapter in bench.adapters.items() if drive in adapter.drives)
    made = list(batches)
    for position, at_end in ((0, False), (-1, True)):
        launches = list(made[position]["turns"])
        beside = launches[-1 if at_end else 0]
        reference = {
            **{name: beside[name] for name in ("kind", "arm", "configuration")},
            "adapter": alias,
            "point": REFERENCE_POINT,
            "n": 2 * session - (not at_end),
            "drives": [drive.id],
            "request": {
                "fio": {**_LOAD, **({"fallback": LOCAL_FALLBACK} if bench.kind == "local" else {})},
                "switch": [],
            },
        }
        ordered = [*launches, reference] if at_end else [reference, *launches]
        batch = made[position]["block"]
        numbered = [{**launch, "index": index, "id": f"{batch}/{index}"} for index, launch in enumerate(ordered)]
        targets = {**made[position]["targets"], drive.id: {"claim": claim(drive)}}
        made[position] = {**made[position], "turns": numbered, "targets": dict(sorted(targets.items()))}
    return made


def with_precondition(
    bench: Bench, batches: Sequence[dict[str, Any]], ask: Precondition, consent: tuple[str, ...]
) -> list[dict[str, Any]]:
    """The batches of a bench's first session; the first one brings every target of the session to a known state."""
    targets = {name: target for batch in batches for name, target in batch["targets"].items()}
    wanted = ask.to_batch(consent, LOCAL_FALLBACK if bench.kind == "local" else ())
    if ask.purge == "format":
        claimed = [drive for adapter in bench.adapters.values() for drive in adapter.claimed]
        wanted["beside"] = {drive.id: {"claim": claim(drive)} for drive in claimed if drive.id not in targets}
    return [{**batches[0], "targets": dict(sorted(targets.items())), "precondition": wanted}, *batches[1:]]


def precondition_seconds(bench: Bench, under_test: Sequence[str], ask: Precondition | None) -> float:
    """Expected seconds, all its drives at once: fill of the largest, volume of the rounds, two windows of test."""
    if ask is None:
        return 0.0
    claimed = [drive for alias in under_test for drive in bench.adapters[alias].claimed]
    # what the inventory does not know of a drive, the bench does: it may be flash
    treated = [drive for drive in claimed if ask.media == "all" or (drive.rotation_rate or 0) <= 1]
    if not treated:
        return 0.0
    largest = max(drive.size or 0 for drive in treated)
    capacities = (ask.fill or 0) + (ask.steady.volume if ask.steady else 0.0)
    return capacities * largest / WRITTEN_BYTES_S[bench.kind] + (2 * FEWEST_SECONDS if ask.steady else 0)
