# SPDX-License-Identifier: Apache-2.0
"""The judge: a verdict as a function of files; `decide` compares two arms at one point."""

from storqual.judge.decision import History, decide
from storqual.statistics.comparison import ArmComparison

__all__ = ["ArmComparison", "History", "decide"]
