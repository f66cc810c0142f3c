# SPDX-License-Identifier: Apache-2.0
"""Make a bench what is declared for it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_apply
short_description: Apply everything that is declared for a bench, each subsystem in its order
description:
  - Takes what C(storqual resolve) lists for a bench and applies it - firmware, kernel and driver, NVRAM, module
    options, governor and interrupts, settings of drives, volumes. What is there already is left alone.
  - Each subsystem reads, compares, refuses or (remembers the old value in C(<state_dir>/saved.json), writes, reads
    back), and proves. What this bench does not support is refused before anything is touched.
  - A kernel is booted once. One that panics reboots by itself into the default, because the boot loader forgot the
    trial before it started it.
  - What only the control node can do ends the call - RV(needs) and RV(boot_needed) say what; do it and call again
    with O(resume=RV(resume)). The role provision does so. In check mode only RV(needs) with C(controller) ends it.
options:
  declared:
    description: What is declared, as C(storqual resolve --json) has it under C(declared).
    type: dict
    required: true
  kind:
    description: What the bench is; a C(local) one has no driver to boot and no volumes.
    type: str
    choices: [virtual, hardware, local]
    default: hardware
  only:
    description: Apply these subsystems alone; all when empty. V(queue) is that of adapters and that of drives.
    type: list
    elements: str
    choices: [firmware, driver, nvram, queue, os, multipath, modepages, raid]
    default: []
  consent:
    description: Ends of WWNs (six characters at least) of drives for what goes beyond a claim.
    type: list
    elements: str
    default: []
  keep:
    description: Make the kernel the default once it is proven.
    type: bool
    default: false
  save:
    description: Write the saved mode pages too, so that the values hold after the next power-on.
    type: bool
    default: false
  start_driver:
    description: Start the driver of an adapter whose NVRAM was written again.
    type: bool
    default: true
  apt:
    description: A missing kernel package will be installed by apt and not from files.
    type: bool
    default: false
  soak_s:
    description: Seconds for which everything behind a flashed device is read before it counts as proven.
    type: float
    default: 30
  log_rules:
    description: Rules for the kernel's log during the soak. The action plugin passes the shipped ones.
    type: list
    elements: dict
  prove_s:
    description: Seconds of reads per drive and setting that show it in effect. 0 does not; skipped in check mode.
    type: float
    default: 0
  wait_s:
    description: How long to wait for volumes to be initialised or rebuilt; the rest is returned as RV(progress).
    type: float
    default: 0
  brought:
    description:
      - What was done since the last call - C(packages) (package files below O(state_dir)), C(entries) (the firmware
        inventory of the management controller), C(target) (its entry), C(answer) (why a request to it failed).
    type: dict
    default: {}
  resume:
    description: RV(resume) of the call before.
    type: dict
    default: {}
extends_documentation_fragment: [storqual.adapters, storqual.step]
"""

EXAMPLES = r"""
- name: Make the bench what the drop says
  bench_apply:
    declared: "{{ resolved.declared }}"
    adapters: "{{ resolved.bench.adapters }}"
  register: applied

- name: Volumes and NVRAM alone
  bench_apply:
    declared: "{{ resolved.declared }}"
    adapters: "{{ resolved.bench.adapters }}"
    only: [nvram, raid]
"""

RETURN = r"""
settings:
  description: One entry per declared setting - before, now, whether its effect was shown, and how.
  returned: always
  type: list
  elements: dict
  sample:
    - {name: drive.WCE, drive: "0x5000c50015ea71a0", declared: 0, before: 1, read_back: 0, changed: true,
       proven: true, proof: "a flush took 12 ms"}
drift:
  description: What was not as declared, a line each.
  returned: success
  type: list
  elements: str
  sample: ["0x5000c50015ea71a0 drive.WCE: 1, declared 0"]
steps:
  description: What was done, in order; in check mode what would be.
  returned: always
  type: list
  elements: str
  sample: [one-shot boot of 6.1.0-56-amd64 prepared]
driver:
  description: Kernel, boot and drivers that run in the end.
  returned: success
  type: dict
  sample: {kernel: 6.1.0-56-amd64, boot_id: 0c7f4a0e-0f5c-4a39-9d0c-2c7a4a3d8a11, booted: true,
    drivers: {sym53c8xx: {srcversion: 1F2C, version: 2.2.3}}}
needs:
  description: What must be brought before the next call - files, a kernel package, or the management controller.
  returned: success
  type: dict
  sample: {files: [], package: {name: linux-image-6.1.0-56-amd64, version: ""}, controller: {}}
boot_needed:
  description: The boot that must come before the next call (C(reboot) or C(power cycle)), and for what.
  returned: success
  type: dict
  sample: {kind: reboot, reason: kernel 6.1.0-56-amd64}
resume:
  description: What the next call takes; empty when everything is applied.
  returned: success
  type: dict
  sample: {}
progress:
  description: Percent done by volume and task of what is under way.
  returned: success
  type: dict
  sample: {fusion/r5: {initialise: 12.5}}
subsystem:
  description: What failed.
  returned: failure
  type: str
  sample: nvram
evidence:
  description: What a kernel that did not start left in pstore.
  returned: when a trial failed
  type: list
  elements: dict
  sample: [{name: /sys/fs/pstore/dmesg-erst-1, text: "Kernel panic - not syncing"}]
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.storqual_core.kit.results import ADAPTERS, STEP, WORDS, finish
from ansible.module_utils.storqual_core.provision.apply import SUBSYSTEMS, Apply, ApplyRequest


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "declared": {"type": "dict", "required": True},
            "kind": {"type": "str", "choices": ["virtual", "hardware", "local"], "default": "hardware"},
            "only": {**WORDS, "choices": list(SUBSYSTEMS)},
            "consent": WORDS,
            "keep": {"type": "bool", "default": False},
            "save": {"type": "bool", "default": False},
            "start_driver": {"type": "bool", "default": True},
            "apt": {"type": "bool", "default": False},
            "soak_s": {"type": "float", "default": 30},
            "log_rules": {"type": "list", "elements": "dict"},
            "prove_s": {"type": "float", "default": 0.0},
            "wait_s": {"type": "float", "default": 0.0},
            "brought": {"type": "dict", "default": {}},
            "resume": {"type": "dict", "default": {}},
            **ADAPTERS,
            **STEP,
        },
        supports_check_mode=True,
    )
    apply = Apply(ApplyRequest(**module.params, check=module.check_mode))
    finish(module, apply.run, apply.done)


if __name__ == "__main__":
    main()
