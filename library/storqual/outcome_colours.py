# SPDX-License-Identifier: Apache-2.0
"""The colours of outcomes on a terminal, as rich names them; the word is always there too."""

from __future__ import annotations

__all__ = ["OUTCOME_COLOURS"]

OUTCOME_COLOURS = {
    "PASS": "green",
    "MARGINAL": "yellow",
    "FAIL": "bold red",
    "INCONCLUSIVE": "magenta",
    "ERROR": "bold magenta",
    "SKIPPED": "dim",
}
