# SPDX-License-Identifier: Apache-2.0
"""The documentation site: it builds without a dead link, fetches nothing, and each block is run or checked."""

import html
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from storqual.cli import storqual
from storqual.cli.playbook.playbook import playbook_names
from storqual.inputs import load_drop, load_gate, load_inventory, load_suite, load_trust, load_waivers
from storqual.inputs.product import load_product
from tests.support.site_blocks import (
    DOCS,
    NOT_RUN,
    REPOSITORY,
    Block,
    Command,
    Desk,
    blocks,
    commands,
    pages,
    run,
    shows,
    words_of,
)
from tests.support.site_example import Example

pytestmark = pytest.mark.slow

ALL = [block for page in pages() for block in blocks(page)]


def marked(where: str) -> list[str]:
    return sorted({block.page for block in ALL if block.where == where})


EXCUSED = {
    "how-to/driver-developer/virtual-bench.md": 2,
    "how-to/lead/characterise.md": 1,
    "how-to/technician/power.md": 1,
    "how-to/technician/restore.md": 1,
    # one installs packages on a server, the other has it panic; tests/plays/test_setup.py has both on stand-ins
    "tutorial/first-bench.md": 2,
    "tutorial/local-files.md": 2,
}
"""How many blocks of a page are not run: one more has to be defended here."""
CONSOLES = [block for block in ALL if block.language == "console"]
FILES = [block for block in ALL if block.title]


