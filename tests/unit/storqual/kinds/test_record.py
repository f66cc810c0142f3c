# SPDX-License-Identifier: Apache-2.0
"""A trial passes only with its fault proven, all read back and nothing against it; each rule alone turns it."""

import copy
import re
from dataclasses import fields
from fractions import Fraction
from math import comb
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.kinds.images import CheckedImages, Missing
from storqual.kinds.record import DRIVE_KEPT_POWER, DRIVE_LOST_POWER, Observed, Verdict, judge, values_of
from storqual.kinds.trial_checks import ALPHA, compare, failures_sentence
from storqual.statistics.counts import least_share, more_often, most_share
from storqual_core.data import read_table
from storqual_core.data.faults import FAULTS, WAYS, Fault, Way
from storqual_core.turns.integrity_load import OTHER_DATA

S = 1_000_000_000
EXPECT: dict[str, Any] = {"recovery": 60.0, "stall": 60.0, "errors": None}
LOGGED = ("inserted", "logged", "removed")
DRIVE = {
    "name": "sda",
    "hctl": "2:0:0:0",
    "wwn": "0x5",
    "serial": "S1",
    "size": 1 << 30,
    "state": "running",
    "in_flight": 0,
    "settings": {"queue_depth": "64"},
}
STATE = {"drives": {"0x5": DRIVE}, "driver": "mptsas", "link": "", "slab_bytes": 1000, "residual": {}}


def lines() -> list[dict[str, Any]]:
    """A device reset that the kernel tells of, and a load that nothing happened to."""
    return [
        {"kind": "begin", "at": 0, "node": "/dev/sda", "touched": ["0x5"], "wall": 0},
        {"kind": "state", "at": 1, "when": "before", "state": STATE},
        {"kind": "loading", "at": 1 * S},
        {"kind": "io", "at": 2 * S, "ios": [["w", 1, 10, 2, 1 * S, 1 * S + 5, 0]]},
        {"kind": "fault", "at": 3 * S, "phase": "begin", "text": "sg_reset_device"},
        {"kind": "seen", "at": 3 * S + 1, "seen": "command", "text": "ended with status 0"},
        {"kind": "kernel", "at": 3 * S + 2, "lines": ["[   12.1] sd 2:0:0:0: Power-on or device reset occurred"]},
        {"kind": "fault", "at": 3 * S + 3, "phase": "end", "text": "sg_reset_device"},
        {"kind": "io", "at": 5 * S, "ios": [["w", 2, 10, 2, 3 * S, 5 * S, 0], ["f", 0, 0, 0, 5 * S, 5 * S + 1, 0]]},
        {"kind": "state", "at": 6 * S, "when": "after", "state": STATE},
        {"kind": "found", "at": 7 * S, "turn": 1, "runs": [[10, 2, "good", 2]], "whole": True},
        {"kind": "found", "at": 8 * S, "turn": 2, "runs": [[10, 2, "good", 2]], "whole": True},
        {"kind": "end", "at": 9 * S, "outcome": "done", "message": "", "ios": 3},
    ]


def test_a_list_that_lacks_what_the_bench_told_proves_nothing() -> None:
    short = lines()
    del short[3]
    assert verdict(short).outcome == "void"
    assert "the list of I/Os is not whole: 1 of them" in verdict(short).reasons[0]
    # a bench that went down said no end; what its next boot tells is counted from its own begin
    down = [
        *lines()[:-1],
        {"kind": "begin", "at": 10 * S},
        {"kind": "end", "at": 11 * S, "outcome": "done", "message": "", "ios": 0},
    ]
    assert seen(down).untold == 0


def test_a_stream_without_an_end_proves_nothing() -> None:
    assert verdict(lines()[:-1]) == Verdict("void", ("the bench never told that the trial is over",), ())
    assert verdict([*lines()[:-1], {"kind": "hung", "at": 9 * S, "text": "it hangs"}]).outcome == "failed"


def test_a_load_without_a_fault_that_hangs_has_failed() -> None:
    """Nothing but the load was there to make it hang, so that there is no fault to prove."""
    hung = [*without("seen")[:-1], {"kind": "hung", "at": 9 * S, "text": "an I/O had not ended"}]
    assert verdict(hung).outcome == "void"
    assert verdict(hung, "integrity").outcome == "failed"
    assert verdict(hung, "integrity").reasons[0] == "hung: an I/O had not ended"
    assert verdict(without("seen"), "integrity").outcome == "void"


