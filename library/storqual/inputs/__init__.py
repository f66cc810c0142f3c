# SPDX-License-Identifier: Apache-2.0
"""What people write: inventories, drops, suites, gates, waivers; checked as a whole, every problem reported."""

from storqual.inputs.drop import load_drop, read_drop
from storqual.inputs.find import GATE, WAIVERS, beside_inventory, find_drop, find_suite
from storqual.inputs.inventory import Adapter
from storqual.inputs.lab import inventory_from_hostvars, load_inventory, read_inventory
from storqual.inputs.policy import load_gate, load_trust, load_waivers, read_gate, read_waivers
from storqual.inputs.suite import Suite
from storqual.inputs.suite_file import load_suite, read_suite

__all__ = [
    "GATE",
    "WAIVERS",
    "Adapter",
    "Suite",
    "beside_inventory",
    "find_drop",
    "find_suite",
    "inventory_from_hostvars",
    "load_drop",
    "load_gate",
    "load_inventory",
    "load_suite",
    "load_trust",
    "load_waivers",
    "read_drop",
    "read_gate",
    "read_inventory",
    "read_suite",
    "read_waivers",
]
