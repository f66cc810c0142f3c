# SPDX-License-Identifier: Apache-2.0
"""A lab of three different benches: every command that takes --limit or --adapters, with every value."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storqual.bench.ansible_run import Answers
from storqual.cli import main
from storqual.cli.playbook.playbook import playbook_names

pytestmark = pytest.mark.slow

HOME = {"sasbox": ["hba0", "hba1"], "raidbox": ["mraid"], "desk": ["files"]}
"""The adapters of each bench."""
LIMITS = {
    None: ["sasbox", "raidbox", "desk"],
    "sasbox": ["sasbox"],
    "raidbox": ["raidbox"],
    "desk": ["desk"],
    "sasbox,desk": ["sasbox", "desk"],
    "*box": ["sasbox", "raidbox"],
    "nosuch": [],
    "": [],
}
ADAPTERS = {
    None: None,
    "hba0": ["hba0"],
    "hba0,hba1": ["hba0", "hba1"],
    "mraid": ["mraid"],
    "files": ["files"],
    "hba1, mraid": ["hba1", "mraid"],
    "nosuch": [],
    "": [],
}
SUITE = Path(__file__).with_suffix(".suite").read_text(encoding="utf-8")
SETTINGS = """\
drive:
  - {on: {adapter: [hba0, hba1]}, WCE: 1}
  - {on: {adapter: mraid}, WCE: %d}
"""
VOLUME = """\
raid: {on: {adapter: mraid}, level: 0, strip: 64k}
"""


def drives(bench: str, alias: str, count: int) -> list[dict[str, Any]]:
    """Claimed drives; those of a bench of files are files."""
    if bench == "desk":
        return [
            {"file": f"/var/lib/storqual/targets/d{number}", "size": "64MiB", "claim": True}
            for number in range(count)
        ]
    number = sum((bench + alias).encode())
    return [
        {
            "wwn": f"0x5000c500{number:04x}{position:04x}",
            "serial": f"{alias}{position}".upper(),
            "vendor": "SEAGATE",
            "model": "ST336607LW",
            "size": "1GiB",
            "claim": True,
        }
        for position in range(count)
    ]


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    drivers = {"hba0": "mptsas", "hba1": "mptsas", "mraid": "megaraid_sas"}
    hosts: dict[str, Any] = {}
    for bench, aliases in HOME.items():
        adapters = {
            alias: {
                "model": alias,
                "drives": drives(bench, alias, 3),
                **({"driver": drivers[alias], "pci": f"0000:00:{number + 5:02x}.0"} if alias in drivers else {}),
                **({"tool": "storcli"} if alias == "mraid" else {}),
            }
            for number, alias in enumerate(aliases)
        }
        hosts[bench] = {
            "storqual_kind": "local" if bench == "desk" else "virtual",
            "storqual_state_dir": "/var/lib/storqual",
            "storqual_adapters": adapters,
        }
    (tmp_path / "drops").mkdir()
    (tmp_path / "drops" / "old.yml").write_text(SETTINGS % 1, encoding="utf-8")
    (tmp_path / "drops" / "new.yml").write_text(SETTINGS % 0, encoding="utf-8")
    (tmp_path / "drops" / "volumes.yml").write_text(SETTINGS % 0 + VOLUME, encoding="utf-8")
    (tmp_path / "small.suite.yml").write_text(SUITE, encoding="utf-8")
    inventory = tmp_path / "hosts.json"
    inventory.write_text(json.dumps({"benches": {"hosts": list(hosts)}, "_meta": {"hostvars": hosts}}), "utf-8")
    monkeypatch.chdir(tmp_path)
    return inventory


Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(lab: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run a command on the lab; its exit code and what it printed."""

    def run(command: str, *arguments: str | None) -> tuple[int, str, str]:
        words = [word for word in arguments if word is not None]
        with pytest.raises(SystemExit) as left:
            main([*command.split(), "-i", str(lab), *words])
        printed = capsys.readouterr()
        assert "claim: true" not in printed.out + printed.err, "every drive of this lab is claimed"
        assert isinstance(left.value.code, int)
        return left.value.code, printed.out, printed.err

    return run


def options(limit: str | None, adapters: str | None = None) -> list[str]:
    return [
        *(["--limit", limit] if limit is not None else []),
        *(["--adapters", adapters] if adapters is not None else []),
    ]


def busy(limit: str | None, adapters: str | None) -> dict[str, list[str]]:
    adapters_named = ADAPTERS[adapters]
    return {
        bench: [alias for alias in HOME[bench] if adapters_named is None or alias in adapters_named]
        for bench in LIMITS[limit]
        if adapters_named is None or set(adapters_named) & set(HOME[bench])
    }


