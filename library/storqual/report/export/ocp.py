# SPDX-License-Identifier: Apache-2.0
"""`ocp.jsonl`: a run in the lines of the OCP Test and Validation output specification, version 2.0.

A point is a test step; a criterion is a measurement with its diagnosis; raw files are files. What the judge could not
judge is UNKNOWN, never PASS. A shift is judged by an interval and not by a limit, so only limits become validators.
Written here and not by the `ocptv` package: that one stamps lines with the time of writing, and two exports of one
run must be equal.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from storqual.base.text import visible_text
from storqual.report.criterion import Criterion, read_criteria
from storqual.report.links import Key
from storqual.report.material import ARMS, Material, read_material
from storqual.report.parts.appendix import commands_of
from storqual.run import write_bytes
from storqual_core.host.identity import declared_address

_DIAGNOSES = {"PASS": "PASS", "MARGINAL": "PASS", "FAIL": "FAIL"}
_RESULTS = {
    "PASS": ("COMPLETE", "PASS"),
    "MARGINAL": ("COMPLETE", "PASS"),
    "FAIL": ("COMPLETE", "FAIL"),
    "INCONCLUSIVE": ("COMPLETE", "NOT_APPLICABLE"),
}
_LIMITS = {"higher": "GREATER_THAN_OR_EQUAL", "lower": "LESS_THAN_OR_EQUAL"}


def write_ocp(run_dir: Path, material: Material | None = None) -> Path:
    """Write `ocp.jsonl` of a judged run and return its path; `material` is what was read of it already.

    Raises BadInputError when the run was not judged.
    """
    path = Path(run_dir) / "ocp.jsonl"
    material = material or read_material(Path(run_dir))
    write_bytes(path, "".join(f"{line}\n" for line in ocp_lines(material)).encode())
    return path


def ocp_lines(material: Material) -> Iterator[str]:
    """The lines of a run, numbered without a gap."""
    for number, (time, artifact) in enumerate(_artifacts(material)):
        line = {**artifact, "sequenceNumber": number, "timestamp": time}
        yield json.dumps(_safe(line), ensure_ascii=False, separators=(",", ":"))


def _safe(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """The same with control characters written out: a log viewer is a terminal too."""
    if isinstance(value, str):
        return visible_text(value)
    if isinstance(value, dict):
        return {visible_text(str(key)): _safe(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_safe(inner) for inner in value]
    return value


def _artifacts(material: Material) -> Iterator[tuple[str, dict[str, Any]]]:
    judged = str(material.verdict.get("as_of"))
    created = str(material.document.get("created") or judged)
    yield created, {"schemaVersion": {"major": 2, "minor": 0}}
    yield created, {"testRunArtifact": {"testRunStart": _start(material)}}
    known = {one["hardwareInfoId"] for one in _hardware(material)}
    by_point: defaultdict[Key, list[Criterion]] = defaultdict(list)
    for row in read_criteria(material.verdict):
        by_point[row.key].append(row)
    for number, key in enumerate(material.points):
        yield from _step(material, number, key, by_point.pop(key, []), judged, known)
    # hand-written checks belong to no planned point
    for number, rows in enumerate(by_point.values(), start=len(material.points)):
        step = str(number)
        yield judged, _of_step(step, {"testStepStart": {"name": "checks"}})
        for row in rows:
            yield judged, _of_step(step, {"diagnosis": _diagnosis(row, known)})
        yield judged, _of_step(step, {"testStepEnd": {"status": "COMPLETE"}})
    for warning in material.verdict.get("warnings") or ():
        yield judged, {"testRunArtifact": {"log": {"severity": "WARNING", "message": str(warning)}}}
    yield judged, {"testRunArtifact": {"testRunEnd": end_of(material.verdict)}}


def end_of(verdict: Mapping[str, Any]) -> dict[str, str]:
    """The end of the run: what became of it as a whole."""
    status, result = _RESULTS.get(str(verdict.get("outcome")), ("ERROR", "NOT_APPLICABLE"))
    return {"status": status, "result": result}


def told_of(row: Criterion) -> tuple[str, str]:
    """What the diagnosis of a criterion calls it and its outcome, and the type that this is in OCP's words."""
    return visible_text(f"{row.text('id')}-{row.outcome.lower()}"), _DIAGNOSES.get(row.outcome, "UNKNOWN")


def _of_step(step: str, artifact: Mapping[str, Any]) -> dict[str, Any]:
    return {"testStepArtifact": {**artifact, "testStepId": step}}


