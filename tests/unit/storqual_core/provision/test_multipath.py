# SPDX-License-Identifier: Apache-2.0
"""multipathd's treatment of maps: refused before a file is written, written, shown by the maps, and taken back."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from storqual_core.guard.claims import Claim
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import ToolError
from storqual_core.kit.machine import Machine
from storqual_core.kit.results import PartialError
from storqual_core.provision import multipath
from storqual_core.provision.boot import System
from storqual_core.provision.engine import Call
from storqual_core.provision.multipath import FILE, NOT_SET, provision_multipath
from storqual_core.provision.options import OptionsBench
from storqual_core.provision.restore import Tools, restore

WWID = "35000c5001f2d0000"
CLAIM = Claim("0x5000c5001f2d0000", "0x5000c5001f2d0000", "PTH0000001", "SEAGATE", "ST3146356SS", 1 << 30)
KNOWN = ("service-time", "queue-length")
ALL: dict[str, Any] = {
    "path_selector": "queue-length",
    "path_checker": "directio",
    "no_path_retry": 12,
    "fast_io_fail_tmo": 7,
    "dev_loss_tmo": 60,
}


@dataclass
class Daemon:
    """A multipathd with one map, as 0.9.4 behaves: it takes a map apart that the kernel does not load."""

    root: Path
    runs: bool = True
    maps: dict[str, dict[str, str]] = field(default_factory=lambda: {WWID: {"queueing": "-"}})
    main: dict[str, str] = field(default_factory=dict)
    overrides: dict[str, str] = field(default_factory=dict)
    deaf: bool = False
    commands: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        release = self.root / "proc/sys/kernel/osrelease"
        release.parent.mkdir(parents=True)
        release.write_text("6.1.0-1\n")
        self._read()
        self.commands.clear()

    @property
    def file(self) -> Path:
        return self.root / FILE.lstrip("/")

    def _read(self) -> None:
        if self.deaf:
            return
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        words = [line.split(None, 1) for line in lines if line.startswith("\t")]
        self.overrides = {**self.main, **{name: value.strip('"') for name, value in words}}
        selector = self.overrides.get("path_selector", "service-time 0")
        for told in self.maps.values():
            told["selector"], told["checker"] = selector, self.overrides.get("path_checker", "tur")
            told["loaded"] = str(selector.partition(" ")[0] in KNOWN)
            retries = self.overrides.get("no_path_retry", "")
            words_of = {"fail": "off", "queue": "on", "": told["queueing"]}
            # what is not told any more stays
            told["queueing"] = words_of.get(retries, f"{retries} chk")

    def __call__(self, argv: Sequence[str], **_options: Any) -> Completed:
        line = shlex.join(argv)
        self.commands.append(line)
        if line.startswith("modinfo"):
            known = argv[-1][len("dm-") :] in KNOWN
            said = f"filename: /lib/modules/x/{argv[-1]}.ko\n" if known else ""
            return Completed(tuple(argv), 0 if known else 1, said, "" if known else "modinfo: ERROR: not found", 0.0)
        if not self.runs:
            return Completed(tuple(argv), 1, "", "error receiving packet", 0.0)
        answers = {
            "multipathd show config": self._config,
            "multipathd show maps json": self._topology,
            "multipathd reconfigure": lambda: self._read() or "ok\n",
        }
        return Completed(tuple(argv), 0, answers[line](), "", 0.0)

    def _config(self) -> str:
        lines = "".join(f'\t{name} "{value}"\n' for name, value in self.overrides.items())
        return f"defaults {{\n\tverbosity 2\n}}\noverrides {{\n{lines}}}\n"

    def _topology(self) -> str:
        def one(wwid: str, told: dict[str, str]) -> dict[str, Any]:
            paths = [
                {"dev": name, "dev_t": "8:0", "dm_st": "active", "chk_st": "ready", "checker": told["checker"]}
                for name in ("sdb", "sdc")
            ]
            groups = [{"selector": told["selector"], "dm_st": "active", "group": 1, "paths": paths}]
            named = {"name": wwid, "uuid": wwid, "sysfs": "dm-0", "queueing": told["queueing"], "paths": 2}
            return {**named, "path_groups": groups}

        return json.dumps({"maps": [one(*each) for each in self.maps.items() if each[1]["loaded"] == "True"]})


@pytest.fixture
def daemon(tmp_path: Path) -> Daemon:
    return Daemon(tmp_path / "root")


def bench_of(daemon: Daemon) -> OptionsBench:
    return OptionsBench(daemon, Machine(str(daemon.root)))


def provision(daemon: Daemon, declared: dict[str, Any], **more: Any) -> dict[str, Any]:
    call = Call(str(daemon.root / "state"), "r1", more.pop("check", False))
    claims, as_found = more.pop("claims", [CLAIM]), more.pop("as_found", [])
    return provision_multipath(declared, as_found, claims, call, bench_of(daemon))


def put_back(daemon: Daemon, *, check: bool = False) -> dict[str, Any]:
    tools = Tools(daemon, System(daemon), machine=Machine(str(daemon.root)))
    return restore(str(daemon.root / "state"), tools, check=check)


@pytest.mark.parametrize(
    ("declared", "more", "said"),
    [
        (ALL, {"claims": []}, f"map {WWID} is of no claimed drive"),
        (ALL, {"claims": [Claim("S1", "", "", "", "", 1)]}, f"map {WWID} is of no claimed drive"),
        ({"path_selector": "io-affinity"}, {}, "kernel 6.1.0-1 has no path selector io-affinity"),
        ({"fast_io_fail_tmo": 60, "dev_loss_tmo": 60}, {}, "must be below dev_loss_tmo, which is 60"),
    ],
)
def test_what_cannot_or_must_not_be_is_refused_before_a_file_is_written(
    daemon: Daemon, declared: dict[str, Any], more: dict[str, Any], said: str
) -> None:
    for check in (True, False):
        with pytest.raises(ToolError, match=said):
            provision(daemon, declared, check=check, **more)
    assert not daemon.file.exists()
    assert "multipathd reconfigure" not in daemon.commands


def test_a_timer_is_compared_with_the_other_one_that_the_bench_has(daemon: Daemon) -> None:
    daemon.main["dev_loss_tmo"] = "30"
    daemon._read()
    with pytest.raises(ToolError, match="fast_io_fail_tmo 30 must be below dev_loss_tmo, which is 30"):
        provision(daemon, {"fast_io_fail_tmo": 30})


def test_a_bench_without_the_daemon_is_refused_with_the_remedy(daemon: Daemon) -> None:
    daemon.runs = False
    with pytest.raises(ToolError, match="systemctl start multipathd"):
        provision(daemon, ALL)
    assert not daemon.file.exists()


def test_check_mode_tells_the_drift_and_touches_nothing(daemon: Daemon) -> None:
    found = provision(daemon, ALL, check=True)
    assert found["changed"]
    assert len(found["drift"]) == len(ALL)
    assert "bench multipath.no_path_retry: not set, declared 12" in found["drift"]
    assert "multipath.path_selector: queue-length" in found["diff"]["after"]
    assert not (daemon.root / "state").exists()
    assert not daemon.file.exists()


def test_settings_are_read_back_and_shown_by_the_maps(daemon: Daemon) -> None:
    found = provision(daemon, ALL)
    shown = {entry["name"]: (entry["read_back"], entry["proven"]) for entry in found["settings"]}
    assert shown == {
        "multipath.path_selector": ("queue-length", True),
        "multipath.path_checker": ("directio", True),
        "multipath.no_path_retry": (12, True),
        # no path of the map leads through a remote port
        "multipath.fast_io_fail_tmo": (7, None),
        "multipath.dev_loss_tmo": (60, None),
    }
    assert daemon.commands.count("multipathd reconfigure") == 1
    again = provision(daemon, ALL)
    assert not again["changed"]
    assert daemon.commands.count("multipathd reconfigure") == 1


def test_a_map_with_other_words_than_declared_is_told(daemon: Daemon) -> None:
    provision(daemon, {"no_path_retry": "queue"})
    daemon.maps[WWID]["queueing"] = "off"
    (entry,) = provision(daemon, {"no_path_retry": "queue"})["settings"]
    assert entry["proven"] is False
    daemon.maps.clear()
    (entry,) = provision(daemon, {"no_path_retry": "queue"})["settings"]
    assert entry["proven"] is None


def test_timers_are_shown_by_the_remote_ports_of_the_paths(daemon: Daemon) -> None:
    for number, name in enumerate(("sdb", "sdc")):
        link = daemon.root / "sys/block" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"../devices/host{number}/rport-{number}:0-1/target{number}:0:0/block/{name}")
        port = daemon.root / f"sys/class/fc_remote_ports/rport-{number}:0-1"
        port.mkdir(parents=True)
        (port / "dev_loss_tmo").write_text("60\n")
    (entry,) = provision(daemon, {"dev_loss_tmo": 60})["settings"]
    assert entry["proven"] is True
    (port / "dev_loss_tmo").write_text("45\n")
    (entry,) = provision(daemon, {"dev_loss_tmo": 60})["settings"]
    assert (entry["proven"], "45, 60" in entry["proof"]) == (False, True)


def test_the_other_arm_gets_what_was_found_and_no_map_waits_that_did_not(daemon: Daemon) -> None:
    provision(daemon, {"no_path_retry": "queue", "path_selector": "queue-length"})
    assert daemon.maps[WWID]["queueing"] == "on"
    provision(daemon, {"path_checker": "directio"}, as_found=["no_path_retry", "path_selector"])
    assert daemon.overrides == {"path_checker": "directio"}
    assert daemon.maps[WWID]["queueing"] == "off"
    # what nobody changed is left alone
    assert not provision(daemon, {}, as_found=["dev_loss_tmo"])["changed"]


def test_restore_takes_the_file_away_and_lets_go_of_the_maps(daemon: Daemon) -> None:
    provision(daemon, ALL)
    assert put_back(daemon, check=True)["steps"]
    assert daemon.file.exists()
    found = put_back(daemon)
    assert found["restored"]
    assert not daemon.file.exists()
    assert (daemon.overrides, daemon.maps[WWID]["queueing"]) == ({}, "off")
    assert {entry["name"]: entry["before"] for entry in found["settings"]} == {
        f"multipath.{name}": value for name, value in ALL.items()
    }


def test_restore_gives_what_the_bench_overrides_by_itself(daemon: Daemon) -> None:
    daemon.main["no_path_retry"] = "fail"
    daemon._read()
    provision(daemon, {"no_path_retry": 12})
    assert put_back(daemon)["restored"]
    assert (daemon.file.exists(), daemon.overrides) == (False, {"no_path_retry": "fail"})


@pytest.mark.parametrize("fault", ["map taken apart", "words not taken"])
def test_a_configuration_that_does_harm_is_put_back(
    daemon: Daemon, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multipath, "_LIMIT_S", 0.0)
    provision(daemon, {"no_path_retry": 5})
    before = daemon.file.read_text()
    if fault == "map taken apart":
        # the module is there, and the kernel does not load it
        selector = daemon.root / "sys/module/dm_io_affinity"
        selector.mkdir(parents=True)
    daemon.deaf = fault == "words not taken"
    with pytest.raises(PartialError, match="was put back as it was"):
        provision(daemon, {"path_selector": "io-affinity" if not daemon.deaf else "queue-length"})
    assert daemon.file.read_text() == before
    assert daemon.maps[WWID]["loaded"] == "True"


def test_what_our_file_says_already_stays_in_it(daemon: Daemon) -> None:
    provision(daemon, {"path_checker": "directio"})
    provision(daemon, {"no_path_retry": "fail"})
    assert daemon.overrides == {"path_checker": "directio", "no_path_retry": "fail"}
    assert NOT_SET not in daemon.file.read_text()
