# SPDX-License-Identifier: Apache-2.0
"""The documentation site: it builds without a dead link, fetches nothing, and each block is run or checked."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from storqual.cli import storqual
from storqual.inputs import load_drop, load_gate, load_inventory, load_suite, load_trust, load_waivers
from storqual.inputs.product import load_product
from storqual.robustness.suite import is_robustness, load_robustness
from tests.support.site_blocks import DOCS, REPOSITORY, Block, Command, blocks, commands, pages, run, shows, words_of

ALL = [block for page in pages() for block in blocks(page)]
RUN = sorted({block.page for block in ALL if block.where == "run"})
ON_A_BENCH = sorted({block.page for block in ALL if block.where == "bench"})
CONSOLES = [block for block in ALL if block.language == "console"]
FILES = [block for block in ALL if block.title]

OTHERS = frozenset(
    {"apt-get", "cat", "cp", "eval", "export", "git", "ls", "pipx", "echo", "sed", "ssh", "ssh-keygen", "sudo"}
)
"""Programs that are not this project's: a page may show them with any option."""


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    """The site into a folder, as `make docs` builds it."""
    words = [str(Path(sys.executable).parent / "mkdocs"), "build", "--strict", "--site-dir", str(folder)]
    return subprocess.run(
        words, cwd=REPOSITORY, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    folder = tmp_path_factory.mktemp("site")
    done = build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.plays
def test_the_site_builds_and_has_every_command_setting_and_metric(site: Path) -> None:
    context = click.Context(storqual)
    shown = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    visible = [name for name in storqual.list_commands(context) if not storqual.get_command(context, name).hidden]  # type: ignore[union-attr]
    assert not [name for name in visible if f"storqual {name}" not in shown]
    assert "<code>WCE</code>" in (site / "reference" / "settings.html").read_text(encoding="utf-8")
    assert "<code>cpu_us_per_io</code>" in (site / "reference" / "metrics.html").read_text(encoding="utf-8")


@pytest.mark.plays
def test_the_site_fetches_nothing_from_elsewhere(site: Path) -> None:
    fetched = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*(?:src|href)=\"?((?:https?:)?//[^\s\">]+)")
    found = {
        str(page.relative_to(site)): list(fetched.findall(page.read_text(encoding="utf-8")))
        for page in site.rglob("*.html")
    }
    assert not {page: addresses for page, addresses in found.items() if addresses}


