# SPDX-License-Identifier: Apache-2.0
"""How the output of one tool is laid out, where that is more than its room holds; used by that room alone."""