def refused_by(limit: str | None, adapters: str | None, sentence: str) -> None:
    """What is asked is wrong: the message names what there is, in the whole lab."""
    if not LIMITS[limit]:
        assert "--limit: unknown bench" in sentence
        assert all(bench in sentence for bench in HOME)
    elif adapters == "nosuch":
        assert "--adapters: unknown adapter 'nosuch'" in sentence
        assert all(alias in sentence for aliases in HOME.values() for alias in aliases)
    elif adapters == "":
        assert "--adapters names no adapter" in sentence
    else:
        assert f"which --limit {limit} leaves out" in sentence
        homes = [bench for bench, aliases in HOME.items() if set(ADAPTERS[adapters] or ()) & set(aliases)]
        assert all(bench in sentence for bench in homes)


PLAN = ["--baseline", "old", "--candidate", "new", "--suite", "small.suite.yml"]


@pytest.mark.parametrize("limit", LIMITS)
def test_plan_uses_what_is_named_and_says_what_it_leaves_out(limit: str | None, call: Call) -> None:
    for adapters in ADAPTERS:
        words = [*PLAN, "--dry-run", *options(limit, adapters)]
        code, out, err = call("plan", *words, "--json")
        expected = busy(limit, adapters)
        if not expected:
            assert code == 3, (limit, adapters)
            refused_by(limit, adapters, err)
            continue
        assert code == 0, err
        answer = json.loads(out)
        assert {name: planned["adapters"] for name, planned in answer["benches"].items()} == expected
        absent = {f"bench {bench}" for bench in HOME.keys() - expected.keys()}
        absent |= {
            f"adapter {alias} of {bench}"
            for bench, mine in expected.items()
            for alias in set(HOME[bench]) - set(mine)
        }
        assert {sentence.partition(":")[0] for sentence in answer["left_out"]} == absent
        shown = call("plan", *words)[1]
        assert all(sentence in shown for sentence in answer["left_out"])


