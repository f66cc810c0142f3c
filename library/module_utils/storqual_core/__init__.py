# SPDX-License-Identifier: Apache-2.0
"""What the bench and the control node share: standard library only, Python 3.8 and newer."""
