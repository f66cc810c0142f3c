# SPDX-License-Identifier: Apache-2.0
"""Whether everything that was planned in a block was measured, in that block or in one that went on for it."""

from __future__ import annotations

from collections.abc import Iterable

from storqual.store.collect import read_block
from storqual.store.run import Run
from storqual_core.errors import BadInputError

__all__ = ["is_measured"]


def is_measured(run: Run, bench: str, blocks: Iterable[str]) -> bool:
    """Whether each launch of these blocks has a sample; False for a block that was never planned.

    A launch that a reset cut off is tried again in another session: it is the same by adapter, arm, point and number.
    Raises StorqualError for a block file that is damaged.
    """
    try:
        launches = [launch for block in blocks for launch in read_block(run.path, block)["launches"]]
    except BadInputError:
        return False
    wanted = {(bench, str(one["adapter"]), str(one["arm"]), str(one["point"]), int(one["n"])) for one in launches}
    return bool(wanted) and wanted <= run.measured
