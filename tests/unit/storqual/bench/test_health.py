# SPDX-License-Identifier: Apache-2.0
"""What is said of the parts that watch a bench: nothing counts as working that was not seen to work."""

import pytest

from storqual.bench.health import (
    PARTS,
    PartHealth,
    broken,
    console_health,
    fired_health,
    panic_health,
    parse_look,
    power_health,
    standing_health,
)

LOOK = "identity iTCO_wdt\nstate active\ntimeout 60\npstore erst\nkdump 1\npanic 10\n"


def standing(**changed: str) -> dict[str, str]:
    return {row.part: row.works for row in standing_health({**parse_look(LOOK), **changed})}


def test_what_stands_there_has_not_worked_yet() -> None:
    assert standing() == {"watchdog": "not tried", "pstore": "not tried", "kdump": "not tried"}


@pytest.mark.parametrize(
    ("changed", "part", "works"),
    [
        ({"identity": ""}, "watchdog", "absent"),
        ({"state": "inactive"}, "watchdog", "broken"),
        ({"pstore": "(null)"}, "pstore", "absent"),
        ({"pstore": ""}, "pstore", "absent"),
        ({"kdump": "0"}, "kdump", "absent"),
    ],
)
def test_what_is_missing_or_idle_is_said(changed: dict[str, str], part: str, works: str) -> None:
    assert standing(**changed)[part] == works


@pytest.mark.parametrize("text", ["", "nothing\x00", "identity\n\n", "state"])
def test_an_answer_that_is_none_says_that_nothing_is_there(text: str) -> None:
    assert {row.works for row in standing_health(parse_look(text))} == {"absent"}


@pytest.mark.parametrize(
    ("said", "works"),
    [
        ({"ipmi": "on"}, "works"),
        ({"pdudaemon": "unknown"}, "not tried"),
        ({"ipmi": "off"}, "broken"),
        ({"ipmi": "on", "redfish": "it did not answer"}, "broken"),
    ],
)
def test_a_backend_works_that_says_on_of_a_bench_that_answers(said: dict[str, str], works: str) -> None:
    assert power_health(said).works == works


def test_without_backends_power_is_absent() -> None:
    assert power_health(None).works == "absent"


def test_a_console_works_when_what_the_kernel_said_came_out_of_it() -> None:
    assert console_health("token-1", "[ 9.1] token-1\n").works == "works"
    assert console_health("token-1", "[ 9.1] token-2\n").works == "broken"
    assert console_health("", None).works == "absent"


def test_a_watchdog_works_when_the_bench_came_back_by_nothing_else() -> None:
    before = standing_health(parse_look(LOOK))[0]
    assert fired_health(before, ended_by="", fired=False, seconds=90).works == "works"
    assert fired_health(before, ended_by="power cycle", fired=True, seconds=90).works == "works"
    assert fired_health(before, ended_by="power cycle", fired=False, seconds=900).works == "broken"


def test_after_a_panic_a_source_works_that_had_its_trace() -> None:
    here = PartHealth("pstore", "not tried", "kept by erst")
    assert panic_health(here, {"pstore": True}).works == "works"
    assert panic_health(here, {"pstore": False}).works == "broken"
    assert panic_health(PartHealth("kdump", "absent", ""), {"kdump": True}).works == "absent"


def test_only_what_is_there_and_does_not_work_fails_the_check() -> None:
    rows = [
        PartHealth(part, works, "so")
        for part, works in zip(PARTS, ("works", "absent", "broken", "not tried"), strict=False)
    ]  # type: ignore[arg-type]
    assert broken(rows) == ["watchdog: so"]
