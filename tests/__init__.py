# SPDX-License-Identifier: Apache-2.0
"""Tests of the project itself; `suites/` tests hardware."""
