# SPDX-License-Identifier: Apache-2.0
"""What every room uses and nothing of a campaign: names, text, formulas, intervals, the project's own files."""
