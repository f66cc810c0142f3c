# SPDX-License-Identifier: Apache-2.0
"""What somebody needs who wants to check or repeat a run: digests, versions, the plan in numbers, commands."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from storqual.base.figures import DASH, ShownNumber, count, percent, seconds
from storqual.base.table import Table
from storqual.report.material import Material
from storqual.report.parts.arms import flatten
from storqual.report.view import Cell, KeyValue
from storqual.run.event_kinds import FINISHED
from storqual.run.files import file_digest
from storqual.run.layout import BATCHES


@dataclass(frozen=True)
class Appendix:
    """What somebody needs who wants to check or repeat this."""

    run: str
    digests: Table
    witness: str
    versions: tuple[KeyValue, ...]
    batches: Table
    logs: tuple[tuple[str, str], ...]
    commands: tuple[tuple[str, str], ...]
    plan: tuple[KeyValue, ...]


def appendix_of(material: Material) -> Appendix:
    run, verdict = material.run, material.verdict
    judged = [(f"{name} (as judged)", str(digest)) for name, digest in sorted((verdict.get("inputs") or {}).items())]
    planned = [
        (f"{entry.get('file', name)} (as planned)", str(entry.get("sha256")))
        for name, entry in sorted((material.document.get("inputs") or {}).items())
    ]
    return Appendix(
        run=run.name,
        digests=Table(
            "SHA-256 of what this report was made from; those of raw files are listed with their launches",
            ("File", "SHA-256"),
            (("verdict.json", material.verdict_sha256), *judged, *planned),
            {"SHA-256": "name"},
        ),
        witness=_witness(material),
        versions=tuple(
            KeyValue(name, (text,)) for name, text in flatten(material.document.get("versions") or {}).items()
        ),
        batches=_batches(material),
        logs=tuple(_logs(material)),
        commands=commands_of(material),
        plan=_plan(material),
    )


def _witness(material: Material) -> str:
    """Whether anybody but the run itself can say that these are the files that were collected."""
    addresses = {event.text("block"): event.text("place") for event in material.events if event.kind == "witnessed"}
    if not addresses:
        return (
            "No witness recorded the digests of this run: only the run itself vouches for when its data "
            "was collected."
        )
    what = "batches and turns" if any(event.kind == "turn_finished" for event in material.events) else "batches"
    ended = {event.text(FINISHED[event.kind]) for event in material.events if event.kind in FINISHED}
    witnesses = ", ".join(sorted(set(addresses.values())))
    closings = sum(event.kind == "closed" for event in material.events)
    end = "the end of the run too" if f"events/closed-{closings}" in addresses else "the end of the run not"
    return (
        f"{len(ended & set(addresses))} of {len(ended)} {what} had their digest recorded by {witnesses} as they were "
        f"collected, {end}."
    )


def _logs(material: Material) -> Iterator[tuple[str, str]]:
    """The engineers' logs that lie in the run, as (what it is, where)."""
    run = material.run
    if (run.path / "pytest.html").is_file():
        yield "Every criterion and check as a test (pytest)", "pytest.html"
    for bench in run.benches:
        log = f"robot/{bench}/log.html"
        if (run.path / log).is_file():
            yield f"Checks in plain words on {bench} (Robot Framework)", quote(log)


def _batches(material: Material) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for event in material.run.events_of("block_finished"):
        batch = event.text("block")
        file = f"{BATCHES}/{batch}.json"
        log = event.fields.get("kernel_log") or {}
        rows.append(
            (
                batch,
                str(event.bench or ""),
                event.text("session"),
                event.text("outcome") or "done",
                file_digest(material.run.path, file) if (material.run.path / file).is_file() else DASH,
                str(log.get("sha256") or DASH),
            )
        )
    heads = ("Batch", "Bench", "Session", "Ended", "SHA-256 of its file", "SHA-256 of its kernel log")
    return Table("Batches: each file holds every command that its launches ran", heads, tuple(rows))


def measure_again(material: Material) -> list[str]:
    """The words of the command that measures the whole campaign again."""
    run = material.run
    inputs = material.document.get("inputs") or {}
    inventories = [str(name) for name in material.document.get("inventories") or ()]
    again = ["storqual", "qualify"]
    for inventory in inventories or ["INVENTORY"]:
        again += ["-i", inventory]
    for arm in ("baseline", "candidate"):
        if arm in run.arms:
            again += [f"--{arm}", str((inputs.get(arm) or {}).get("source") or run.arms[arm].drop)]
    again += [
        "--suite",
        str((inputs.get("suite") or {}).get("source") or run.suite.name),
        "--profile",
        run.suite.profile,
    ]
    return again


def commands_of(material: Material) -> tuple[tuple[str, str], ...]:
    """What to type, as (for what, command); the first measures again."""
    run = material.run
    again = measure_again(material)
    here = f"runs/{run.name}"
    return (
        ("Measure again", shlex.join(again)),
        ("Judge these samples again", shlex.join(["storqual", "judge", here])),
        ("Rebuild this report", shlex.join(["storqual", "report", here])),
        ("Check a raw file", f"sha256sum {here}/raw/*"),
    )


def _plan(material: Material) -> tuple[KeyValue, ...]:
    plan = material.run.plan
    fields = plan.fields
    values: list[tuple[str, Cell]] = [
        ("Design", plan.design),
        ("Seed", ShownNumber(str(plan.seed), plan.seed, "run:/plan/seed")),
    ]
    # a campaign of trials and programs has no launches
    if plan.launches:
        values += [
            ("Launches per point and session", count(plan.launches, "run:/plan/launches")),
            ("Run time of a launch", seconds(plan.runtime_s, "run:/plan/runtime_s")),
            ("Ramp before it", seconds(plan.ramp_s, "run:/plan/ramp_s")),
        ]
    values.append(("Expected length", seconds(plan.expected_seconds, "run:/plan/expected_seconds")))
    for name, label in (("margin", "Margin of the profile"), ("indifference", "Indifference of the profile")):
        fraction = fields.get(name)
        if isinstance(fraction, (int, float)):
            values.append((label, percent(100 * fraction, f"run:/plan/{name}", signed=False)))
    overhead = (material.document.get("overhead") or {}).get("seconds_per_sample")
    if isinstance(overhead, (int, float)):
        values.append(
            ("Overhead per sample beyond fio's own run time", seconds(overhead, "run:/overhead/seconds_per_sample"))
        )
    return tuple(KeyValue(name, (value,)) for name, value in values) or (KeyValue("Plan", (DASH,)),)
