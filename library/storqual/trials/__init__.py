# SPDX-License-Identifier: Apache-2.0
"""Campaigns of trials: planned from a suite, an inventory and drops, with a batch for each turn."""
