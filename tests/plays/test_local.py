# SPDX-License-Identifier: Apache-2.0
"""The main job on files of this machine: the same playbook, no root, no QEMU."""

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

pytestmark = pytest.mark.plays

REPOSITORY = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
SECRET = "canary-" + "7f3a19c2"
"""The password of a bench's controller in the inventory."""


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    folder = tmp_path / "lab" / "inventories" / "local"
    shutil.copytree(REPOSITORY / "inventories" / "local", folder)
    (folder / "group_vars").mkdir()
    secrets = f"bmc_password: {SECRET}\nansible_password: {SECRET}\nbmc: {{user: root, password: '{SECRET}'}}\n"
    (folder / "group_vars" / "benches.yml").write_text(secrets, encoding="utf-8")
    return folder


def words(lab: Path, *more: str) -> list[str]:
    suite = ["--baseline", "baseline", "--candidate", "candidate", "--suite", str(HERE / "tiny.suite.yml")]
    return [str(BIN / "storqual"), "qualify", "-i", str(lab), "--runs", str(lab.parents[1] / "runs"), *suite, *more]


def job(argv: list[str], log: Path) -> int:
    """Run to the end; output to a file."""
    with log.open("wb") as stream:
        return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, check=False).returncode


def the_run(lab: Path) -> Path:
    (made,) = (path.parent for path in (lab.parents[1] / "runs").glob("*/run.json"))
    return made


def files_with(text: str, folder: Path) -> list[str]:
    """The files below `folder` whose name or content, also unpacked, holds `text`."""
    found = []
    for path in sorted(folder.rglob("*")):
        data = path.read_bytes() if path.is_file() else b""
        if path.suffix == ".gz":
            data = gzip.decompress(data)
        if text.encode() in data or text in path.name:
            found.append(str(path))
    return found


def test_files_of_this_machine_get_a_verdict_and_a_report_that_says_what_it_is_not(lab: Path, tmp_path: Path) -> None:
    code = job(words(lab), tmp_path / "log")
    output = (tmp_path / "log").read_text(encoding="utf-8")
    run = the_run(lab)
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    assert code == verdict["exit_code"], output[-2000:]
    phases = [
        *("Plan the campaign", "Check the bench before anything is touched", "Restore the bench"),
        "Judge and publish",
    ]
    assert [line for line in output.splitlines() if line in phases] == phases
    assert not [line for line in output.splitlines() if line.startswith(("TASK", "changed", "included", "PLAY"))]
    assert re.search(
        r"^\S+ (baseline|candidate) \| batch \S+ \| launch \d+ of \d+: .*about \d+ s left$", output, re.MULTILINE
    )
    assert verdict["outcome"] in ("PASS", "MARGINAL", "INCONCLUSIVE"), output[-2000:]
    for name in (
        *("run.json", "samples.jsonl", "events.jsonl", "checks.jsonl", "junit.xml", "pytest.html"),
        *("ocp.jsonl", "inputs", "raw"),
    ):
        assert (run / name).exists(), name
    assert "not a qualification of hardware" in (run / "report.html").read_text(encoding="utf-8")
    assert str(run / "report.html") in output
    assert json.loads((run / "run.json").read_text(encoding="utf-8"))["overhead"]["seconds_per_sample"] < 0.5
    assert files_with(SECRET, run) == []
    assert SECRET not in output


def test_a_killed_job_is_resumed_and_repeats_nothing(lab: Path, tmp_path: Path) -> None:
    """A kill -9 of everything on the control node in the middle of a block; the bench program goes on alone."""
    with (tmp_path / "log").open("wb") as stream:
        child = subprocess.Popen(
            words(lab), stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True
        )
    runs = lab.parents[1] / "runs"
    limit = time.monotonic() + 120
    while not any(path.read_bytes() for path in runs.glob("*/samples.jsonl")):
        assert child.poll() is None, (tmp_path / "log").read_text(encoding="utf-8")
        assert time.monotonic() < limit
        time.sleep(0.1)  # the run directory is the only sign there is
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    run = the_run(lab)
    kept = (run / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    argv = [str(BIN / "storqual"), "qualify", "--resume", run.name, "--runs", str(runs)]
    code = job(argv, tmp_path / "log2")
    output = (tmp_path / "log2").read_text(encoding="utf-8")
    assert code in (0, 2), output[-2000:]
    after = (run / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    assert after[: len(kept)] == kept
    samples = [json.loads(line) for line in after]
    assert len({(s["arm"], s["n"]) for s in samples}) == len(samples) == 6
    assert {s["status"] for s in samples} == {"ok"}
    assert (run / "verdict.json").is_file()


def test_a_campaign_measures_until_decided(lab: Path, tmp_path: Path) -> None:
    code = job(words(lab, "--suite", str(HERE / "sequential.suite.yml")), tmp_path / "log")
    output = (tmp_path / "log").read_text(encoding="utf-8")
    run = the_run(lab)
    document = json.loads((run / "run.json").read_text(encoding="utf-8"))
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    events = [json.loads(line) for line in (run / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    assert code == verdict["exit_code"], output[-2000:]
    assert document["plan"]["looks"] == "every"
    samples = [json.loads(line) for line in (run / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    launches = Counter((sample["point"], sample["arm"]) for sample in samples)
    assert len({(s["point"], s["arm"], s["n"]) for s in samples}) == len(samples)
    added = {event["block"] for event in events if event["kind"] == "block_planned"}
    assert {sample["block"] for sample in samples} == {"s01-b01", *added}
    decided = {entry["point"]: entry["outcome"] for entry in verdict["criteria"]}
    for (point, _), number in launches.items():
        assert number == 8 or decided[point] in ("PASS", "MARGINAL"), output[-2000:]


def test_wrong_input_is_told_at_once_and_touches_nothing(lab: Path, tmp_path: Path) -> None:
    """Exit code 3, every problem on a line of its own with file and line, no run directory."""
    (lab / "drops" / "candidate.yml").write_text("name: candidate\ndrivr: {}\ndrive: {WCEE: 1}\n", encoding="utf-8")
    suite = tmp_path / "wrong.suite.yml"
    suite.write_text((HERE / "tiny.suite.yml").read_text().replace("metric: iops", "metric: ipos"), encoding="utf-8")
    code = job([*words(lab), "--suite", str(suite)], tmp_path / "log")
    output = (tmp_path / "log").read_text(encoding="utf-8")
    assert code == 3, output[-2000:]
    for found in ("drivr", "WCEE", "ipos"):
        assert found in output
    assert "Traceback" not in output
    assert not list((lab.parents[1] / "runs").glob("*/run.json"))


def test_no_matching_host_is_bad_input(lab: Path, tmp_path: Path) -> None:
    assert job(words(lab, "--limit", "nosuch"), tmp_path / "log") == 3


def test_ansible_playbook_alone_ends_with_the_gates_code(lab: Path, tmp_path: Path) -> None:
    argv = [str(BIN / "ansible-playbook"), "-i", str(lab), str(REPOSITORY / "playbooks" / "qualify.yml")]
    argv += ["-e", "candidate=nosuch", "-e", "baseline=baseline", "-e", f"suite={HERE / 'tiny.suite.yml'}"]
    with (tmp_path / "log").open("wb") as stream:
        environment = {**os.environ, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg")}
        ended = subprocess.run(
            argv, env=environment, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, check=False
        )
    assert ended.returncode == 3, (tmp_path / "log").read_text(encoding="utf-8")[-2000:]
