# SPDX-License-Identifier: Apache-2.0
"""Third-party programs without a bench: what is planned, followed, recorded, judged and shown."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from storqual.bench.follow import Connection, ConnectionLostError
from storqual.bench.ladder import Recovery
from storqual.campaign.pipeline import publish
from storqual.kinds.kind import COUNTED
from storqual.run import append_event, iter_events, read_run
from storqual.run.turns import turns_of
from storqual.turns import batch, live_turn
from storqual.turns import needed_packages as packages
from storqual.turns.needed_packages import install_package
from storqual.virtual_bench.package_cache import FetchedPackage
from storqual_core.kit.errors import BadInputError, StorqualError, ToolError
from tests.support.turn_records import REQUEST, Faked, gate_in, keep_turn, plan_campaign, run_session

pytestmark = pytest.mark.slow

SUITE = """\
name: outside
programs:
  scsi: {run: [a-test, "{sg}"], reads: tap, package: a-package, limit: 5s}
"""
GOOD = "ok 1 - reads\nnot ok 2 - <b>writes</b>\n1..2\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    suite = tmp_path / "outside.suite.yml"
    suite.write_text(SUITE, encoding="utf-8")
    return plan_campaign(replace(REQUEST, suite=str(suite), profile=None, gate=gate_in(tmp_path)), tmp_path / "runs")


def line(kind: str, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "at": 1, **fields}


def told(text: str, **ended: Any) -> list[dict[str, Any]]:
    """What a bench tells of a program that printed `text`."""
    how = {"status": 1, "hung": False, "stuck": False, "seconds": 1.0, "cut": 0, **ended}
    return [
        line("program", words=["a-test", "/dev/sg1"]),
        line("output", text=text[:20]),
        line("output", text=text[20:]),
        line("ended", **how),
    ]


END = line("end", outcome="done", message="", disks={}, boot_id="boot-1", ios=0)


class FakeLink(Faked):
    """A bench on which each program tells what it is given, in order."""

    def __init__(self, *streams: list[dict[str, Any]]) -> None:
        self.streams = list(streams)
        self.commands: list[str] = []
        self.files: list[dict[str, Any]] = []
        self.cuts = 0

    boot = "boot-1"

    def run(self, command: str, **_: Any) -> str:
        self.commands.append(command)
        return f"{self.boot}\n6.1.0-56\n" if "uname" in command else f"{self.boot}\n"

    def take(self, data: bytes) -> None:
        self.files.append(json.loads(data))

    def lines(self, _path: str, *, limit_s: float) -> Iterator[dict[str, Any] | None]:
        assert limit_s > 200
        yield from [None, *self.streams.pop(0)]

    def cut(self) -> None:
        self.cuts += 1


def session(
    path: Path, monkeypatch: pytest.MonkeyPatch, name: str, link: FakeLink, virtual: str = "v"
) -> tuple[bool, list[Any]]:
    """Run a session; whether it is done, and the resets."""
    resets: list[Any] = []

    def bring_back(*_: Any, boot: str, **words: Any) -> Recovery:
        link.cut()
        if link.boot != boot:
            return Recovery("", link.boot, 1.0)
        resets.append(words["reason"])
        return Recovery("power cycle", "boot-2", 40.0)

    monkeypatch.setattr(live_turn, "bring_back", bring_back)
    monkeypatch.setattr(batch, "settle", lambda *_, **__: None)
    monkeypatch.setattr(batch, "install_package", lambda *_, **__: "1.0")
    done, _ = run_session(path, name, link, virtual=virtual)
    return done, resets


def made(path: Path, monkeypatch: pytest.MonkeyPatch, *streams: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for number, planned in enumerate(read_run(path).plan.sessions):
        started = {"bench": "vbench", "session": planned.id, "arm": planned.arm, "boot_id": FakeLink.boot}
        append_event(path, "session_started", started)
        own = FakeLink(*streams[2 * number : 2 * number + 2])
        assert session(path, monkeypatch, planned.id, own) == (True, [])
    append_event(path, "restored", {"bench": "vbench"})
    return [dict(one) for one in turns_of(read_run(path)).records]


def test_a_program_is_run_with_its_words_and_the_claims_and_its_tests_are_recorded(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = FakeLink([*told(GOOD), END], [*told(GOOD), END])
    assert session(path, monkeypatch, "s01", link) == (True, [])
    (turn,), targets = link.files[0]["turns"], link.files[0]["targets"]
    request = turn["request"]
    assert (request["words"], request["limit_s"]) == (["a-test", "{sg}"], 5.0)
    assert set(turn["drives"]) < set(targets)
    assert link.files[0]["attempt"]["part"] == "all"
    first, second = turns_of(read_run(path)).records
    assert (first["adapter"], second["adapter"]) == ("fusion", "vscsi")
    assert [(name, outcome) for name, outcome, _ in first["tests"]] == [
        ("reads", "passed"),
        ("<b>writes</b>", "failed"),
    ]
    assert (first["outcome"], first["status"], first["problems"]) == ("ended", 1, [])
    kept = gzip.decompress((path / first["raw"][0]["path"]).read_bytes()).decode()
    assert [json.loads(text)["kind"] for text in kept.splitlines()][-2:] == ["end", "spent"]
    assert any(event.kind == "note" and "a-package 1.0" in event.text("text") for event in iter_events(path))
    # what has a record is not run again
    assert session(path, monkeypatch, "s01", FakeLink()) == (True, [])


def test_a_campaign_of_programs_passes_with_what_is_known_and_its_report_lists_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(path, monkeypatch, *([*told(GOOD), END] for _ in range(4)))
    published = publish(path)
    assert (published.verdict["outcome"], published.verdict["exit_code"]) == ("PASS", 0)
    page = published.report.read_text(encoding="utf-8")
    assert "Tests of programs by adapter" in page
    assert "Known: not passed in both arms: 1" in page
    assert "&lt;b&gt;writes&lt;/b&gt;" in page
    assert "<b>writes" not in page
    assert "Every trial passed" not in page
    criteria = published.verdict["criteria"]
    listed = {one["id"]: one["outcome"] for one in criteria if one["source"] == COUNTED}
    assert listed == {"external.scsi": "PASS", "external.scsi/reads": "PASS", "external.scsi/<b>writes</b>": "PASS"}


def test_a_regression_fails_the_run(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = GOOD.replace("ok 1", "not ok 1", 1)
    made(path, monkeypatch, [*told(GOOD), END], [*told(GOOD), END], [*told(bad), END], [*told(GOOD), END])
    published = publish(path)
    assert (published.verdict["outcome"], published.verdict["exit_code"]) == ("FAIL", 1)
    assert "Regressions: passed in the baseline, not in the candidate: 1" in published.report.read_text(
        encoding="utf-8"
    )


def test_a_program_that_contradicts_its_counts_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = GOOD.replace("1..2", "1..3")
    made(path, monkeypatch, [*told(GOOD), END], [*told(GOOD), END], [*told(bad), END], [*told(GOOD), END])
    assert publish(path).verdict["exit_code"] == 2


def test_a_program_that_could_not_be_run_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    void = [{**END, "outcome": "stopped", "message": "`a-test` is not there on this machine"}]
    records = made(path, monkeypatch, void, void, void, void)
    assert {one["outcome"] for one in records} == {"void"}
    published = publish(path)
    assert (published.verdict["outcome"], published.verdict["exit_code"]) == ("ERROR", 2)


STUCK = [
    *told("ok 1 - reads\n", hung=True, stuck=True, status=None),
    line("stuck", text="drive d: needs a reset"),
    END,
]


@pytest.mark.parametrize("stream", [STUCK, told("ok 1 - reads\n")[:3]], ids=["stuck", "silent"])
def test_a_bench_that_hangs_is_reset_its_drive_taken_back_and_the_campaign_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch, stream: list[dict[str, Any]]
) -> None:
    link = FakeLink(stream, [END])
    done, resets = session(path, monkeypatch, "s01", link)
    assert (done, len(resets), link.cuts) == (False, 1, 1)
    assert link.files[1]["attempt"]["part"] == "reclaim"
    (hung,) = turns_of(read_run(path)).records
    assert [(name, outcome) for name, outcome, _ in hung["tests"]] == [("reads", "passed"), ("(program)", "hung")]
    assert "ended by power cycle, and the drive was stamped again" in hung["recovered"]
    assert session(path, monkeypatch, "s01", FakeLink([*told(GOOD), END])) == (True, [])


class RestartingLink(FakeLink):
    """A bench that restarts under its first program."""

    def lines(self, path: str, *, limit_s: float) -> Iterator[dict[str, Any] | None]:
        if not self.cuts:
            self.cuts = 1
            yield from self.streams.pop(0)
            self.boot = "boot-2"
            for _ in range(100):
                yield None
            pytest.fail("the bench was not asked for its boot")
        yield from super().lines(path, limit_s=limit_s)


def test_a_bench_that_restarts_under_a_program_is_noticed_and_not_reset_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, resets = session(path, monkeypatch, "s01", RestartingLink(told("ok 1 - reads\n")[:3], [END]))
    assert (done, resets) == (False, [])
    (hung,) = turns_of(read_run(path)).records
    assert hung["outcome"] == "hung"
    assert "it had restarted by itself, and the drive was stamped again" in hung["recovered"]


def test_a_drive_that_cannot_be_taken_back_ends_the_campaign(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = [{**END, "outcome": "refused", "message": "it holds a file system"}]
    with pytest.raises(StorqualError, match="cannot be taken back after a reset: it holds a file system"):
        session(path, monkeypatch, "s01", FakeLink(STUCK, refused))
    assert turns_of(read_run(path)).records == ()


def test_a_record_that_was_changed_afterwards_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(path, monkeypatch, *([*told(GOOD), END] for _ in range(4)))
    file = next((path / "turns").glob("*.json"))
    file.write_text(file.read_text(encoding="utf-8").replace("failed", "passed"), encoding="utf-8")
    turns = turns_of(read_run(path))
    assert len(turns.records) == len(turns.planned) - 1
    assert turns.problems == [f"turns/{file.name}: is not the record that was made"]


def test_a_suite_of_programs_for_adapters_that_are_not_tested_is_refused(tmp_path: Path) -> None:
    suite = tmp_path / "outside.suite.yml"
    suite.write_text(SUITE.replace("limit: 5s", "adapters: sym"), encoding="utf-8")
    with pytest.raises(BadInputError, match="nothing of suite outside can be run on this bench"):
        plan_campaign(replace(REQUEST, suite=str(suite), profile=None), tmp_path / "runs")


class PackageLink(FakeLink):
    """A bench whose packages change when something is installed."""

    installed = ""
    fails = False

    def run(self, command: str, **_: Any) -> str:
        self.commands.append(command)
        if command.startswith("dpkg-query"):
            return self.installed
        if self.fails:
            raise ConnectionLostError("no space left")
        self.installed = "installed 1.19.0-3"
        return ""

    def put(self, data: bytes, path: str) -> None:
        self.files.append({path: len(data)})


def test_a_package_is_installed_once_and_from_the_control_node_where_the_bench_has_no_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a_1.deb").write_bytes(b"deb")
    fetched = FetchedPackage("a", "1.19.0-3", str(tmp_path / "a_1.deb"), "")
    monkeypatch.setattr(packages, "ensure_image", lambda: None)
    monkeypatch.setattr(packages, "fetch_packages", lambda _image, _package: [fetched])
    link = PackageLink()
    assert install_package(cast("Connection", link), "a", "/s", virtual=True) == "1.19.0-3"
    assert link.files == [{"/s/packages/a_1.deb": 3}]
    assert "dpkg --install /s/packages/a_1.deb" in link.commands[1]
    assert install_package(cast("Connection", link), "a", "/s", virtual=True) == ""
    metal = PackageLink()
    assert install_package(cast("Connection", metal), "a", "/s", virtual=False) == "1.19.0-3"
    assert "apt-get -q --yes --no-install-recommends install a" in metal.commands[1]


def test_a_hook_that_needs_udev_in_the_initial_file_system_is_put_aside_on_a_virtual_bench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a_1.deb").write_bytes(b"deb")
    fetched = [FetchedPackage(name, "1", str(tmp_path / "a_1.deb"), "") for name in ("sg3-utils-udev", "a")]
    monkeypatch.setattr(packages, "ensure_image", lambda: None)
    monkeypatch.setattr(packages, "fetch_packages", lambda _image, _package: fetched)
    link = PackageLink()
    install_package(cast("Connection", link), "a", "/s", virtual=True)
    aside, install = link.commands[1:3]
    assert "--divert /usr/share/initramfs-tools/unused/hooks/sg3-utils" in aside
    assert aside.endswith("--add /usr/share/initramfs-tools/hooks/sg3-utils")
    assert "dpkg --install" in install


def test_a_package_that_cannot_be_installed_is_an_error() -> None:
    link = PackageLink()
    link.fails = True
    with pytest.raises(ToolError, match="package a cannot be installed: no space left"):
        install_package(cast("Connection", link), "a", "/s", virtual=False)


def test_an_event_keeps_the_counters_of_the_disks_for_the_guard(path: Path) -> None:
    planned = turns_of(read_run(path)).planned[0]
    disk = {"claimed": True, "system": "", "write_sectors_before": 1, "write_sectors_after": 2}
    fields = {"bench": "vbench", "outcome": "ended", "boot_id": "b", "disks": {"sda": disk}}
    append_event(path, "session_started", {"bench": "vbench", "session": "s01", "boot_id": "b"})
    keep_turn(path, {**planned.head(), **fields})
    (event,) = [one for one in iter_events(path) if one.kind == "turn_finished"]
    assert event.fields["end"] == {"disks": {"sda": disk}}
