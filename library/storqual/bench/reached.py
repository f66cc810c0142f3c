# SPDX-License-Identifier: Apache-2.0
"""Reach benches as Ansible reaches them, by its connection or without a play: for what does not go through it."""

import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storqual.base.files import project_root
from storqual.bench.follow import Connection, ConnectionLostError
from storqual.bench.lease import Ask, bench_book, queue_folder
from storqual.bench.program import build_program
from storqual.inputs.labgrid import LabgridPlace, queue_place
from storqual_core.kit.errors import StorqualError
from storqual_core.kit.lock import LockedError, LockHolder

_GREETING = "BECOME-SUCCESS-"
_PYTHON = "ansible_python_interpreter"
_INSTALLED = "python3"
_BOOK_S = 600.0
"""What an earlier reservation left running may take minutes to end."""
_ALONE = "-o ControlMaster=no -o ControlPath=none -o BatchMode=yes -o ConnectTimeout=4"
"""A connection of its own: one that others share may wait for a bench that is gone."""
_SHOWN = ("ansible_", "storqual_", "virtual_bench_state", "inventory_")


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


@dataclass(frozen=True)
class ReachedBench:
    """A bench and the way to it; `variables` are those of its inventory, vaults and templates filled in."""

    name: str
    connection: Connection
    state_dir: str
    python: str
    variables: Mapping[str, Any]

    @property
    def queue(self) -> str:
        """The folder on this control node where its reservations are kept besides; empty for none."""
        return queue_folder(self.name, self.variables)

    @property
    def place(self) -> LabgridPlace | None:
        """The place of labgrid that is part of its reservation. Raises BadInputError."""
        return queue_place(self.variables.get("storqual_queue"), self.name)

    def book(self) -> Ask:
        """Its reservations; the bench program is put there where it is missing. Raises ConnectionLostError."""
        program = build_program()
        there = f"{self.state_dir}/{program.name}"
        status, _ = self.connection.call(f"test -s {shlex.quote(there)}", limit_s=20.0)
        if status:
            self.connection.put(program.read_bytes(), there)

        def shell(command: str) -> tuple[int, str, str]:
            return (*self.connection.call(command, limit_s=_BOOK_S), "")

        return bench_book(shell, [self.python, there], self.state_dir)


def reach(sources: Sequence[str], names: Sequence[str]) -> Iterator[ReachedBench | StorqualError]:
    """Each bench, or why it cannot be reached so (one that asks for a password, a template that nobody can fill)."""
    # before Ansible is imported: it reads its configuration then, and none of a world-writable folder
    os.environ.setdefault("ANSIBLE_CONFIG", str(project_root() / "ansible.cfg"))
    from ansible import constants  # noqa: PLC0415 - see above
    from ansible.cli import CLI  # noqa: PLC0415 - as above
    from ansible.errors import AnsibleError  # noqa: PLC0415 - as above
    from ansible.inventory.manager import InventoryManager  # noqa: PLC0415 - as above
    from ansible.parsing.dataloader import DataLoader  # noqa: PLC0415 - as above
    from ansible.plugins.loader import init_plugin_loader  # noqa: PLC0415 - as above
    from ansible.template import Templar  # noqa: PLC0415 - as above
    from ansible.vars.manager import VariableManager  # noqa: PLC0415 - as above

    init_plugin_loader([])
    loader = DataLoader()
    with suppress(RuntimeError):
        # once in a process; the secrets of the first time count
        loader.set_vault_secrets(
            CLI.setup_vault_secrets(loader, constants.DEFAULT_VAULT_IDENTITY_LIST, auto_prompt=False)
        )
    inventory = InventoryManager(loader=loader, sources=list(sources))
    manager = VariableManager(loader=loader, inventory=inventory)
    for name in names:
        raw = manager.get_vars(host=inventory.get_host(name))
        templar = Templar(loader=loader, variables=raw)
        variables: dict[str, Any] = {}
        for key in filter(_is_needed, raw):
            # such as a password in a vault that is closed: what needs it says so
            with suppress(AnsibleError):
                variables[key] = templar.template(raw[key])
        try:
            yield _reached(name, variables)
        except StorqualError as problem:
            yield problem


def _is_needed(key: str) -> bool:
    # what devices say of themselves is no template
    return key.startswith(_SHOWN) and key not in ("storqual_adapters", "storqual_kernel_rules")


def _reached(name: str, variables: dict[str, Any]) -> ReachedBench:
    from ansible.playbook.play_context import PlayContext  # noqa: PLC0415 - see `reach`
    from ansible.plugins.loader import become_loader, connection_loader  # noqa: PLC0415 - see `reach`

    # the first of two options counts for ssh
    given = {**variables, "ansible_ssh_args": f"{_ALONE} {variables.get('ansible_ssh_args') or ''}".strip()}
    connection = connection_loader.get(str(given.get("ansible_connection") or "ssh"), PlayContext(), os.devnull)
    connection.set_options(var_options=given)
    if given.get("ansible_become"):
        become = become_loader.get(str(given.get("ansible_become_method") or "sudo"))
        become.set_options(var_options=given)
        connection.set_become_plugin(become)
    return ReachedBench(
        name,
        lasting_connection(connection, str(given.get("ansible_host") or name)),
        str(given.get("storqual_state_dir") or "/var/lib/storqual"),
        str(given.get(_PYTHON) or _INSTALLED).replace("auto", _INSTALLED),
        variables,
    )
