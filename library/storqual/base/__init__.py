# SPDX-License-Identifier: Apache-2.0
"""What all packages use and what knows nothing of a campaign: names, text, formulas, intervals, files."""
