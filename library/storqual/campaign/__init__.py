# SPDX-License-Identifier: Apache-2.0
"""The campaign: what a bench does next. Standard library only: it is asked between blocks."""

from __future__ import annotations

from storqual.campaign.next_step import next_step, session_boot
from storqual.campaign.steps import Provision, RunBlock, Step, Stop
from storqual.campaign.worth import Further, Worth

__all__ = ["Further", "Provision", "RunBlock", "Step", "Stop", "Worth", "next_step", "session_boot"]
