# SPDX-License-Identifier: Apache-2.0
"""The report's words for outcomes, exit codes, kinds of bench and events, so that all parts say the same."""

from __future__ import annotations

from collections.abc import Mapping

from storqual.report.cells import Outcome
from storqual.report.figures import DASH

# symbol: its own shape for each, so that print without colour and colour-blind readers tell them apart
OUTCOMES: dict[str, Outcome] = {
    "PASS": Outcome("PASS", "\u2713", "pass"),
    "MARGINAL": Outcome("MARGINAL", "\u2248", "marginal"),
    "FAIL": Outcome("FAIL", "\u2715", "fail"),
    "INCONCLUSIVE": Outcome("INCONCLUSIVE", "?", "inconclusive"),
    "ERROR": Outcome("ERROR", "!", "error"),
    "SKIPPED": Outcome("SKIPPED", "\u2013", "skipped"),
}

EXIT_CODES: dict[int, str] = {
    0: "passed",
    1: "failed",
    2: "could not be judged",
    3: "wrong use or bad input",
    4: "refused by the guard",
}

BENCH_KINDS: dict[str, tuple[str, str]] = {
    "virtual": (
        "Virtual bench",
        "the adapters and drives are emulated; the figures show the method at work and qualify no hardware.",
    ),
    "local": ("Files on this machine", "not a qualification of hardware."),
    "hardware": ("Hardware bench", ""),
}

EVENT_WORDS: dict[str, str] = {
    "kernel_panic": "Kernel panic",
    "failed": "Campaign failed",
    "provision_failed": "Provisioning failed",
    "restore_failed": "Restoring failed",
    "session_lost": "Session lost",
    "unplugged": "Drive unplugged",
    "resumed": "Run resumed",
    "note": "Note",
    "restored": "Bench restored",
    "powered_on": "Bench powered on",
    "block_finished": "Block not finished",
    "session_planned": "Session added",
}
SERIOUS_EVENTS = ("kernel_panic", "failed", "provision_failed", "restore_failed", "session_lost", "unplugged")


def waived_by(waiver: Mapping[str, object]) -> str:
    """Who accepted a failure, and for how long."""
    return f"waived by {waiver.get('owner') or DASH} until {waiver.get('expiry') or DASH}"


def outcome(word: str) -> Outcome:
    """The outcome called `word`; a word that is none is shown as it is and coloured as an error."""
    return OUTCOMES.get(word) or Outcome(word, "!", "error")


def minute(value: object) -> str:
    """An ISO time as a person reads it, to the minute, in UTC; what is none stays as it is."""
    return _clock(value, 16)


def second(value: object) -> str:
    """The same to the second."""
    return _clock(value, 19)


def _clock(value: object, end: int) -> str:
    text = str(value or "\u2013")
    return f"{text[:10]} {text[11:end]} UTC" if len(text) >= 19 and text[10] == "T" else text
