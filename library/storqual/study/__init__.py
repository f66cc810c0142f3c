# SPDX-License-Identifier: Apache-2.0
"""Conclusions of a characterisation: what the curves of runs show, each no stronger than its interval."""
