# SPDX-License-Identifier: Apache-2.0
"""Whether a drive may be written: claims, one reading of the machine, rules, and the hold during the write."""
