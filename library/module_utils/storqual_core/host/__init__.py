# SPDX-License-Identifier: Apache-2.0
"""What the kernel shows in /sys and /proc: block devices, who uses them, identity, counters, the log."""
