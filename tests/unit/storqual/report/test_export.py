# SPDX-License-Identifier: Apache-2.0
"""Tests of what machines read: OCP lines by their specification, OpenMetrics parsed back, CSV, annotations."""

import csv
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from storqual.report.export import (
    criteria_csv,
    github_annotations,
    gitlab_code_quality,
    ocp_lines,
    open_metrics,
    samples_csv,
    write_ocp,
)
from storqual.report.material import read_material
from tests.support.hostile_payloads import chunks, infect
from tests.support.judged_reports import QUICK, judged
from tests.support.ocp_types import written_back
from tests.unit.storqual.report.conftest import FINDING

_PART = """version revision location serialNumber partNumber partType manufacturer manufacturerPartNumber odataId
computerSystem manager"""

# name -> (required keys, other keys) as in the JSON Schemas of the specification, version 2.0
OBJECTS: dict[str, tuple[str, str]] = {
    "schemaVersion": ("major minor", ""),
    "testRunStart": ("name version commandLine parameters dutInfo", "metadata"),
    "testRunEnd": ("status result", ""),
    "log": ("severity message", ""),
    "error": ("symptom", "message softwareInfoIds"),
    "testStepStart": ("name", ""),
    "testStepEnd": ("status", ""),
    "measurement": ("name value", "unit validators hardwareInfoId subcomponent metadata"),
    "diagnosis": ("verdict type", "message hardwareInfoId subcomponent"),
    "file": ("displayName uri isSnapshot", "description contentType metadata"),
    "dutInfo": ("dutInfoId", "name platformInfos softwareInfos hardwareInfos metadata"),
    "platformInfos": ("info", ""),
    "softwareInfos": ("name softwareInfoId", "version revision softwareType computerSystem"),
    "hardwareInfos": ("name hardwareInfoId", _PART),
    "validators": ("type value", "name metadata"),
}
ENUMS = {
    "testRunEnd.status": "COMPLETE ERROR SKIP",
    "testRunEnd.result": "PASS FAIL NOT_APPLICABLE",
    "testStepEnd.status": "COMPLETE ERROR SKIP",
    "diagnosis.type": "PASS FAIL UNKNOWN",
    "log.severity": "INFO DEBUG WARNING ERROR FATAL",
    "softwareInfos.softwareType": "UNSPECIFIED FIRMWARE SYSTEM APPLICATION",
    "validators.type": "GREATER_THAN_OR_EQUAL LESS_THAN_OR_EQUAL",
}


def check(name: str, value: Mapping[str, Any]) -> None:
    """One object of the specification: its keys, its enumerations, and the objects in it."""
    required, other = (set(keys.split()) for keys in OBJECTS[name])
    assert required <= set(value) <= required | other, (name, set(value))
    for key, inner in value.items():
        allowed = ENUMS.get(f"{name}.{key}")
        assert allowed is None or inner in allowed.split(), (name, key, inner)
        if key in OBJECTS:
            for part in inner if isinstance(inner, list) else [inner]:
                check(key, part)


def test_every_line_is_what_the_specifications_own_types_write(runs: dict[str, Path]) -> None:
    """Read into the types of the `ocptv` package and written back, each line is the same line."""
    for name in ("pass", "fail", "waived", "error", "local"):
        hardware: dict[str, Any] = {}
        for line in lines_of(runs[name]):
            if "testRunStart" in line.get("testRunArtifact", {}):
                infos = line["testRunArtifact"]["testRunStart"]["dutInfo"]["hardwareInfos"]
                hardware = {info["hardwareInfoId"]: info for info in infos}
                # the schema of version 2.0 has it, the package does not
                assert {info.pop("partType") for info in infos} == {"storage adapter", "drive"}
            back = written_back(line, hardware)
            del back["timestamp"]
            assert back == {key: value for key, value in line.items() if key != "timestamp"}


def test_the_types_refuse_what_the_specification_does_not_have(runs: dict[str, Path]) -> None:
    """Else the test above would prove nothing."""
    line = {"sequenceNumber": 1, "timestamp": "2026-11-21T10:00:00Z"}
    end = {"testRunEnd": {"status": "COMPLETE", "result": "PASS"}}
    good = {**line, "testRunArtifact": end}
    assert written_back(good, {})["testRunArtifact"] == end
    with pytest.raises(ValueError, match="MARGINAL"):
        written_back({**line, "testRunArtifact": {"testRunEnd": {"status": "COMPLETE", "result": "MARGINAL"}}}, {})
    with pytest.raises(TypeError):
        written_back({**line, "testStepArtifact": {"testStepId": 7, "testStepStart": {"name": "x"}}}, {})


