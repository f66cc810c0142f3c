# SPDX-License-Identifier: Apache-2.0
"""Whether SELinux decides anything on this machine."""

from __future__ import annotations

from ..kit.machine import Machine

ENFORCE = "/sys/fs/selinux/enforce"
_OWN_CONTEXT = "/proc/self/attr/current"


def has_policy(machine: Machine) -> bool:
    """Whether a policy is loaded: a kernel that has SELinux and was given none leaves every process as `kernel`."""
    return machine.exists(ENFORCE) and machine.text(_OWN_CONTEXT) != "kernel"
