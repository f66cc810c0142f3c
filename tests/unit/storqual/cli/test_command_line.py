# SPDX-License-Identifier: Apache-2.0
"""The command line as people meet it: help, answers for programs, mistakes in one line, completion."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from storqual.bench.ansible_run import Answers
from storqual.cli import main, storqual
from storqual.cli.man import commands_of
from storqual_core.facts.bench_facts import read_facts
from tests.support.bench_tree import STATE, BenchTree
from tests.support.hostile_payloads import PAYLOADS, infect
from tests.support.judged_reports import QUICK, judged, points_of
from tests.support.signing import make_person, write_keys

pytestmark = pytest.mark.slow

EVERY = commands_of(storqual)
COMMANDS = sorted(EVERY)


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = judged(tmp_path_factory.mktemp("hostile"), points=QUICK[:1], noise=0.002)
    infect(run, PAYLOADS)
    return run


def command(name: str) -> click.Command:
    return EVERY[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_of_has_help_with_an_example_and_an_answer_for_programs(name: str) -> None:
    """A first sentence, an example, and `--json`."""
    help_of = command(name)
    text = help_of.help or ""
    assert re.match(r"[A-Z][^\n]*[.:]", text), name
    assert re.search(r"Examples?:\n\s+(ssh|storqual) ", text), name
    assert "--json" in {word for option in help_of.params for word in option.opts}, name


def test_commands_of_has_a_file_of_its_name() -> None:
    """Some files hold several: suites and keywords, both ends of a signature, who has a bench, events of a run."""
    pairs = {"keywords": "robot", "verify": "signoff", "waive": "judge", "note": "signoff", "events": "record"}
    pairs["resolve"] = "inventory"
    pairs.update({f"bench {name}": "bench_lease" for name in ("take", "release", "out", "back", "status")})
    modules = {name: (command(name).callback or print).__module__.rpartition(".")[2] for name in COMMANDS}
    assert modules == {name: pairs.get(name, name.partition(" ")[0]) for name in COMMANDS}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_is_for(name: str) -> None:
    for option in command(name).params:
        if isinstance(option, click.Option):
            assert option.help, f"{name} {option.opts}"


@pytest.mark.parametrize(
    ("arguments", "line"),
    json.loads(Path(__file__).with_name("wrong_command_lines.json").read_text(encoding="utf-8")),
)
def test_a_mistake_is_one_line_that_says_what_to_do(
    arguments: list[str],
    line: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Exit code 3, standard output for programs alone, no traceback, no escape sequence."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    out, err = capsys.readouterr()
    answer = {"errors": [each.removeprefix("storqual: ") for each in err.splitlines()], "exit_code": 3}
    assert (ended.value.code, out) == (3, json.dumps(answer, indent=1) + "\n" if "--json" in arguments else "")
    assert err.startswith(line)
    assert all(message.startswith("storqual") for message in err.splitlines())
    assert "\x1b" not in err


def test_the_list_of_commands_cuts_no_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    help_text = " ".join(out.partition("The way of a qualification:")[2].split())
    assert "..." not in help_text
    assert "Draft a waiver file for the required failures of a" in help_text
    assert max(map(len, out.splitlines())) <= 80


def completed(*words: str) -> list[str]:
    """What the shell offers for the last word."""
    complete = ShellComplete(storqual, {}, "storqual", "_STORQUAL_COMPLETE")
    return [item.value for item in complete.get_completions(list(words[:-1]), words[-1])]


def test_profiles_adapters_drops_and_suites_of_the_current_folder_are_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "mine.suite.yml").write_text("profiles:\n  quick: {}\n  long: {}\n", encoding="utf-8")
    hosts = "benches:\n  hosts:\n    b1: {storqual_adapters: {sas0: {}, sas1: {}}}\n"
    (tmp_path / "hosts.yml").write_text(hosts, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert completed("plan", "--suite", "mi") == ["mine"]
    for file in ("near.suite.yml", "far/near.suite.yml"):
        Path(file).parent.mkdir(exist_ok=True)
        Path(file).write_text("profiles: {third: {}}\n", encoding="utf-8")
    assert completed("plan", "--suite", "ne") == ["near.suite.yml"]
    assert completed("plan", "--suite", "./ne") == ["./near.suite.yml"]
    assert completed("plan", "--suite", "far/") == ["far/near.suite.yml"]
    assert completed("plan", "--suite", "near.suite.yml", "--profile", "") == ["third"]
    assert completed("plan", "--suite", "mine", "--profile", "") == ["quick", "long"]
    assert completed("qualify", "--suite", "mine", "--profile", "lo") == ["long"]
    assert completed("qualify", "-i", "hosts.yml", "--adapters", "") == ["sas0", "sas1"]
    assert completed("qualify", "-i", ".", "--adapters", "sas0,s") == ["sas0,sas1"]
    assert completed("plan", "--suite", "nosuch", "--profile", "q") == []
    (tmp_path / "drops").mkdir()
    for name in ("next", "field"):
        (tmp_path / "drops" / f"{name}.yml").write_text(f"name: {name}\n", encoding="utf-8")
    assert sorted(completed("plan", "-i", ".", "--candidate", "")) == ["field", "next"]
    assert completed("qualify", "-i", "hosts.yml", "--baseline", "f") == ["field"]


def test_commands_of_has_a_manual_page_with_each_of_its_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["man", str(tmp_path / "man1"), "--json"])
    files = json.loads(capsys.readouterr().out)["files"]
    assert left.value.code == 0
    shown = {name.replace(" ", "-"): command(name) for name in COMMANDS if not command(name).hidden}
    assert sorted(Path(file).name for file in files) == sorted(
        ["storqual.1", *(f"storqual-{name.replace(' ', '-')}.1" for name in shown)]
    )
    for name, described in shown.items():
        page = (tmp_path / "man1" / f"storqual-{name}.1").read_text(encoding="utf-8")
        for parameter in described.params:
            for spelling in parameter.opts if isinstance(parameter, click.Option) else ():
                assert spelling.replace("-", "\\-") in page
    if shutil.which("groff"):
        words = ["groff", "-man", "-ww", "-z", "-Tutf8", *files]
        ended = subprocess.run(words, capture_output=True, text=True, check=True)
        assert ended.stderr == ""


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [["events"], ["judge"], ["export", "--format", "criteria-csv"], ["record", "note"], ["compare"], ["history"]],
)
def test_hostile_texts_of_a_run_reach_a_terminal_as_text(
    arguments: list[str],
    terminal: bool,
    hostile_run: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    monkeypatch.setenv("NO_COLOR", "1")
    more = ["text=\x1b[31m{{ 7*7 }}\r"] if arguments[0] == "record" else []
    where = hostile_run.parent if arguments[0] == "history" else hostile_run
    with pytest.raises(SystemExit):
        main([arguments[0], str(where), *arguments[1:], *more])
    out, err = capsys.readouterr()
    text = re.sub("\x1b\\[[0-9;]*m", "", out) if terminal else out
    assert not re.search("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f]", text + err)
    assert "\x1b[31m" not in out


@pytest.mark.parametrize("name", ["history", "compare", "facts"])
def test_on_a_terminal_tables_have_heads_and_in_a_pipe_there_are_none(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same texts; heads are for people, aligned words for `grep` and `awk`."""
    run = judged(tmp_path / "runs", points=points_of(["rand_read"], drives=[1], depths=[1]), noise=0.002)
    arguments = {"history": [str(run.parent)], "compare": [str(run), "--arm", "both"], "facts": ["--host", "b1"]}
    tree = BenchTree(tmp_path / "tree").adapter().scsi("sda")
    facts = json.loads(json.dumps(read_facts(tree.machine, state_dir=STATE)))
    monkeypatch.setattr("storqual.cli.facts._read", lambda *_, **__: Answers({"b1": facts}, {}))
    heads = {"history": "Outcome", "compare": "Leads", "facts": "Driver"}
    texts = {}
    monkeypatch.setenv("COLUMNS", "200")
    for terminal in (False, True):
        monkeypatch.setattr(sys.stdout, "isatty", lambda terminal=terminal: terminal)
        with pytest.raises(SystemExit) as ended:
            main([name, *arguments[name]])
        assert ended.value.code == 0
        texts[terminal] = re.sub("\x1b\\[[0-9;]*m", "", capsys.readouterr().out)
    assert heads[name] in texts[True]
    assert heads[name] not in texts[False]
    shared = {"history": run.name, "compare": "compared: ", "facts": facts["adapters"][0]["pci"]}[name]
    assert all(shared in text for text in texts.values())