@pytest.mark.parametrize("fault", ["write_error", "read_error", "flush_error"])
@pytest.mark.parametrize(("driver", "failed"), [("virtio_scsi", True), ("nvme", False)])
def test_an_error_that_the_drive_gave_and_no_io_ended_with_was_hidden(fault: str, driver: str, failed: bool) -> None:
    proofs = [{"kind": "seen", "at": 4 * S, "seen": name, "text": ""} for name in FAULTS[fault].ways[0].seen]
    state = {**STATE, "driver": driver}
    stream_lines = [
        {**line, "state": state} if line["kind"] == "state" else line for line in [*without("seen"), *proofs]
    ]
    assert verdict(stream_lines, fault).outcome == ("failed" if failed else "passed")
    ios = [["r", 0, 10, 2, 4 * S, 4 * S + 5, 121]]
    ended = {"kind": "end", "at": 9 * S, "outcome": "done", "message": "", "ios": 4}
    stream_lines = [line for line in stream_lines if line["kind"] != "end"] + [
        {"kind": "io", "at": 5 * S, "ios": ios},
        ended,
    ]
    assert verdict(stream_lines, fault).outcome == "passed"


@pytest.mark.parametrize(("fault", "kind"), [("write_error", "w"), ("read_error", "r"), ("flush_error", "f")])
@pytest.mark.parametrize("beside", ["d", "r"])
def test_an_io_that_was_answered_as_good_while_the_drive_failed_all_of_its_kind_was_hidden(
    fault: str, kind: str, beside: str
) -> None:
    """FUA writes may still tell of an error that flushes hide; a read says nothing about writes."""
    proofs = [{"kind": "seen", "at": 4 * S, "seen": name, "text": ""} for name in FAULTS[fault].ways[0].seen]
    failing = beside if beside in FAULTS[fault].ways[0].fails_load else kind

    def is_hidden(begin: int, end: int, answer: int) -> bool:
        ios = [
            [failing, 91, 10, 2, 4 * S, 4 * S + 10, 121],
            [kind, 92, 10, 2, begin, end, answer],
            [failing, 93, 10, 2, 4 * S + 500, 4 * S + 600, 121],
        ]
        ended = {"kind": "end", "at": 9 * S, "outcome": "done", "message": "", "ios": 6}
        told = [*without("seen"), *proofs]
        fault_end = next(at for at, line in enumerate(told) if line.get("phase") == "end")
        told.insert(fault_end, {"kind": "io", "at": 4 * S + 700, "ios": ios})
        reasons = verdict([line for line in told if line["kind"] != "end"] + [ended], fault).reasons
        return any(reason.startswith("hidden error: ") for reason in reasons)

    assert is_hidden(4 * S + 100, 4 * S + 200, 0)
    # one that began before the first failure, or ended after the last, may have been served
    assert not is_hidden(4 * S + 5, 4 * S + 200, 0)
    assert not is_hidden(4 * S + 100, 4 * S + 550, 0)
    assert not is_hidden(4 * S + 100, 4 * S + 200, 121)


def test_a_bench_that_goes_down_has_failed_whatever_is_proven() -> None:
    stream_lines = [
        *lines()[:5],
        {"kind": "down", "at": 4 * S, "text": "panic: Kernel panic - not syncing: no abort"},
    ]
    assert verdict(stream_lines).outcome == "failed"
    assert verdict(stream_lines).reasons[0].startswith("panic: ")


def seen(stream_lines: list[dict[str, Any]]) -> Observed:
    observed = Observed()
    for line in stream_lines:
        observed.take(line)
    return observed


def verdict(stream_lines: list[dict[str, Any]], fault: str = "device_reset", **expect: Any) -> Verdict:
    return judge(seen(stream_lines), FAULTS[fault], FAULTS[fault].ways[0], {**EXPECT, **expect})


def without(kind: str, **match: Any) -> list[dict[str, Any]]:
    return [
        line
        for line in lines()
        if line["kind"] != kind or any(line.get(name) != value for name, value in match.items())
    ]


def changed(kind: str, fields: dict[str, Any], **match: Any) -> list[dict[str, Any]]:
    return [
        {**line, **fields}
        if line["kind"] == kind and all(line.get(name) == value for name, value in match.items())
        else line
        for line in lines()
    ]


