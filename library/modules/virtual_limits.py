#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Limit, unplug and plug the drives of a running virtual bench, from the control node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: virtual_limits
short_description: Limit, unplug and plug the drives of a virtual bench
description:
  - Sets the IOPS and bandwidth that QEMU grants to each drive, and reads them back. What is not given is what the
    inventory declared, so an empty task puts every limit back.
  - Runs on the control node, with the interpreter that runs Ansible. The bench must be on.
options:
  state_dir:
    description: Where the bench keeps its files.
    type: path
    required: true
  state:
    description: V(limited) sets limits, V(unplugged) pulls O(drive) unasked, V(plugged) puts it back.
    type: str
    choices: [limited, unplugged, plugged]
    default: limited
  iops:
    description: Requests per second for each drive (WWN or serial) or for C(all); 0 is no limit.
    type: dict
    default: {}
  bandwidth:
    description: Bytes per second (C(24MiB)) for each drive (WWN or serial) or for C(all); 0 is no limit.
    type: dict
    default: {}
  drive:
    description: The drive to unplug or plug, by WWN or serial.
    type: str
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
author: storqual contributors
"""

EXAMPLES = r"""
- name: A candidate that is five percent slower
  virtual_limits:
    state_dir: "{{ virtual_bench_state }}"
    iops: {all: 950}
  delegate_to: localhost

- name: Every drive as the inventory declares it
  virtual_limits:
    state_dir: "{{ virtual_bench_state }}"
  delegate_to: localhost

- name: Pull a drive
  virtual_limits:
    state_dir: "{{ virtual_bench_state }}"
    state: unplugged
    drive: "0x5000c50015ea0000"
  delegate_to: localhost
"""

RETURN = r"""
limits:
  description: IOPS and bandwidth (bytes/s) in force for each drive that is plugged, as QEMU reports them.
  type: dict
  returned: always
  sample: {"0x5000c50015ea0000": {iops: 950, bandwidth: 0}}
unplugged:
  description: Drives of the bench that are not plugged.
  type: list
  elements: str
  returned: always
  sample: ["0x5000c50015ea0000"]
"""

import traceback
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible.module_utils.storqual_core.kit.quantities import parse_size

try:
    from storqual.virtual_bench import limits, power
    from storqual.virtual_bench.places import BenchPlaces, locked
    from storqual.virtual_bench.qmp import Monitor, converse
    from storqual_core.kit.errors import BadInputError, StorqualError

    IMPORT_TRACEBACK = None
except ImportError:
    IMPORT_TRACEBACK = traceback.format_exc()


def _number(value: object) -> int | None:
    """A limit as people write it, `950` or `24MiB`, or None."""
    try:
        number: int = parse_size(str(value))
    except ValueError:
        return None
    return number


def _numbers(given: dict[str, Any], name: str) -> dict[str, int]:
    """Limits as numbers. Raises BadInputError naming every one that is none."""
    numbers = {drive: _number(value) for drive, value in given.items()}
    problems = [f"{name} of {drive}: {given[drive]!r} is no limit" for drive in given if numbers[drive] is None]
    if problems:
        raise BadInputError(problems)
    return {drive: number for drive, number in numbers.items() if number is not None}


def _plain(found: dict[str, limits.Limit]) -> dict[str, Any]:
    return {drive: {"iops": limit.iops, "bandwidth": limit.bandwidth} for drive, limit in found.items()}


def _apply(params: dict[str, Any], bench: power.PowerState, check: bool) -> dict[str, Any]:
    """Bring the drives into the wanted state; what the task returns."""
    description = bench.bench
    wanted = limits.wanted_limits(
        description, _numbers(params["iops"], "iops"), _numbers(params["bandwidth"], "bandwidth")
    )
    everything = [drive.identity for drive in description.drives]

    async def talk(monitor: Monitor) -> tuple[dict[str, limits.Limit], dict[str, limits.Limit]]:
        before = await limits.read_limits(monitor, description)
        if params["state"] == "limited":
            after = {drive: wanted[drive] for drive in before}
            return (before, after) if check else await limits.set_limits(monitor, description, wanted)
        drive = description.drive(params["drive"]).identity
        if check:
            gone = {drive} if params["state"] == "unplugged" else set()
            present = {drive: wanted[drive]} if params["state"] == "plugged" and drive not in before else {}
            return before, {**{name: limit for name, limit in before.items() if name not in gone}, **present}
        if params["state"] == "unplugged":
            await limits.unplug(monitor, description, drive)
        else:
            await limits.plug(monitor, description, drive, wanted[drive])
        return before, await limits.read_limits(monitor, description)

    before, after = converse(Path(bench.monitor), talk)
    return {
        "changed": before != after,
        "limits": _plain(after),
        "unplugged": [drive for drive in everything if drive not in after],
        "diff": {"before": _plain(before), "after": _plain(after)},
    }


def _change(params: dict[str, Any], check: bool) -> dict[str, Any]:
    """Do what the task says with the bench locked. Raises StorqualError."""
    places = BenchPlaces.of(params["state_dir"])
    with locked(places.lock):
        bench = power.power_state(places)
        if bench is None:
            raise StorqualError("the bench is off; its drives can be limited only while it runs")
        return _apply(params, bench, check)


def main() -> None:
    """Run the task."""
    module = AnsibleModule(
        argument_spec={
            "state_dir": {"type": "path", "required": True},
            "state": {"type": "str", "default": "limited", "choices": ["limited", "unplugged", "plugged"]},
            "iops": {"type": "dict", "default": {}},
            "bandwidth": {"type": "dict", "default": {}},
            "drive": {"type": "str"},
        },
        required_if=[("state", "unplugged", ["drive"]), ("state", "plugged", ["drive"])],
        supports_check_mode=True,
    )
    if IMPORT_TRACEBACK:
        module.fail_json(msg=missing_required_lib("storqual"), exception=IMPORT_TRACEBACK)
    try:
        result = _change(module.params, module.check_mode)
    except StorqualError as problem:
        module.fail_json(msg=str(problem), storqual_exit_code=problem.exit_code)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
