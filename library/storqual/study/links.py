# SPDX-License-Identifier: Apache-2.0
"""What buses and links can carry at most, in bytes per second, from their standards."""

from __future__ import annotations

from fractions import Fraction

_MB = 1_000_000

PARALLEL_SCSI = {
    "narrow": 5 * _MB,
    "fast": 10 * _MB,
    "fast-wide": 20 * _MB,
    "ultra": 20 * _MB,
    "ultra-wide": 40 * _MB,
    "ultra2": 80 * _MB,
    "ultra160": 160 * _MB,
    "ultra320": 320 * _MB,
}
"""Burst rate of one bus (T10 SPI to SPI-5); two bytes wide from fast-wide on, `narrow` to `ultra` one byte.

Ultra320 moves 160 million two-byte transfers a second, that is 3.20 x 10^8 bytes (HP A7173A paper, p. 2, note 2).
"""

FIBRE_CHANNEL = {
    1: 100 * _MB,
    2: 200 * _MB,
    4: 400 * _MB,
    8: 800 * _MB,
    16: 1600 * _MB,
    32: 3200 * _MB,
    64: 6400 * _MB,
}
"""Nominal rate of a port by its name in Gb/s, one direction (FCIA road map; HP A6826A paper, chart 2a: 200 MB/s)."""

PCI_CLOCKS = {33: Fraction(100, 3), 66: Fraction(200, 3), 100: Fraction(100), 133: Fraction(400, 3)}
"""Clock in MHz by its name. Papers multiply the name (66 x 8 = 528 MB/s), standards the clock (533 MB/s)."""

PCIE = {
    1: (Fraction(5, 2), Fraction(8, 10)),
    2: (Fraction(5), Fraction(8, 10)),
    3: (Fraction(8), Fraction(128, 130)),
    4: (Fraction(16), Fraction(128, 130)),
    5: (Fraction(32), Fraction(128, 130)),
    6: (Fraction(64), Fraction(236, 256)),
}
"""Generation -> GT/s per lane and the share that is left after line coding (generation 6: of each flit)."""

SAS = {Fraction(3, 2): Fraction(8, 10), Fraction(3): Fraction(8, 10), Fraction(6): Fraction(8, 10)}
SAS[Fraction(12)] = Fraction(8, 10)
SAS[Fraction(45, 2)] = Fraction(128, 150)
"""Gb/s of a lane -> share after line coding (T10 SPL: 8b/10b, from 22.5 Gb/s on 128b/150b)."""

SATA = {Fraction(3, 2), Fraction(3), Fraction(6)}
"""Gb/s of a SATA link; coded as SAS is."""


def pci(width_bits: int, clock: int, *, nominal: bool = False) -> int:
    """Bytes per second of a PCI or PCI-X bus, one direction at a time. `nominal` multiplies the clock's name.

    Raises KeyError for a clock that no PCI bus has.
    """
    mhz = Fraction(clock) if nominal else PCI_CLOCKS[clock]
    return int(mhz * _MB * width_bits / 8)


def pcie(generation: int, lanes: int) -> int:
    """Bytes per second in one direction, before packet headers (about 10 to 15 % more). Raises KeyError."""
    rate, share = PCIE[generation]
    return int(rate * share * lanes * 1000 * _MB / 8)


def sas(gigabits: float | Fraction, lanes: int = 1) -> int:
    """Bytes per second of a SAS (or SATA) port of `lanes`. Raises KeyError for a rate that SAS does not have."""
    rate = Fraction(gigabits)
    return int(rate * SAS[rate] * lanes * 1000 * _MB / 8)


def fibre_channel(gigabits: int, ports: int = 1) -> int:
    """Nominal bytes per second in one direction. Raises KeyError for a speed without a name."""
    return FIBRE_CHANNEL[gigabits] * ports
