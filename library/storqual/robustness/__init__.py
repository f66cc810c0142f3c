# SPDX-License-Identifier: Apache-2.0
"""Suites of trials and of external programs, and what is planned of them."""
