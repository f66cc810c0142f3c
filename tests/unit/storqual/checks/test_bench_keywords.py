# SPDX-License-Identifier: Apache-2.0
"""Acceptance of a bench in keywords: what is as it should be passes, one thing out of place fails and is named."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from robot.api import SkipExecution

from storqual.checks.seen import BenchSeen, NotJudgedError, expected_of
from storqual.robot_library import StorqualLibrary
from tests.support.make_run import make_run
from tests.support.robot_benches import fingerprint, odd
from tests.support.synthetic_shape import drive_id

pytestmark = pytest.mark.slow

SYM = drive_id("sym", 2)
MPT = drive_id("mpt", 2)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> StorqualLibrary:
    return StorqualLibrary(run=str(make_run(tmp_path_factory.mktemp("good"), environment=fingerprint())))


def about(environment: dict[str, Any], tmp_path: Path, **options: Any) -> StorqualLibrary:
    return StorqualLibrary(run=str(make_run(tmp_path, environment=environment, **options)), bench="vbench")


ACCEPTANCE: dict[str, Callable[[StorqualLibrary], None]] = {
    "drivers": StorqualLibrary.every_adapter_should_run_its_driver,
    "driver": lambda library: library.adapter_should_run_driver("mpt", "mptsas", version="3.04.20"),
    "adapter firmware": lambda library: library.adapter_firmware_should_be("mpt", "01.50.146.00"),
    "links": StorqualLibrary.every_adapter_link_that_is_shown_should_run_at_full_rate,
    "places": StorqualLibrary.every_expected_drive_should_be_in_place,
    "place": lambda library: library.drive_should_be_on_adapter_and_port(MPT, "mpt", 2),
    "running": StorqualLibrary.every_drive_should_be_running,
    "alike": lambda library: library.drives_of_one_model_should_agree_on("firmware"),
    "link rates": lambda library: library.drives_of_one_model_should_agree_on("link rate"),
    "firmware": lambda library: library.drive_firmware_should_be(MPT, "0007"),
    "cache": lambda library: library.drive_write_cache_should_be(MPT, "on"),
    "depth": lambda library: library.drive_queue_depth_should_be(SYM, 16),
}


@pytest.mark.parametrize("keyword", ACCEPTANCE.values(), ids=list(ACCEPTANCE))
def test_a_bench_as_it_should_be_passes(keyword: Callable[[StorqualLibrary], None], good: StorqualLibrary) -> None:
    keyword(good)


@pytest.mark.parametrize(
    ("keyword", "environment", "message"),
    [
        ("drivers", odd("mpt", driver="mpt3sas", module={"name": "mpt3sas"}), "adapter mpt runs mpt3sas"),
        ("driver", odd("mpt", module={"name": "mptsas", "version": "3.04.19"}), "version of mptsas is 3.04.19"),
        ("adapter firmware", odd("mpt", firmware="01.49.00.00"), "runs firmware 01.49.00.00, not 01.50.146.00"),
        (
            "links",
            odd("sym", link={"speed": "8.0 GT/s PCIe", "width": 4, "speed_max": "8.0 GT/s PCIe", "width_max": 8}),
            "adapter sym: its link runs at 8.0 GT/s PCIe x4, it could run at 8.0 GT/s PCIe x8",
        ),
        ("places", odd("sym", 2), f"sym: drive {SYM} does not answer"),
        ("places", odd("sym", 2, adapter="0000:00:06.0"), "is on the adapter at 0000:00:06.0, not at 0000:00:05.0"),
        ("place", odd("mpt", 2, link={"port": 3}), "is on port 3, not on port 2"),
        ("running", odd("mpt", 2, state="offline"), f"drive {MPT} is offline"),
        (
            "alike",
            odd("mpt", 2, revision="0006"),
            f"mpt: drive {MPT} has firmware 0006, other ST336607LW drives have",
        ),
        ("link rates", odd("mpt", 2, link={"rate": "1.5 Gbit"}), "has link rate 1.5 Gbit"),
        ("firmware", odd("mpt", 2, revision=""), "runs firmware unknown, not 0007"),
        ("cache", odd("mpt", 2, cache="write through"), "its write cache is off (write through), not on"),
        ("depth", odd("sym", 2, queue_depth="4"), "has a queue depth of 4, not 16"),
    ],
)
def test_one_thing_out_of_place_fails_and_is_named(
    keyword: str, environment: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError) as failed:
        ACCEPTANCE[keyword](about(environment, tmp_path))
    assert message in str(failed.value)


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    environment = odd("sym", 1)
    del environment["adapters"]["sym"]["drives"][SYM]
    with pytest.raises(AssertionError) as failed:
        about(environment, tmp_path).every_expected_drive_should_be_in_place()
    assert len(str(failed.value).splitlines()) == 2


@pytest.mark.parametrize("keyword", ACCEPTANCE.values(), ids=list(ACCEPTANCE))
def test_what_is_not_on_record_is_not_judged_and_never_passes(
    keyword: Callable[[StorqualLibrary], None], tmp_path: Path
) -> None:
    with pytest.raises(NotJudgedError, match="was not read in this run"):
        keyword(about({}, tmp_path))


def test_a_run_that_was_killed_before_the_first_look_is_judged_by_the_last(tmp_path: Path) -> None:
    library = about(odd("mpt", 2, adapter="0000:00:05.0"), tmp_path)
    run = library.subject.run  # type: ignore[union-attr]
    run.__dict__["events"] = tuple(event for event in run.events if event.text("when") != "before")
    with pytest.raises(AssertionError, match="is on the adapter at 0000:00:05"):
        library.every_expected_drive_should_be_in_place()


def test_adapters_whose_link_is_not_shown_are_named_by_the_check_of_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[str] = []
    monkeypatch.setattr("storqual.checks.bench_keywords.looked_at", messages.append)
    ACCEPTANCE["links"](about(odd("mpt", link={}), tmp_path))
    (text,) = messages
    assert text.startswith("sym at ")
    assert text.endswith("; no link is shown by mpt")


@pytest.mark.parametrize("keyword", ["running", "alike", "link rates", "firmware", "cache", "depth"])
def test_what_is_true_of_no_drive_says_nothing(keyword: str, tmp_path: Path) -> None:
    bare = odd("sym", drives={})
    bare["adapters"]["mpt"]["drives"] = {}
    with pytest.raises(NotJudgedError, match="no drive was seen"):
        ACCEPTANCE[keyword](about(bare, tmp_path))


def test_a_bench_that_shows_nothing_of_something_is_not_judged(tmp_path: Path) -> None:
    plain = odd("sym", link={}, firmware="")
    plain["adapters"]["mpt"].update(link={})
    library = about(plain, tmp_path / "plain")
    with pytest.raises(NotJudgedError, match="shows no firmware"):
        library.adapter_firmware_should_be("sym", "1.0")
    with pytest.raises(SkipExecution):
        library.every_adapter_link_that_is_shown_should_run_at_full_rate()
    for drive in (drive for adapter in plain["adapters"].values() for drive in adapter["drives"].values()):
        drive["link"] = {}
    with pytest.raises(SkipExecution, match="shows its link rate"):
        about(plain, tmp_path / "silent").drives_of_one_model_should_agree_on("link rate")
    with pytest.raises(NotJudgedError, match="tells no ports apart"):
        library.drive_should_be_on_adapter_and_port(SYM, "sym", 1)


def throttle(declared: int, read_back: int, *, proven: bool | None) -> dict[str, list[dict[str, Any]]]:
    setting = {"name": "drive.queue_depth", "drive": SYM, "declared": declared, "read_back": read_back}
    entry = {**setting, "before": 30, "changed": True, "proven": proven, "proof": "9 in flight at most"}
    return {"baseline": [entry], "candidate": [entry]}


def test_a_throttle_counts_only_when_it_was_seen_in_effect(tmp_path: Path) -> None:
    proven = about({}, tmp_path / "a", settings=throttle(4, 4, proven=True))
    proven.execution_throttle_should_be_in_effect("sym", 4)
    with pytest.raises(NotJudgedError, match="nothing shows a throttle of 8"):
        proven.execution_throttle_should_be_in_effect("sym", 8)
    with pytest.raises(NotJudgedError, match="not shown to be in effect"):
        about({}, tmp_path / "b", settings=throttle(4, 4, proven=None)).execution_throttle_should_be_in_effect(
            "sym", 4
        )
    with pytest.raises(AssertionError, match="9 in flight at most"):
        about({}, tmp_path / "c", settings=throttle(4, 4, proven=False)).execution_throttle_should_be_in_effect(
            "sym", 4
        )
    with pytest.raises(AssertionError, match="is 16, not 4"):
        about({}, tmp_path / "d", settings=throttle(4, 16, proven=None)).execution_throttle_should_be_in_effect(
            "sym", 4
        )


class Answering(StorqualLibrary):
    """The library about a bench that answers now, with answers made here."""

    def __init__(self, environment: dict[str, Any], strangers: Sequence[str], findings: list[str]) -> None:
        super().__init__(inventory="lab", bench="vbench")
        library, self.asked = self, 0

        class Bench:
            bench = "vbench"
            expected = expected_of({"sym": {"pci": "0000:00:05.0", "drives": [{"wwn": drive_id("sym", 0)}]}})

            @property
            def seen(self) -> BenchSeen:
                library.asked += 1
                return BenchSeen.of(environment, strangers)

            def findings(self) -> list[str]:
                return findings

            def throttled(self, drives: Sequence[str], depth: int) -> Iterator[dict[str, Any]]:
                return iter([{"name": "drive.queue_depth", "drive": drives[0], "read_back": depth, "proven": True}])

        self.__dict__["subject"] = Bench()


def test_a_drive_that_no_inventory_knows_fails_on_the_bench_only(good: StorqualLibrary) -> None:
    with pytest.raises(AssertionError, match="drive sdx"):
        Answering(fingerprint(), ["sdx (ACME DISK, 0x1)"], []).no_unknown_drive_should_be_attached()
    Answering(fingerprint(), [], []).no_unknown_drive_should_be_attached()
    with pytest.raises(NotJudgedError):
        good.no_unknown_drive_should_be_attached()


def test_a_finding_in_a_block_is_not_judged(good: StorqualLibrary, tmp_path: Path) -> None:
    good.kernel_log_should_be_clean()
    finding = {"kind": "adapter_reset", "lines": ["sym0: SCSI BUS reset detected"], "count": 1}
    with pytest.raises(NotJudgedError, match="SCSI BUS reset"):
        about({}, tmp_path, findings=[finding]).kernel_log_should_be_clean()


@pytest.mark.parametrize("words", [{}, {"run": "a", "inventory": "b"}, {"inventory": "lab"}])
def test_a_suite_must_say_what_it_is_about(words: dict[str, str]) -> None:
    with pytest.raises(Exception, match=r"StorqualLibrary: (found run=.* and inventory=|name the bench)"):
        _ = StorqualLibrary(**words).subject
