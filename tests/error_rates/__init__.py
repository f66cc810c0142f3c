# SPDX-License-Identifier: Apache-2.0
"""Error rates and bench seconds of the gate on simulated benches, with recorded seeds."""
