# SPDX-License-Identifier: Apache-2.0
"""A judged run for machines: OCP lines, OpenMetrics for dashboards, tables, annotations of a merge request."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storqual.base.table import Table, csv_text
from storqual.base.text import terminal_text, visible_text
from storqual.judge.outcome import used_waivers, waiver_list, with_waivers
from storqual.report.charts import levels
from storqual.report.criterion import OUTCOMES, JudgedCriterion, read_criteria, waived_by
from storqual.report.material import ARMS, Material, but_rates, read_material
from storqual.report.parts.appendix import commands_of
from storqual.report.parts.first_screen import sentence_for
from storqual.report.view import Key
from storqual.run import sha256_of, write_bytes
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
    adapters = {hardware["hardwareInfoId"] for hardware in _hardware(material)}
    by_point: defaultdict[Key, list[JudgedCriterion]] = defaultdict(list)
    for row in read_criteria(material.verdict):
        by_point[row.key].append(row)
    for number, key in enumerate(material.points):
        yield from _step(material, number, key, by_point.pop(key, []), judged, adapters)
    # hand-written checks belong to no planned point
    for number, rows in enumerate(by_point.values(), start=len(material.points)):
        step = str(number)
        yield judged, _of_step(step, {"testStepStart": {"name": "checks"}})
        for row in rows:
            yield judged, _of_step(step, {"diagnosis": _diagnosis(row, adapters)})
        yield judged, _of_step(step, {"testStepEnd": {"status": "COMPLETE"}})
    for warning in material.verdict.get("warnings") or ():
        yield judged, {"testRunArtifact": {"log": {"severity": "WARNING", "message": str(warning)}}}
    yield judged, {"testRunArtifact": {"testRunEnd": end_of(material.verdict)}}


def end_of(verdict: Mapping[str, Any]) -> dict[str, str]:
    status, result = _RESULTS.get(str(verdict.get("outcome")), ("ERROR", "NOT_APPLICABLE"))
    return {"status": status, "result": result}


def diagnosis_of(row: JudgedCriterion) -> tuple[str, str]:
    """What the diagnosis of a criterion calls it and its outcome, and the type that this is in OCP's words."""
    return visible_text(f"{row.text('id')}-{row.outcome.lower()}"), _DIAGNOSES.get(row.outcome, "UNKNOWN")


def _of_step(step: str, artifact: Mapping[str, Any]) -> dict[str, Any]:
    return {"testStepArtifact": {**artifact, "testStepId": step}}


