# SPDX-License-Identifier: Apache-2.0
"""`last_words`: the panic since a mark, and which source had it: console, netconsole, pstore, kdump."""

import importlib.util
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure

from storqual.base.console_log import NET, LineStamper, utc_stamp
from storqual.console.console import Console
from storqual.console.recording import Recording
from storqual.virtual_bench.places import BenchPlaces
from tests.support.played_console import PANIC

PLUGIN = Path(__file__).resolve().parents[4] / "library" / "plugins" / "action" / "last_words.py"


class Bench:
    """A bench whose files lie in a folder, and which may be out of reach."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.reached = root, True
        monkeypatch.setenv("XDG_STATE_HOME", str(root / "state"))
        spec = importlib.util.spec_from_file_location("last_words", PLUGIN)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        folders = {name: files.replace(" /", f" {root}/") for name, files in module._FILES.items()}
        monkeypatch.setattr(module, "_FILES", {name: f"{root}{files}" for name, files in folders.items()})
        self.module = module

    def put(self, name: str, text: str) -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def words(self, **arguments: Any) -> dict[str, Any]:
        made = object.__new__(self.module.ActionModule)
        made._task = SimpleNamespace(args=arguments, async_val=False, check_mode=False)
        made._connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None))
        made._validate_no_extra_args = lambda *_: None
        made._low_level_execute_command = self._run
        plain: dict[str, Any] = made._find(arguments, "bench07")
        return plain

    def _run(self, command: str, **_: Any) -> dict[str, str]:
        if not self.reached:
            raise AnsibleConnectionFailure("no answer")
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
        return {"stdout": done.stdout}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def test_a_panic_that_only_pstore_kept_is_found_in_the_order_of_its_parts(bench: Bench, tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    log.write_text("silent\n")
    bench.put("sys/fs/pstore/dmesg-erst-1", "Panic#1 Part1\n[1.0] Kernel panic - not syncing: of another year\n")
    before = bench.words(virtual_state=str(tmp_path))
    first, second = PANIC[: PANIC.index("Call Trace")], PANIC[PANIC.index("Call Trace") :]
    bench.put("sys/fs/pstore/dmesg-erst-3", f"Panic#2 Part1\n{second}")
    bench.put("sys/fs/pstore/dmesg-erst-2", f"Panic#2 Part2\n{first}\n")
    after = bench.words(virtual_state=str(tmp_path), since=before["mark"])
    assert after["sources"] == {"console": False, "pstore": True, "kdump": False}
    assert after["panic"].startswith("[   71.100000] BUG:")
    assert "Fatal exception" in after["panic"]
    assert "another year" not in after["panic"]


def test_the_console_is_taken_first_and_all_sources_are_told(bench: Bench, tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    log.write_text("before\n")
    before = bench.words(virtual_state=str(tmp_path))
    log.write_text(f"before\n{PANIC}")
    bench.put("var/crash/202611212010/dmesg.202611212010", "[1.0] Kernel panic - not syncing: kdump\n")
    after = bench.words(virtual_state=str(tmp_path), since=before["mark"])
    assert after["sources"] == {"console": True, "pstore": False, "kdump": True}
    assert "Fatal exception" in after["panic"]


def test_a_bench_that_is_out_of_reach_has_its_console_only(bench: Bench, tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    before = bench.words(virtual_state=str(tmp_path))
    log.write_text(PANIC)
    bench.reached = False
    after = bench.words(virtual_state=str(tmp_path), since=before["mark"])
    assert after["sources"] == {"console": True}


def test_a_bench_without_a_console_has_what_it_kept_itself(bench: Bench) -> None:
    before = bench.words()
    assert (before["mark"]["recording"], before["panic"], before["sources"]) == (0, "", {})
    bench.put("var/lib/systemd/pstore/7001/dmesg.txt", PANIC)
    after = bench.words(since=before["mark"])
    assert after["sources"] == {"pstore": True, "kdump": False}


def test_netconsole_is_the_source_behind_a_console_that_said_nothing(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, order = BenchPlaces.of(tmp_path).recording, {"way": {"virtual": True}}
    recorded, state = Recording(recording), SimpleNamespace(bench=SimpleNamespace(netconsole=True))
    recording.mkdir()
    monkeypatch.setattr(Console, "running", lambda _self: order)
    monkeypatch.setattr(bench.module, "power_state", lambda _places: state)
    recorded.append(LineStamper(NET).take(PANIC.encode(), utc_stamp(0)))
    before = bench.words(virtual_state=str(tmp_path))
    nothing = {"console": False, "netconsole": False, "pstore": False, "kdump": False}
    assert bench.words(virtual_state=str(tmp_path), since=before["mark"])["sources"] == nothing
    recorded.append(LineStamper(NET).take(PANIC.encode(), utc_stamp(1)))
    after = bench.words(virtual_state=str(tmp_path), since=before["mark"])
    assert after["sources"] == {**nothing, "netconsole": True}
    assert "Fatal exception" in after["panic"]
    state.bench.netconsole = False
    assert "netconsole" not in bench.words(virtual_state=str(tmp_path), since=before["mark"])["sources"]
    order["way"] = {"netconsole": True}
    monkeypatch.setattr(Console, "recording", recorded)
    assert bench.words(since={**before["mark"], "lying": None})["sources"] == {"netconsole": True}
