# SPDX-License-Identifier: Apache-2.0
"""`storqual_console` of a bench: over which way its serial console is read and typed at."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from storqual.inputs.fields import Text
from storqual.inputs.shape import Shape

_HOST = re.compile(r"[A-Za-z0-9_\[][A-Za-z0-9_.:%\]-]{0,254}")
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@:/+-]{0,254}")
_MOST_PORT = 65535


def _host(value: str) -> str:
    # what begins with a hyphen would be an option of the program that is started
    if not _HOST.fullmatch(value):
        raise ValueError("the name or address of a machine")
    return value


def _word(value: str) -> str:
    if not _WORD.fullmatch(value):
        raise ValueError("a name without blanks that does not begin with a hyphen")
    return value


def _address(value: str) -> str:
    host, colon, port = value.rpartition(":")
    if not colon or not _HOST.fullmatch(host) or not port.isascii() or not port.isdigit():
        raise ValueError("host:port, such as console1.lab:7001")
    if not 0 < int(port) <= _MOST_PORT:
        raise ValueError(f"a port from 1 to {_MOST_PORT}")
    return value


def _secret(value: object) -> str:
    """A password is any line of text; what was found is never part of a message."""
    if not isinstance(value, str) or not value or any(mark in value for mark in "\0\r\n"):
        raise ValueError("a password: text in quotes, on one line")
    return value


_Host = Annotated[Text, AfterValidator(_host)]
_Word = Annotated[Text, AfterValidator(_word)]
_Port = Annotated[int, Field(ge=1, le=_MOST_PORT)]


class IpmiSol(Shape):
    """Serial over LAN of a BMC, by `ipmitool -I lanplus`; without a password IPMI_PASSWORD of the environment."""

    host: _Host
    user: _Word
    # excluded: nothing that is written of an inventory has it
    password: Annotated[str, BeforeValidator(_secret)] | None = Field(default=None, exclude=True, repr=False)
    port: _Port = 623
    cipher: Annotated[int, Field(ge=0, le=17)] | None = None


class SshConsole(Shape):
    """A console server that is reached by SSH with a key; `command` is what is run there."""

    host: _Word
    command: Text | None = None


class Conserver(Shape):
    """A console of a conserver, by its program `console`."""

    server: _Host
    name: _Word
    port: _Port = 782


class LabgridConsole(Shape):
    """The console of a labgrid place, by `labgrid-client`; LG_COORDINATOR is taken from the environment."""

    place: _Word


class ConsoleWay(Shape):
    """Exactly one way to the serial console of a bench."""

    ipmi_sol: IpmiSol | None = None
    telnet: Annotated[Text, AfterValidator(_address)] | None = None
    ssh: SshConsole | None = None
    conserver: Conserver | None = None
    labgrid: LabgridConsole | None = None
    virtual: Literal[True] | None = None

    @model_validator(mode="after")
    def _is_one(self) -> ConsoleWay:
        if len(self.model_fields_set) != 1 or getattr(self, self.name) is None:
            raise ValueError(f"exactly one of {', '.join(type(self).model_fields)}")
        return self

    @property
    def name(self) -> str:
        return next(iter(self.model_fields_set), "virtual")

    @property
    def words(self) -> str:
        """The way as people read it, without any secret."""
        if self.ipmi_sol:
            return f"IPMI serial over LAN of {self.ipmi_sol.host}"
        if self.telnet:
            return f"telnet to {self.telnet}"
        if self.ssh:
            return f"SSH to {self.ssh.host}"
        if self.conserver:
            return f"{self.conserver.name} of conserver {self.conserver.server}"
        if self.labgrid:
            return f"labgrid place {self.labgrid.place}"
        return "the serial line of the virtual bench"
