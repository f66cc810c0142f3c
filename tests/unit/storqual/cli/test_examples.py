# SPDX-License-Identifier: Apache-2.0
"""The examples of every command's help, executed as they stand there."""

import io
import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from storqual.checks.own import allow_checks
from storqual.cli import main, storqual
from storqual.cli.man import commands_of
from storqual.inputs import lab
from storqual.judge.verdict import judge_run
from storqual.run import read_run, write_json
from storqual_core.facts.bench_facts import read_facts
from tests.support.bench_tree import STATE, BenchTree
from tests.support.make_run import make_run
from tests.support.signing import make_person, write_keys
from tests.support.synthetic_shape import POINTS, SUITE

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).resolve().parents[4]
RUN = "20261121T101500Z-adapter-4f2a"
EARLIER = "20261120T093000Z-adapter-77aa"
NAMED = re.compile(r"runs/(\d{8}T\d{6}Z-[a-z0-9-]+-[0-9a-f]{4})\b")

NEEDS_A_BENCH = ("bench back", "bench power", "facts", "packages", "playbook", "qualify", "robot", "sheet")
"""These are run up to where a bench, an archive or Robot Framework would be asked."""


def examples() -> list[tuple[str, str]]:
    """(command, line) of every help; a line that goes on after a backslash is one."""
    lines_found = []
    for name, command in commands_of(storqual).items():
        _, _, text = (command.help or "").partition("Example")
        lines_found += [(name, line.strip()) for line in text.splitlines() if "storqual " in line]
    return lines_found


EXAMPLES = examples()


