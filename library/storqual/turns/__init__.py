# SPDX-License-Identifier: Apache-2.0
"""Streamed turns from the control node: followed as they happen, faults that it causes, what they leave put right."""
