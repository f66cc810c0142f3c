# SPDX-License-Identifier: Apache-2.0
"""Give a bench the declared volumes."""

from __future__ import annotations

DOCUMENTATION = r"""
module: raid_layout
short_description: Create RAID volumes of claimed drives
description:
  - Compares the volumes that a bench has with the declared ones, by level, members, strip and spares, and by the name
    where one is declared. A volume that is there already stays, whatever it is called; its policies are set.
  - What must be made is made behind the guard, read back, and initialised as declared. With md the guard lets go of
    the members for mdadm, takes the array in their place, and looks again at everything.
  - A volume that is in the way is deleted only when this run made it, or when I(consent) names the WWNs of all its
    members and nobody uses it. What was on it is lost; only volumes that a run made itself are undone by restoring.
  - A volume that is degraded and not being rebuilt is a failure, not a change.
  - With md, RAID 0, 1, 5, 6 and 10 are made with metadata 1.2. Member caches are C(drive) settings there.
options:
  volumes:
    description:
      - Declared volumes with the C(raid) names of a drop, each with the C(adapter) it is for and its C(members) by
        drive id.
    type: list
    elements: dict
    default: []
  consent:
    description: Ends of WWNs (six characters at least) of the members of volumes that may be deleted.
    type: list
    elements: str
    default: []
  only:
    description: Remove volumes that this run made and that are not declared any more.
    type: bool
    default: false
  wait_s:
    description: How long to wait for volumes to be initialised or rebuilt; the rest is returned as RV(progress).
    type: float
    default: 0
extends_documentation_fragment: [storqual.adapters, storqual.step]
"""

EXAMPLES = r"""
- name: Three drives as RAID 5 with a strip of 64 KiB, initialised
  raid_layout:
    adapters: "{{ storqual_adapters }}"
    wait_s: 3600
    volumes:
      - adapter: fusion
        level: "5"
        strip: 64k
        initialisation: full
        members: ["0x5000c5001f2a0000", "0x5000c5001f2a0010", "0x5000c5001f2a0020"]
"""

RETURN = r"""
settings:
  description: One entry per volume and declared setting, and its state.
  returned: always
  type: list
  elements: dict
  sample: [{name: raid.strip, adapter: fusion/r5, declared: 65536, before: null, read_back: 65536, changed: true}]
drift:
  description: What was not as declared, a line each.
  returned: success
  type: list
  elements: str
  sample: ["fusion/r5 raid.level: None, declared 5"]
steps:
  description: What was done, in order; in check mode what would be.
  returned: always
  type: list
  elements: str
  sample: ["fusion/r5: RAID 5 of 3 drives made"]
progress:
  description: Percent done by volume and task (C(initialise), C(rebuild), C(reshape), C(check)) of what is under way.
  returned: success
  type: dict
  sample: {fusion/r5: {initialise: 12.5}}
"""

from typing import Any, Mapping

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.storqual_core.kit.results import ADAPTERS, STEP, WORDS, finish
from ansible.module_utils.storqual_core.provision.raid.layout import (
    Chooser,
    RaidRequest,
    provision_volumes,
    volumes_of,
)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "volumes": {"type": "list", "elements": "dict", "default": []},
            "consent": WORDS,
            "only": {"type": "bool", "default": False},
            "wait_s": {"type": "float", "default": 0.0},
            **ADAPTERS,
            **STEP,
        },
        supports_check_mode=True,
    )
    finish(module, lambda: work(module.params, check=module.check_mode))


def work(given: Mapping[str, Any], *, check: bool) -> dict[str, Any]:
    request = RaidRequest(
        volumes=given["volumes"],
        adapters=given["adapters"],
        state_dir=given["state_dir"],
        run=given["run"],
        consent=given["consent"],
        only=given["only"],
        wait_s=given["wait_s"],
        check=check,
    )
    backends = volumes_of(request.state_dir, request.run, request.consent)
    result: dict[str, Any] = provision_volumes(request, backends, Chooser(request.adapters).tool)
    return result


if __name__ == "__main__":
    main()
