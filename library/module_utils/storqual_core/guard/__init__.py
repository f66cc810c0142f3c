# SPDX-License-Identifier: Apache-2.0
"""May this drive be touched: claims, one reading of the machine, rules, and the hold while it is written."""
