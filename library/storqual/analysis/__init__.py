# SPDX-License-Identifier: Apache-2.0
"""Conclusions from measured curves: scaling and saturation, comparison of adapters, the ceiling of the rig."""
