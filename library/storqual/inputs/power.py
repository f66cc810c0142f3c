# SPDX-License-Identifier: Apache-2.0
"""`storqual_power` of a bench: the backends that switch it, in the order in which they are tried."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, model_validator

from storqual.inputs.bmc import Bmc, Secret
from storqual.inputs.fields import Duration, Name, Text, written
from storqual.inputs.labgrid import LabgridPlace, filled, queue_place
from storqual.inputs.shape import Shape, raise_all, shaped
from storqual.inputs.yaml_file import Document

BENCH_ITSELF = "bench"
"""What a backend powers, and a drive is powered by, where the inventory names no shelf."""
BACKENDS = ("ipmi", "redfish", "pdudaemon", "labgrid", "command", "virtual")


def _address(value: object) -> object:
    if isinstance(value, str) and "{{" in value:
        return value
    try:
        parts = urlsplit(value if isinstance(value, str) else "")
        _ = parts.port
    except ValueError as problem:
        raise ValueError(f"an address such as http://pdu.lab:16421 ({problem})") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("an address such as http://pdu.lab:16421")
    if "@" in parts.netloc:
        raise ValueError("an address without user and password in it")
    return value


def _address_of_bmc(value: object) -> object:
    if isinstance(value, str) and "{{" not in value and urlsplit(value).scheme != "https":
        # the password is sent there, and community.general knows nothing else
        raise ValueError("an address that begins with https://")
    return _address(value)


Address = Annotated[str, BeforeValidator(_address), written("address", "http://pdu.lab:16421", type="string")]
BmcAddress = Annotated[str, BeforeValidator(_address_of_bmc), written("address", "https://bmc07.lab", type="string")]
Argv = Annotated[tuple[Text, ...], Field(min_length=1, strict=False)]


class IpmiPower(Bmc):
    """A management controller, asked by ipmitool over lanplus."""

    password: Secret


class RedfishPower(Shape):
    """A management controller, asked by Ansible's collection community.general; `system` where it has several."""

    url: BmcAddress
    user: Text
    password: Secret
    system: Text | None = None
    authority: Text | None = None


class Outlet(Shape):
    """A power outlet as pdudaemon names it."""

    pdu: Text
    port: int = Field(ge=0)


class PdudaemonPower(Shape):
    """Every outlet that feeds the bench, switched by a pdudaemon over HTTP."""

    url: Address
    outlets: Annotated[tuple[Outlet, ...], Field(min_length=1, strict=False)]


_YAML_1_1: Mapping[object, str] = {
    True: "on",
    "true": "on",
    "True": "on",
    False: "off",
    "false": "off",
    "False": "off",
}
"""Ansible reads `on:` and `off:` without quotes as these."""


class CommandPower(Shape):
    """Programs of the lab's own; `state` prints `on`, `off` or `unknown`."""

    on: Argv
    off: Argv
    state: Argv | None = None

    @model_validator(mode="before")
    @classmethod
    def _words(cls, given: object) -> object:
        if not isinstance(given, Mapping):
            return given
        return {_YAML_1_1.get(key, key): value for key, value in given.items()}


class PowerEntry(Shape):
    """One backend, with what it needs; times in seconds.

    `removes` is the power that its off takes away: AC of the outlets, or DC alone. `powers` are the bench and the
    shelves that are without power then.
    """

    ipmi: IpmiPower | None = None
    redfish: RedfishPower | None = None
    pdudaemon: PdudaemonPower | None = None
    labgrid: LabgridPlace | None = None
    command: CommandPower | None = None
    virtual: Literal[True] | None = None
    removes: Literal["ac", "dc"] | None = None
    powers: Annotated[tuple[Name, ...], Field(min_length=1, strict=False)] = (BENCH_ITSELF,)
    off_for: Duration | None = None
    answers_within: Annotated[Duration, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _one_backend(self) -> "PowerEntry":
        if len(self.backends) != 1:
            raise ValueError(f"one backend in each entry: {', '.join(BACKENDS)}")
        return self

    @property
    def removed(self) -> str:
        """`ac`, `dc`, or empty where nobody said that its off takes the power of drives away."""
        return self.removes or ("ac" if self.pdudaemon is not None else "")

    @property
    def backends(self) -> list[str]:
        return [name for name in BACKENDS if getattr(self, name) is not None]

    @property
    def backend(self) -> str:
        return self.backends[0]


class _Rendered(Shape):
    power: tuple[PowerEntry, ...] = Field(strict=False)


def read_rendered_power(value: Sequence[Any], bench: str, queue: object = None) -> tuple[PowerEntry, ...]:
    """`storqual_power` of a bench, and its `storqual_queue`, as Ansible made them of vaults and templates.

    Raises BadInputError.
    """
    read, problems = shaped(_Rendered, Document(f"storqual_power of {bench}", {"power": value}, {}))
    raise_all(problems)
    place = queue_place(queue, bench)
    entries = () if read is None else read.power
    return tuple(entry.model_copy(update={"labgrid": filled(entry.labgrid, place, bench)}) for entry in entries)