@pytest.mark.plays
@pytest.mark.parametrize("link", ["[there](nowhere.md)", "[there](index.md#nothing-of-that-name)"])
def test_a_dead_link_stops_the_build(link: str, tmp_path: Path) -> None:
    for name in ("docs", "ci", "library", "suites", "inventories", "templates"):
        if name in ("docs",):
            shutil.copytree(REPOSITORY / name, tmp_path / name)
        else:
            (tmp_path / name).symlink_to(REPOSITORY / name)
    for name in ("mkdocs.yml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(REPOSITORY / name, tmp_path)
    index = tmp_path / "docs" / "index.md"
    index.write_text(f"{index.read_text(encoding='utf-8')}\n{link}\n", encoding="utf-8")
    words = [str(Path(sys.executable).parent / "mkdocs"), "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(
        words, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode != 0
    assert "index.md" in done.stderr


def test_every_page_that_is_run_or_shown_has_blocks() -> None:
    assert "tutorial/local-files.md" in RUN
    assert ON_A_BENCH


@pytest.mark.parametrize("block", ALL, ids=lambda block: block.name)
def test_a_block_is_of_a_kind_that_something_checks(block: Block) -> None:
    assert block.language in ("console", "yaml", "python", "robotframework", "text")
    assert block.title or block.language in ("console", "text"), "it shows a file: give it the file's name as title"


LOADERS = {
    "hosts.yml": lambda path: load_inventory([path]),
    "gate.yml": load_gate,
    "waivers.yml": load_waivers,
    "keys.yml": load_trust,
}


@pytest.mark.parametrize("block", FILES, ids=lambda block: block.name)
def test_a_file_that_a_page_shows_is_read_without_a_complaint(block: Block, tmp_path: Path) -> None:
    path = tmp_path / Path(block.title).name
    path.write_text(block.text, encoding="utf-8")
    if path.suffix == ".py":
        compile(block.text, block.title, "exec")
    elif path.suffix == ".robot":
        assert run(Command(f"robot --dryrun --output NONE --log NONE --report NONE {path}", ()), tmp_path)[0] == 0
    elif path.name.endswith(".suite.yml"):
        (load_robustness if is_robustness(path) else load_suite)(path)
    elif path.name.endswith(".product.yml"):
        load_product(path)
    elif Path(block.title).parent.name == "drops":
        load_drop(path)
    else:
        LOADERS[path.name](path)


@pytest.mark.parametrize("block", CONSOLES, ids=lambda block: block.name)
def test_a_command_that_a_page_shows_is_one_that_there_is(block: Block) -> None:
    found = list(commands(block))
    assert found
    for one in found:
        for words in words_of(one):
            check(words)


def check(words: list[str]) -> None:
    """A program of ours with options that it has, playbooks and targets that are there. Raises AssertionError."""
    program, *rest = words
    program = program.removeprefix(".venv/bin/")
    if program == "storqual":
        context = click.Context(storqual, info_name="storqual")
        command = storqual.get_command(context, rest[0]) if rest and not rest[0].startswith("-") else storqual
        assert command is not None, words
        arguments = rest[1:] if command is not storqual else rest
        values, _, _ = command.make_parser(click.Context(command)).parse_args(list(arguments))
        missing = [
            option.name for option in command.params if option.required and values.get(option.name or "") is None
        ]
        assert not missing or "--help" in arguments, (words, missing)
    elif program == "ansible-playbook":
        (playbook,) = (word for word in rest if word.startswith("playbooks/"))
        assert (REPOSITORY / playbook).is_file(), words
    elif program == "make":
        known = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        assert {word for word in rest if "=" not in word} <= set(known), words
    elif program.startswith("ci/"):
        assert (REPOSITORY / program).is_file(), words
    elif program == "python":
        assert rest[:2] == ["-m", "pytest"], words
    else:
        assert program in OTHERS, words


@pytest.mark.plays
@pytest.mark.parametrize("page", RUN)
def test_a_page_on_files_of_this_machine_does_what_it_says(page: str, tmp_path: Path) -> None:
    """In an empty folder, in order: files are written as shown, commands run, codes and lines compared."""
    for block in blocks(DOCS / page):
        if block.title:
            (tmp_path / block.title).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
        if block.where == "run":
            do(block, tmp_path, patient="storqual qualify" in block.text)
    told = (DOCS / "reference" / "run-files.md").read_text(encoding="utf-8").replace("ROLE", "release-manager")
    (made,) = (tmp_path / "runs").iterdir()
    listed = {f"{path.name}/" if path.is_dir() else path.name for path in made.iterdir()}
    assert not {name for name in listed if f"`{name}`" not in told}


@pytest.mark.bench
@pytest.mark.parametrize("page", ON_A_BENCH)
def test_a_page_on_the_virtual_bench_does_what_it_says(page: str) -> None:
    for block in blocks(DOCS / page):
        if block.where == "bench":
            do(block, REPOSITORY)


BUSY = "another load on the bench"
"""What a launch is suspect for when other programs run on this machine: then no campaign can pass, rightly."""


def do(block: Block, folder: Path, *, patient: bool = False) -> None:
    """Run the commands of a block; the last one ends with the code that the block names, those before it with 0.

    A patient block is tried three times on a machine where other programs run, and the test is skipped after that.
    """
    listed = list(commands(block))
    for number, command in enumerate(listed, start=1):
        code, printed = run(command, folder)
        for _ in range(2):
            if patient and code == 2 and BUSY in printed:
                shutil.rmtree(folder / "runs")
                code, printed = run(command, folder)
        if patient and code == 2 and BUSY in printed:
            pytest.skip(f"this machine is busy: {BUSY}")
        expected = block.code if number == len(listed) else 0
        assert code == expected, f"{block.name}: {command.line}\n{printed}"
        missing = shows(printed, command.shown)
        assert not missing, f"{block.name}: {command.line}\nnot printed: {missing}\nbut:\n{printed}"


@pytest.mark.parametrize(
    ("printed", "shown", "missing"),
    [
        ("one\ntwo  three\n", ("one", "two three"), ""),
        ("one\ntwo\nthree\n", ("one", "...", "three"), ""),
        ("head\none\n", ("one",), ""),
        ("one\ntwo\nthree\n", ("one", "three"), "three"),
        ("a run of 12 s\n", ("a run of ... s",), ""),
        ("a run of 12 s, more\n", ("a run of ... s",), "a run of ... s"),
        ("valid  SHA256:x  today\n", ("valid ... today",), ""),
        ("", ("one",), "one"),
    ],
)
def test_a_line_that_is_not_printed_is_found(printed: str, shown: tuple[str, ...], missing: str) -> None:
    assert shows(printed, shown) == missing


@pytest.mark.parametrize(
    "line",
    [
        "storqual qualify -i lab --candidat x",
        "storqual qualfy",
        "storqual signoff runs/x --key me",
        "ansible-playbook -i lab playbooks/none.yml",
        "make coffee",
        "curl example.org",
    ],
)
def test_a_command_that_there_is_not_is_found(line: str) -> None:
    with pytest.raises((AssertionError, click.UsageError)):
        check(line.split())
