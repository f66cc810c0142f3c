# SPDX-License-Identifier: Apache-2.0
"""Output of external test programs: one format per file, every line read or kept, counts compared with it."""
