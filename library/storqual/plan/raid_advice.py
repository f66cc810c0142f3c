# SPDX-License-Identifier: Apache-2.0
"""What arithmetic says about a RAID volume before it is measured: drives that prevent queueing, use of read-ahead.

Source: Molloy and Acir, "Performance Characteristics of PERC 3/QC Release 1.2 RAID Controller", sections
"Disk scaling" and "Disk caching".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from storqual.factor_words import size_text
from storqual.formulas import MB, drives_without_queueing, read_ahead_threshold, stripes_per_second
from storqual.model.inventory import Adapter, Bench

__all__ = ["raid_advice"]

_HALF_A_TURN = Fraction(30)
"""Seconds of half a rotation times revolutions per minute: no drive answers a random request sooner on average."""


def raid_advice(volumes: Iterable[Mapping[str, Any]], bench: Bench, largest_random_read: int) -> Iterator[str]:
    """Sentences about declared volumes (adapter, level, members, strip in bytes), each once.

    `largest_random_read` is the largest random read of the suite in bytes, 0 where it has none. What the inventory
    does not say (a port's link, a drive's rotation rate) is not guessed.
    """
    said: set[str] = set()
    for volume in volumes:
        adapter = bench.adapters.get(str(volume.get("adapter")))
        strip, members = int(volume.get("strip") or 0), list(volume.get("members") or ())
        if adapter is None or not strip or not members:
            continue
        name = f"volume {volume.get('name') or volume['adapter']} ({size_text(strip)} strips, {len(members)} drives)"
        for sentence in (
            *_queueing(name, adapter, strip, members),
            *_read_ahead(name, volume, strip, largest_random_read),
        ):
            if sentence not in said:
                said.add(sentence)
                yield sentence


def _queueing(name: str, adapter: Adapter, strip: int, members: list[str]) -> Iterator[str]:
    drives = [drive for drive in adapter.drives if drive.id in members]
    turns = {drive.rotation_rate for drive in drives}
    link, rate = adapter.ceiling.link, min((turn for turn in turns if turn and turn > 1), default=None)
    if link is None or rate is None or len(turns) != 1:
        return
    service = _HALF_A_TURN / rate
    strips = stripes_per_second(Fraction(link), Fraction(strip))
    ports = len({drive.port for drive in drives})
    wanted, have = drives_without_queueing(service, strips), len(drives) / ports
    enough = "which it has" if have >= wanted else f"it has {have:g}, so drives will queue and the port will wait"
    yield (
        f"{name}: a port of {link / MB:g} MB/s carries {float(strips):.0f} strips a second; at "
        f"{float(service) * 1000:g} ms each or more (half a turn at {rate} rpm) it takes {wanted} drives on a port "
        f"to keep it busy, {enough}"
    )


def _read_ahead(name: str, volume: Mapping[str, Any], strip: int, largest: int) -> Iterator[str]:
    if str(volume.get("level")) != "0" or not largest:
        return
    threshold = read_ahead_threshold(strip, len(volume["members"]))
    reach = "some of this suite's reach it" if largest >= threshold else "none of this suite's does"
    yield (
        f"{name}: the drives' own read-ahead can help random reads of {size_text(threshold)} and more only"
        f" (strip x (drives + 1)); {reach}"
    )
