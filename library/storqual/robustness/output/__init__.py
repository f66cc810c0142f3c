# SPDX-License-Identifier: Apache-2.0
"""Output of foreign test programs: one format a file, every line read or kept, counts held against what was read."""
