# SPDX-License-Identifier: Apache-2.0
"""Robustness without a bench: suites of trials, faults and their proof, the oracle, exact statistics."""
