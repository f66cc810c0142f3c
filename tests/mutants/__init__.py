# SPDX-License-Identifier: Apache-2.0
"""Faults put into the judge, the guard and provisioning one at a time: tests that do not notice them prove little."""
