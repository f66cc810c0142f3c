# SPDX-License-Identifier: Apache-2.0
"""Code that knows nothing of storage: errors, commands, durable files, text, settings, lock, saved state."""
