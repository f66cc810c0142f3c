#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Power a virtual bench on and off, and limit, unplug and plug its drives, from the control node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: virtual_bench
short_description: Power a virtual bench on or off, cycle or reset it, limit or unplug its drives
description:
  - Builds the bench image when it is not in the cache, starts QEMU in the background, and waits until the guest
    answers SSH and shows its drives.
  - Sets the IOPS and bandwidth that QEMU grants to each drive of a running bench, and reads them back. What is not
    given is what the inventory declared, so V(limited) alone puts every limit back.
  - Runs on the control node, with the interpreter that runs Ansible.
options:
  name:
    description: The inventory host that the bench is.
    type: str
    required: true
  state:
    description:
      - V(image) only makes sure that the image is in the cache; V(up) and V(down) switch the power; V(cycle) switches
        it off and on again; V(reset) presses the reset button.
      - V(limited) sets limits of drives, V(unplugged) pulls O(drive) unasked, V(plugged) puts it back.
    type: str
    choices: [image, up, down, cycle, reset, limited, unplugged, plugged]
    default: up
  state_dir:
    description: Where the bench keeps root disk, drives, console log, keys and C(ssh_config).
    type: path
    required: true
  adapters:
    description: The host's C(storqual_adapters); needed for V(up) and V(cycle).
    type: dict
    default: {}
  virtual:
    description: The host's C(storqual_virtual); needed for V(up) and V(cycle); V(image) reads its flavour only.
    type: dict
    default: {}
  graceful:
    description: Ask the guest to shut down before the plug is pulled.
    type: bool
    default: true
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
    description: In check mode everything is read and compared, and nothing is written.
    support: full
  diff_mode:
    description: What would be powered, limited or plugged is shown before and after.
    support: full
author: [storqual contributors (!UNKNOWN)]
"""

EXAMPLES = r"""
- name: Power the bench on
  virtual_bench:
    name: "{{ inventory_hostname }}"
    state_dir: "{{ virtual_bench_state }}"
    adapters: "{{ storqual_adapters }}"
    virtual: "{{ storqual_virtual }}"
  delegate_to: localhost

- name: Pull its plug
  virtual_bench:
    name: "{{ inventory_hostname }}"
    state_dir: "{{ virtual_bench_state }}"
    state: down
    graceful: false
  delegate_to: localhost

- name: A candidate that is five percent slower
  virtual_bench:
    name: "{{ inventory_hostname }}"
    state: limited
    state_dir: "{{ virtual_bench_state }}"
    iops: {all: 950}
  delegate_to: localhost
"""

RETURN = r"""
power:
  description: V(on) or V(off), after the task.
  type: str
  returned: always
  sample: "on"
power_before:
  description: V(on) or V(off), before the task; a bench that hung was on.
  type: str
  returned: always
  sample: "off"
acceleration:
  description: V(kvm) or V(tcg), with the C(reason) for it.
  type: dict
  returned: when the bench is on
  sample: {name: tcg, reason: /dev/kvm is not there}
ssh_config:
  description: The file for C(ssh -F) that reaches the bench.
  type: str
  returned: always
  sample: /home/lab/storqual/.cache/bench/vbench/ssh_config
console:
  description: The log of the serial console, over all power cycles.
  type: str
  returned: always
  sample: /home/lab/storqual/.cache/bench/vbench/console.log
bench:
  description: Process id, port, boot id, kernel, seconds to SSH and to all drives, drives seen.
  type: dict
  returned: when the bench is on
  sample: {pid: 4242, port: 40022, kernel: 6.1.0-47-amd64, ssh_seconds: 41.5, drives_seen: 12, drives_declared: 12}
messages:
  description: What was worth saying on the way.
  type: list
  elements: str
  returned: always
  sample: [the guest shut down]
limits:
  description: IOPS and bandwidth (bytes/s) in force for each drive that is plugged, as QEMU reports them.
  type: dict
  returned: when drives were limited, unplugged or plugged
  sample: {"0x5000c50015ea0000": {iops: 950, bandwidth: 0}}
unplugged:
  description: Drives of the bench that are not plugged.
  type: list
  elements: str
  returned: when drives were limited, unplugged or plugged
  sample: ["0x5000c50015ea0000"]
