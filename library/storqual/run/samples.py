# SPDX-License-Identifier: Apache-2.0
"""Samples as the judge reads them: one by one, by the fastest parser that is installed anyway."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic_core import from_json

from storqual.run import Sample
from storqual.run.layout import SAMPLES, complete_lines
from storqual_core.kit.errors import StorqualError


def stream(run: Path) -> Iterator[Sample]:
    """The samples of a run directory, as `storqual.run.iter_samples` gives them, at a third of its time.

    Raises StorqualError for a line that is none, or an id seen twice.
    """
    file = run / SAMPLES
    seen: set[str] = set()
    for number, line in complete_lines(file):
        try:
            # NaN and infinity are no JSON: other people's parsers refuse them, and so does a verdict
            sample = Sample.from_json(from_json(line, allow_inf_nan=False))
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise StorqualError(
                f"{file}:{number}: found no sample ({problem}); the run directory is damaged"
            ) from None
        if sample.id in seen:
            raise StorqualError(f"{file}:{number}: found sample {sample.id} a second time")
        seen.add(sample.id)
        yield sample
