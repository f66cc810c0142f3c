# SPDX-License-Identifier: Apache-2.0
"""Firmware of adapters and drives: which image for which subject, and a flash that a power cut cannot hurt."""
