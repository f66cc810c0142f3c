# SPDX-License-Identifier: Apache-2.0
"""Set the NVRAM of many adapters in one call."""

from __future__ import annotations

DOCUMENTATION = r"""
module: hba_nvram
short_description: Set what adapters keep in their NVRAM
description:
  - Sets settings that an adapter keeps itself (C(execution_throttle), C(frame_size), C(host_scsi_id), C(max_tags)
    and so on, the C(nvram) names of a drop), reads them back, starts the adapter's driver again so that it reads
    them, and says whether the driver works with them.
  - Each name is mapped to the tool of the adapter. All adapters are read and planned before the first one is
    written. An unknown name, a value that does not fit, a SCSI id that a drive has, a tool whose help does not
    confirm the syntax, or a drive in use behind an adapter whose driver must start again is found then.
  - Old values, and of an EEPROM the whole image, are kept in C(<state_dir>/saved.json) before the first write.
  - How far each backend is verified is in the proof of each setting.
  - V(dc390) (Tekram DC-390, driver am53c974) is C(live), done on the virtual bench. It programs the serial EEPROM
    through PCI configuration space (C(host_scsi_id), C(max_tags), C(scsi_parity), C(scsi_bus_reset)). The driver
    am53c974 reads the first two only.
  - V(qaucli), V(scli) (QLogic, driver qla2xxx) are C(probed). Parameters are read by the labels of C(-c); writing
    with C(-n) is known from manuals only and refused unless the tool's own help names the alias.
  - V(lsiutil) (LSI Fusion-MPT) is C(recorded). Interrupt coalescing in IO controller page 1, by the dialogue that
    was recorded on another page; the SATA queue depth is read only.
  - V(hbacmd) (Emulex, driver lpfc) is C(probed). C(boot_rom) only; what lpfc does itself are module options.
  - V(storcli), V(perccli) have the controller properties that their tool files name.
  - Where a driver does not follow the NVRAM (qla2xxx and C(execution_throttle)) the setting is told as not in
    effect, and RV(throttle) names what must be set as the driver's own parameter; M(bench_apply) does.
options:
  nvram:
    description: Declared settings by adapter alias, with the C(nvram) names of a drop.
    type: dict
    required: true
  start_driver:
    description:
      - Start the driver of an adapter that was written again; without it the values count from its next start.
    type: bool
    default: true
  start:
    description:
      - Adapters whose driver starts again in this step in any case; sessions of a campaign whose change is a reload
        are starts of their own, else two neighbours of one arm would be one session that is counted twice.
    type: list
    elements: str
    default: []
  as_found:
    description: Names by adapter alias that must have the value they had before the run, where the run changed it.
    type: dict
    default: {}
extends_documentation_fragment: [storqual.adapters, storqual.step]
"""

EXAMPLES = r"""
- name: Another SCSI id, and sixteen tags per target
  hba_nvram:
    adapters: "{{ storqual_adapters }}"
    nvram:
      dc390: {host_scsi_id: 6, max_tags: 16}
"""

RETURN = r"""
settings:
  description: One entry per adapter and declared setting.
  returned: always
  type: list
  elements: dict
  sample:
    - {name: nvram.host_scsi_id, adapter: dc390, declared: 6, before: 7, read_back: 6, changed: true, proven: true,
       proof: "the driver started with SCSI id 6 (kernel log) (spelling: live)"}
throttle:
  description: Execution throttles by adapter alias that only take effect as a parameter of the driver.
  returned: success
  type: dict
  sample: {fc0: 32}
drift:
  description: What was not as declared, a line each.
  returned: success
  type: list
  elements: str
  sample: ["dc390 nvram.host_scsi_id: 7, declared 6"]
steps:
  description: What was written, in order; in check mode what would be.
  returned: always
  type: list
  elements: str
  sample: ["dc390: nvram.host_scsi_id set to 6", "dc390: driver am53c974 started again"]
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.storqual_core.kit.command import run
from ansible.module_utils.storqual_core.kit.results import ADAPTERS, STEP, WORDS, finish
from ansible.module_utils.storqual_core.provision.nvram import NvramBench, NvramRequest, provision_nvram


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "nvram": {"type": "dict", "required": True},
            "start_driver": {"type": "bool", "default": True},
            "start": WORDS,
            "as_found": {"type": "dict", "default": {}},
            **ADAPTERS,
            **STEP,
        },
        supports_check_mode=True,
    )
    request = NvramRequest(**module.params, check=module.check_mode)
    finish(module, lambda: provision_nvram(request, NvramBench(run)))


if __name__ == "__main__":
    main()
