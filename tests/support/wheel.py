# SPDX-License-Identifier: Apache-2.0
"""The wheel of this checkout, and what one does first who has it installed: a campaign on files, report, verify."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.signing import make_person

REPOSITORY = Path(__file__).resolve().parents[2]
OWN_CHECK = """
def test_mine(run, record_property):
    record_property("looked_at", f"{len(run.measured)} launches")
    assert run.measured
"""


def run(*words: str | Path, cwd: Path, path: Path | None = None) -> str:
    """What a command prints; `path` is asked for programs first, and nothing of the checkout is."""
    ended = ended_with(*words, cwd=cwd, path=path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def ended_with(*words: str | Path, cwd: Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    before = f"{path}{os.pathsep}" if path is not None else ""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ANSIBLE"))}
    return subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**kept, "PATH": f"{before}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


def build_wheel(folder: Path) -> Path:
    """The wheel of this checkout, built without the network."""
    words = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-cache-dir", "--wheel-dir", folder]
    run(sys.executable, "-m", "pip", *words, REPOSITORY, cwd=folder)
    (found,) = folder.glob("*.whl")
    return found


def campaign_on_files(storqual: Path, inventory: Path, folder: Path) -> Path:
    """Qualify on files in an empty folder with a check of one's own, report and verify; the run directory.

    How quiet this machine is decides between a pass and an undecided campaign: only a pass can be signed.
    """
    shutil.copytree(inventory, folder / "inventories" / "local")
    (folder / "suites").mkdir()
    (folder / "suites" / "test_mine.py").write_text(OWN_CHECK, encoding="utf-8")
    shutil.copy(REPOSITORY / "tests" / "plays" / "tiny.suite.yml", folder / "suites")
    words = [storqual, "qualify", "-i", "inventories/local", "--baseline", "baseline", "--candidate", "candidate"]
    ended = ended_with(*words, "--suite", "tiny", "--json", cwd=folder)
    assert ended.returncode in (0, 2), ended.stderr
    answer = json.loads(ended.stdout)
    assert answer["outcome"] in ("PASS", "MARGINAL", "INCONCLUSIVE"), ended.stderr
    made = Path(answer["run"])
    assert made.is_relative_to(folder)
    for name in ("report.html", "verdict.json", "junit.xml", "ocp.jsonl"):
        assert (made / name).is_file(), name
    checks = [json.loads(line) for line in (made / "checks.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {one["outcome"] for one in checks if one["id"] == "test_mine.py::test_mine"} == {"PASS"}
    assert run(storqual, "report", made, "--json", cwd=folder)
    paper = ended_with(storqual, "report", made, "--pdf", folder / "report.pdf", cwd=folder)
    if paper.returncode == 0:
        assert (folder / "report.pdf").read_bytes().startswith(b"%PDF")
    else:
        # the extra is not installed here: whoever asks learns its name
        assert (paper.returncode, "install storqual with its extra: storqual[pdf]" in paper.stderr) == (3, True)
    verify(storqual, made, folder, signed=answer["exit_code"] == 0)
    return made


def verify(storqual: Path, made: Path, folder: Path, *, signed: bool) -> None:
    """Sign where the run can be signed; verify says that, and that files are no hardware."""
    person = make_person(folder, "Pat", "release-manager", expires="2099-12-31")
    keys = folder / "keys.yml"
    keys.write_text(f"require: [{{roles: [release-manager]}}]\nkeys:\n{person.entry()}", encoding="utf-8")
    if signed:
        run(storqual, "signoff", made, "--key", person.key, "--keys", keys, cwd=folder)
    ended = ended_with(storqual, "verify", made, "--keys", keys, cwd=folder)
    assert (ended.returncode, "release-manager" in ended.stdout) == (2 if signed else 1, True), ended.stdout
