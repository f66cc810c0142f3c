# SPDX-License-Identifier: Apache-2.0
"""Trials on a bench: the connection to it, faults that the control node brings about, one trial, many of them."""