"""

import traceback
from typing import Any

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

try:
    from storqual.virtual_bench import power
    from storqual.virtual_bench.description import describe
    from storqual.virtual_bench.image import ensure_image, image_is_cached
    from storqual.virtual_bench.places import BenchPlaces
    from storqual_core.kit.errors import StorqualError

    IMPORT_TRACEBACK = None
except ImportError:
    IMPORT_TRACEBACK = traceback.format_exc()


_POWER = ("image", "up", "down", "cycle", "reset")
_DRIVES = ("limited", "unplugged", "plugged")


def _facts(places: BenchPlaces, state: power.PowerState | None) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "power": "on" if state else "off",
        "ssh_config": str(places.ssh_config),
        "console": str(places.console),
    }
    if state:
        facts["acceleration"] = {"name": state.acceleration, "reason": state.reason}
        facts["bench"] = {
            "pid": state.pid,
            "port": state.port,
            "since": state.since,
            "boot_id": state.boot_id,
            "kernel": state.kernel,
            "ssh_seconds": state.ssh_s,
            "ready_seconds": state.ready_s,
            "attempts": state.attempts,
            "drives_seen": state.drives_seen,
            "drives_declared": state.bench.devices,
        }
    return facts


def _apply(wanted: dict[str, Any], places: BenchPlaces, messages: list[str], check: bool) -> bool:
    """Bring the bench into the wanted state; whether that changed anything."""
    state = wanted["state"]
    if state == "image":
        flavour = wanted["virtual"].get("flavour", "deb")
        missing = not image_is_cached(flavour)
        if missing and not check:
            ensure_image(messages.append, flavour)
        return missing
    if state == "down":
        if check:
            return bool(power.guests(places))
        changed, how = power.power_off(places, graceful=wanted["graceful"])
        messages.append(how)
        return changed
    if state == "reset":
        if not check:
            power.reset(places)
        return True
    description = describe(wanted["name"], wanted["adapters"], wanted["virtual"])
    if check:
        return state == "cycle" or power.power_state(places) is None
    if state == "cycle":
        power.power_cycle(places, description, graceful=wanted["graceful"], say=messages.append)
        return True
    return power.power_on(places, description, say=messages.append)[1]


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "state": {"type": "str", "default": "up", "choices": [*_POWER, *_DRIVES]},
            "state_dir": {"type": "path", "required": True},
            "adapters": {"type": "dict", "default": {}},
            "virtual": {"type": "dict", "default": {}},
            "graceful": {"type": "bool", "default": True},
            "iops": {"type": "dict", "default": {}},
            "bandwidth": {"type": "dict", "default": {}},
            "drive": {"type": "str"},
        },
        required_if=[("state", "unplugged", ["drive"]), ("state", "plugged", ["drive"])],
        supports_check_mode=True,
    )
    if IMPORT_TRACEBACK:
        module.fail_json(msg=missing_required_lib("storqual"), exception=IMPORT_TRACEBACK)
    places = BenchPlaces.of(module.params["state_dir"])
    messages: list[str] = []
    try:
        if module.params["state"] in _DRIVES:
            given = {name: module.params[name] for name in ("state", "iops", "bandwidth")}
            drive = module.params["drive"] or ""
            changes = power.change_drives(places, **given, drive=drive, check=module.check_mode)
            # which it would have refused for a bench that is off
            module.exit_json(power="on", power_before="on", **changes)
        before = _facts(places, power.power_state(places))
        changed = _apply(module.params, places, messages, module.check_mode)
        after = _facts(places, power.power_state(places))
    except StorqualError as problem:
        module.fail_json(msg=str(problem), storqual_exit_code=problem.exit_code, messages=messages)
    diff = {"before": {"power": before["power"]}, "after": {"power": after["power"]}}
    if module.check_mode and changed and module.params["state"] in {"up", "down"}:
        diff["after"]["power"] = "on" if module.params["state"] == "up" else "off"
    module.exit_json(changed=changed, messages=messages, diff=diff, power_before=before["power"], **after)


if __name__ == "__main__":
    main()