def test_a_passphrase_is_not_asked_for_where_nobody_can_answer(
    hostile_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pat = make_person(tmp_path, "Pat", "technician", passphrase="x")  # noqa: S106 - of a key made for this test
    keys = write_keys(tmp_path, pat)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    with pytest.raises(SystemExit) as ended:
        main(["signoff", str(hostile_run), "--key", str(pat.key), "--keys", str(keys)])
    assert ended.value.code == 3
    assert "there is no terminal to ask for it; add the key to an agent" in capsys.readouterr().err


def completions(line: str, folder: Path) -> list[str]:
    words = line.split(" ")
    environment = {**os.environ, "_STORQUAL_COMPLETE": "bash_complete", "COMP_WORDS": line}
    environment["COMP_CWORD"] = str(len(words) - 1)
    argv = [sys.executable, "-m", "storqual"]
    printed = subprocess.run(argv, env=environment, cwd=folder, capture_output=True, text=True, check=True).stdout
    return [answer.partition(",")[2] for answer in printed.splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("work")
    for drop in ("field", "new"):
        (path / "inventories" / "lab" / "drops").mkdir(parents=True, exist_ok=True)
        (path / "inventories" / "lab" / "drops" / f"{drop}.yml").write_text("")
    (path / "runs" / "20261121T101500Z-adapter-4f2a").mkdir(parents=True)
    (path / "runs" / "20261121T101500Z-adapter-4f2a" / "run.json").write_text("{}")
    return path


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("storqual ver", ["verify"]),
        ("storqual export --form", ["--format"]),
        ("storqual export --format gitl", ["gitlab"]),
        ("storqual plan -i inventories/lab --candidate n", ["new"]),
        ("storqual plan --suite adap", ["adapter"]),
        ("storqual verify ", ["runs/20261121T101500Z-adapter-4f2a"]),
    ],
)
def test_a_shell_completes_commands_options_and_names(line: str, offered: list[str], folder: Path) -> None:
    assert completions(line, folder) == offered


