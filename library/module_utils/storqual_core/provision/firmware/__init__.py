# SPDX-License-Identifier: Apache-2.0
"""Firmware of adapters and drives: which image for which device, and a flash that survives a power cut."""
