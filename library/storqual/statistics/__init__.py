# SPDX-License-Identifier: Apache-2.0
"""Statistics of a verdict: pure functions on arrays, no files, no text; numpy and scipy.special only."""
