# SPDX-License-Identifier: Apache-2.0
"""Start `ansible-playbook` as this project needs it, wherever it was called from."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from storqual.resources import project_root
from storqual_core.errors import StorqualError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["run_playbook"]

_PR_SET_PDEATHSIG = 1
_STDERR = 2
"""The file descriptor."""


def _end_with_parent() -> None:
    """Have the kernel end ansible-playbook when its parent is killed: a bench goes on by itself, a play must not."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _program() -> Path:
    """`ansible-playbook` of the environment this interpreter belongs to."""
    program = Path(sys.executable).parent / "ansible-playbook"
    if not program.is_file():
        raise StorqualError(f"{program} is missing; install the project into this environment (`make setup`)")
    return program


def run_playbook(
    name: str,
    *,
    inventories: Sequence[str],
    variables: Mapping[str, object],
    options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    output: Path | None = None,
    quiet: bool = False,
) -> int:
    """Run `playbooks/<name>` and return its exit status; its output goes to the terminal, or to the file `output`.

    `quiet` leaves standard output to the caller's own answer: what Ansible says goes to standard error.
    ANSIBLE_CONFIG is set because Ansible does not read an ansible.cfg of another folder or of a world-writable one.
    """
    root = project_root()
    argv = [str(_program()), str(root / "playbooks" / name)]
    for inventory in inventories:
        argv += ["-i", inventory]
    if variables:
        argv += ["-e", json.dumps(variables)]
    argv += options
    calm = {
        # a technician follows the live line; what changed and what failed is still shown
        "ANSIBLE_DISPLAY_OK_HOSTS": "false",
        "ANSIBLE_DISPLAY_SKIPPED_HOSTS": "false",
    }
    env = {**calm, **os.environ, "ANSIBLE_CONFIG": str(root / "ansible.cfg"), **(environment or {})}
    # a file, never a pipe: the SSH master that stays behind would hold a pipe open for minutes
    with output.open("wb") if output else nullcontext() as stream:
        child = subprocess.Popen(
            argv,
            env=env,
            preexec_fn=_end_with_parent,  # noqa: PLW1509 - no threads here yet
            stdout=_STDERR if quiet and stream is None else stream,
            stderr=stream,
        )
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:
            # Ctrl-C reached the play as well; wait for it to end instead of leaving it behind
            continue
