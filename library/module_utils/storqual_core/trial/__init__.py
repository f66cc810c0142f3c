# SPDX-License-Identifier: Apache-2.0
"""Trials on a bench: an integrity load, the faults that the bench causes itself, and reading the data back."""
