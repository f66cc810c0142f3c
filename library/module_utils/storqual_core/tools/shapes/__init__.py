# SPDX-License-Identifier: Apache-2.0
"""Layouts of the output of one tool that do not fit into its own file; used by that file only."""
