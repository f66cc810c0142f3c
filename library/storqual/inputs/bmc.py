# SPDX-License-Identifier: Apache-2.0
"""A management controller (BMC) as inventories name one, and words and secrets of the programs that reach benches."""

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from storqual.inputs.fields import Text, written
from storqual.inputs.shape import Shape

HOST = re.compile(r"[A-Za-z0-9_\[][A-Za-z0-9_.:%\]-]{0,254}")
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@:/+-]{0,254}")
MOST_PORT = 65535
_VAULTED = "__ansible_vault"
"""How `ansible-inventory --list` shows a value that stands in the file as `!vault`."""


def _host(value: str) -> str:
    # what begins with a hyphen would be an option of the program that is started
    if "{{" not in value and not HOST.fullmatch(value):
        raise ValueError("the name or address of a machine")
    return value


def _word(value: str) -> str:
    if "{{" not in value and not _WORD.fullmatch(value):
        raise ValueError("a name without blanks that does not begin with a hyphen")
    return value


def _secret(value: object) -> object:
    if isinstance(value, Mapping) and set(value) == {_VAULTED}:
        return str(value[_VAULTED])
    if isinstance(value, str) and value and value.isprintable():
        return value
    # never what it is: messages are copied into tickets
    raise ValueError('text in quotes, or a variable of a vault such as "{{ vault_bench01 }}"')


Host = Annotated[Text, AfterValidator(_host)]
Word = Annotated[Text, AfterValidator(_word)]
Port = Annotated[int, Field(ge=1, le=MOST_PORT)]
Secret = Annotated[SecretStr, BeforeValidator(_secret), written("password", type=["string", "object"])]


class Bmc(Shape):
    """A management controller that is asked by ipmitool over lanplus; templates are filled by playbooks."""

    host: Host
    user: Word
    port: Port = 623
    cipher: Annotated[int, Field(ge=0, le=17)] | None = None

    @property
    def argv(self) -> list[str]:
        """Ipmitool and its options, before what it is to do; its password is in no argument."""
        suite = [] if self.cipher is None else ["-C", str(self.cipher)]
        return ["ipmitool", "-I", "lanplus", "-E", "-U", self.user, "-H", self.host, "-p", str(self.port), *suite]


def ipmitool_environment(password: SecretStr | None) -> dict[str, str]:
    """What `-E` reads; nothing where the environment of the control node is to have it."""
    # of the two names that it reads, one may be set already
    names = () if password is None else ("IPMI_PASSWORD", "IPMITOOL_PASSWORD")
    return {name: password.get_secret_value() for name in names if password is not None}
