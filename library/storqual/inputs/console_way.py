# SPDX-License-Identifier: Apache-2.0
"""`storqual_console` of a bench: over which way its serial console is read and typed at, and netconsole beside it."""

from ipaddress import ip_address
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from storqual.inputs.bmc import HOST, MOST_PORT, Bmc, Host, Port, Secret, Word
from storqual.inputs.fields import Text
from storqual.inputs.labgrid import LabgridPlace, filled
from storqual.inputs.shape import Shape


def _address(value: str) -> str:
    host, colon, port = value.rpartition(":")
    if not colon or not HOST.fullmatch(host) or not port.isascii() or not port.isdigit():
        raise ValueError("host:port, such as console1.lab:7001")
    if not 0 < int(port) <= MOST_PORT:
        raise ValueError(f"a port from 1 to {MOST_PORT}")
    return value


def _ip(value: str) -> str:
    try:
        return str(ip_address(value))
    except ValueError:
        raise ValueError("an address such as 192.0.2.57") from None


class IpmiSol(Bmc):
    """Serial over LAN of a BMC, by `ipmitool -I lanplus`; without a password IPMI_PASSWORD of the environment."""

    # excluded: nothing that is written of an inventory has it
    password: Secret | None = Field(default=None, exclude=True, repr=False)


class SshConsole(Shape):
    """A console server that is reached by SSH with a key; `command` is what is run there."""

    host: Word
    command: Text | None = None


class Conserver(Shape):
    """A console of a conserver, by its program `console`."""

    server: Host
    name: Word
    port: Port = 782


class Netconsole(Shape):
    """Where messages of a bench's kernel arrive on the control node; those of `sender`, the bench, alone are kept."""

    listen: Annotated[Text, AfterValidator(_ip)]
    port: Port = 6666
    sender: Annotated[Text, AfterValidator(_ip)]


class ConsoleWay(Shape):
    """Exactly one way to the serial console of a bench, netconsole, or both."""

    ipmi_sol: IpmiSol | None = None
    telnet: Annotated[Text, AfterValidator(_address)] | None = None
    ssh: SshConsole | None = None
    conserver: Conserver | None = None
    labgrid: LabgridPlace | None = None
    virtual: Literal[True] | None = None
    netconsole: Netconsole | None = None

    @model_validator(mode="after")
    def _is_one(self) -> "ConsoleWay":
        names = self.model_fields_set
        if not names or len(names - {"netconsole"}) > 1 or any(getattr(self, name) is None for name in names):
            *ways, last = type(self).model_fields
            raise ValueError(f"exactly one of {', '.join(ways)}; {last} beside it or alone")
        if self.virtual and self.netconsole:
            raise ValueError("that of a virtual bench is asked for by `netconsole: true` in storqual_virtual")
        return self

    @property
    def name(self) -> str:
        return next(iter(self.model_fields_set - {"netconsole"}), "netconsole")

    def at(self, place: LabgridPlace | None, bench: str) -> "ConsoleWay":
        """This way, with the place of the bench's reservation where its own names none. Raises BadInputError."""
        if self.labgrid is None:
            return self
        return self.model_copy(update={"labgrid": filled(self.labgrid, place, bench)})

    @property
    def words(self) -> str:
        """The way as people read it, without any secret."""
        listening = f"netconsole to {self.netconsole.listen}, port {self.netconsole.port}" if self.netconsole else ""
        return " and ".join(filter(None, (self._line, listening)))

    @property
    def _line(self) -> str:
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
        return "the serial line of the virtual bench" if self.virtual else ""
