# SPDX-License-Identifier: Apache-2.0
"""What knows no storage: errors, commands, durable files, text, the settings vocabulary, lock, saved state."""
