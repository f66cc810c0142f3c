# SPDX-License-Identifier: Apache-2.0
"""Whether data was right: what was read back after launches, a criterion for each point, whatever its speed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from storqual.base.text import plural
from storqual.run import Check
from storqual.run.measurements import LookedAt, Measurements

DATA = "data"
"""The id of these criteria."""
READ_BACK = "read back"
_SHOWN = 32
"""Bytes of the first wrong sector that a sentence has; all of it is in the sample."""
_NOTHING = LookedAt()


def data_checks(measured: Measurements) -> Iterator[Check]:
    """The checks of a run, for each point at which something was read back in the arm under test.

    A candidate with a wrong sector fails, whatever the baseline does; a baseline with one is told.
    """
    for (bench, adapter, point), arms in sorted(measured.data.items()):
        candidate, baseline = (arms.get(arm, _NOTHING) for arm in ("candidate", "baseline"))
        if not candidate.launches:
            continue
        reason = _told(candidate)
        if baseline.wrong:
            reason += f"; of the baseline: {_told(baseline)}"
        outcome = "FAIL" if candidate.wrong else "PASS"
        yield Check(DATA, outcome, reason, READ_BACK, bench, adapter, point, {})


def baseline_data(measured: Measurements) -> list[str]:
    """A sentence for each point at which the baseline's data was wrong: nobody judges it, and everybody must know."""
    return [
        f"{bench}: {adapter} {point}: the baseline's data is wrong: {_told(arms['baseline'])}"
        for (bench, adapter, point), arms in sorted(measured.data.items())
        if "baseline" in arms and arms["baseline"].wrong
    ]


def _told(looked: LookedAt) -> str:
    sectors = f"{looked.sectors:,} sectors" if looked.sectors != 1 else "1 sector"
    if looked.first is None:
        return f"{sectors} were read back after {plural(looked.launches, 'launch')}, none was wrong"
    where = f"{looked.wrong_launches} of {plural(looked.launches, 'launch')}"
    return f"{looked.wrong:,} of {sectors} read back are wrong, in {where}; {_first(looked.first)}"


def _first(first: Mapping[str, object]) -> str:
    """Where the first wrong sector is, and where its content begins to differ, in hexadecimal."""
    expected, found = str(first["expected"]), str(first["found"])
    differs = next(
        (at for at in range(0, len(found), 2) if expected[at : at + 2] not in ("??", found[at : at + 2])), 0
    )
    begin = min(differs // 32 * 32, len(found) - 2 * _SHOWN)
    shown = slice(begin, begin + 2 * _SHOWN)
    address, bs = int(str(first["address"])), int(str(first["bs"]))
    return (
        f"the first is sector {address // 512} (byte {address}, in a block of {bs} bytes) of {first['drive']}, "
        f"read back after launch {first['launch']}: {first['why']}; bytes {begin // 2} to {begin // 2 + _SHOWN - 1}: "
        f"expected {expected[shown]}, found {found[shown]}; a second read of it alone found {first['again']}"
    )
