# SPDX-License-Identifier: Apache-2.0
"""Trials on a bench: an integrity load, the faults a bench brings about on itself, and what is read back."""