def lines_of(run: Path) -> list[dict[str, Any]]:
    """The lines of `ocp.jsonl`, each checked by the specification."""
    lines = [json.loads(line) for line in write_ocp(run).read_text(encoding="utf-8").splitlines()]
    for number, line in enumerate(lines):
        assert line["sequenceNumber"] == number
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", line["timestamp"])
        (kind,) = set(line) - {"sequenceNumber", "timestamp"}
        if kind == "schemaVersion":
            assert line[kind] == {"major": 2, "minor": 0}
            continue
        artifact = dict(line[kind])
        assert kind == "testRunArtifact" or isinstance(artifact.pop("testStepId"), str)
        ((name, value),) = artifact.items()
        check(name, value)
    return lines


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("pass", ("COMPLETE", "PASS")),
        ("waived", ("COMPLETE", "PASS")),
        ("fail", ("COMPLETE", "FAIL")),
        ("inconclusive", ("COMPLETE", "NOT_APPLICABLE")),
        ("error", ("ERROR", "NOT_APPLICABLE")),
    ],
)
def test_every_line_is_valid_and_the_end_is_the_outcome(
    name: str, end: tuple[str, str], runs: dict[str, Path]
) -> None:
    lines = lines_of(runs[name])
    assert set(lines[0]) == {"schemaVersion", "sequenceNumber", "timestamp"}
    assert "testRunStart" in lines[1]["testRunArtifact"]
    assert lines[-1]["testRunArtifact"] == {"testRunEnd": {"status": end[0], "result": end[1]}}


def test_steps_begin_and_end_once_and_name_known_hardware(runs: dict[str, Path]) -> None:
    lines = lines_of(runs["fail"])
    hardware = {
        info["hardwareInfoId"] for info in lines[1]["testRunArtifact"]["testRunStart"]["dutInfo"]["hardwareInfos"]
    }
    steps: dict[str, list[str]] = {}
    for line in lines:
        artifact = line.get("testStepArtifact")
        if artifact:
            (name,) = set(artifact) - {"testStepId"}
            steps.setdefault(artifact["testStepId"], []).append(name)
            if name == "measurement":
                assert artifact[name]["hardwareInfoId"] in hardware
    for names in steps.values():
        assert (names[0], names[-1]) == ("testStepStart", "testStepEnd")
        assert names.count("testStepStart") == names.count("testStepEnd") == 1


def test_diagnoses_say_what_the_verdict_says(runs: dict[str, Path]) -> None:
    verdict = json.loads((runs["fail"] / "verdict.json").read_text())
    artifacts = [line.get("testStepArtifact", {}) for line in lines_of(runs["fail"])]
    diagnoses = [artifact["diagnosis"] for artifact in artifacts if "diagnosis" in artifact]
    expected = {"PASS": "PASS", "MARGINAL": "PASS", "FAIL": "FAIL"}
    assert sorted(diagnosis["type"] for diagnosis in diagnoses) == sorted(
        expected.get(row["outcome"], "UNKNOWN") for row in verdict["criteria"]
    )


def test_two_exports_of_one_run_are_equal(runs: dict[str, Path]) -> None:
    material = read_material(runs["pass"])
    assert list(ocp_lines(material)) == list(ocp_lines(material))


SAMPLE = re.compile(r'^([a-z_]+)\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\} (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"')


def parsed(text: str) -> list[tuple[str, dict[str, str], float]]:
    """OpenMetrics text read back: every line is a comment of a family or a sample of the family before."""
    assert text.endswith("\n# EOF\n")
    family = ""
    samples: list[tuple[str, dict[str, str], float]] = []
    for line in text.splitlines()[:-1]:
        if line.startswith("# TYPE "):
            family = line.split()[2]
        elif not line.startswith("# HELP "):
            match = SAMPLE.match(line)
            assert match, line
            assert match.group(1).removesuffix("_info") == family
            samples.append((match.group(1), dict(LABEL.findall(match.group(2))), float(match.group(3))))
    return samples


def test_open_metrics_are_read_back_as_the_verdict(runs: dict[str, Path]) -> None:
    verdict = json.loads((runs["fail"] / "verdict.json").read_text())
    samples = parsed(open_metrics(read_material(runs["fail"])))
    plain = {name: value for name, labels, value in samples if len(labels) == 1}
    assert plain == {"storqual_run_exit_code": 1.0, "storqual_sectors_written_outside_claims": 0.0}
    states = [labels for name, labels, value in samples if name == "storqual_criterion_outcome" and value == 1.0]
    assert [state["storqual_criterion_outcome"] for state in states] == [
        row["outcome"] for row in verdict["criteria"]
    ]
    shifts = [value for name, _, value in samples if name == "storqual_criterion_shift_percent"]
    assert shifts == [row["shift_percent"] for row in verdict["criteria"] if row["shift_percent"] is not None]


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_criteria_and_launches_are_tables(runs: dict[str, Path]) -> None:
    material = read_material(runs["fail"])
    verdict = json.loads((runs["fail"] / "verdict.json").read_text())
    criteria = table(criteria_csv(material))
    assert len(criteria) == len(verdict["criteria"])
    assert float(criteria[0]["shift_percent"]) == verdict["criteria"][0]["shift_percent"]
    assert float(criteria[0]["ci95_low_percent"]) == verdict["criteria"][0]["ci95_percent"][0]
    launches = table(samples_csv(material))
    samples = [json.loads(line) for line in (runs["fail"] / "samples.jsonl").read_text().splitlines()]
    assert len(launches) == len(samples)
    by_id = {sample["id"]: sample for sample in samples}
    for launch in launches:
        sample = by_id[launch["launch"]]
        assert launch["raw_sha256"] == " ".join(raw["sha256"] for raw in sample["raw"])
        assert float(launch["iops"]) == pytest.approx(
            (sample["primitives"].get("read_ios", 0) + sample["primitives"].get("write_ios", 0)) / sample["runtime_s"]
        )
        assert launch["bs"].isdigit()


