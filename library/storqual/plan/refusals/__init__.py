# SPDX-License-Identifier: Apache-2.0
"""Why a campaign is not planned, one file for each subject; every problem is told at once, with its line."""