def after(**fields: Any) -> list[dict[str, Any]]:
    state = copy.deepcopy(STATE)
    state["drives"]["0x5"].update(fields)
    return changed("state", {"state": state}, when="after")


def test_a_trial_with_its_fault_proven_and_nothing_against_it_passes() -> None:
    assert verdict(lines()) == Verdict("passed", (), ())


@pytest.mark.parametrize(
    ("stream_lines", "reason"),
    [
        (without("kernel"), "not proven: no a kernel line"),
        (without("seen"), "not proven: no command"),
        (changed("kernel", {"lines": ["[ 12.1] sd 2:0:0:0: Attached"]}), "not proven: no a kernel line"),
        (changed("kernel", {"at": 2 * S}), "not proven: no a kernel line"),
        (changed("kernel", {"at": 9 * S}), "not proven: no a kernel line"),
        (without("fault", phase="begin"), "never begun"),
        (without("loading"), "never began"),
        (changed("end", {"outcome": "refused", "message": "not claimed"}), "ended refused: not claimed"),
        ([*lines()[:2], {"kind": "cannot", "at": 3, "reason": "no such file"}], "no such file"),
    ],
)
def test_a_fault_that_is_not_proven_makes_the_trial_void(stream_lines: list[dict[str, Any]], reason: str) -> None:
    shown = verdict(stream_lines)
    assert shown.outcome == "void"
    assert reason in shown.reasons[0]


def test_a_setting_that_did_not_take_is_void_with_the_value_that_was_found() -> None:
    stream_lines = [
        {"kind": "seen", "at": 3 * S + 1, "seen": "other_value", "text": "device/queue_depth was 64, 2 is found"},
        {"kind": "seen", "at": 3 * S + 2, "seen": "put_back", "text": "device/queue_depth is 64 again"},
    ]
    shown = verdict([*without("seen"), *stream_lines], "depth_change")
    assert shown.outcome == "void"
    assert shown.reasons == ("the fault is not proven: no read_back (device/queue_depth was 64, 2 is found)",)


@pytest.mark.parametrize(
    ("stream_lines", "reason"),
    [
        ([*lines(), {"kind": "hung", "at": 9 * S, "text": "an I/O did not end"}], "hung: an I/O"),
        ([*lines(), {"kind": "lost", "at": 9 * S, "text": "not usable"}], "not recovered: not usable"),
        (without("found", turn=1), "could not be read back"),
        (
            changed("found", {"runs": [[10, 2, "unreadable", 0]]}),
            "not recovered: no sector of the drive could be read back",
        ),
        ([*lines(), {"kind": "down", "at": 9 * S, "text": "panic: Kernel panic - not syncing: x"}], "panic: Kernel"),
        (changed("found", {"runs": [[10, 1, "good", 2]]}, turn=1), "1 written sectors were never read back"),
        (after(in_flight=1), "1 commands are still under way"),
        (after(state="offline"), "state was running, is offline"),
        (after(wwn="0x6"), "wwn was 0x5, is 0x6"),
        (after(size=1), "size was"),
        (after(settings={"queue_depth": "1"}), "queue_depth was 64, is 1"),
        (changed("state", {"state": {**STATE, "drives": {}}}, when="after"), "drive missing: 0x5 is gone"),
        (changed("state", {"state": {**STATE, "driver": ""}}, when="after"), "driver was mptsas, is none"),
        (without("state", when="after"), "state afterwards was never told"),
        ([*lines(), {"kind": "io", "at": 9 * S, "ios": [["w", 3, 10, 1, 4 * S, 5 * S, 5]]}], "1 I/Os failed"),
        ([*lines(), {"kind": "kernel", "at": 9 * S, "lines": ["[ 1.0] BUG: unable"]}], "fault in itself"),
        ([*lines(), {"kind": "fault", "at": 9 * S, "phase": "failed", "text": "no"}], "did not end well: no"),
    ],
)
def test_each_of_these_alone_fails_a_trial_whose_fault_is_proven(
    stream_lines: list[dict[str, Any]], reason: str
) -> None:
    shown = verdict(stream_lines)
    assert shown.outcome == "failed"
    assert reason in " ".join(shown.reasons)


