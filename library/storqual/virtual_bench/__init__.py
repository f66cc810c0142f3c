# SPDX-License-Identifier: Apache-2.0
"""The virtual bench: a real server made of software, powered, limited and broken from the control node."""
