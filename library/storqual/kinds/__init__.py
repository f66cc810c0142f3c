# SPDX-License-Identifier: Apache-2.0
"""Kinds of turn: what the record of each follows from, what it is checked for, and what is shown of it."""
