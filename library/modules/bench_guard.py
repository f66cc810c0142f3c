# SPDX-License-Identifier: Apache-2.0
"""Compare a bench with its inventory and run the guard over all its claims."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_guard
short_description: Preflight of a bench - facts, identity, the guard over every claim, scratch stamps
description:
  - Compares adapters (PCI address, driver) and drives (WWN, serial, model, size, adapter) with the inventory and runs
    the guard's layers 1 to 4 over every claim. All problems and all refusals are reported at once, in one round trip.
  - A drive is refused unless WWN, serial, model and size are exactly the claimed ones, nothing mounts, holds, exports
    or is made of it, and it is either empty at both ends or carries storqual's own scratch stamps.
  - With I(stamp) the claimed drives that are empty are stamped as storqual's scratch (4 KiB at both ends), and the
    claimed files of a bench of kind C(local) are made. Nothing else is ever written, and there is no way to force it.
  - A bench that is not what the inventory says ends the playbook with exit code 3, a refusal with 4.
options:
  adapters:
    description: The bench's adapters as its inventory declares them (C(storqual_adapters)).
    type: dict
    required: true
  kind:
    description: What the bench is; the drives of a C(local) one are files.
    type: str
    choices: [virtual, hardware, local]
    default: hardware
  purpose:
    description: What the claims are needed for; C(settings) and C(read) do not check what is on the drives.
    type: str
    choices: [read, settings, write, firmware, format, delete_volume]
    default: write
  consent:
    description: Ends of WWNs (six characters at least) of drives for what goes beyond the claim.
    type: list
    elements: str
    default: []
  beside:
    description: The bench's other adapters, where O(adapters) are only those whose firmware is written - what that
      reaches behind the same card must be claimed, unused and named by O(consent) too.
    type: dict
    default: {}
  stamp:
    description: Stamp claimed empty drives, and make claimed files.
    type: bool
    default: false
  logs:
    description: Read the logs of claimed drives, with one or two commands each.
    type: bool
    default: false
  needs:
    description:
      - Programs that will be run on the bench, each with C(programs), names of which one is enough, and what it is
        C(for). One that is not installed is a problem, with the package that brings it.
    type: list
    elements: dict
    default: []
  state_dir:
    description: Where the bench keeps its lock, its spool, and the files that are targets.
    type: path
    default: /var/lib/storqual
  run:
    description: The run this belongs to.
    type: str
    default: preflight
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
- name: May every claimed drive be written?
  bench_guard:
    adapters: "{{ storqual_adapters }}"
    kind: "{{ storqual_kind }}"
"""

RETURN = r"""
problems:
  description: How the bench differs from its inventory, one sentence each.
  returned: always
  type: list
  elements: str
  sample: ["adapter sym at 0000:00:05.0: its driver is none, the inventory says sym53c8xx"]
refusals:
  description: Why the guard refuses, one sentence each, with drive, reason and remedy.
  returned: always
  type: list
  elements: str
  sample: ["drive 0x5000c50015ea0000 (sda, SEAGATE ST336607LW, serial SYM0000001): it is mounted on /data (ext4);
    unmount it, or take the claim out of the inventory"]
stamped:
  description: Drives that were stamped and files that were made; in check mode those that would be.
  returned: always
  type: list
  elements: str
  sample: ["0x5000c50015ea0000"]
conditions:
  description: What is not well around the claimed drives (shelf, paths) or under way on their adapters (patrol read,
    rebuild, check), one sentence each; with O(logs). None of it is a refusal.
  returned: success
  type: list
  elements: str
  sample: ["adapter 0000:3b:00.0 (storcli): a patrol read is under way (3 drives done)"]
environment:
  description: The bench's fingerprint under the inventory's names, for comparison before and after a run.
  returned: success
  type: dict
  sample: {kernel: {release: 6.1.0-47-amd64}, adapters: {sym: {driver: sym53c8xx}}}
logs:
  description: The logs of claimed drives, by drive, and what they do not report; with O(logs).
  returned: success
  type: dict
  sample: {"0x5000c50015ea0000": {counters: {grown_defects: 0}, answered: [smartctl], unread: []}}
smart:
  description: Of these, errors that healthy use never raises, by drive and counter.
  returned: success
  type: dict
  sample: {"0x5000c50015ea0000": {grown_defects: 0}}
facts:
  description: The fact set of M(bench_facts).
  returned: success
  type: dict
  sample: {schema: storqual.facts/1}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.storqual_core.facts.preflight import Request, Result, examine
from ansible.module_utils.storqual_core.facts.tool_facts import errors_on_record
from ansible.module_utils.storqual_core.kit.errors import StorqualError
from ansible.module_utils.storqual_core.kit.machine import visible
from ansible.module_utils.storqual_core.kit.results import STATE_DIR, WORDS


def result_of(outcome: Result) -> dict[str, Any]:
    result: dict[str, Any] = {
        "changed": bool(outcome.stamped),
        "problems": outcome.problems,
        "refusals": outcome.refusals,
        "stamped": outcome.stamped,
    }
    if outcome.exit_code:
        # a person reads this on a terminal; pages of facts would bury the sentence
        return result
    result["conditions"] = outcome.conditions
    result["environment"] = outcome.environment
    result["logs"] = outcome.logs
    result["smart"] = errors_on_record(outcome.logs)
    return {**result, "facts": outcome.facts}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "adapters": {"type": "dict", "required": True},
            "kind": {"type": "str", "choices": ["virtual", "hardware", "local"], "default": "hardware"},
            "purpose": {
                "type": "str",
                "choices": ["read", "settings", "write", "firmware", "format", "delete_volume"],
                "default": "write",
            },
            "consent": WORDS,
            "beside": {"type": "dict", "default": {}},
            "stamp": {"type": "bool", "default": False},
            "logs": {"type": "bool", "default": False},
            "needs": {"type": "list", "elements": "dict", "default": []},
            **STATE_DIR,
            "run": {"type": "str", "default": "preflight"},
        },
        supports_check_mode=True,
    )
    try:
        outcome = examine(Request(**module.params, check=module.check_mode))
    except StorqualError as problem:
        module.fail_json(msg=str(problem), changed=False, storqual_exit_code=problem.exit_code)
        return
    result = result_of(outcome)
    # a drive that is out of reach is explained by the port that is down
    for sentence in [*outcome.conditions, *outcome.unread]:
        module.warn(visible(sentence))
    if outcome.exit_code:
        sentences = [*outcome.problems, *outcome.refusals]
        module.fail_json(msg="\n".join(sentences), storqual_exit_code=outcome.exit_code, **result)
        return
    module.exit_json(**result)


if __name__ == "__main__":
    main()