def test_a_drive_of_which_some_sectors_cannot_be_read_has_lost_data() -> None:
    shown = verdict(changed("found", {"runs": [[10, 1, "unreadable", 0], [11, 1, "good", 2]]}))
    assert shown.outcome == "failed"
    assert shown.reasons[0].startswith("unreadable: 1 sectors at 10 of write 2")


def test_a_bench_that_went_down_fails_a_trial_whose_fault_could_not_be_proven_any_more() -> None:
    shown = verdict([*without("kernel"), {"kind": "down", "at": 9 * S, "text": "panic: x"}])
    assert (shown.outcome, shown.reasons[0]) == ("failed", "panic: x")


def test_a_drive_that_was_taken_away_and_does_not_come_back_is_missing() -> None:
    gone = {"kind": "seen", "at": 4 * S, "seen": "drive_gone", "text": ""}
    failure = {"kind": "fault", "at": 5 * S, "phase": "failed", "text": "drive 0x5 did not come back after a scan"}
    shown = verdict([*lines(), gone, failure], "drive_removal")
    assert (shown.outcome, shown.reasons[0]) == ("failed", f"drive missing: {failure['text']}")
    assert verdict([*lines(), failure], "drive_removal").outcome == "void"


def test_limits_of_stall_and_recovery_are_kept() -> None:
    assert verdict(lines(), stall=1.9).reasons == ("slow recovery: an I/O took 2.0 s, 1.9 s are allowed",)
    assert verdict(lines(), recovery=1.9).reasons == ("slow recovery: it took 2.0 s, 1.9 s are allowed",)


def test_lost_data_fails_a_trial_even_when_its_fault_is_not_proven() -> None:
    stream_lines = [
        {**line, "runs": [[10, 2, "good", 1]]} if line["kind"] == "found" else line for line in without("kernel")
    ]
    shown = verdict(stream_lines)
    assert shown.outcome == "failed"
    assert shown.reasons[0].startswith("lost: 2 sectors at 10 of write 2, acknowledged at 5.000 s")


def test_data_that_was_read_stale_fails_a_trial() -> None:
    shown = verdict(changed("found", {"runs": [[10, 2, "good", 1]]}, turn=1))
    assert shown.reasons[0].startswith("stale: ")
    for code, kind in (("good", "stale"), ("corrupted", "corrupted"), ("torn", "torn")):
        io = ["r", 0, 10, 2, 4 * S, 4 * S, OTHER_DATA[code]]
        stream_lines = [*lines(), {"kind": "io", "at": 9 * S, "ios": [io]}]
        shown = verdict(stream_lines)
        assert shown.reasons[0].startswith(f"{kind}: a read")
        # it did not fail: it is told once, and not as an error too
        assert seen(stream_lines).errors == []


def cut(points: int, missing: int) -> CheckedImages:
    loss = Missing(cut=7, lost="all", sector=10, expected=2, present=1)
    return CheckedImages(points, 10 * points, (loss,) * missing)


@pytest.mark.parametrize(
    ("cuts", "outcome", "reason"),
    [
        (cut(3, 0), "passed", ""),
        (cut(3, 1), "failed", "write 2 was told to be flushed and is missing at sector 10, write 1 is there"),
        (cut(3, 25), "failed", "and 5 more sectors"),
        (cut(0, 0), "void", "no image of a power cut"),
        (None, "void", "no image of a power cut"),
    ],
)
def test_a_power_cut_is_judged_by_its_images(cuts: CheckedImages | None, outcome: str, reason: str) -> None:
    stream_lines = [*lines(), *({"kind": "seen", "at": 4 * S, "seen": name, "text": ""} for name in LOGGED)]
    fault = FAULTS["power_cut"]
    shown = judge(seen(stream_lines), fault, fault.ways[0], EXPECT, cuts)
    assert shown.outcome == outcome
    assert reason in " ".join(shown.reasons)
    record = values_of(seen(stream_lines), shown, fault.ways[0], cuts)
    assert record["power_cuts"] == (
        cuts and {"points": cuts.points, "images": 10 * cuts.points, "missing": len(cuts.missing)}
    )