def build(folder: Path, source: Path = REPOSITORY) -> subprocess.CompletedProcess[str]:
    """The site into a folder, as `make docs` builds it."""
    words = [str(Path(sys.executable).parent / "mkdocs"), "build", "--strict", "--site-dir", str(folder)]
    return subprocess.run(
        words, cwd=source, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
def test_the_search_of_the_site_works_from_disk(site: Path) -> None:
    """A browser reads a script from disk and no JSON; the worker that searches begins by one as well."""
    index = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    name, _, listed = index.partition(" = ")
    assert name == "var __index"
    found = {entry["location"].partition("#")[0] for entry in json.loads(listed)["docs"]}
    articles = [page for page in sorted(site.rglob("*.html")) if page.name != "404.html"]
    assert {str(page.relative_to(site)) for page in articles} == found
    for page in articles:
        text = page.read_text(encoding="utf-8")
        assert 'data-md-component="search-query"' in text, page
        scripts = [(page.parent / path).resolve() for path in re.findall(r'<script[^>]* src="([^"]+)"', text)]
        assert all(path.is_file() for path in scripts), page
        assert [path.name.partition(".")[0] for path in scripts] == ["iframe-worker", "bundle"], page


@pytest.mark.plays
def test_a_page_that_names_files_of_the_source_says_what_they_are(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8").partition("<article")[2]
        if re.search(r"<code>(?:ci|library|roles|tests)/[^<]+</code>", text):
            told = html.unescape(text)
            assert "project's source" in told or "From a checkout" in told, page


@pytest.mark.plays
def test_a_dead_link_stops_the_build(tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "docs", tmp_path / "docs")
    for name in ("ci", "library", "suites", "inventories", "templates", "playbooks", "roles", "tests"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    for name in ("mkdocs.yml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"):
        shutil.copy(REPOSITORY / name, tmp_path)
    dead = ("nowhere.md", "#nothing-of-that-name")
    with (tmp_path / "docs" / "index.md").open("a", encoding="utf-8") as index:
        index.writelines(f"\n[there]({link})\n" for link in dead)
    done = build(tmp_path / "site", tmp_path)
    assert done.returncode != 0
    complaints = [line for line in done.stderr.splitlines() if "index.md" in line]
    assert all(any(link in line for line in complaints) for link in dead), done.stderr


def test_every_page_that_is_run_or_shown_has_blocks() -> None:
    assert "tutorial/local-files.md" in marked("run")
    assert all(marked(where) for where in ("run", "example", "files", "plan", "bench", "long", "live"))


def test_every_command_block_is_run_or_says_why_not() -> None:
    assert not [block.name for block in CONSOLES if not block.where]
    assert {block.reason for block in CONSOLES if block.where == "not run"} == set(NOT_RUN)
    assert not [block.name for block in ALL if bool(block.reason) != (block.where in ("not run", "live"))]


@pytest.mark.parametrize("block", [block for block in ALL if block.where == "live"], ids=lambda block: block.name)
def test_a_block_that_a_live_test_runs_names_one_of_the_same_suite_and_bench(block: Block) -> None:
    live = (REPOSITORY / "tests" / "virtual" / f"{block.reason}.py").read_text(encoding="utf-8")
    assert "pytest.mark.bench" in live
    for command in commands(block):
        (words,) = words_of(command)
        assert words[:2] == ["storqual", "qualify"], words
        for option in ("-i", "--suite"):
            named = words[words.index(option) + 1].rpartition("/")[2]
            assert re.search(rf"(?<![\w-]){re.escape(named)}(?![\w-])", live), named


def test_no_page_has_more_blocks_that_are_not_run_than_it_had() -> None:
    assert Counter(block.page for block in CONSOLES if block.where == "not run") == EXCUSED


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
        load_suite(path)
    elif path.name.endswith(".product.yml"):
        load_product(path)
    elif Path(block.title).parent.name == "drops":
        load_drop(path)
    else:
        LOADERS[path.name](path)


@pytest.mark.bench
@pytest.mark.parametrize("page", marked("run"))
def test_a_page_on_files_of_this_machine_does_what_it_says(page: str, tmp_path: Path) -> None:
    """In an empty folder, in order: files are written as shown, commands run, codes and lines compared.

    It measures, so no other test may run beside it. Where other programs run on this machine the campaign is tried
    three times; then what needs a pass is left out.
    """
    busy = False
    for block in blocks(DOCS / page):
        write(block, tmp_path)
        if block.where != "run" or (busy and "runs" in block.text):
            continue
        try:
            do(block, tmp_path)
        except BusyError:
            for _ in range(TRIES - 1):
                shutil.rmtree(tmp_path / "runs")
                with suppress(BusyError):
                    do(block, tmp_path)
                    break
            else:
                busy = True
    if busy:
        pytest.skip(f"this machine is busy: {BUSY}")
    told = (DOCS / "reference" / "run-files.md").read_text(encoding="utf-8").replace("ROLE", "release-manager")
    (made,) = (path for path in (tmp_path / "runs").iterdir() if (path / "run.json").is_file())
    listed = {f"{path.name}/" if path.is_dir() else path.name for path in made.iterdir()}
    assert not {name for name in listed if f"`{name}`" not in told}


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    return Example(tmp_path_factory.mktemp("example"))


@pytest.mark.plays
@pytest.mark.parametrize("page", sorted({*marked("example"), *marked("plan")}))
def test_a_page_on_the_example_lab_does_what_it_says(page: str, example: Example, tmp_path: Path) -> None:
    environment = example.prepare(tmp_path, (DOCS / page).read_text(encoding="utf-8"))
    for block in blocks(DOCS / page):
        # keys of nobody here, and what `storqual waive` writes
        if block.title not in ("keys.yml", "waivers.yml"):
            write(block, tmp_path)
        if block.where == "plan":
            do(block, tmp_path, example.planned, environment)
        if block.where == "example":
            # without the extra of the package the command says which one it needs
            missing = "--pdf" in block.text and find_spec("weasyprint") is None
            do(replace(block, code=3) if missing else block, tmp_path, example.here, environment)


def write(block: Block, folder: Path) -> None:
    """The file that a block shows, if it shows one."""
    if block.title:
        (folder / block.title).parent.mkdir(parents=True, exist_ok=True)
        (folder / block.title).write_text(block.text, encoding="utf-8")


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("page", marked("files"))
def test_a_page_about_a_server_does_what_it_says_on_files(page: str, tmp_path: Path) -> None:
    """Where other programs run on this machine a campaign ends undecided, rightly: all of it was run."""
    desk = Desk(tmp_path)
    for block in blocks(DOCS / page):
        if block.where != "files":
            continue
        if "storqual new lab" in block.text:
            desk.clear()
        if "ci/qualify-drops" in block.text:
            desk.commit()
        with suppress(BusyError):
            do(block, tmp_path, desk.here, desk.environment)
        desk.furnish()


@pytest.mark.bench
@pytest.mark.parametrize("page", marked("bench"))
def test_a_page_on_the_virtual_bench_does_what_it_says(page: str) -> None:
    for block in blocks(DOCS / page):
        if block.where == "bench":
            do(block, REPOSITORY)


@pytest.mark.long
@pytest.mark.parametrize("page", marked("long"))
def test_a_page_with_a_campaign_on_the_virtual_bench_does_what_it_says(page: str) -> None:
    for block in blocks(DOCS / page):
        if block.where == "long":
            do(block, REPOSITORY)


BUSY = "another load on the bench"
"""What a launch is suspect for when other programs run on this machine: then no campaign can pass, rightly."""
TRIES = 3


def was_busy(folder: Path, printed: str) -> bool:
    """Whether a campaign is undecided for that reason; a script may keep its summary to itself."""
    verdicts = (path.read_text(encoding="utf-8") for path in folder.glob("runs/*/verdict.json"))
    return BUSY in printed or any(BUSY in text for text in verdicts)


class BusyError(Exception):
    """A campaign that could not be judged because of what else runs on this machine."""


def do(
    block: Block,
    folder: Path,
    change: Callable[[Command], Command] = lambda command: command,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run the commands of a block; the last one ends with the code that the block names, those before it with 0.

    Raises AssertionError for another code or a line that is not printed, and BusyError.
    """
    listed = list(commands(block))
    for number, shown in enumerate(listed, start=1):
        command = change(shown)
        code, printed = run(command, folder, environment)
        if "qualify" in command.line and code == 2 and was_busy(folder, printed):
            raise BusyError
        expected = block.code if number == len(listed) else 0
        assert code == expected, f"{block.name}: {command.line}\n{printed}"
        missing = shows(printed, command.shown)
        assert not missing, f"{block.name}: {command.line}\nnot printed: {missing}\nbut:\n{printed}"


@pytest.mark.plays
def test_generated_tables_keep_placeholders_whole_sentences_and_the_meaning_of_each_key(site: Path) -> None:
    shown = {
        name: (site / "reference" / f"{name}.html").read_text(encoding="utf-8")
        for name in ("settings", "keys", "keywords", "commands", "playbooks", "supported")
    }
    assert "/sys/module/&lt;module&gt;/parameters" in shown["settings"]
    assert "boot code, {file, sha256, tool, ...}" in html.unescape(shown["settings"])
    assert "&lt;name&gt;.product.yml" in shown["keys"]
    cells = {name: re.findall(r"<td[^>]*>(.*?)</td>", page, re.DOTALL) for name, page in shown.items()}
    assert not {name: cell for name, found in cells.items() for cell in found if cell.rstrip().endswith((",", ";"))}
    rows = re.findall(r"<tr>(.*?)</tr>", shown["keys"], re.DOTALL)
    assert not [row for row in rows if re.search(r"<td></td>\s*$", row)]


@pytest.mark.plays
def test_the_reference_shows_how_a_key_is_written_and_its_default(site: Path) -> None:
    page = html.unescape((site / "reference" / "keys.html").read_text(encoding="utf-8"))
    rows = {
        tuple(re.sub("<.*?>", "", cell).strip() for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)[:3])
        for row in re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    }
    for row in (
        ("bs", "size, such as 4k or 1m", "4k"),
        ("cells", "whole number or `all`", ""),
        ("margin", "percentage, such as 3%", "3%"),
        ("runtime", "duration, such as 500ms or 2s or 5m", "30s"),
        ("drives", "whole number", "1"),
        ("claim", "true or false", "false"),
        ("owner", "text", "required"),
        ("public", "public key, such as ssh-ed25519 AAAA…", "required"),
    ):
        assert (row[0], row[1].replace("`", ""), row[2]) in rows


@pytest.mark.plays
def test_every_playbook_that_people_run_is_on_the_page_with_its_variables(site: Path) -> None:
    page = (site / "reference" / "playbooks.html").read_text(encoding="utf-8")
    assert not [name for name in playbook_names() if f'id="{name}"' not in page]
    assert not [
        name for name in ("drop", "only", "from", "run", "facts_file", "consent") if f"-e {name}=" not in page
    ]
