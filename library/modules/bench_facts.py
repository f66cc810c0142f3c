# SPDX-License-Identifier: Apache-2.0
"""Read everything storqual knows about a bench in one call."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_facts
short_description: Adapters, drives, volumes, kernel and tools of a bench, as one fact set
description:
  - Reads what the kernel shows of storage adapters (PCI address, ids, link now and possible, NUMA node, interrupts,
    driver build, firmware, SCSI hosts), drives (identity, place, queue, cache, error counters, sectors written),
    volumes and enclosures, with the kernel, its command line and default boot entry, processor, memory and tools.
  - Files of the kernel and of configuration; a command is started only for a C(fio) that no package brought
    (C(fio --version)), and on a bench of RPM packages (C(rpm -q)). Nothing is changed.
  - With O(deep) the tools that are installed are asked as well, several commands per drive. Slots (C(dmidecode)),
    vital product data and PCI errors (C(lspci)), devices that are no disks (C(lsscsi), C(sg_inq)), mode pages with
    what can be changed (C(sdparm), else C(sg_modes)), health and error counters (C(smartctl), C(nvme)), the digest
    of an adapter's NVRAM, and everything that vendor tools know of adapters, drives, volumes and enclosures.
  - Device strings are returned byte for byte (Latin-1), without blanks and NULs at their end. They are hostile text.
options:
  state_dir:
    description: Where the bench keeps its spool; the disk behind it is a system disk.
    type: path
    default: /var/lib/storqual
  adapters:
    description: The bench's adapters as its inventory declares them, for the fingerprint under the inventory's names.
    type: dict
    default: {}
  deep:
    description: Ask tools as well. What they cannot read is a sentence in C(facts.unread).
    type: bool
    default: false
  logs:
    description: Ask the claimed drives of O(adapters) for their records (C(nvme), C(smartctl), C(sg_logs)).
    type: bool
    default: false
attributes:
  check_mode:
    description: In check mode everything is read and compared, and nothing is written.
    support: full
  diff_mode:
    description: Nothing is changed, so there is nothing to show.
    support: none
author: [storqual contributors (!UNKNOWN)]
"""

EXAMPLES = r"""
- name: Look at the bench
  bench_facts:
  register: bench

- name: Ask the tools as well
  bench_facts:
    deep: true
  register: bench_in_depth
"""

RETURN = r"""
facts:
  description:
    - The fact set; sizes in bytes, times in seconds, counters since boot.
    - C(kind) says what kind of bench this is (packages, boot loader, initramfs, Secure Boot and more), each with its
      evidence. An empty value is not known; its evidence is what was looked at.
    - With O(deep) also C(slots), C(pci), C(devices) (SCSI devices that are no disks), C(hidden_drives) (disks behind
      RAID controllers), C(tool_facts) (what each vendor tool said, whole), C(shelves) (elements of shelves, with
      the drive in each slot), C(multipath) (maps with their paths), C(conditions) (what is not well among these, a
      sentence each) and C(unread) (what could not be read);
      C(adapters) get C(vpd), C(pci_errors), C(versions), C(health), C(nvram) and C(tools); C(drives) get
      C(mode_pages), C(health), C(namespace) and C(position); C(volumes) and C(enclosures) those of controllers.
  returned: always
  type: dict
  sample:
    schema: storqual.facts/1
    boot_id: 5ff9cf9e-2f2c-4a4e-9b0c-7d3d2f1f8e1a
    kernel: {release: 6.1.0-47-amd64, cmdline: "root=LABEL=bench ro", version: "#1 SMP", tainted: "0"}
    default_boot: {release: 6.1.0-47-amd64, entry: "0"}
    kind:
      packages: {value: dpkg, evidence: /boot/vmlinuz-6.1.0-47-amd64 is from package linux-image-6.1.0-47-amd64}
      loader: {value: grub, evidence: /boot/grub/grub.cfg has its entries itself}
      lockdown: {value: "", evidence: not known; looked at /sys/kernel/security/lockdown}
    adapters:
      - pci: "0000:00:05.0"
        vendor: "1000"
        device: "0012"
        subsystem: "1000:1000"
        driver: sym53c8xx
        module: {name: sym53c8xx, version: 2.2.3, srcversion: 2A1C6B1F0F5C0B5B0A7C9F1}
        drives: ["0x5000c50015ea0000"]
    drives:
      - id: "0x5000c50015ea0000"
        name: sda
        serial: SYM0000001
        model: ST336607LW
        size: 1073741824
        queue: {queue_depth: "30", scheduler: "[mq-deadline] none"}
        errors: {ioerr_cnt: 0}
environment:
  description: The bench's fingerprint, for comparison before and after a run.
  returned: always
  type: dict
  sample: {kernel: {release: 6.1.0-47-amd64}, adapters: {sym: {driver: sym53c8xx}}}
logs:
  description: What claimed drives have on record, by drive, and what they do not answer; empty without O(logs).
  returned: always
  type: dict
  sample: {"0x5000c50015ea0000": {counters: {grown_defects: 0}, answered: [smartctl], unread: []}}
smart:
  description: Of these, errors that healthy use never raises, by drive and counter.
  returned: always
  type: dict
  sample: {"0x5000c50015ea0000": {grown_defects: 0}}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.storqual_core.facts.bench_facts import environment_of, read_facts
from ansible.module_utils.storqual_core.facts.preflight import claimed_drives
from ansible.module_utils.storqual_core.facts.tool_facts import errors_on_record, read_drive_logs
from ansible.module_utils.storqual_core.kit.results import STATE_DIR, finish


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **STATE_DIR,
            "adapters": {"type": "dict", "default": {}},
            "deep": {"type": "bool", "default": False},
            "logs": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )

    def look() -> dict[str, Any]:
        facts = read_facts(state_dir=module.params["state_dir"], deep=module.params["deep"])
        adapters = module.params["adapters"]
        logs = read_drive_logs(claimed_drives(facts, adapters)) if module.params["logs"] else {}
        reading = {"facts": facts, "environment": environment_of(facts, adapters)}
        return {"changed": False, **reading, "logs": logs, "smart": errors_on_record(logs)}

    finish(module, look)


if __name__ == "__main__":
    main()
