# SPDX-License-Identifier: Apache-2.0
"""What the oracle of trials costs: I/Os per second with and without it, in alternating pairs on a live bench."""