@pytest.fixture(scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    suite = SUITE.replace("required: true}", "required: true, requirement: REQ-1}")
    run = make_run(folder, run=RUN, noise=0.003, points=POINTS[:1], suite=suite)
    judge_run(run)
    return run


@pytest.fixture(scope="module", autouse=True)
def _each_inventory_is_asked_once() -> Iterator[None]:
    """Ansible takes a second to list one, and those of the project stay as they are."""
    lists: dict[tuple[tuple[Path, ...], str | None], str] = {}
    ask = lab._ask_ansible

    def once(sources: Sequence[Path], limit: str | None) -> str:
        key = (tuple(source.resolve() for source in sources), limit)
        if key not in lists:
            lists[key] = ask(sources, limit)
        return lists[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lab, "_ask_ansible", once)
        yield


@pytest.fixture
def work(_made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as the examples think of it: inventories and suites, a run, keys, a stricter suite; one's own home."""
    for name in ("inventories", "suites"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    for run in (RUN, EARLIER):
        shutil.copytree(_made, tmp_path / "runs" / run)
    (tmp_path / ".ssh").mkdir()
    pat = make_person(tmp_path / ".ssh", "id_ed25519", "release-manager", expires="2099-12-31")
    write_keys(tmp_path, pat)
    tree = BenchTree(tmp_path / "tree").adapter().scsi("sda")
    write_json(tmp_path / "facts.json", {"bench01": read_facts(tree.machine, state_dir=STATE)})
    (tmp_path / "stricter.suite.yml").write_text(SUITE.replace("margin: 8%", "margin: 7%"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def asked(work: Path, monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Any]]:
    """What a bench or an archive would have been asked."""
    calls: list[Mapping[str, Any]] = []

    def play(name: str, **more: Any) -> int:
        calls.append({"name": name, **more})
        if more.get("output"):
            Path(more["output"]).write_text("", encoding="utf-8")
        events = (more.get("environment") or {}).get("STORQUAL_PROGRESS_FILE")
        if events:
            Path(events).write_text('{"kind": "task"}\n{"kind": "end"}\n', encoding="utf-8")
        if "answers_folder" in more["variables"]:
            facts = json.loads((work / "facts.json").read_text(encoding="utf-8"))
            write_json(Path(more["variables"]["answers_folder"]) / "bench01.json", facts["bench01"])
        return 2

    def interrupt() -> None:
        raise KeyboardInterrupt

    def fetch(*words: Any, **more: Any) -> list[Any]:
        calls.append({"name": words[1], **more})
        return []

    for module in (
        *("storqual.bench.ansible_run", "storqual.bench.drift", "storqual.cli.playbook.playbook"),
        "storqual.cli.qualify",
    ):
        monkeypatch.setattr(f"{module}.run_playbook", play)
    # no example has its recorder started; whoever follows a console ends that himself
    for act, answer in (("start", True), ("stop", True), ("_ask", {})):
        monkeypatch.setattr(f"storqual.console.console.Console.{act}", lambda *_, _answer=answer, **__: _answer)
    monkeypatch.setattr("storqual.cli.bench.wait_for_more", interrupt)
    monkeypatch.setattr("storqual.virtual_bench.image.ensure_image", lambda _: None)
    monkeypatch.setattr("storqual.virtual_bench.package_cache.fetch_packages", fetch)
    monkeypatch.setattr("storqual.robot_library.run_suites", fetch)
    monkeypatch.setattr("storqual.virtual_bench.power.switch_on", lambda *_: True)
    return calls


def test_the_main_job_is_given_every_choice_by_its_full_path(work: Path, asked: list[Mapping[str, Any]]) -> None:
    """The playbook runs elsewhere; a waiver that is no waiver is told before it starts."""
    (work / "gate.yml").write_text("name: mine\n", encoding="utf-8")
    (work / "waivers.yml").write_text("waivers: []\n", encoding="utf-8")
    words = ["qualify", "-i", "inventories/local", "--baseline", "baseline", "--candidate", "candidate"]
    words += ["--suite", "adapter", "--gate", "gate.yml", "--waivers", "waivers.yml", "--history", "runs", "--json"]
    with pytest.raises(SystemExit):
        main(words)
    (call,) = asked
    paths = {name: call["variables"][name] for name in ("gate", "waivers", "history")}
    assert paths == {
        name: str(work / file) for name, file in zip(paths, ("gate.yml", "waivers.yml", "runs"), strict=True)
    }
    assert call["quiet"]
    (work / "waivers.yml").write_text("- {owner: Pat}\n", encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert (ended.value.code, len(asked)) == (3, 1)


def copy_what_is_written_to(work: Path) -> None:
    """`storqual new` writes beside what is there: into copies, not into the project."""
    for folder in ("inventories", "suites"):
        (work / folder).unlink()
    shutil.copytree(REPOSITORY / "inventories" / "local", work / "inventories" / "local")
    core = "library/module_utils/storqual_core"
    for named in (
        f"{core}/tools/__init__.py",
        f"{core}/data/faults.json",
        f"{core}/turns/bench_faults.py",
        "library/storqual/metrics/__init__.py",
    ):
        (work / named).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / named, work / named)


@pytest.mark.parametrize(
    ("name", "line"), EXAMPLES, ids=[f"{name}-{number}" for number, (name, _) in enumerate(EXAMPLES)]
)
def test_an_example_does_what_it_says(
    name: str,
    line: str,
    work: Path,
    asked: list[Mapping[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = line.replace("<run-id>", RUN).partition(" > ")[0]
    before, pipe, after = line.rpartition("| ")
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    for run in NAMED.findall(line):
        shutil.copytree(work / "runs" / EARLIER, work / "runs" / run, dirs_exist_ok=True)
    assert before.startswith("ssh ") or not pipe
    words = shlex.split(after)
    assert words[0] == "storqual"
    if "--pdf" in words:
        pytest.importorskip("weasyprint", reason="the extra `pdf` is not installed")
    if name == "waive":
        shutil.rmtree(work / "runs" / RUN)
        judge_run(make_run(work / "runs", run=RUN, noise=0.003, effect=-0.2, points=POINTS[:1]))
    if "--resume" in words:
        allow_checks(read_run(work / "runs" / RUN), (), ["inventories/local"])
    if name == "new":
        copy_what_is_written_to(work)
    if "waivers.yml" in words:
        (work / "waivers.yml").write_text("waivers: []\n", encoding="utf-8")
    if name == "verify":
        with pytest.raises(SystemExit):
            main(["signoff", f"runs/{RUN}", "--key", ".ssh/id_ed25519", "--keys", "keys.yml"])
        capsys.readouterr()
    expanded = [word.replace("~", str(work)) if word.startswith("~") else word for word in words[1:]]
    if "*" in line:
        expanded = [
            path for word in expanded for path in (sorted(map(str, Path().glob(word))) if "*" in word else [word])
        ]
    with pytest.raises(SystemExit) as ended:
        main(expanded)
    out, err = capsys.readouterr()
    promised = {
        "audit": (0, 1),
        "bench console": (130,) if "follow" in words else (0,),
        # the benches of the example lab do not exist
        **dict.fromkeys(("bench back", "bench power", "bench release", "bench take"), (2,)),
        "judge": (0, 1),
        "playbook": (2,),
        # the run here has no check that could be corrected
        "publish": (3,) if "--checks" in words else (0, 1, 2),
        "robot": (0, 1, 2),
        "qualify": (2,),
        "verify": (2,),
    }.get(name, (0,))
    assert ended.value.code in promised, err
    assert bool(asked) == (name in NEEDS_A_BENCH and "--facts" not in words)
    assert "Traceback" not in out + err
    if "--json" in words:
        assert re.match(r"[\[{]", out)
