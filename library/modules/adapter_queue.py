# SPDX-License-Identifier: Apache-2.0
"""Set the queue of adapters as the kernel has it, and other options of their drivers' modules."""

from __future__ import annotations

DOCUMENTATION = r"""
module: adapter_queue
short_description: Set module options of drivers, the execution throttle among them
description:
  - Loads drivers with declared module options, and writes the options to C(/etc/modprobe.d/zz-storqual.conf), and to
    the initramfs if that loads the module. A throttle of an adapter becomes the option by which its driver limits
    the commands of each drive (C(ql2xmaxqdepth), C(lpfc_lun_queue_depth), C(cmd_per_lun) of sym53c8xx).
  - A parameter that the module does not have, a value out of its range, and a drive in use behind the driver are
    found before anything is written. A module that cannot be unloaded (a disk of the system is behind it, other
    modules need it) is refused with the words that the kernel's command line needs; with O(plan) these are only
    returned, and the role driver boots with them.
  - The module is loaded with the values first and the file written after it, so that what is in the file runs.
  - The file is what the drop declares over what was found; options that an earlier step of the run put there go
    again.
  - Proof of a queue depth is what the driver gave each claimed drive, and with O(prove_s) the commands in flight.
options:
  options:
    description: Options by module and parameter, as C(driver.options) of a drop has them.
    type: dict
    default: {}
  throttle:
    description:
      - Commands that each drive of an adapter may hold, by adapter alias. An option that O(options) has by its own
        name holds over what a throttle means for it.
    type: dict
    default: {}
  plan:
    description: Change nothing; report which options need a boot.
    type: bool
    default: false
  prove_s:
    description: Seconds of reads per drive that show each queue depth in effect. 0 skips this.
    type: float
    default: 0
extends_documentation_fragment: [storqual.adapters, storqual.step]
"""

EXAMPLES = r"""
- name: Four commands per drive, shown in effect
  adapter_queue:
    adapters: "{{ storqual_adapters }}"
    throttle: {sym: 4}
    prove_s: 1

- name: Options of a driver
  adapter_queue:
    adapters: "{{ storqual_adapters }}"
    options:
      qla2xxx: {ql2xmaxqdepth: 64, ql2xmqsupport: 1}
"""

RETURN = r"""
boot_words:
  description: Words that the kernel's command line must carry, because their module cannot be loaded again.
  returned: success
  type: list
  elements: str
  sample: [scsi_mod.scan=sync]
settings:
  description: One entry per option.
  returned: always
  type: list
  elements: dict
  sample:
    - {name: driver.options.sym53c8xx.cmd_per_lun, declared: "4", before: null, read_back: "4", changed: true,
       proven: true, proof: the driver gave 4 of 4 drives a queue depth of 4}
drift:
  description: What was not as declared, a line each.
  returned: success
  type: list
  elements: str
  sample: ["module option sym53c8xx.cmd_per_lun: not set, declared 4"]
steps:
  description: What was done, in order; in check mode what would be.
  returned: always
  type: list
  elements: str
  sample: [module sym53c8xx loaded again with cmd_per_lun=4, /etc/modprobe.d/zz-storqual.conf written]
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.storqual_core.kit.arguments import ADAPTERS, STEP
from ansible.module_utils.storqual_core.kit.command import run
from ansible.module_utils.storqual_core.kit.results import finish
from ansible.module_utils.storqual_core.provision.adapter_queue import ThrottleRequest, provision_throttle
from ansible.module_utils.storqual_core.provision.options import OptionsBench


def main() -> None:
    """Read arguments, do the step, end."""
    module = AnsibleModule(
        argument_spec={
            "options": {"type": "dict", "default": {}},
            "throttle": {"type": "dict", "default": {}},
            "plan": {"type": "bool", "default": False},
            "prove_s": {"type": "float", "default": 0.0},
            **ADAPTERS,
            **STEP,
        },
        supports_check_mode=True,
    )
    request = ThrottleRequest(**module.params, check=module.check_mode)
    finish(module, lambda: provision_throttle(request, OptionsBench(run)))


if __name__ == "__main__":
    main()
