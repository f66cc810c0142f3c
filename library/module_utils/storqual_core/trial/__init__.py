# SPDX-License-Identifier: Apache-2.0
"""What a bench does in a trial: the integrity load, faults that act on the bench, what is seen before and after."""
