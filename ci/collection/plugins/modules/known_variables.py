# SPDX-License-Identifier: Apache-2.0
"""Refuse variables with a role's prefix that the role does not know; the code is the action plugin of this name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: known_variables
short_description: Refuse variables with a role's prefix that the role does not know
description:
  - Compares the variables named C(<role>_...) with the argument specification of the role; used as its first task.
    Ansible checks what a role declares and ignores what it does not declare, so a misspelt variable would leave a
    bench as it is without a message.
options:
  also:
    description: Names with the role's prefix that are no inputs, such as facts that the role sets.
    type: list
    elements: str
    default: []
author: [storqual contributors (!UNKNOWN)]
"""

EXAMPLES = r"""
- name: Refuse misspelt variables
  known_variables:
    also: [restore_outcome]
"""

RETURN = r"""
{}
"""