@pytest.mark.parametrize("payloads", chunks(4))
def test_hostile_strings_stay_text_for_machines_too(payloads: tuple[str, ...], tmp_path: Path) -> None:
    run = judged(tmp_path, points=QUICK[:2], findings=[FINDING], suspect={QUICK[0]: "the clock jumped"})
    infect(run, payloads)
    lines_of(run)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", (run / "ocp.jsonl").read_text(encoding="utf-8"))
    material = read_material(run)
    parsed(open_metrics(material))
    for text in (criteria_csv(material), samples_csv(material)):
        for line in csv.reader(io.StringIO(text, newline="")):
            for cell in line:
                assert not re.match(r"[=@+\t\r]|-(?!\d+\.?\d*(e[+-]?\d+)?$)", cell), cell[:60]
                assert not re.search("[\x00-\x1f\x7f-\x9f]", cell)


HERE = Path("/checkout")
COMMAND = re.compile(r"::(error|warning|notice) file=([^,:]+),line=1,title=([^,:]+)::([^\r\n]*)")


def commands(run: Path) -> list[tuple[str, ...]]:
    """Every line as level, file, title and message; a line that is no command fails."""
    parsed = []
    for line in github_annotations(read_material(run), HERE).split("\n")[:-1]:
        match = COMMAND.fullmatch(line)
        assert match, line
        parsed.append(match.groups())
    return parsed


@pytest.mark.parametrize(
    ("name", "level", "word"),
    [
        ("pass", "notice", "PASS"),
        ("fail", "error", "FAIL"),
        ("error", "error", "ERROR"),
        ("waived", "notice", "PASS"),
    ],
)
def test_the_outcome_comes_first(name: str, level: str, word: str, runs: dict[str, Path]) -> None:
    (first, *_) = commands(runs[name])
    assert first[0] == level
    assert first[3].startswith(f"{word}: ")


def test_a_waived_failure_is_a_warning_with_its_owner(runs: dict[str, Path]) -> None:
    (_, waived) = commands(runs["waived"])
    assert waived[0] == "warning"
    assert "(waived by J. Ortega until 2027-03-31, BUG-4711)" in waived[3]


def test_at_most_ten_of_a_kind_and_the_last_tells_how_many_more(tmp_path: Path) -> None:
    run = judged(tmp_path, points=QUICK, noise=0.002, effect=-0.1)
    errors = [command for command in commands(run) if command[0] == "error"]
    assert len(errors) == 10
    failed = sum(
        row["required"] and row["outcome"] == "FAIL"
        for row in json.loads((run / "verdict.json").read_text())["criteria"]
    )
    assert errors[-1][3] == f"{failed - 8} more, see the report"


def test_gitlab_gets_what_its_report_needs(runs: dict[str, Path]) -> None:
    notes = json.loads(gitlab_code_quality(read_material(runs["fail"]), HERE))
    assert len(notes) > 2
    assert len({note["fingerprint"] for note in notes}) == len(notes)
    for note in notes:
        assert note["description"]
        assert note["check_name"]
        assert note["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert note["location"]["lines"] == {"begin": 1}
        assert not Path(note["location"]["path"]).is_absolute()
    assert json.loads(gitlab_code_quality(read_material(runs["pass"]), HERE)) == []


@pytest.mark.parametrize(
    ("source", "file"),
    [
        ("/checkout/inventories/lab/drops/new.yml", "inventories/lab/drops/new.yml"),
        ("inventories/lab/drops/new.yml", "inventories/lab/drops/new.yml"),
        ("/elsewhere/new.yml", "inputs/candidate.drop.yml"),
        ("../new.yml", "inputs/candidate.drop.yml"),
        ("", "inputs/candidate.drop.yml"),
    ],
)
def test_they_stand_at_the_drop_of_the_checkout(source: str, file: str, tmp_path: Path) -> None:
    run = judged(tmp_path, points=QUICK[:1], noise=0.002)
    document = json.loads((run / "run.json").read_text())
    document["inputs"]["candidate"]["source"] = source
    (run / "run.json").write_text(json.dumps(document))
    assert {command[1] for command in commands(run)} == {file}


@pytest.mark.parametrize("payloads", chunks(2))
def test_hostile_strings_begin_no_command(payloads: tuple[str, ...], tmp_path: Path) -> None:
    run = judged(tmp_path, points=QUICK[:2], noise=0.002, effect=-0.1, waived=[f"iops@sym/{QUICK[0]}"])
    infect(run, payloads)
    assert len(commands(run)) > 2
    text = github_annotations(read_material(run), HERE) + gitlab_code_quality(read_material(run), HERE)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
    json.loads(gitlab_code_quality(read_material(run), HERE))
