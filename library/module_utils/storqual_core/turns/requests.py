# SPDX-License-Identifier: Apache-2.0
"""What a batch file asks a bench for in a trial or a program: which drive behind which adapter, and what is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping

from ..data.faults import LOGGING_WAY, WAYS
from .entries import EntryReader
from .integrity_load import IntegrityRequest, read_integrity

_TRIAL = {"pci", "pair", "fault", "way", "load", "seed", "at_s", "away_s", "load_s", "expect", "number", "silence_s"}
_OF_CONTROL = {"powered_by", "baseline_later"}
"""What only the control node reads, which brings that fault about and compares the arms."""
_PROGRAM = {"pci", "program", "number", "words", "reads", "report", "package", "checkout", "limit_s", "silence_s"}
SILENCE_S = 30.0
"""`silence_s`: a bench that does not answer, and of whose turn nothing was told for so long, is brought back."""


@dataclass(frozen=True)
class TrialRequest:
    """`way` is empty where the control node brings the fault about; `scope` is how far it reaches.

    `pci` is the adapter's PCI function. Times in seconds: the fault at `at_s` of the load, for `away_s`; the load
    goes on for `load_s`, and then the drive has `recover_s` to come back. `cuts_power`, in truth or as images of a
    log: no command ends by the fault.
    """

    pci: str
    way: str
    scope: str
    load: IntegrityRequest
    at_s: float
    away_s: float
    load_s: float
    recover_s: float
    cuts_power: bool = False


@dataclass(frozen=True)
class ProgramRequest:
    """The command of a foreign program, `words`, and its limit in seconds.

    `report` is a file below `{out}` that holds the results, empty where they are printed.
    """

    pci: str
    words: tuple[str, ...]
    checkout: str
    report: str
    limit_s: float


def read_trial(reader: EntryReader, entry: Mapping[str, Any]) -> TrialRequest | None:
    """The request of a trial; None where the reader's problems say what is wrong with it."""
    reader.unknown(entry, _TRIAL | _OF_CONTROL, "")
    pci = reader.text(entry, "pci")
    way = WAYS[reader.choice(entry, "way", tuple(WAYS))][1]
    at_s, away_s, load_s = (reader.number(entry, name, least=0.0) for name in ("at_s", "away_s", "load_s"))
    recover_s = reader.inside("expect").number(reader.mapping(entry, "expect"), "recovery", least=0.0)
    load = read_integrity(reader.inside("load"), entry.get("load"))
    if load is None or not reader.sound:
        return None
    # the load goes on for its whole time after the thing is back
    bench_way = way.name if way.where == "bench" else ""
    cuts_power = way.downs_bench or way.name == LOGGING_WAY
    return TrialRequest(pci, bench_way, way.scope, load, at_s, away_s, load_s + away_s, recover_s, cuts_power)


def read_program(reader: EntryReader, entry: Mapping[str, Any]) -> ProgramRequest | None:
    """The request of a program; None where the reader's problems say what is wrong with it."""
    reader.unknown(entry, _PROGRAM, "")
    pci = reader.text(entry, "pci")
    words = reader.words(entry, "words", least=1)
    limit_s = reader.number(entry, "limit_s", least=0.0)
    if not reader.sound:
        return None
    return ProgramRequest(pci, words, str(entry.get("checkout") or ""), str(entry.get("report") or ""), limit_s)
