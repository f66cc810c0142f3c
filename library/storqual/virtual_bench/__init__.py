# SPDX-License-Identifier: Apache-2.0
"""The virtual bench: an emulated server that the control node powers, limits and breaks."""
