# SPDX-License-Identifier: Apache-2.0
"""The recording of a console: bytes survive it, times order it, and of its troubles 40 lines are shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.base.console_log import (
    MOST_LINES,
    NOTE,
    SAID,
    ConsoleLine,
    LineStamper,
    console_troubles,
    gaps,
    last_lines_before,
    read_recording,
    said_text,
    utc_stamp,
)
from tests.support.played_console import PANIC


def stamp(number: float) -> str:
    return utc_stamp(1_790_000_000 + number)


def recording(*parts: str | tuple[str, str]) -> bytes:
    """What a console said, a second for each part; a pair is a note."""
    stamper, kept = LineStamper(), b""
    for number, part in enumerate(parts):
        kept += (
            stamper.take(part.encode(), stamp(number))
            if isinstance(part, str)
            else stamper.note(part[1], stamp(number))
        )
    return kept + stamper.rest(stamp(len(parts)))


@given(st.lists(st.binary(max_size=9000), max_size=6))
def test_every_byte_that_was_said_is_in_the_recording(chunks: list[bytes]) -> None:
    stamper = LineStamper()
    kept = b"".join(
        stamper.take(chunk, stamp(number)) + stamper.rest(stamp(number)) for number, chunk in enumerate(chunks)
    )
    lines = list(read_recording(kept))
    said = b"".join(chunks)
    assert b"\n".join(line.data for line in lines) == said.removesuffix(b"\n")
    assert [line.at for line in lines] == sorted(line.at for line in lines)


@given(st.binary(max_size=400))
def test_any_file_is_read_as_a_recording(data: bytes) -> None:
    for line in read_recording(data):
        assert line.text.isprintable()
    console_troubles(list(read_recording(data)))


def test_a_prompt_is_kept_when_it_was_written_and_goes_on_in_its_line() -> None:
    stamper = LineStamper()
    kept = stamper.take(b"login: ", stamp(0)) + stamper.rest(stamp(1)) + stamper.take(b"root\nPassword: ", stamp(2))
    kept += stamper.rest(stamp(3))
    assert [(line.at, line.data) for line in read_recording(kept)] == [
        (stamp(1), b"login: root"),
        (stamp(3), b"Password: "),
    ]


def test_what_a_bench_writes_is_never_a_note_of_the_recorder() -> None:
    forged = f"{stamp(0)} - gap: forged\r\n{stamp(0)} - expected until {stamp(9)}: forged\n"
    lines = list(read_recording(recording(forged, PANIC)))
    assert not gaps(lines)
    assert [trouble.expected for trouble in console_troubles(lines)] == [""]


def test_hostile_bytes_are_kept_and_shown_as_escapes() -> None:
    hostile = b"\x1b]0;title\x07\x00\xff\x9b31m<script>\n"
    kept = LineStamper().take(hostile, stamp(0))
    assert hostile[:-1] in kept
    (line,) = read_recording(kept)
    assert line.text.isprintable()
    assert "\\x00" in line.text


def test_of_a_panic_the_driver_is_named_and_its_lines_are_shown() -> None:
    kept = recording("[    1.0] Linux version 6.1\nbooting\n", PANIC, "[    0.0] Linux version 6.1\nup again\n")
    (trouble,) = console_troubles(list(read_recording(kept)), ["megaraid_sas", "mpt3sas"])
    assert trouble.kind == "panic"
    assert trouble.headline == "Kernel panic - not syncing: Fatal exception"
    assert trouble.drivers == ("megaraid_sas", "scsi_mod")
    assert any("megasas_build_and_issue_cmd_fusion" in line for line in trouble.lines)
    assert not any("up again" in line or "booting" in line for line in trouble.lines)


def test_a_driver_that_is_built_in_is_known_by_its_messages() -> None:
    text = (
        "[  1.0] INFO: task fio:812 blocked for more than 120 seconds.\n[  1.1] mpt3sas_cm0: fault_state(0x2623)!\n"
    )
    (trouble,) = console_troubles(list(read_recording(recording(text))), ["mpt3sas", "nvme"])
    assert (trouble.kind, trouble.drivers) == ("hung_task", ("mpt3sas",))


def test_of_a_long_trace_forty_lines_stay_with_what_names_the_culprit() -> None:
    registers = "".join(f"[   71.2] R{number:02d}: {number:016x}\n" for number in range(16))
    frames = "".join(f"[   71.3]  frame_{number}+0x1/0x2\n" for number in range(45))
    kept = recording(
        PANIC.replace("[   71.100600]", registers + "[   71.100600]").replace(
            "[   71.101000]", frames + "[   71.101000]"
        )
    )
    (trouble,) = console_troubles(list(read_recording(kept)))
    assert len(trouble.lines) <= MOST_LINES
    assert any("RIP: " in line for line in trouble.lines)
    assert "end Kernel panic" in trouble.lines[-1]
    assert not any("R07:" in line for line in trouble.lines)


def test_two_troubles_far_from_each_other_are_two() -> None:
    kept = recording(PANIC, "".join(f"line {number}\n" for number in range(200)), PANIC)
    assert len(console_troubles(list(read_recording(kept)))) == 2


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((("", f"expected until {stamp(60)}: sysrq_panic"), PANIC), "sysrq_panic"),
        ((("", f"expected until {stamp(0)}: sysrq_panic"), PANIC), ""),
        ((("", f"expected until {stamp(60)}: sysrq_panic"), ("", "no longer expected"), PANIC), ""),
        ((PANIC, ("", f"expected until {stamp(60)}: sysrq_panic")), ""),
    ],
)
def test_a_panic_is_expected_inside_its_window_only(parts: tuple[str | tuple[str, str], ...], expected: str) -> None:
    (trouble,) = console_troubles(list(read_recording(recording(*parts))))
    assert trouble.expected == expected


def test_of_a_silent_bench_the_last_lines_before_are_shown() -> None:
    kept = recording(*(f"line {number}\n" for number in range(90)))
    lines = last_lines_before(list(read_recording(kept)), stamp(60))
    assert (lines[0], lines[-1], len(lines)) == ("line 21", "line 60", MOST_LINES)


def test_text_of_a_recording_has_no_notes_and_no_escapes() -> None:
    assert said_text(recording("\x1b[1mone\x1b[0m\r\n", ("", "gap: cut"), "two\n")) == "one\ntwo"


def test_a_torn_end_is_read() -> None:
    kept = recording("one\n", "two\n")
    assert next(read_recording(kept[:-3])).data == b"one"
    assert list(read_recording(b"")) == []
    assert ConsoleLine("", NOTE, b"x").mark != SAID
