# SPDX-License-Identifier: Apache-2.0
"""`setup.yml --check --diff` over several benches: a table, exit code 1 for drift, nothing asked to write."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from storqual.bench.drift import last_drift

pytestmark = pytest.mark.plays

REPOSITORY = Path(__file__).resolve().parents[2]

# answers by the drive that is asked about, because benches are asked in parallel; WANT_JSON as in `stub`
_STUB = Path(__file__).with_suffix(".stub").read_text(encoding="utf-8")
# a task that is skipped still needs its module
_MODULES = sorted(path.stem for path in (REPOSITORY / "library" / "modules").glob("*.py"))


def drive(number: int) -> str:
    """The WWN of the only drive of a bench."""
    return f"0x5000c5000000000{number}"


def bench(number: int, **more: Any) -> dict[str, Any]:
    claimed = {"wwn": drive(number), "serial": f"S{number}", "model": "DISK9", "size": 1048576, "claim": True}
    adapter = {"model": "HBA", "driver": "mpt3sas", "pci": "0000:3b:00.0", "drives": [claimed]}
    here = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    return {"storqual_kind": "hardware", "storqual_adapters": {"sas0": adapter}, **here, **more}


def look(folder: Path, drift: dict[str, list[str]], hosts: dict[str, Any], *words: str) -> tuple[int, str]:
    """Play setup.yml in check mode over `hosts`; exit code and output."""
    library = folder / "library"
    library.mkdir()
    for name in _MODULES:
        text = _STUB.format(name=name, folder=str(folder))
        (library / f"{name}.py").write_text(text, encoding="utf-8")
    (folder / "drift.json").write_text(json.dumps(drift), encoding="utf-8")
    (folder / "calls.jsonl").write_text("", encoding="utf-8")
    (folder / "hosts.yml").write_text(json.dumps({"benches": {"hosts": hosts}}), encoding="utf-8")
    (folder / "drop.yml").write_text(
        "name: t\ndescription: of a test\ndrive:\n  WCE: 0\n  queue_depth: 4\n", encoding="utf-8"
    )
    ended = subprocess.run(
        [
            *(Path(sys.executable).parent / "ansible-playbook", "--check", "--diff", "-i", folder / "hosts.yml"),
            *(REPOSITORY / "playbooks" / "setup.yml", "-e", f"drop={folder / 'drop.yml'}", *words),
        ],
        env={**os.environ, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"), "ANSIBLE_LIBRARY": str(library)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stdout + ended.stderr


def calls(folder: Path) -> list[list[Any]]:
    """What was asked: module, check mode, drives, subsystems."""
    return [json.loads(line) for line in (folder / "calls.jsonl").read_text(encoding="utf-8").splitlines()]


DRIFT = {drive(2): [f"{drive(2)} drive.WCE: 1, declared 0"]}


def test_drift_of_many_benches_is_one_table_and_exit_code_1(tmp_path: Path) -> None:
    code, output = look(tmp_path, DRIFT, {"bench1": bench(1), "bench2": bench(2)})
    assert code == 1, output
    assert "drift: 1 of 2 benches differ from what is declared\n" in output
    assert "bench1  as declared\n" in output
    assert f"bench2  1 difference\n          {drive(2)} drive.WCE: 1, declared 0\n" in output
    assert all(check for _, check, *_ in calls(tmp_path))
    # and is remembered for the table of all benches
    hosts = [str(tmp_path / "hosts.yml")]
    assert last_drift("bench1", hosts).startswith("as declared")
    assert last_drift("bench2", hosts).startswith("1 difference")
    assert last_drift("bench2", [str(tmp_path)]) == ""


def test_benches_as_declared_are_exit_code_0(tmp_path: Path) -> None:
    """With the table that says so."""
    code, output = look(tmp_path, {}, {"bench1": bench(1)}, "--tags", "modepages")
    assert code == 0, output
    assert "drift: 0 of 1 benches differ" in output


def test_benches_of_which_none_answers_have_a_row_each(tmp_path: Path) -> None:
    gone = {f"bench{n}": bench(n, ansible_connection="ssh", ansible_host="127.0.0.1", ansible_port=1) for n in (1, 2)}
    code, output = look(tmp_path, DRIFT, gone, "--tags", "modepages")
    assert code != 0, output
    assert "bench1  not read: unreachable" in output
    assert "bench2  not read: unreachable" in output


def test_limit_and_tags_choose_and_a_bench_out_of_reach_is_not_one_without_drift(tmp_path: Path) -> None:
    """Only what was asked for is looked at; what could not be has its row, and the code says so."""
    gone = bench(3, ansible_connection="ssh", ansible_host="127.0.0.1", ansible_port=1)
    hosts = {"bench1": bench(1), "bench2": bench(2), "bench3": gone}
    code, output = look(tmp_path, DRIFT, hosts, "--limit", "bench2,bench3", "--tags", "modepages")
    assert code == 2, output
    assert "drift: 1 of 2 benches differ from what is declared, 1 could not be read" in output
    assert "bench3  not read: unreachable" in output
    assert "bench1" not in output
    (asked,) = (asked for asked in calls(tmp_path) if asked[0] != "bench_restore")
    assert asked == ["bench_apply", True, [drive(2)], ["modepages"]]
