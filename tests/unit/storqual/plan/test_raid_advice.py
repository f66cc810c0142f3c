# SPDX-License-Identifier: Apache-2.0
"""Tests of the arithmetic on RAID volumes: strips, drives that prevent queueing, the use of read-ahead."""

from __future__ import annotations

from typing import Any

from storqual.inputs.inventory import Adapter, Bench, Ceiling, Drive
from storqual.plan.volumes import raid_advice

KB = 1024


def bench(*, drives: int = 4, rotation_rate: int | None = 15000, link: int | None = 160_000_000) -> Bench:
    """One adapter with all drives on one port."""
    listed = tuple(
        Drive(wwn=f"0x5000c500000000{number:02x}", size=1 << 30, rotation_rate=rotation_rate)
        for number in range(drives)
    )
    adapter = Adapter(model="PERC 3/QC", drives=listed, ceiling=Ceiling(link=link))
    return Bench(name="b1", kind="hardware", adapters={"perc": adapter})


def advice(where: Bench, *, largest: int = 8 * KB, **changes: Any) -> list[str]:
    """What is said of a RAID 0 over all drives with strips of 64 KiB."""
    members = [drive.id for drive in where.adapters["perc"].drives]
    volume = {"adapter": "perc", "name": "v", "level": "0", "members": members, "strip": 64 * KB, **changes}
    return list(raid_advice([volume, volume], where, largest))


def test_drives_that_prevent_queueing_are_counted_per_port() -> None:
    """160 MB/s carry 2441 strips of 64 KiB a second, half a turn at 15,000 rpm is 2 ms: five drives."""
    queueing, _ = advice(bench())
    assert "carries 2441 strips a second; at 2 ms each or more" in queueing
    assert "it takes 5 drives on a port to keep it busy, it has 4, so drives will queue" in queueing
    assert "which it has" in advice(bench(drives=12))[0]


def test_read_ahead_helps_only_from_the_inequality_on() -> None:
    """Strip x (drives + 1): 320 KiB with four drives."""
    assert "can only help random reads of 320 KiB or more" in advice(bench())[1]
    assert "none of this suite's does" in advice(bench())[1]
    assert "some of this suite's reach it" in advice(bench(), largest=512 * KB)[1]


def test_other_levels_and_suites_without_random_reads_get_no_inequality() -> None:
    """It is derived for RAID 0."""
    assert len(advice(bench(), level="5")) == 1
    assert len(advice(bench(), largest=0)) == 1


def test_what_the_inventory_does_not_say_is_not_guessed() -> None:
    assert len(advice(bench(link=None))) == 1
    assert len(advice(bench(rotation_rate=1))) == 1
    assert advice(bench(), strip=None) == []