def _step(
    material: Material, number: int, key: Key, rows: Sequence[Criterion], judged: str, known: Collection[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """One point: its measurements and diagnoses, its errors, its raw files."""
    data = material.points[key]
    step = str(number)
    launches = sorted(data.every(), key=lambda one: one.began)
    begun = launches[0].start if launches else judged
    yield begun, _of_step(step, {"testStepStart": {"name": "/".join(key)}})
    for launch in launches:
        for raw in launch.raw:
            file = {"displayName": f"{launch.id} ({launch.arm})", "uri": raw.path, "isSnapshot": True}
            yield launch.start, _of_step(step, {"file": file})
        for doubt in launch.suspect:
            message = f"{launch.id}: {doubt}"
            yield launch.start, _of_step(step, {"log": {"severity": "WARNING", "message": message}})
    for row in rows:
        value = row.number("candidate")
        if value is not None:
            yield judged, _of_step(step, {"measurement": _measurement(row, value)})
        if row.outcome == "ERROR":
            yield judged, _of_step(step, {"error": {"symptom": "not-judged", "message": row.text("reason")}})
        yield judged, _of_step(step, {"diagnosis": _diagnosis(row, known)})
    status = "SKIP" if data.planned.skipped else "COMPLETE" if launches else "ERROR"
    yield judged, _of_step(step, {"testStepEnd": {"status": status}})


def _measurement(row: Criterion, value: float) -> dict[str, Any]:
    names = ("reference", "shift_percent", "ci95_percent", "margin_percent", "detectable_percent", "against")
    known = {name: row.fields[name] for name in names if row.fields.get(name) is not None}
    measured: dict[str, Any] = {
        "name": row.text("metric"),
        "value": value,
        "unit": row.text("unit"),
        "hardwareInfoId": "/".join(row.key[:2]),
        "metadata": known,
    }
    limit = row.number("reference")
    if row.against == "absolute" and limit is not None and row.text("better") in _LIMITS:
        measured["validators"] = [{"name": row.text("id"), "type": _LIMITS[row.text("better")], "value": limit}]
    return measured


def _diagnosis(row: Criterion, known: Collection[str]) -> dict[str, Any]:
    """A criterion's outcome; its adapter only where the run's start lists it (a check may name any)."""
    verdict, kind = told_of(row)
    message = f"{row.text('reason')} ({row.waiver})" if row.waived else row.text("reason")
    diagnosis = {"verdict": verdict, "type": kind, "message": message}
    hardware = "/".join(row.key[:2])
    if hardware in known:
        diagnosis["hardwareInfoId"] = hardware
    return diagnosis


def _start(material: Material) -> dict[str, Any]:
    run = material.run
    drops = {arm: drop.drop for arm, drop in run.arms.items()}
    return {
        "name": "storqual",
        "version": str((material.document.get("versions") or {}).get("storqual") or "unknown"),
        "commandLine": commands_of(material)[0][1],
        "parameters": {
            "run": run.name,
            "suite": run.suite.name,
            "profile": run.suite.profile,
            "seed": run.plan.seed,
            **drops,
        },
        "dutInfo": {
            "dutInfoId": "+".join(run.benches),
            "name": ", ".join(run.benches),
            "platformInfos": [{"info": f"{name}: {bench.get('kind')}"} for name, bench in run.benches.items()],
            "softwareInfos": list(_software(material)),
            "hardwareInfos": list(_hardware(material)),
        },
    }


def _software(material: Material) -> Iterator[dict[str, str]]:
    """The kernel and the drivers of each arm, as they were read back."""
    last = {(str(entry.get("bench")), arm): entry for arm, entry in material.provisioned()}
    for (bench, arm), entry in sorted(last.items(), key=lambda item: (item[0][0], ARMS.index(item[0][1]))):
        ident = f"{bench}/{arm}"
        kernel = {"softwareInfoId": f"{ident}/kernel", "name": "kernel", "softwareType": "SYSTEM"}
        yield {**kernel, "version": str(entry.get("kernel") or "")}
        for name, details in (entry.get("drivers") or {}).items():
            yield {
                "softwareInfoId": f"{ident}/{name}",
                "name": str(name),
                "version": str((details or {}).get("version") or ""),
                "revision": str((details or {}).get("srcversion") or ""),
                "softwareType": "SYSTEM",
            }


def _hardware(material: Material) -> Iterator[dict[str, str]]:
    """Adapters under test and the drives behind them."""
    tested = {key[:2] for key in material.points}
    for bench, description in material.run.benches.items():
        for alias, adapter in (description.get("adapters") or {}).items():
            if (bench, alias) not in tested:
                continue
            yield {
                "hardwareInfoId": f"{bench}/{alias}",
                "name": str(adapter.get("model") or alias),
                "location": declared_address(adapter),
                "partType": "storage adapter",
            }
            for drive in adapter.get("drives") or ():
                yield {
                    "hardwareInfoId": f"{bench}/{alias}/{drive.get('id')}",
                    "name": str(drive.get("model") or drive.get("id")),
                    "manufacturer": str(drive.get("vendor") or ""),
                    "serialNumber": str(drive.get("serial") or ""),
                    "revision": str(drive.get("revision") or ""),
                    "partType": "drive",
                }
