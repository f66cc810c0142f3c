# SPDX-License-Identifier: Apache-2.0
"""The command lines by which Ansible's connection reaches a bench, for what does not go through Ansible."""

import json
import os
import shlex
from pathlib import Path
from typing import Any

from storqual.bench.follow import Connection, ConnectionLostError
from storqual_core.kit.errors import StorqualError
from storqual_core.kit.lock import LockedError, LockHolder

_GREETING = "BECOME-SUCCESS-"


def ssh_words(connection: Any, address: str, *given: str) -> list[str]:  # noqa: ANN401 - Ansible publishes no types
    """The command line of Ansible's SSH with `given` behind its options. Raises StorqualError for a password."""
    if connection.get_option("password"):
        raise StorqualError("this needs a key for SSH, not a password")
    connection.host = connection.get_option("host") or address
    # the plugin tells nobody how it reaches a bench but by this
    words = connection._build_command(connection.get_option("ssh_executable"), "ssh", *given)  # noqa: SLF001
    return [os.fsdecode(word) for word in words]


def lasting_connection(connection: Any, address: str, *, lease: str = "") -> Connection:  # noqa: ANN401 - as above
    """Ansible's connection for what outlasts a command, under a reservation if any.

    Raises StorqualError for one that asks for passwords.
    """
    ssh, become = connection, connection.become
    if ssh.transport == "local":
        return Connection("this machine", lambda command: ["sh", "-c", command], ["true"], remote=False, lease=lease)
    if ssh.get_option("password") or (become and become.get_option("become_pass")):
        raise StorqualError("trials and programs need a key for SSH and sudo without a password")
    host = ssh.get_option("host") or address

    def there(command: str) -> list[str]:
        shell = ssh._shell  # noqa: SLF001 - what Ansible's own caller hands over
        return ssh_words(ssh, address, host, become.build_become_command(command, shell) if become else command)

    parting = ssh_words(ssh, address, "-O", "exit", host)
    return Connection(str(host), there, parting, _GREETING if become else "", lease=lease)


def refuse_held(connection: Connection, state_dir: str) -> None:
    """Raise LockedError where somebody measures or changes the bench; one that does not answer is nobody's."""
    lock = f"{state_dir}/lock"
    quoted = shlex.quote(lock)
    ask = f"test ! -e {quoted} || flock -w 2 {quoted} true && echo free || cat {quoted}"
    try:
        _, answer = connection.call(ask)
    except ConnectionLostError:
        # it went away meanwhile, and what it shows next is seen
        return
    if answer.strip() == "free":
        return
    try:
        holder = LockHolder(**json.loads(answer))
    except (ValueError, TypeError):
        holder = None
    raise LockedError(Path(lock), holder)