def test_a_fault_that_takes_the_drive_away_may_cost_errors_and_settings() -> None:
    stream_lines = [*after(settings={"queue_depth": "1"})]
    stream_lines += [{"kind": "io", "at": 9 * S, "ios": [["w", 3, 10, 1, 4 * S, 5 * S, 5]]}]
    stream_lines += [{"kind": "seen", "at": 4 * S, "seen": name, "text": ""} for name in ("drive_gone", "drive_back")]
    assert verdict(stream_lines, "drive_removal").outcome == "passed"
    assert verdict(stream_lines, "drive_removal", errors="none").outcome == "failed"


def test_the_record_has_the_timeline_in_seconds_of_the_load() -> None:
    observed = seen(lines())
    record = values_of(observed, verdict(lines()), WAYS["sg_reset_device"][1], None)
    assert (record["outcome"], record["writes"], record["recovery_s"]) == ("passed", 2, 2.0)
    assert [entry[:2] for entry in record["timeline"]] == [
        [2.0, "fault"],
        [2.0, "proof"],
        [2.0, "kernel"],
        [2.0, "fault"],
    ]


def test_a_bench_that_went_down_has_no_time_of_recovery() -> None:
    record = values_of(seen(lines()), verdict(lines()), WAYS["qmp_reset"][1], None)
    assert record["recovery_s"] is None


def power_lines(drive: str, back: list[Any]) -> list[dict[str, Any]]:
    """Power is removed after a write that was answered and not flushed; what was read `back` then."""
    head = [line for line in lines() if line["kind"] in ("begin", "loading")]
    return [
        *head,
        {
            "kind": "io",
            "at": 2 * S,
            "ios": [["w", 1, 10, 2, 1 * S, 1 * S + 5, 0], ["f", 0, 0, 0, 2 * S, 2 * S + 1, 0]],
        },
        {"kind": "io", "at": 3 * S, "ios": [["w", 2, 10, 2, 3 * S, 3 * S + 9, 0]]},
        {"kind": "fault", "at": 4 * S, "phase": "begin", "text": "power_removal"},
        {"kind": "seen", "at": 5 * S, "seen": "power_off", "text": "proven"},
        {"kind": "seen", "at": 5 * S, "seen": drive, "text": ""},
        {"kind": "seen", "at": 6 * S, "seen": "other_boot", "text": "another"},
        {"kind": "fault", "at": 6 * S, "phase": "end", "text": "power_removal"},
        {"kind": "begin", "at": 7 * S, "node": "/dev/sda", "touched": ["0x5"], "wall": 0},
        {"kind": "found", "at": 8 * S, "turn": 1, "runs": [back], "whole": True},
        {"kind": "end", "at": 9 * S, "outcome": "done", "message": "", "ios": 0},
    ]


@pytest.mark.parametrize(
    ("drive", "back", "outcome"),
    [
        # a volatile cache without power may lose what was not flushed, and nothing else
        (DRIVE_LOST_POWER, [10, 2, "good", 1], "passed"),
        (DRIVE_LOST_POWER, [10, 2, "zeros", 0], "failed"),
        (DRIVE_KEPT_POWER, [10, 2, "good", 1], "failed"),
        (DRIVE_KEPT_POWER, [10, 2, "good", 2], "passed"),
    ],
)
def test_what_must_be_there_again_depends_on_whether_the_drive_itself_lost_power(
    drive: str, back: list[Any], outcome: str
) -> None:
    told, (fault, way) = seen(power_lines(drive, back)), WAYS["power_removal"]
    found = judge(told, fault, way, EXPECT)
    assert found.outcome == outcome, found.reasons
    assert values_of(told, found, way, None)["drive_lost_power"] is (drive == DRIVE_LOST_POWER)


def test_power_of_which_nothing_was_proven_says_nothing_of_the_drive() -> None:
    told = seen([line for line in power_lines("power_off", [10, 2, "good", 2]) if line["kind"] != "seen"])
    fault, way = WAYS["power_removal"]
    assert judge(told, fault, way, EXPECT).outcome == "void"
    assert values_of(told, judge(told, fault, way, EXPECT), way, None)["drive_lost_power"] is None


