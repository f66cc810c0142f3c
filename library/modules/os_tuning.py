# SPDX-License-Identifier: Apache-2.0
"""Set the CPU frequency governor, and which CPUs take adapters' interrupts."""

from __future__ import annotations

DOCUMENTATION = r"""
module: os_tuning
short_description: Set the CPU frequency governor and the CPUs that take adapters' interrupts
description:
  - Sets C(scaling_governor) of all CPUs, and C(smp_affinity_list) of the interrupts of adapters, then reads back.
    Where the kernel tells which CPU takes an interrupt, that is the proof.
  - irqbalance would move the interrupts again. It is stopped while an affinity is declared, and started by the
    restore if it ran.
  - Refused before any write are a bench without cpufreq, a governor it does not have, CPUs that are not online, and
    interrupts that the kernel spreads itself (managed interrupts, as of NVMe).
  - Old values are kept in C(<state_dir>/saved.json) before the first write. A boot forgets these settings.
options:
  governor:
    description: The governor of all CPUs; none is set when empty.
    type: str
    default: ""
  irq_affinity:
    description: CPU numbers by adapter alias; every interrupt of the adapter may go to each of them.
    type: dict
    default: {}
  as_found:
    description: Names (V(governor), V(irq_affinity)) that must have the value they had before the run.
    type: list
    elements: str
    default: []
  prove_s:
    description:
      - Show which CPUs take the interrupts by this many seconds of reads of claimed drives behind each adapter, and
        the governor by the frequency of each CPU. 0 does not. Nothing is written; skipped in check mode.
    type: float
    default: 0
  state:
    description: V(possible) touches nothing and only refuses what cannot be on this bench, whatever driver it boots.
    type: str
    choices: [present, possible]
    default: present
extends_documentation_fragment: [storqual.adapters, storqual.step]
"""

EXAMPLES = r"""
- name: Full speed, and the HBA's interrupts on the first two CPUs
  os_tuning:
    adapters: "{{ storqual_adapters }}"
    governor: performance
    irq_affinity: {sas0: [0, 1]}
"""

RETURN = r"""
settings:
  description: One entry per setting, C(os.irqbalance) among them where an affinity is declared.
  returned: always
  type: list
  elements: dict
  sample:
    - {name: os.irq_affinity, adapter: sas0, declared: [0, 1], before: [0, 1, 2, 3], read_back: [0, 1], changed: true,
       proven: true, proof: the kernel has 8 of 8 interrupts on these CPUs}
drift:
  description: What was not as declared, a line each.
  returned: success
  type: list
  elements: str
  sample: ["bench os.governor: powersave, declared performance"]
steps:
  description: What was written, in order; in check mode what would be.
  returned: always
  type: list
  elements: str
  sample: ["bench: governor set to performance"]
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.storqual_core.kit.arguments import ADAPTERS, STEP, WORDS
from ansible.module_utils.storqual_core.kit.machine import Machine
from ansible.module_utils.storqual_core.kit.results import finish
from ansible.module_utils.storqual_core.provision.os_tuning import OsRequest, provision_os


def main() -> None:
    """Read arguments, do the step, end."""
    module = AnsibleModule(
        argument_spec={
            "governor": {"type": "str", "default": ""},
            "irq_affinity": {"type": "dict", "default": {}},
            "prove_s": {"type": "float", "default": 0.0},
            "as_found": WORDS,
            "state": {"type": "str", "choices": ["present", "possible"], "default": "present"},
            **ADAPTERS,
            **STEP,
        },
        supports_check_mode=True,
    )
    given = dict(module.params)
    possible = given.pop("state") == "possible"
    request = OsRequest(**given, possible=possible, check=module.check_mode)
    finish(module, lambda: provision_os(request, Machine()))


if __name__ == "__main__":
    main()
