# SPDX-License-Identifier: Apache-2.0
"""Make volumes, and show how far they are while they are initialised."""

from __future__ import annotations

from storqual.bench.slices import SlicedAction


class ActionModule(SlicedAction):
    """The action of the module of this name."""