def _step(
    material: Material, number: int, key: Key, rows: Sequence[JudgedCriterion], judged: str, adapters: Collection[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    data = material.points[key]
    step = str(number)
    launches = sorted(data.every(), key=lambda launch: launch.began)
    begun = launches[0].start if launches else judged
    yield begun, _of_step(step, {"testStepStart": {"name": "/".join(key)}})
    for launch in launches:
        for raw in launch.raw:
            file = {"displayName": f"{launch.id} ({launch.arm})", "uri": raw.path, "isSnapshot": True}
            yield launch.start, _of_step(step, {"file": file})
        for doubt in (*launch.suspect, *but_rates(launch)):
            message = f"{launch.id}: {doubt}"
            yield launch.start, _of_step(step, {"log": {"severity": "WARNING", "message": message}})
    for row in rows:
        value = row.number("candidate")
        if value is not None:
            yield judged, _of_step(step, {"measurement": _measurement(row, value)})
        if row.outcome == "ERROR":
            yield judged, _of_step(step, {"error": {"symptom": "not-judged", "message": row.text("reason")}})
        yield judged, _of_step(step, {"diagnosis": _diagnosis(row, adapters)})
    status = "SKIP" if data.planned.skipped else "COMPLETE" if launches else "ERROR"
    yield judged, _of_step(step, {"testStepEnd": {"status": status}})


def _measurement(row: JudgedCriterion, value: float) -> dict[str, Any]:
    names = ("reference", "shift_percent", "ci95_percent", "margin_percent", "detectable_percent", "against")
    metadata = {name: row.fields[name] for name in names if row.fields.get(name) is not None}
    measured: dict[str, Any] = {
        "name": row.text("metric"),
        "value": value,
        "unit": row.text("unit"),
        "hardwareInfoId": "/".join(row.key[:2]),
        "metadata": metadata,
    }
    limit = row.number("reference")
    if row.against == "absolute" and limit is not None and row.text("better") in _LIMITS:
        measured["validators"] = [{"name": row.text("id"), "type": _LIMITS[row.text("better")], "value": limit}]
    return measured


def _diagnosis(row: JudgedCriterion, adapters: Collection[str]) -> dict[str, Any]:
    """A criterion's outcome; its adapter only where the run's start lists it (a check may name any)."""
    verdict, kind = diagnosis_of(row)
    message = f"{row.text('reason')} ({row.waiver})" if row.waived else row.text("reason")
    diagnosis = {"verdict": verdict, "type": kind, "message": message}
    hardware = "/".join(row.key[:2])
    if hardware in adapters:
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


_CRITERIA = (
    "id", "bench", "adapter", "point", "metric", "unit", "better", "against", "required", "outcome", "reference",
    "candidate", "shift_percent", "ci95_low_percent", "ci95_high_percent", "margin_percent", "detectable_percent",
    "baseline_launches", "candidate_launches", "baseline_sessions", "candidate_sessions", "reason", "waiver_owner",
    "waiver_expiry", "waiver_reference", "waiver_reason", "run_outcome",
)  # fmt: skip
_LAUNCH = ("launch", "bench", "adapter", "point", "arm", "session", "n", "start", "runtime_s", "status")


def criteria_csv(material: Material) -> str:
    """One line per criterion and point; the last column is the run's outcome, with the waivers that it rests on."""
    used = with_waivers(used_waivers(material.verdict.get("criteria") or ()))
    ending = f"{material.verdict.get('outcome')} {used}".strip()
    rows = tuple((*_criterion_cells(row), ending) for row in read_criteria(material.verdict))
    return csv_text(Table("Criteria", _CRITERIA, rows))


def _criterion_cells(row: JudgedCriterion) -> Iterator[object]:
    yield from (row.fields.get(name) for name in _CRITERIA[:8])
    yield from (row.required, row.outcome)
    yield from (row.number(name) for name in ("reference", "candidate", "shift_percent"))
    yield from (*row.interval(), row.number("margin_percent"), row.number("detectable_percent"))
    for name in ("samples", "sessions"):
        yield from ((row.fields.get(name) or {}).get(arm) for arm in ARMS)
    yield row.text("reason")
    waiver = row.fields.get("waiver") or {}
    yield from (waiver.get(name) for name in ("owner", "expiry", "reference", "reason"))


def samples_csv(material: Material) -> str:
    """One line per launch in the order of time: where, when, how it ended, its factors, and what it was judged by.

    Nothing is rounded.
    """
    factors = list(dict.fromkeys(name for data in material.points.values() for name in levels(data.planned)))
    launches = [(data, launch) for data in material.points.values() for launch in data.every()]
    metrics = [name for name in material.metrics if any(launch.number(name) is not None for _, launch in launches)]
    rows = tuple(
        (
            *(launch.id, *data.planned.key, launch.arm, launch.session, launch.n, launch.start),
            *(launch.runtime_s, launch.status),
            *(levels(data.planned).get(name) for name in factors),
            *(launch.number(name) for name in metrics),
            *("; ".join((*launch.suspect, *but_rates(launch))), " ".join(raw.sha256 for raw in launch.raw)),
        )
        for data, launch in sorted(launches, key=lambda pair: (pair[1].began, pair[1].id))
    )
    return csv_text(Table("Launches", (*_LAUNCH, *factors, *metrics, "suspect", "raw_sha256"), rows))


_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_FAMILIES = {
    "storqual_run": ("info", "What was compared."),
    "storqual_run_exit_code": ("gauge", "The gate: 0 pass, 1 fail, 2 could not be judged."),
    "storqual_run_waivers": ("gauge", "Waivers that the outcome rests on."),
    "storqual_run_points": ("gauge", "Planned points, measured points, points skipped with a reason."),
    "storqual_sectors_written_outside_claims": ("gauge", "Sectors written to disks that no claim covers."),
    "storqual_criterion_outcome": ("stateset", "The outcome of a criterion at a point."),
    "storqual_criterion_value": ("gauge", "The candidate's value in the metric's own unit."),
    "storqual_criterion_shift_percent": ("gauge", "The candidate against its reference; negative is worse."),
}


def open_metrics(material: Material) -> str:
    """The text, with its end mark; texts of devices and drops are label values and nothing else."""
    lines: list[str] = []
    samples: dict[str, list[str]] = {name: [] for name in _FAMILIES}
    for family, name, labels, value in _samples(material):
        samples[family].append(f"{name}{_labels(labels)} {value}")
    for family, lines_of in samples.items():
        if lines_of:
            kind, help_text = _FAMILIES[family]
            lines += [f"# TYPE {family} {kind}", f"# HELP {family} {help_text}", *lines_of]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _samples(material: Material) -> Iterator[tuple[str, str, dict[str, str], str]]:
    verdict, run = material.verdict, material.run
    labels = {"run": run.name}
    drops = {arm: drop.drop for arm, drop in run.arms.items()}
    about = {
        **labels,
        **drops,
        "suite": run.suite.name,
        "profile": run.suite.profile,
        "outcome": str(verdict.get("outcome")),
    }
    yield "storqual_run", "storqual_run_info", about, "1"
    yield "storqual_run_exit_code", "storqual_run_exit_code", labels, str(verdict.get("exit_code"))
    used = used_waivers(verdict.get("criteria") or ())
    yield "storqual_run_waivers", "storqual_run_waivers", {**labels, "waivers": waiver_list(used)}, str(len(used))
    covered = verdict.get("coverage") or {}
    skipped = sum(bool(entry.get("reason")) for entry in covered.get("skipped") or ())
    for state, number in (
        ("planned", covered.get("planned")),
        ("measured", covered.get("measured")),
        ("skipped", skipped),
    ):
        if isinstance(number, int):
            yield "storqual_run_points", "storqual_run_points", {**labels, "state": state}, str(number)
    sectors = verdict.get("sectors_written_outside_claims")
    if isinstance(sectors, int):
        name = "storqual_sectors_written_outside_claims"
        yield name, name, labels, str(sectors)
    for row in read_criteria(verdict):
        bench, adapter, point = row.key
        where = {
            **labels,
            "bench": bench,
            "adapter": adapter,
            "point": point,
            "criterion": row.text("id"),
            "metric": row.text("metric"),
            "required": "true" if row.required else "false",
        }
        family = "storqual_criterion_outcome"
        for word in OUTCOMES:
            yield family, family, {**where, family: word}, "1" if word == row.outcome else "0"
        for field, family in (("candidate", "value"), ("shift_percent", "shift_percent")):
            value = row.number(field)
            if value is not None:
                name = f"storqual_criterion_{family}"
                yield name, name, where, repr(value)


def _labels(labels: Mapping[str, str]) -> str:
    """Labels in braces; backslash, quote and line end are escaped as the format says."""
    shown = (f'{name}="{visible_text(value).translate(_ESCAPES)}"' for name, value in labels.items())
    return "{" + ",".join(shown) + "}"


MOST = 10
"""Annotations of one kind that GitHub shows for a step."""

_LEVELS = {"FAIL": "error", "ERROR": "error", "INCONCLUSIVE": "error", "MARGINAL": "warning"}
_SEVERITIES = {"error": "critical", "warning": "minor", "notice": "info"}
_ORDER = ("error", "warning", "notice")


@dataclass(frozen=True, slots=True)
class _Note:
    """One annotation; texts are made safe."""

    level: str
    check: str
    text: str


def github_annotations(material: Material, checkout: Path) -> str:
    """Workflow commands, one a line: the run's outcome, then its worst criteria, then how many more there are.

    `checkout` is the folder that file names are relative to.
    """
    notes = list(_notes(material))
    file = _file(material, checkout)
    lines = [_command(file, notes[0])]
    for level in _ORDER:
        of_level = [note for note in notes[1:] if note.level == level]
        # the first of a kind may be the outcome; the last one tells how many are left
        shown = of_level if len(of_level) < MOST else of_level[: MOST - 2]
        lines += [_command(file, note) for note in shown]
        if len(of_level) > len(shown):
            more = f"{len(of_level) - len(shown)} more, see the report"
            lines.append(_command(file, _Note(level, "storqual", more)))
    return "".join(f"{line}\n" for line in lines)


def gitlab_code_quality(material: Material, checkout: Path) -> str:
    """The JSON list of GitLab's code quality report; fingerprints stay the same when a run is exported again.

    `checkout` is the folder that file names are relative to.
    """
    run = material.run.name
    file = _file(material, checkout)
    entries = [
        {
            "description": note.text,
            "check_name": note.check,
            "fingerprint": sha256_of(f"{run}\0{number}\0{note.check}\0{note.text}".encode()),
            "severity": _SEVERITIES[note.level],
            "location": {"path": file, "lines": {"begin": 1}},
        }
        for number, note in enumerate(_notes(material))
        if number or note.level != "notice"
    ]
    return json.dumps(entries, ensure_ascii=False, indent=1) + "\n"


def _notes(material: Material) -> Iterator[_Note]:
    """The outcome first, then every required criterion that did not simply pass, the worst first."""
    rows = read_criteria(material.verdict)
    drops = {arm: drop.drop for arm, drop in material.run.arms.items()}
    outcome = str(material.verdict.get("outcome"))
    sentence = "".join(str(part) for part in sentence_for(material.verdict, rows, drops))
    yield _Note(_LEVELS.get(outcome, "notice"), "storqual", terminal_text(f"{outcome}: {sentence}"))
    notes = [_of_row(row) for row in rows if row.required and row.outcome not in ("PASS", "SKIPPED")]
    yield from sorted(notes, key=lambda note: _ORDER.index(note.level))


def _of_row(row: JudgedCriterion) -> _Note:
    point = "/".join(part for part in row.key if part)
    text = f"{row.outcome} {row.text('id')} at {point}: {row.text('reason')}"
    if row.waived:
        waiver = row.fields["waiver"]
        text += f" ({waived_by(waiver)}, {waiver.get('reference')})"
    level = "warning" if row.waived else _LEVELS.get(row.outcome, "notice")
    return _Note(level, terminal_text(row.text("id")), terminal_text(text))


def _file(material: Material, checkout: Path) -> str:
    """The candidate's manifest in the checkout; the copy in the run where it came from somewhere else."""
    entry = (material.document.get("inputs") or {}).get("candidate") or {}
    source = checkout / str(entry.get("source") or "")
    inside = source != checkout and source.is_relative_to(checkout) and ".." not in source.parts
    return terminal_text(str(source.relative_to(checkout)) if inside else material.run.arms["candidate"].file)


def _command(file: str, note: _Note) -> str:
    title = "storqual" if note.check == "storqual" else f"storqual: {note.check}"
    properties = {"file": file, "line": "1", "title": title}
    fields = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{note.level} {fields}::{_data(note.text)}"


def _data(text: str) -> str:
    """Text of a workflow command: a line end or a percent sign in it must not begin another one."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
