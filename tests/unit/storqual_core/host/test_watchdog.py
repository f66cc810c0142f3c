# SPDX-License-Identifier: Apache-2.0
"""Watchdogs as the kernel shows them, and what a bench's sheet says of them."""

from pathlib import Path

import pytest

from storqual_core.host.watchdog import (
    BLIND,
    NONE,
    Watch,
    has_fired,
    has_hardware,
    parse_armed,
    read_watchdogs,
    watchdog_words,
)
from storqual_core.kit.machine import Machine


def show(root: Path, name: str, **attributes: str) -> Machine:
    folder = root / "sys/class/watchdog" / name
    folder.mkdir(parents=True)
    for attribute, text in attributes.items():
        (folder / attribute).write_text(f"{text}\n", encoding="utf-8")
    return Machine(str(root))


def test_the_first_watchdog_is_the_one_of_the_lowest_number(tmp_path: Path) -> None:
    show(tmp_path, "watchdog10", identity="iTCO_wdt", timeout="30", state="inactive")
    machine = show(tmp_path, "watchdog2", identity="Software Watchdog", timeout="60", state="active")
    first, second = read_watchdogs(machine)
    assert (first["identity"], first["hardware"], first["timeout_s"], first["armed"]) == (
        "Software Watchdog",
        False,
        60,
        True,
    )
    assert (second["identity"], second["hardware"], second["armed"]) == ("iTCO_wdt", True, False)
    assert has_hardware([first, second])


def test_what_softdog_cannot_see_is_said_where_it_is_alone(tmp_path: Path) -> None:
    assert watchdog_words(read_watchdogs(Machine(str(tmp_path)))) == NONE
    soft = read_watchdogs(show(tmp_path, "watchdog0", identity="Software Watchdog"))
    assert BLIND in watchdog_words(soft)
    hard = read_watchdogs(show(tmp_path, "watchdog1", identity="i6300ESB timer"))
    assert watchdog_words(hard) == "Software Watchdog, i6300ESB timer"


@pytest.mark.parametrize(
    ("status", "fired"),
    [("32\n", True), ("33", True), ("0\n", False), ("", False), ("running", False), ("\u0663", False)],
)
def test_a_watchdog_tells_whether_it_made_the_boot(status: str, fired: bool) -> None:
    assert has_fired(status) is fired


@pytest.mark.parametrize(
    ("line", "watch"),
    [
        ("10 60 active i6300ESB timer\n", Watch("i6300ESB timer", 60, 10)),
        ("0 30 inactive iTCO_wdt", Watch(panic_s=0)),
        ("-1", Watch(panic_s=-1)),
        ("", Watch()),
        ("x 60 active iTCO_wdt", Watch()),
    ],
)
def test_what_ends_a_hang_by_itself_is_read_from_a_line(line: str, watch: Watch) -> None:
    assert parse_armed(line) == watch
