# SPDX-License-Identifier: Apache-2.0
"""What a bench is, and whether it is the bench of its inventory."""
