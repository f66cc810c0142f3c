# SPDX-License-Identifier: Apache-2.0
"""The plan: which points, trials and programs, in which sessions, for how long, and what it can detect."""

from storqual.plan.inputs import PlanRequest
from storqual.plan.make import PlannedCampaign, make_plan

__all__ = ["PlanRequest", "PlannedCampaign", "make_plan"]
