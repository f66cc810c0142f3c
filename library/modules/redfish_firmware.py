# SPDX-License-Identifier: Apache-2.0
"""Decide on a firmware inventory that a management controller gave."""

from __future__ import annotations

DOCUMENTATION = r"""
module: redfish_firmware
short_description: Decide whether a management controller must and may flash an adapter, and check that it did
description:
  - Looks at the firmware inventory that M(community.general.redfish_info) read, and decides as M(adapter_firmware)
    does which version may replace which. It contacts nothing and changes nothing.
options:
  entries:
    description: The entries of the inventory.
    type: list
    elements: dict
    required: true
  target:
    description: Id or name of the adapter's entry.
    type: str
    required: true
  version:
    description: The version that is declared.
    type: str
    required: true
  from:
    description: Versions that it may replace; anything older when empty.
    type: list
    elements: str
    default: []
  adapter:
    description: The adapter's alias, for the record.
    type: str
    required: true
  found:
    description: With V(proven), the version that was found before.
    type: str
    default: ""
  answer:
    description: What the controller answered to a request that failed; its words end the task.
    type: str
    default: ""
  state:
    description: V(planned) decides; V(proven) fails when the declared version is not there.
    type: str
    choices: [planned, proven]
    default: planned
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
author: [storqual]
"""

EXAMPLES = r"""
- name: Must it be flashed?
  redfish_firmware:
    entries: "{{ inventory.redfish_facts.firmware.entries }}"
    target: HBA 9500
    version: 28.00
    adapter: sas0
"""

RETURN = r"""
needed:
  description: The declared version is not there.
  returned: success
  type: bool
  sample: true
found:
  description: The version that is there.
  returned: success
  type: str
  sample: "27.00"
drift:
  description: What is not as declared, a line each.
  returned: success
  type: list
  elements: str
  sample: ["sas0 firmware.firmware: 27.00, declared 28.00"]
settings:
  description: The version before and now.
  returned: success
  type: list
  elements: dict
  sample: [{name: firmware.firmware, adapter: sas0, declared: "28.00", before: "27.00", read_back: "28.00",
    changed: true, proven: true, proof: the management controller tells it}]
"""

from typing import Any, Mapping

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.storqual_core.kit.errors import ToolError
from ansible.module_utils.storqual_core.kit.results import Provisioned, finish
from ansible.module_utils.storqual_core.provision.firmware.subject import order_problem, same_version
from ansible.module_utils.storqual_core.tools.redfish import find_version, parse_error


def main() -> None:
    """Read arguments, decide, end."""
    module = AnsibleModule(
        argument_spec={
            "entries": {"type": "list", "elements": "dict", "required": True},
            "target": {"type": "str", "required": True},
            "version": {"type": "str", "required": True},
            "from": {"type": "list", "elements": "str", "default": []},
            "adapter": {"type": "str", "required": True},
            "found": {"type": "str", "default": ""},
            "answer": {"type": "str", "default": ""},
            "state": {"type": "str", "choices": ["planned", "proven"], "default": "planned"},
        },
        supports_check_mode=True,
    )
    finish(module, lambda: decide(module.params))


def decide(given: Mapping[str, Any]) -> dict[str, Any]:
    """The module's result. Raises ToolError."""
    alias, declared = given["adapter"], given["version"]
    if given["answer"]:
        raise ToolError(f"{alias}: the management controller did not flash it: {_words(given['answer'])}")
    now = find_version(given["entries"], given["target"])
    needed = not same_version(now, declared)
    if needed and given["state"] == "proven":
        raise ToolError(f"{alias}: {declared} was written and the management controller tells {now}")
    wrong = order_problem(now, declared, given["from"] or None) if needed else ""
    if wrong:
        raise ToolError(f"{alias}: {wrong}")
    before = given["found"] or now
    record = Provisioned(
        name="firmware.firmware",
        declared=declared,
        before=before,
        read_back=now if needed else declared,
        adapter=alias,
        changed=not same_version(now, before),
    )
    if not needed:
        record = record.with_proof(proven=True, proof="the management controller tells it")
    return {
        "changed": False,
        "needed": needed,
        "found": now,
        "drift": [f"{alias} firmware.firmware: {now}, declared {declared}"] if needed else [],
        "settings": [record.record()],
    }


def _words(answer: str) -> str:
    """The words of an error body, or the answer itself."""
    try:
        return str(parse_error(answer))
    except ToolError:
        return answer[:500]


if __name__ == "__main__":
    main()