_SCSI = (
    "[ 12.1] sd 2:0:0:0: [sda] tag#7 Sense Key : Medium Error [current]",
    "[ 12.1] sd 2:0:0:0: [sda] tag#7 Add. Sense: Unrecovered read error",
)
_NVME = ("[ 12.1] nvme0n1: Read(0x2) @ LBA 20480, 8 blocks, Unrecovered Read Error (sct 0x2 / sc 0x81) DNR",)
_LINK = tuple(
    f"[ 12.1] mpt3sas 0000:3b:00.0: PCIe Bus Error: severity={severity}, type=Physical Layer"
    for severity in ("Corrected", "Uncorrected (Non-Fatal)", "Uncorrected (Fatal)")
)


@pytest.mark.parametrize("way", [way for fault in FAULTS.values() for way in fault.ways], ids=lambda way: way.name)
def test_no_proof_of_any_way_can_be_left_out(way: Any) -> None:
    seen = frozenset(way.seen)
    lines = tuple(line["example"] for line in _row(way.name).get("kernel", ()))
    assert seen or way.kernel
    assert way.unproven(seen, lines) == []
    for name in way.seen:
        assert way.unproven(seen - {name}, lines) == [name]
    for pattern in way.kernel:
        without_line = tuple(line for line in lines if not re.search(pattern, line))
        assert len(without_line) < len(lines)
        assert way.unproven(seen, without_line)
    assert WAYS[way.name][1] is way


def _row(way: str) -> dict[str, Any]:
    return next(row for fault in read_table("faults")["faults"] for row in fault["ways"] if row["name"] == way)


def test_no_key_of_the_table_of_faults_is_without_a_reader() -> None:
    """`note` is for people."""
    faults = read_table("faults")["faults"]
    keys = {field.name for field in fields(Way)} | {"note"}
    assert {key for fault in faults for way in fault["ways"] for key in way} <= keys
    assert {key for fault in faults for key in fault} <= {field.name for field in fields(Fault)} | {"note"}


def test_a_line_of_no_known_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="kind 'other'"):
        Observed().take({"kind": "other", "at": 0})
    with pytest.raises(ValueError, match="phase"):
        Observed().take({"kind": "fault", "at": 0, "phase": "x", "text": ""})


def marked(way: str, kernel: tuple[str, ...], *events: str, errors: bool = False) -> Verdict:
    observed = seen(without("seen"))
    observed.kernel = [(3 * S + 2, line) for line in kernel]
    observed.seen = [(3 * S + 1, name, name) for name in events]
    if errors:
        observed.errors = [(4 * S, "r", 10, 61)]
    return judge(observed, *WAYS[way], EXPECT)


@pytest.mark.parametrize(
    ("way", "kernel"),
    [
        ("sg_write_uncorrectable", _SCSI),
        (
            "sg_write_uncorrectable",
            (_SCSI[0], "[ 12.1] sd 2:0:0:0: Add. Sense: Read error - LBA marked bad by application client"),
        ),
        ("nvme_write_uncorrectable", _NVME),
        (
            "nvme_write_uncorrectable",
            ("[ 12.1] nvme0n1: I/O Cmd(0x2) @ LBA 20480, 8 blocks (sct 0x2 / sc 0x81) DNR",),
        ),
    ],
)
def test_blocks_marked_as_unreadable_are_proven_by_reads_and_by_the_kernel(way: str, kernel: tuple[str, ...]) -> None:
    proofs = ("marked", "unreadable", "mended")
    assert marked(way, kernel, *proofs).outcome == "passed"
    for lacking in proofs:
        assert marked(way, kernel, *(proof for proof in proofs if proof != lacking)).outcome == "void"
    for number in range(len(kernel)):
        assert marked(way, kernel[:number] + kernel[number + 1 :], *proofs).outcome == "void"


def test_no_io_of_the_load_may_fail_where_the_fault_lies_beside_it() -> None:
    events = ("marked", "unreadable", "mended")
    assert "1 I/Os failed, none may" in marked("sg_write_uncorrectable", _SCSI, *events, errors=True).reasons[0]
    assert FAULTS["read_error"].io_errors


@pytest.mark.parametrize(
    ("way", "severity"),
    [
        ("aer_corrected", "Correctable"),
        ("aer_not_fatal", "Uncorrectable (Non-Fatal)"),
        ("aer_fatal", "Uncorrectable (Fatal)"),
    ],
)
def test_an_error_of_the_link_is_proven_by_its_own_severity_alone_in_the_words_of_any_kernel(
    way: str, severity: str
) -> None:
    line = f"[ 12.1] mpt3sas 0000:3b:00.0: PCIe Bus Error: severity={severity}, type=Transaction Layer"
    assert marked(way, (line,), "injected", "counted").outcome == "passed"
    assert [marked(way, (message,), "injected", "counted").outcome for message in _LINK].count("passed") == 1


