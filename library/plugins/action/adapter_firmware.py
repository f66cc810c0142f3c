# SPDX-License-Identifier: Apache-2.0
"""Flash with the rules for the kernel's log beside it: Ansible ships code to a bench, and no data files."""

from __future__ import annotations

from storqual.bench.slices import FlashAction


class ActionModule(FlashAction):
    """The action of the module of this name."""
