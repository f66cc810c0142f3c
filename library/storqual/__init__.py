# SPDX-License-Identifier: Apache-2.0
"""Qualification of storage adapters: everything that runs on the control node only."""

__version__ = "0.1.0"
