# SPDX-License-Identifier: Apache-2.0
"""The campaign: the pipeline from plan to seal, what a bench does next, and the end of it."""

from storqual.campaign.next_step import next_step
from storqual.campaign.steps import Further, Provision, RunBatch, Stop

__all__ = ["Further", "Provision", "RunBatch", "Stop", "next_step"]
