# SPDX-License-Identifier: Apache-2.0
"""`facts` writes a file when all benches have answered, and else leaves it as it was."""

import json
from pathlib import Path
from typing import Any

import pytest

from storqual.bench.ansible_run import Answers
from storqual.cli import main
from storqual_core.facts.bench_facts import read_facts
from storqual_core.kit.errors import StorqualError
from tests.support.bench_tree import STATE
from tests.support.fabric_tree import INITIATOR, TARGET, fc_bench
from tests.support.replay import Tools

FOUND = {"b1": {"drives": []}}


def ended(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(["facts", "--host", "b1", *options])
    printed = capsys.readouterr()
    assert isinstance(left.value.code, int)
    return left.value.code, printed.out, printed.err


def answer(monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any], silent: dict[str, str]) -> None:
    def ask(*_: Any, **__: Any) -> Answers:
        if not answers:
            raise StorqualError("no bench answered")
        return Answers(answers, silent)

    monkeypatch.setattr("storqual.bench.ansible_run.ask_every_bench", ask)


def test_the_answer_is_in_the_file_when_all_have_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(monkeypatch, FOUND, {})
    code, out, err = ended(capsys, "--json", "--output", str(tmp_path / "facts.json"))
    assert (code, out) == (0, ""), err
    assert json.loads((tmp_path / "facts.json").read_text(encoding="utf-8")) == FOUND
    assert [file.name for file in tmp_path.iterdir()] == ["facts.json"]


@pytest.mark.parametrize(("answers", "silent"), [({}, {"b1": "no route"}), (FOUND, {"b2": "no route"})])
def test_a_file_stays_as_it_is_when_a_bench_does_not_answer(
    answers: dict[str, Any],
    silent: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    hosts = tmp_path / "hosts.yml"
    hosts.write_text("what was there\n", encoding="utf-8")
    answer(monkeypatch, answers, silent)
    code, _, err = ended(capsys, "--json", "--output", str(hosts))
    assert (code, "answer" in err) == (2, True)
    assert hosts.read_text(encoding="utf-8") == "what was there\n"


def test_benches_are_not_asked_for_an_answer_that_has_no_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "storqual.bench.ansible_run.ask_every_bench", lambda *_, **__: pytest.fail("benches were asked")
    )
    code, _, err = ended(capsys, "--write-inventory", "--output", str(tmp_path / "gone" / "hosts.yml"))
    assert code == 3
    assert "there is no folder" in err
    code, _, err = ended(capsys, "--output", str(tmp_path / "facts.json"))
    assert code == 3
    assert "--write-inventory or of --json" in err


@pytest.mark.parametrize("before", ["", "# yaml-language-server: $schema=/srv/hosts.schema.json\nbenches: {}\n"])
def test_an_inventory_names_its_schema_for_editors_as_a_new_one_does(
    before: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And keeps the line that was there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("storqual.cli.facts._draft", lambda _: "benches: {hosts: {}}\n")
    hosts = Path("inventories", "room7", "hosts.yml")
    hosts.parent.mkdir(parents=True)
    if before:
        hosts.write_text(before, encoding="utf-8")
    answer(monkeypatch, FOUND, {})
    code, out, err = ended(capsys, "--write-inventory", "--output", str(hosts))
    assert (code, out) == (0, ""), err
    first, second = hosts.read_text(encoding="utf-8").splitlines()
    assert second == "benches: {hosts: {}}"
    if before:
        assert first == before.splitlines()[0]
        assert not Path("schemas").exists()
        return
    named = hosts.parent / first.removeprefix("# yaml-language-server: $schema=")
    assert json.loads(named.read_text(encoding="utf-8"))["title"] == "storqual hosts"
    assert "wrote schemas/hosts.schema.json" in err


def test_ports_and_paths_of_a_fabric_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = read_facts(fc_bench(tmp_path).machine, state_dir=STATE, runner=Tools({}))
    answer(monkeypatch, {"b1": facts}, {})
    code, out, err = ended(capsys)
    assert code == 0, err
    assert f"{INITIATOR} Online, 16 Gbit\n" in out
    assert f"{INITIATOR} to {TARGET}, LUN 0, active/optimized\n" in out