@pytest.mark.parametrize("limit", LIMITS)
def test_qualify_starts_with_what_is_right_and_with_nothing_else(
    limit: str | None, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[dict[str, Any]] = []
    monkeypatch.setattr("storqual.cli.qualify.run_playbook", lambda *_, **arguments: started.append(arguments) or 2)
    for adapters in ADAPTERS:
        started.clear()
        code, _, err = call("qualify", *PLAN, *options(limit, adapters))
        if not busy(limit, adapters):
            assert (code, started) == (3, [])
            refused_by(limit, adapters, err)
            continue
        assert code == 2
        (arguments,) = started
        assert arguments["options"] == (["--limit", limit] if limit else [])
        assert arguments["variables"].get("adapters") == adapters
        for bench in HOME.keys() - busy(limit, adapters).keys():
            assert f"left out: bench {bench}:" in err


VOLUMES = ["--baseline", "volumes", "--candidate", "volumes", "--suite", "small.suite.yml", "--dry-run"]
"""A drop that makes one volume of all drives of mraid, and a suite of single drives."""


@pytest.mark.parametrize(
    ("limit", "adapters", "code", "benches"),
    [
        (None, None, 3, None),
        ("raidbox", None, 3, None),
        (None, "mraid", 3, None),
        ("*box", None, 0, ["sasbox"]),
        (None, "hba0,mraid", 0, ["sasbox"]),
        ("sasbox,desk", None, 0, ["sasbox", "desk"]),
    ],
)
def test_a_bench_without_a_point_is_refused_or_left_out_where_benches_are_named(
    limit: str | None, adapters: str | None, code: int, benches: list[str] | None, call: Call
) -> None:
    ended, out, err = call("plan", *VOLUMES, *options(limit, adapters), "--json")
    assert ended == code, err
    why = "all 3 claimed drives are in volumes that the drops declare"
    if benches is None:
        if limit is None and adapters is None:
            assert "raidbox: nothing of suite small can be run on this bench" in err
            assert why in err
            assert "add --limit sasbox,desk" in err
        else:
            assert "the volumes of the drops leave too few single drives for seq_read" in err
        return
    answer = json.loads(out)
    assert list(answer["benches"]) == benches
    (left_out,) = (sentence for sentence in answer["left_out"] if sentence.startswith("bench raidbox:"))
    assert why in left_out or "--limit" in left_out


def test_why_points_are_skipped_is_told_as_text_and_as_json(call: Call) -> None:
    suite = Path("small.suite.yml")
    volume = "  of_volume: {rw: read, bs: 64k, target: volume}\ncriteria:"
    suite.write_text(SUITE.replace("criteria:", volume), encoding="utf-8")
    # a workload on volumes measures md arrays only
    drop = Path("drops", "volumes.yml")
    drop.write_text(drop.read_text(encoding="utf-8").replace("level: 0", "tool: mdadm, level: 0"), encoding="utf-8")
    code, out, err = call("plan", *VOLUMES, "--json")
    assert code == 0, err
    answer = json.loads(out)
    skipped = answer["skipped_points"]
    assert len(skipped) == answer["skipped"]
    assert {point["bench"] for point in skipped} == set(HOME)
    assert all(point["adapter"] in HOME[point["bench"]] and point["point"] and point["reason"] for point in skipped)
    shown = call("plan", *VOLUMES)[1]
    for point in skipped:
        line = next(line for line in shown.splitlines() if f"{point['adapter']} of {point['bench']}" in line)
        assert line.startswith("skipped")
        assert point["reason"] in shown


def test_a_suite_s_level_that_only_another_bench_can_serve_is_no_mistake(lab: Path, call: Call) -> None:
    described = json.loads(lab.read_text(encoding="utf-8"))
    described["_meta"]["hostvars"]["desk"]["storqual_adapters"]["files"]["drives"][1:] = []
    lab.write_text(json.dumps(described), encoding="utf-8")
    code, out, err = call("plan", *PLAN, "--dry-run", "--limit", "desk", "--json")
    assert code == 0, err
    assert [point["reason"] for point in json.loads(out)["skipped_points"]] == ["needs 2 drives, 1 is claimed"]


@pytest.mark.parametrize("limit", LIMITS)
def test_inventory_facts_sheets_and_robot_take_a_limit(
    limit: str | None, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[str | None] = []

    def every(*_: Any, limit: str | None, **__: Any) -> Answers:
        limits.append(limit)
        return Answers({name: {"drives": []} for name in LIMITS[limit]}, {})

    ran: list[str] = []
    monkeypatch.setattr("storqual.bench.ansible_run.ask_every_bench", every)
    monkeypatch.setattr("storqual.robot_library.run_suites", lambda target, *_, **__: ran.append(target.bench) or ())
    meant = LIMITS[limit]
    for command in ("inventory", "facts", "sheet", "robot bench_acceptance"):
        words = ["--facts", "facts.json"] if command == "sheet" else []
        Path("facts.json").write_text("{}", encoding="utf-8")
        code, out, err = call(command, *words, *options(limit), "--json")
        if not meant:
            assert code == 3, command
            refused_by(limit, None, err)
            continue
        answer = json.loads(out)
        answer = answer.get("sheets", answer.get("checks", answer))
        assert list(answer) == meant, command
    assert limits == ([limit] if meant else [])
    assert ran == meant


@pytest.mark.parametrize("bench", HOME)
def test_resolve_gives_a_bench_its_own_adapters(bench: str, call: Call) -> None:
    for adapters, names in ADAPTERS.items():
        code, out, err = call("resolve", "--bench", bench, "--drop", "new", *options(None, adapters), "--json")
        if adapters == "nosuch":
            assert code == 3
            refused_by(None, adapters, err)
            continue
        assert code == 0, err
        answer = json.loads(out)
        expected = [alias for alias in HOME[bench] if not names or alias in names]
        assert ("left_out" in answer) == (not expected)
        there = answer["bench"]["adapters"]
        claimed = {drive["wwn"] for alias in expected for drive in there[alias]["drives"] if "wwn" in drive}
        assert set(answer["declared"]["drive"]["settings"]) == claimed


def test_playbooks_take_a_limit_that_means_a_bench_and_what_they_need(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    monkeypatch.setattr("storqual.cli.playbook.playbook.run_playbook", lambda name, **_: started.append(name) or 0)
    needed = {"provision": "drop=new", "setup": "drop=new", "measure": "run=runs/x"}
    for name in playbook_names():
        if name == "publish":
            continue
        words = ["-e", needed[name]] if name in needed else []
        for limit, meant in LIMITS.items():
            started.clear()
            code, _, err = call(f"playbook {name}", *words, *options(limit))
            assert (code, started) == ((0, [f"{name}.yml"]) if meant else (3, [])), err
            if not meant:
                refused_by(limit, None, err)
        if words:
            code, _, err = call(f"playbook {name}")
            assert code == 3
            assert f"add -e {words[1].partition('=')[0]}=" in err