def test_what_a_third_reading_gives_rightly_was_read_stale_twice() -> None:
    old = [[10, 2, "good", 1]]
    wrong = changed("found", {"runs": old})
    assert verdict(wrong).reasons[0].startswith("lost: ")
    third = {
        "kind": "found",
        "at": 8 * S + 1,
        "turn": 3,
        "runs": [[10, 1, "good", 2], [11, 1, "good", 2]],
        "whole": True,
    }
    assert verdict([*wrong[:-1], third, wrong[-1]]).reasons[0].startswith("stale: ")


def at_most(failures: int, trials: int, rate: float) -> float:
    return sum(comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(failures + 1))


def test_no_failure_in_sixty_trials_shows_less_than_five_percent() -> None:
    assert failures_sentence(0, 60) == "0 of 60 failed: less than 4.9 % at 95 %"
    assert most_share(0, 59, ALPHA) < 0.05 < most_share(0, 58, ALPHA)


@given(st.integers(1, 80), st.data())
def test_the_bound_is_where_the_binomial_law_leaves_five_percent(trials: int, data: st.DataObject) -> None:
    failures = data.draw(st.integers(0, trials - 1))
    assert at_most(failures, trials, most_share(failures, trials, ALPHA)) == pytest.approx(0.05, abs=1e-9)
    if failures:
        below = 1 - at_most(failures - 1, trials, least_share(failures, trials, ALPHA))
        assert below == pytest.approx(0.05, abs=1e-9)


def test_bounds_at_the_ends() -> None:
    assert (most_share(0, 0, ALPHA), most_share(3, 3, ALPHA), least_share(0, 9, ALPHA)) == (1.0, 1.0, 0.0)
    with pytest.raises(ValueError, match="cannot be"):
        most_share(4, 3, ALPHA)


def test_a_printed_bound_is_never_below_the_true_one() -> None:
    for trials in range(1, 200):
        for failures in (0, 1, trials // 2):
            if failures <= trials:
                percent = float(failures_sentence(failures, trials).split("less than ")[1].split(" %")[0])
                assert percent >= 100 * most_share(failures, trials, ALPHA) - 1e-9


def test_the_comparison_is_fishers() -> None:
    # 4 of 4 against 0 of 4: one case in 70
    assert more_often((4, 4), (0, 4)) == Fraction(1, 70)
    assert more_often((0, 4), (4, 4)) == 1
    assert more_often((2, 4), (2, 4)) == Fraction(53, 70)


def test_a_candidate_that_alone_fails_again_and_again_is_a_regression() -> None:
    assert compare([(True, False)] * 8).answer == "regression"


def test_a_failure_that_the_baseline_shows_as_often_is_known() -> None:
    shown = compare([(True, True), (False, False)] * 10)
    assert (shown.answer, shown.looks) == ("known", 4)


def test_one_failure_of_the_candidate_alone_is_undecided_and_none_is_none() -> None:
    assert compare([(True, False), (False, False)]).answer == "undecided"
    assert compare([(False, True)] * 5).answer == "none"


def test_a_candidate_that_fails_much_more_often_than_a_baseline_that_fails_too_is_a_regression() -> None:
    assert compare([(True, number % 10 == 0) for number in range(40)]).answer == "regression"


def test_each_look_spends_its_part_of_the_error_only() -> None:
    # 4 of 4 against 0 of 4 has p = 1/70: more than a quarter of 5 %
    pairs = [(True, False)] * 4 + [(False, False)] * 12
    assert compare(pairs).answer == "undecided"
    assert compare(pairs, looks=4, alpha=0.06).answer == "regression"


def test_looking_four_times_accuses_equal_arms_at_most_as_often_as_promised() -> None:
    # exact, over all outcomes of 8 pairs in which either arm fails with probability one half
    wrong = 0
    for bits in range(1 << 16):
        pairs = [(bool(bits >> bit & 1), bool(bits >> (8 + bit) & 1)) for bit in range(8)]
        wrong += compare(pairs).answer == "regression"
    assert 0 < wrong / (1 << 16) <= 0.05
