# SPDX-License-Identifier: Apache-2.0
"""Call the storqual command on the control node; the code is the action plugin of this name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: storqual_command
short_description: Call the storqual command on the control node and return its JSON answer
description:
  - Runs C(storqual ARGV) on the control node, whatever host the task is for. If the command fails, the task fails
    with the exit code and the message of the command.
options:
  argv:
    description: The arguments.
    type: list
    elements: str
    required: true
  send:
    description: A value that the command gets as JSON on its standard input.
    type: raw
  changes:
    description: Whether the command writes; it is then skipped in check mode.
    type: bool
    default: false
  answers:
    description: Exit codes that are answers and no failures.
    type: list
    elements: int
    default: [0]
author: [storqual contributors (!UNKNOWN)]
"""

EXAMPLES = r"""
- name: Read what is declared for this bench
  storqual_command:
    argv: [inventory, --json]
  register: lab
"""

RETURN = r"""
data:
  description: The answer of the command.
  returned: success
  type: dict
code:
  description: The exit code of the command.
  returned: success
  type: int
"""
