# SPDX-License-Identifier: Apache-2.0
"""Reserve a bench for a campaign; the code is the action plugin of this name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_lease
short_description: Reserve a bench for a campaign, or give it back
description:
  - Reserves a bench for the expected time of a campaign and a quarter of it. It is renewed while the play lives, and
    may be taken ten minutes after its last renewal.
  - A bench that somebody else has is waited for, in order, or refused with who has it, where, why and until when.
  - What an earlier reservation left running on the bench is ended first.
options:
  run:
    description: The run directory of the campaign on the control node.
    type: path
  state_dir:
    description: State folder of the bench.
    type: path
  python:
    description: The bench's Python interpreter; by default the one that its inventory names.
    type: path
  queue:
    description: A folder where reservations are kept besides, which control nodes may share.
    type: path
  wait:
    description: For how long a bench that somebody else has is waited for, such as V(8h).
    type: str
  queued:
    description: What an earlier call reserved in that folder.
    type: str
  only_queue:
    description: Reserve the bench in that folder only.
    type: bool
    default: false
  take:
    description: Let that folder decide, whatever the bench itself remembers.
    type: bool
    default: false
  release:
    description: Give back O(lease) and O(queued).
    type: bool
    default: false
  lease:
    description: The reservation to be given back.
    type: str
author: [storqual contributors (!UNKNOWN)]
"""

EXAMPLES = r"""
- name: Reserve the bench
  bench_lease:
    run: "{{ plan_run }}"
    state_dir: /var/lib/storqual
    python: /usr/bin/python3
    wait: 8h
  register: reserved

- name: Give the bench back
  bench_lease:
    release: true
    state_dir: /var/lib/storqual
    python: /usr/bin/python3
    lease: "{{ reserved.lease }}"
"""

RETURN = r"""
lease:
  description: The reservation of the bench, for E(STORQUAL_LEASE) of every later command; empty for none.
  returned: success
  type: str
queued:
  description: The reservation in the folder; empty for none.
  returned: success
  type: str
"""
