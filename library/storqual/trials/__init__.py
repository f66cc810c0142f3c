# SPDX-License-Identifier: Apache-2.0
"""Trials, from the control node: the connection to the bench, faults that it causes, one trial, a campaign."""
