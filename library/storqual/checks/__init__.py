# SPDX-License-Identifier: Apache-2.0
"""Hand-written checks: the pytest plugin, the Robot Framework library, and how both are run."""
