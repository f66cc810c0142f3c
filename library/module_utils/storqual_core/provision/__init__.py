# SPDX-License-Identifier: Apache-2.0
"""Settings of drives, adapters, drivers and boots: read, compare, remember, write, read back, prove, restore."""
