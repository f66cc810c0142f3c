# SPDX-License-Identifier: Apache-2.0
"""The campaign: what a bench does next; standard library only, because it is asked between batches."""

from __future__ import annotations

from storqual.campaign.next_step import next_step, session_boot
from storqual.campaign.steps import Further, Provision, RunBlock, Step, Stop

__all__ = ["Further", "Provision", "RunBlock", "Step", "Stop", "next_step", "session_boot"]