def readme_lines() -> Iterator[str]:
    text = (Path(__file__).resolve().parents[4] / "README.md").read_text(encoding="utf-8")
    yield from re.findall(r"^    (?:\.venv/bin/)?(storqual .*)$", text, re.MULTILINE)


@pytest.mark.parametrize("line", list(readme_lines()))
def test_the_readme_names_options_that_there_are(line: str) -> None:
    words = line.split()
    parsed = command(words[1])
    options = {word for option in parsed.params for word in option.opts}
    assert {word for word in words if word.startswith("-")} <= options, line


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_has_an_option_that_trusts_samples(name: str) -> None:
    options = {option for parameter in command(name).params for option in parameter.opts}
    assert not {option for option in options if "trust" in option or "evidence" in option}


def test_help_shows_the_way_of_a_qualification_first_and_commands_of_once(capsys: pytest.CaptureFixture[str]) -> None:
    pages = []
    for words in (["--help"], ["help"], ["help", "plan"], ["plan", "--help"], ["-V"], ["--version"]):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0
        pages.append(capsys.readouterr().out)
    assert (pages[0], pages[2], pages[4]) == (pages[1], pages[3], pages[5])
    shown = re.findall(r"^  ([a-z]+)  +\S", pages[0], re.MULTILINE)
    way = ["new", "plan", "qualify", "judge", "signoff", "verify"]
    assert [name for name in shown if name in way] == way
    visible = {name.partition(" ")[0] for name in COMMANDS if not command(name).hidden}
    assert sorted(shown) == sorted(visible)
