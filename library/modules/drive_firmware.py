# SPDX-License-Identifier: Apache-2.0
"""Have a declared firmware version run in drives."""

from __future__ import annotations

DOCUMENTATION = r"""
module: drive_firmware
short_description: Flash drives, refuse what is not safe, prove what runs
description:
  - Has one image run in the claimed drives named. A drive that runs the version already is left alone; all drives are
    read and decided before the first is written, and one is written after the other.
  - Refused before anything is written - a drive that is not the claimed one (WWN, serial number, model, size), is in
    use or holds data, a file whose SHA-256 or signature is not the declared one, a step between versions that O(from)
    does not allow (without it, anything but a newer version), a flash without an image of the found version to go
    back to, a device that fwupd holds back, and whatever O(consent) does not name.
  - The version that was found is kept in C(<state_dir>/saved.json) with the image that leads back to it; each step is
    noted in C(<state_dir>/firmware.json) before it is taken, so that the next run goes on after a power cut.
  - After the flash the version is read back and mode pages (or the NVMe write cache) are compared with those before;
    what can be put back is put back, what differs still is a failure.
  - V(sg_write_buffer) transfers an image segment by segment and waits for the drive's word that its microcode
    changed; V(nvme) writes to a slot that does not run, where there is one; V(fwupd) installs a cabinet file.
options:
  drives:
    description: The drives to flash by id (WWN, or serial where a drive has none).
    type: list
    elements: str
    required: true
  adapters:
    description: The bench's adapters as its inventory declares them; the claims of the drives are in it.
    type: dict
    required: true
  tool:
    description: The tool that flashes, by the name of a drop.
    type: str
    required: true
  path:
    description: The image on the bench; a relative path begins at O(state_dir), here and below.
    type: path
    required: true
  sha256:
    description: Its SHA-256.
    type: str
    required: true
  version:
    description: The version it makes the drive tell.
    type: str
    required: true
  component:
    description: The part it is for; drives have one.
    type: str
    default: firmware
  signature:
    description: A detached signature of the image, on the bench.
    type: path
    default: ""
  key:
    description: Whose signature it must be - a PEM public key (openssl) or an OpenPGP keyring (gpgv), on the bench.
    type: path
    default: ""
  from:
    description: Versions that it may replace; anything older when empty.
    type: list
    elements: str
    default: []
  rollback:
    description:
      - Images on the bench (C(path), C(sha256), C(version), and C(signature), C(key), C(component) where they have
        them), one of them of the version that is found.
    type: list
    elements: dict
    default: []
  activation:
    description: What starts the image. A tool that asks for more is believed.
    type: str
    choices: [none, reset, reboot, power cycle]
    default: reset
  consent:
    description: Ends of the drives' WWNs (six characters at least); a flash goes beyond a claim.
    type: list
    elements: str
    default: []
  state:
    description:
      - V(present) flashes what is not there. V(proven), after the boot that RV(pending) asked for, only proves.
    type: str
    choices: [present, proven]
    default: present
  state_dir:
    description: Where the bench keeps its lock and what it was like before.
    type: path
    default: /var/lib/storqual
  run:
    description: The run this belongs to.
    type: str
    default: provision
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
author: [storqual]
"""

EXAMPLES = r"""
- name: Firmware 0005 for one drive
  drive_firmware:
    drives: ["0x5000cca0c1d2e300"]
    adapters: "{{ storqual_adapters }}"
    tool: sg_write_buffer
    path: /var/lib/storqual/firmware/HUSMM-0005.bin
    sha256: 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
    version: "0005"
    rollback:
      - {path: /var/lib/storqual/firmware/HUSMM-0004.bin, version: "0004",
         sha256: fcde2b2edba56bf408601fb721fe9b5c338d10ee429ea04fae5511b68fbf8fb9}
    consent: [c1d2e300]
"""

RETURN = r"""
settings:
  description: One entry per drive with the version declared, before and now.
  returned: always
  type: list
  elements: dict
  sample:
    - {name: firmware.firmware, drive: "0x5000cca0c1d2e300", declared: "0005", before: "0004", read_back: "0005",
       changed: true, proven: true, proof: the version was read from it; 60 settings and links are as before}
pending:
  description: What the bench still needs before the image runs; empty when it does.
  returned: success
  type: str
  sample: power cycle
drift:
  description: What was not as declared, a line each.
  returned: success
  type: list
  elements: str
  sample: ["0x5000cca0c1d2e300 firmware.firmware: 0004, declared 0005"]
steps:
  description: What was done, in order; in check mode what would be.
  returned: always
  type: list
  elements: str
  sample: ["/dev/sg2: 64 segments, 262144 bytes transferred"]
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.storqual_core.command import run
from ansible.module_utils.storqual_core.drive_access import claims_for
from ansible.module_utils.storqual_core.firmware_access import Access, Drives
from ansible.module_utils.storqual_core.machine import Machine
from ansible.module_utils.storqual_core.module_result import finish
from ansible.module_utils.storqual_core.provision_firmware import Step, provision_firmware, read_request


def main() -> None:
    """Read arguments, flash or prove, end."""
    module = AnsibleModule(
        argument_spec={
            "drives": {"type": "list", "elements": "str", "required": True},
            "adapters": {"type": "dict", "required": True},
            "tool": {"type": "str", "required": True},
            "path": {"type": "path", "required": True},
            "sha256": {"type": "str", "required": True},
            "version": {"type": "str", "required": True},
            "component": {"type": "str", "default": "firmware"},
            "signature": {"type": "path", "default": ""},
            "key": {"type": "path", "default": ""},
            "from": {"type": "list", "elements": "str", "default": []},
            "rollback": {"type": "list", "elements": "dict", "default": []},
            "activation": {"type": "str", "choices": ["none", "reset", "reboot", "power cycle"], "default": "reset"},
            "consent": {"type": "list", "elements": "str", "default": []},
            "state": {"type": "str", "choices": ["present", "proven"], "default": "present"},
            "state_dir": {"type": "path", "default": "/var/lib/storqual"},
            "run": {"type": "str", "default": "provision"},
        },
        supports_check_mode=True,
    )
    given = module.params
    step = Step(given["state_dir"], given["run"], check=module.check_mode, proof=given["state"] == "proven")

    def work() -> dict[str, Any]:
        request = read_request(given, check=module.check_mode)
        access = Access(given["state_dir"], given["run"], tuple(given["consent"]), run, Machine())
        drives = Drives(access, claims_for(given["adapters"], given["drives"]))
        result: dict[str, Any] = provision_firmware(request, drives, step)
        return result

    finish(module, work)


if __name__ == "__main__":
    main()
