# SPDX-License-Identifier: Apache-2.0
"""Wrong inputs end to end: every problem of every file at once, exit code 3, nothing written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from storqual.cli import main

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).resolve().parents[4]
GOLDEN = REPOSITORY / "tests" / "golden" / "bad_inputs"


def run(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit code and standard error of the command."""
    with pytest.raises(SystemExit) as left:
        main(arguments)
    return int(str(left.value.code)), capsys.readouterr().err


def test_all_problems_are_told_at_once_with_exit_code_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Inventory, both drops, suite and gate; the expected lines stand in `expected.txt`."""
    monkeypatch.chdir(GOLDEN)
    arguments = ["plan", "-i", "lab", "--baseline", "field", "--candidate", "new", "--suite", "./wrong.suite.yml"]
    code, said = run([*arguments, "--gate", "gate.yml", "--runs", str(tmp_path / "runs")], capsys)
    # which metrics there are is not what this test is about
    got = re.sub(r"(unknown metric 'iosp'.*?; expected one of).*", r"\1 ...", said)
    expected = GOLDEN / "expected.txt"
    if got != expected.read_text(encoding="utf-8"):
        (GOLDEN / "expected.txt.got").write_text(got, encoding="utf-8")
    assert got == expected.read_text(encoding="utf-8")
    assert code == 3
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-i", "nowhere"], "nowhere: no such inventory; expected a folder or a file"),
        (
            ["--baseline", "basline"],
            "(did you mean 'baseline'?); expected one of baseline, candidate",
        ),
        (["--suite", "adaptor"], "unknown suite 'adaptor' (did you mean 'adapter'?); expected one of"),
        (["--suite", "./none.suite.yml"], "none.suite.yml: no such file; expected a suite"),
        (["--profile", "quik"], "unknown profile 'quik' (did you mean 'quick'?); expected one of full, quick"),
        (
            ["--adapters", "file"],
            "--adapters: unknown adapter 'file' (did you mean 'files'?); the only one is files",
        ),
    ],
    ids=["inventory", "drop", "suite", "suite file", "profile", "adapter"],
)
def test_a_wrong_name_is_told_with_what_there_is(
    arguments: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(REPOSITORY)
    good = ["-i", "inventories/local", "--baseline", "baseline", "--candidate", "candidate", "--suite", "adapter"]
    if arguments[0] == "-i":
        good = good[2:]
    code, err = run(["plan", *good, *arguments, "--runs", str(tmp_path / "runs")], capsys)
    assert said in err
    assert code == 3
    assert not (tmp_path / "runs").exists()


def test_no_matching_host_is_bad_input_with_the_list_of_benches(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(REPOSITORY)
    names = ["-i", "inventories/local", "--baseline", "baseline", "--candidate", "candidate", "--suite", "adapter"]
    code, err = run(["plan", *names, "--limit", "nosuch", "--runs", str(tmp_path / "runs")], capsys)
    assert "--limit: unknown bench 'nosuch'; the only one is this_machine" in err
    assert code == 3
