# SPDX-License-Identifier: Apache-2.0
"""What a bench boots: facts, a trial that boots once, a default."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_boot
short_description: Boot a kernel once, or from now on
description:
  - Reports the running, default and installed kernels, and the builds of drivers loaded and on disk.
  - With O(state=trial) the next start, and only that, boots O(kernel) with O(arguments). A kernel that panics reboots
    by itself into the default, because the boot loader forgot the trial before it started it.
  - What the boot loader held is kept in C(<state_dir>/saved.json) before the first write. This module never reboots.
options:
  state:
    description:
      - V(facts) reads. V(trial) prepares a one-shot boot. V(default) makes O(kernel) the default.
      - V(keep) makes the running kernel the default. V(remember) only saves the current default, for a later restore.
      - V(verify), after the boot, fails unless the trial of O(kernel) with O(mark) runs, with drivers as on disk.
    type: str
    choices: [default, facts, keep, remember, trial, verify]
    default: facts
  kernel:
    description: Release of the kernel, as C(uname -r) prints it. Not needed with V(keep).
    type: str
    default: ""
  initramfs:
    description:
      - File in C(/boot) that the trial boots instead of the kernel's own initramfs, as M(driver_build) made it. With
        V(default) and V(keep) it becomes part of the default, with V(verify) the trial must have booted it.
    type: str
    default: ""
  arguments:
    description: Words added to the kernel command line.
    type: list
    elements: str
    default: []
  mark:
    description: Word that marks the trial on its command line, so that it can be told from the default.
    type: str
    default: trial
  fallback:
    description: Release that must be the default during a trial; what is the default now, when not given.
    type: str
    default: ""
  modules:
    description: Drivers whose builds are wanted.
    type: list
    elements: str
    default: []
  kernels:
    description: Releases, beside the running one, whose drivers on disk are wanted.
    type: list
    elements: str
    default: []
  package:
    description: With V(facts), a kernel package to look for; nothing when not given.
    type: str
    default: ""
  version:
    description: The version that O(package) must have; any when not given.
    type: str
    default: ""
extends_documentation_fragment: [storqual.step]
"""

EXAMPLES = r"""
- name: What runs, and which driver
  kernel_boot:
    modules: [sym53c8xx, mptsas]

- name: Boot another kernel once
  kernel_boot:
    state: trial
    kernel: 6.1.0-56-amd64
    arguments: [mitigations=off]
    mark: s02
"""

RETURN = r"""
facts:
  description: Kernels and drivers of the bench, after the step.
  returned: success
  type: dict
  sample:
    running: 6.1.0-56-amd64
    found_running: 6.1.0-47-amd64
    found_default: 6.1.0-47-amd64
    boot_id: 0c7f4a0e-0f5c-4a39-9d0c-2c7a4a3d8a11
    trial: s02
    initramfs: ""
    default: {release: 6.1.0-47-amd64, entry: gnulinux-simple}
    installed: {6.1.0-47-amd64: initrd.img-6.1.0-47-amd64, 6.1.0-56-amd64: initrd.img-6.1.0-56-amd64}
    modules: {sym53c8xx: {loaded: {srcversion: 1F2C, version: 2.2.3}}}
package:
  description: Whether the package is installed, and its kernel.
  returned: when a package was asked for
  type: dict
  sample: {missing: false, kernel: 6.1.0-56-amd64, version: 6.1.147-1, settings: []}
evidence:
  description: What a kernel that did not start left in pstore.
  returned: when a trial failed
  type: list
  elements: dict
  sample: [{name: /sys/fs/pstore/dmesg-erst-1, text: "Kernel panic - not syncing"}]
settings:
  description: What was set.
  returned: always
  type: list
  elements: dict
  sample: [{name: boot.trial, declared: 6.1.0-56-amd64, before: "", read_back: 6.1.0-56-amd64, changed: true}]
steps:
  description: What was done, in order; in check mode what would be.
  returned: always
  type: list
  elements: str
  sample: [one-shot boot of 6.1.0-56-amd64 prepared]
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.storqual_core.kit.arguments import STEP, WORDS
from ansible.module_utils.storqual_core.kit.command import run
from ansible.module_utils.storqual_core.kit.results import finish
from ansible.module_utils.storqual_core.provision.boot import BootRequest, provision_boot
from ansible.module_utils.storqual_core.provision.kernel_boot import System


def main() -> None:
    """Read arguments, do the step, end."""
    module = AnsibleModule(
        argument_spec={
            "state": {
                "type": "str",
                "choices": ["default", "facts", "keep", "remember", "trial", "verify"],
                "default": "facts",
            },
            "kernel": {"type": "str", "default": ""},
            "initramfs": {"type": "str", "default": ""},
            "arguments": WORDS,
            "mark": {"type": "str", "default": "trial"},
            "fallback": {"type": "str", "default": ""},
            "modules": WORDS,
            "kernels": WORDS,
            "package": {"type": "str", "default": ""},
            "version": {"type": "str", "default": ""},
            **STEP,
        },
        supports_check_mode=True,
    )
    given = dict(module.params)
    if given["state"] == "keep":
        given.update(state="default", kernel="")
    request = BootRequest(**given, check=module.check_mode)
    finish(module, lambda: provision_boot(request, System(run)))


if __name__ == "__main__":
    main()
