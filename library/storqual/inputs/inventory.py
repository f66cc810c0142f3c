# SPDX-License-Identifier: Apache-2.0
"""What stands in the inventory: benches, adapters, drives, and the claims that say which drives may be destroyed."""

import difflib
import os.path
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from storqual.inputs.console_way import ConsoleWay
from storqual.inputs.fields import Duration, Marking, Name, Pci, PortName, Pseudo, Rate, Size, Text, Wwn
from storqual.inputs.labgrid import NO_PLACE, LabgridPlace
from storqual.inputs.power import BENCH_ITSELF, Address, Argv, PowerEntry
from storqual.inputs.shape import Shape, did_you_mean, one_of, shaped, shown, sound, unknown
from storqual.inputs.yaml_file import Document, Keys
from storqual_core.guard.file_targets import in_targets, targets_folder
from storqual_core.host.identity import SOFTWARE_INITIATORS, declared_address, names_namespace
from storqual_core.host.kernel_log import read_rules
from storqual_core.tools import TOOLS
from storqual_core.tools.capabilities import offers

TEMPLATES = "may hold no template but `{{ inventory_dir }}` at its start and `{{ inventory_hostname }}`"
"""What a path may hold, as a message tells it."""
_INVENTORY_DIR = re.compile(r"\{\{\s*inventory_dir((?:\s*\|\s*dirname)*)\s*\}\}/")
_INVENTORY_HOSTNAME = re.compile(r"\{\{\s*inventory_hostname\s*\}\}")
WITNESS_FORMS = "syslog://host[:port], ssh://[user@]host[:port]/path/of/file, rfc3161+https://host/path"
WITNESS_KINDS: Mapping[str, str] = {
    "syslog": "syslog",
    "ssh": "ssh",
    "rfc3161+http": "rfc3161",
    "rfc3161+https": "rfc3161",
}
"""What kind of witness a place is, by the scheme of its address."""


def witness_kind(place: str) -> str:
    """The kind of witness that `place` names: syslog, ssh, rfc3161; empty for none."""
    return WITNESS_KINDS.get(place.partition("://")[0], "")


def witness_problem(place: str) -> str:
    """Why `place` names no witness; empty when it does."""
    try:
        parts = urlsplit(place)
        _ = parts.port
    except ValueError as problem:
        return str(problem)
    known = parts.scheme in WITNESS_KINDS
    host = parts.hostname or ""
    # what ssh would take for an option is no name
    if not known or not host or host.startswith("-") or (parts.username or "").startswith("-"):
        return f"expected {WITNESS_FORMS}"
    if parts.scheme == "ssh" and len(parts.path) < 2:
        return "expected the path of a file after the host"
    return ""


_NO_FOLDERS = ("/dev", "/proc", "/sys")


def state_dir_problem(path: str, kind: str) -> str:
    """Why a bench cannot keep its lock, saved state and spool there; empty when it can.

    Relative paths of a local bench were completed before; another bench may have templates, which only Ansible fills.
    """
    if "{{" in path:
        return f"{path!r} {TEMPLATES}" if kind == "local" else ""
    plain = os.path.normpath(path)
    remedy = "name a folder of its own, such as /var/lib/storqual"
    if not plain.startswith("/"):
        return f"storqual_state_dir {path!r} is a relative path; {remedy}"
    if plain.strip("/") == "":
        return f"storqual_state_dir is the root of the file system; {remedy}"
    if any(plain == folder or plain.startswith(f"{folder}/") for folder in _NO_FOLDERS):
        return f"storqual_state_dir {path!r} is in a folder of devices or of the kernel; {remedy}"
    return ""


def bench_path(path: str, host: str, folder: Path) -> str:
    """An absolute path of this machine, with the meaning that Ansible gives these templates.

    `{{ inventory_dir | dirname }}/` in front starts at `folder`, where relative paths start too; `{{
    inventory_hostname }}` is `host`. Other text is not expanded.
    """
    path = _INVENTORY_HOSTNAME.sub(lambda _: host, path)
    prefix = _INVENTORY_DIR.match(path)
    if prefix is not None:
        for _ in range(prefix.group(1).count("|")):
            folder = folder.parent
        path = path[prefix.end() :]
    # not `resolve`: the guard itself decides what a symbolic link means
    return os.path.normpath(folder / Path(path).expanduser())


_LISTED = """
3w_9xxx 3w_sas 3w_xxxx BusLogic a100u2w aacraid advansys ahci aic79xx aic7xxx aic94xx am53c974 arcmsr ata_piix
atp870u be2iscsi bfa bnx2fc bnx2i csiostor cxgb3i cxgb4i dc395x dmx3191d efct esas2r esp_scsi fcoe fnic
hisi_sas_v3_hw hpsa hptiop hv_storvsc ib_iser initio ipr ips isci iscsi_tcp lpfc megaraid_mbox megaraid_mm
megaraid_sas mpi3mr mpt2sas mpt3sas mptctl mptfc mptsas mptspi mvsas mvumi myrb myrs nvme nvme_fc nvme_rdma
nvme_tcp nvmet pm80xx pmcraid ps3stor qedf qedi qla1280 qla2xxx qla4xxx qlogicfas408 sata_mv sata_nv sata_sil
sata_sil24 sata_sis sata_svw sata_uli sata_via sata_vsc scsi_debug smartpqi snic stex sym53c8xx ufshcd_pci
virtio_blk virtio_scsi vmw_pvscsi wd719x xen_blkfront xen_scsifront
"""
_DRIVERS = frozenset(_LISTED.split())
_CORE = frozenset({"dm_mod", "libata", "md_mod", "nvme_core", "scsi_mod", "scsi_transport_fc", "scsi_transport_sas"})
"""Modules that no adapter has as its driver, and that have options all the same."""

_ALIKE = 0.85


def slip_of(name: str) -> str:
    """The driver that was meant where `name` is none and looks like one; empty for any other name.

    A name that begins with a driver's and goes on is a vendor's own build, and one with other digits another
    generation: both may be real.
    """
    plain = name.replace("-", "_")
    if plain in _DRIVERS | _CORE or any(plain.startswith(f"{known}_") for known in _DRIVERS):
        return ""
    family = sorted(known for known in _DRIVERS if known.startswith(f"{plain}_"))
    alike = [known for known in sorted(_DRIVERS) if _digits(known) == _digits(plain)]
    near = difflib.get_close_matches(plain, alike, n=1, cutoff=_ALIKE)
    # of a family the last one drives what is sold today: megaraid_sas, not megaraid_mbox
    return near[0] if near else family[-1] if family else ""


def no_driver(slip: str) -> str:
    """What is wrong with such a name, and what to do."""
    return f"no driver is called {slip!r} (did you mean {slip_of(slip)!r}?); write the module that `lspci -k` shows"


def _digits(name: str) -> str:
    return re.sub(r"\D", "", name)


class BootFeatures(Shape):
    """What an adapter's boot code offers, by its manual: for the chart of features, where the bench does not tell."""

    bios: Text | None = Field(default=None, description="version of the boot code")
    cdrom: bool | None = Field(default=None, description="whether it boots from a CD-ROM")
    drives: Text | None = Field(default=None, description="the drives that it boots from, in words")
    options: tuple[Text, ...] = Field(default=(), strict=False, description="what can be set in its menu")


Kind = Literal["virtual", "hardware", "local"]
_KINDS = ("virtual", "hardware", "local")

_ADAPTERS = "storqual_adapters"
_LEAST_SIZE = 1 << 20
"""Bytes of the smallest drive, memory and file: less is a number whose unit is missing."""
_LEAST_RATE = 4096
"""Bytes per second; less is a number whose unit is missing, too."""
PSEUDO_DRIVER = "scsi_debug"
"""The driver of adapters that rest on no hardware."""


class DriveLimits(Shape):
    """How the virtual bench makes a drive behave like the one it stands for.

    `iops` and `bandwidth` (bytes per second) are limits. With a `service_time` (seconds) each command takes that
    long, a flush as well, and nothing that is written is kept. `fua`: it takes writes through its cache; `block` are
    the bytes of its logical block.
    """

    iops: int | None = Field(default=None, gt=0)
    bandwidth: Annotated[Size, Field(ge=_LEAST_RATE)] | None = None
    service_time: Duration | None = None
    fua: bool = False
    block: Literal[512, 4096] = 512


class Pace(Shape):
    """The rate that fio keeps to on a file, so that the file behaves like a drive; per second, in I/Os and bytes."""

    iops: int = Field(gt=0)
    bandwidth: Annotated[Size, Field(ge=_LEAST_RATE)] | None = None

    def rate(self, block_size: int) -> int:
        return self.iops if self.bandwidth is None else max(1, min(self.iops, self.bandwidth // block_size))


class Route(Shape):
    """The two ends of a path through a fabric: a port of the bench, and one of the target.

    FC names them by WWPN; iSCSI by its names, or the target by its portal; NVMe by the NQN or address of the host,
    and the target's address.
    """

    initiator: PortName
    target: PortName
    adapter: Name | None = Field(default=None, description="the adapter of the initiator, where it is another one")


class Drive(Shape):
    """One physical disk, or one file of a local bench. `claim` true: it may be destroyed."""

    wwn: Wwn | None = None
    serial: Marking | None = None
    vendor: Text | None = None
    model: Marking | None = None
    revision: Text | None = None
    size: Size | None = None
    rotation_rate: int | None = Field(default=None, ge=0)
    port: Annotated[int, Field(ge=0)] | Route = 0
    paths: tuple[Name | Route, ...] | None = Field(
        default=None, strict=False, description="other adapters that reach it, or other paths through a fabric"
    )
    position: Text | None = Field(default=None, description="where it sits, for people: bay, slot, cable")
    powered_by: Name | None = Field(default=None, description="the shelf that powers it; without it the bench does")
    claim: bool = False
    file: Text | None = None
    paced: Pace | None = Field(default=None, description="files of local benches only")
    virtual: DriveLimits | None = None

    @property
    def id(self) -> str:
        """How the drive is named everywhere: WWN, else serial; a file by its path."""
        return self.file or self.wwn or self.serial or ""

    @property
    def other_adapters(self) -> tuple[str, ...]:
        """The other adapters that reach it, by their aliases."""
        named = (path.adapter if isinstance(path, Route) else path for path in self.paths or ())
        return tuple(dict.fromkeys(name for name in named if name is not None))


class Ceiling(Shape):
    """Known limits of the rig in bytes per second: host slot, one port's link."""

    slot: Rate | None = None
    link: Rate | None = None


class Adapter(Shape):
    """One HBA or RAID controller; drives in the order in which workloads take them."""

    model: Text = Field(description="its name for people")
    driver: Name | None = Field(default=None, description="the kernel module expected")
    pci: Pci | None = None
    pseudo: Pseudo | None = Field(
        default=None, description="in place of `pci`: a host of scsi_debug, or a software initiator by its driver"
    )
    subsystem: Text | None = None
    serial: Text | None = None
    slot: Text | None = None
    ports: int | None = Field(default=None, gt=0)
    tool: Name | None = Field(default=None, description="the vendor tool that configures it")
    drives: tuple[Drive, ...] = Field(default=(), strict=False)
    ceiling: Ceiling = Ceiling()
    boot: BootFeatures | None = None

    @property
    def address(self) -> str:
        """Where it is on its bench, as facts name it; `` where the inventory does not say."""
        return declared_address({"pci": self.pci, "pseudo": self.pseudo})

    @property
    def claimed(self) -> tuple[Drive, ...]:
        """The drives that may be destroyed, in inventory order."""
        return tuple(drive for drive in self.drives if drive.claim)

    def port_of(self, drive: Drive) -> int:
        """The number of the port that reaches a drive of it; ports of a fabric are numbered as they first appear."""
        if isinstance(drive.port, int):
            return drive.port
        routes = [each.port for each in self.drives if isinstance(each.port, Route)]
        initiators = list(dict.fromkeys(route.initiator for route in (*routes, drive.port)))
        return initiators.index(drive.port.initiator)


class Emulation(Shape):
    """The emulated device that stands for an adapter."""

    device: Name
    channels: int = Field(default=1, ge=1, le=8, description="PCI functions of one slot, one port each")
    targets: Literal["inside", "apart"] = Field(default="inside", description="of FC: in another guest if apart")
    serial: Text | None = None
    options: dict[str, Any] = Field(default={})


class Guest(Shape):
    """The guest of a virtual bench; `clock: instructions` lets time pass with those of its one processor."""

    cpus: int = Field(default=1, gt=0)
    memory: Annotated[Size, Field(ge=_LEAST_SIZE)] = 1 << 30
    clock: Literal["host", "instructions"] = "host"
    flavour: Literal["deb", "rpm", "rpm-suse", "uefi"] = "deb"
    netconsole: bool = False
    adapters: dict[Name, Emulation] = Field(default={})


def _variable(field: str) -> str:
    return field if field == "name" else f"storqual_{field}"


class KernelRule(Shape):
    """A rule of a bench's own for lines of the kernel's log, as `storqual_core.host.kernel_log` has them."""

    kind: Text
    pattern: Text
    example: Text
    source: Text
    driver: Text = ""
    kernels: Text = ""
    severity: Text = "error"

    @model_validator(mode="after")
    def _fits(self) -> "KernelRule":
        problems: list[str] = []
        read_rules([self.model_dump()], "rule", problems)
        if problems:
            raise ValueError("; ".join(problems))
        return self


def _witness(place: str) -> str:
    problem = witness_problem(place)
    if problem:
        raise ValueError(problem.removeprefix("expected "))
    return place


class Queue(Shape):
    """Where reservations of a bench are kept besides the bench itself: control nodes share it."""

    folder: Text | None = Field(default=None, description="a folder that the control nodes share")
    labgrid: LabgridPlace | None = Field(default=None, description="a place of labgrid")

    @model_validator(mode="after")
    def _is_one(self) -> "Queue":
        if (self.folder is None) == (self.labgrid is None):
            raise ValueError("one of folder, labgrid")
        if self.labgrid is not None and self.labgrid.place is None:
            raise ValueError("labgrid needs the name of a place, such as {place: bench07}")
        return self


Occasion = Literal["end", "bench_lost", "fail"]


class Notify(Shape):
    """Who is told of the end of a campaign: a webhook, or a program that reads the message from standard input."""

    url: Address | None = None
    command: Argv | None = None
    on: Annotated[tuple[Occasion, ...], Field(min_length=1, strict=False)] = ("end",)

    @model_validator(mode="before")
    @classmethod
    def _words(cls, given: object) -> object:
        # Ansible reads `on:` without quotes as true
        if isinstance(given, Mapping):
            return {"on" if key is True or key in ("true", "True") else key: value for key, value in given.items()}
        return given

    @model_validator(mode="after")
    def _anybody(self) -> "Notify":
        if self.url is None and self.command is None:
            raise ValueError("one of url, command at least")
        return self


class Bench(Shape):
    """One test server. Each field is a host variable: `kind` is `storqual_kind`."""

    model_config = ConfigDict(alias_generator=_variable, populate_by_name=True)

    name: Name
    kind: Kind
    state_dir: Text = "/var/lib/storqual"
    adapters: dict[Name, Adapter]
    under_test: tuple[Name, ...] | None = Field(default=None, strict=False)
    virtual: Guest | None = None
    reference: Text | None = Field(default=None, description="the golden reference drive")
    kernel_rules: tuple[KernelRule, ...] = Field(default=(), strict=False)
    witness: Annotated[Text, AfterValidator(_witness)] | None = Field(
        default=None, description="a second place that records the digest of each batch"
    )
    # how a lab is wired, and its passwords, are in no run directory
    console: ConsoleWay | None = Field(default=None, exclude=True, description="the way to its serial console")
    power: tuple[PowerEntry, ...] = Field(
        default=(),
        strict=False,
        exclude=True,
        description="the backends that switch the bench off and on, in the order in which they are tried",
    )

    notify: Notify | None = Field(default=None, exclude=True, description="who is told of the end of a campaign")
    queue: Queue | None = Field(default=None, exclude=True, description="where it is reserved besides")

    @model_validator(mode="after")
    def _names_a_place(self) -> "Bench":
        used = [self.console.labgrid if self.console else None, *(entry.labgrid for entry in self.power)]
        if any(place is not None and place.place is None for place in used) and self.place is None:
            raise ValueError(NO_PLACE)
        return self

    @property
    def place(self) -> LabgridPlace | None:
        """The place of labgrid that is part of its reservation."""
        return self.queue.labgrid if self.queue is not None else None

    @property
    def cuts_power(self) -> bool:
        """Whether a backend takes the power of its drives away, and of no drive that is not claimed on a shelf."""
        return any(entry.removed for entry in self.power) and not self.unclaimed_on_shelves

    @property
    def unclaimed_on_shelves(self) -> list[str]:
        """Drives that are not claimed, on shelves whose power is removed with the bench's."""
        shelves = {name for entry in self.power if entry.removed for name in entry.powers}
        drives = [drive for adapter in self.adapters.values() for drive in adapter.drives]
        return [drive.id for drive in drives if drive.powered_by in shelves and not drive.claim]

    @property
    def console_way(self) -> ConsoleWay | None:
        """The way to its console: a virtual bench always has one. None: nothing of it can be recorded."""
        if self.console is None:
            return ConsoleWay(virtual=True) if self.kind == "virtual" else None
        return self.console.at(self.place, self.name)

    def reached_by(self, alias: str) -> list[Drive]:
        """The claimed drives of an adapter, and those of others to which it is one of several paths."""
        return [
            drive
            for owner, adapter in self.adapters.items()
            for drive in adapter.claimed
            if alias in (owner, *drive.other_adapters)
        ]

    def witnessed(self) -> dict[str, str]:
        return {"witness": self.witness} if self.witness else {}

    def drive(self, drive_id: str) -> Drive | None:
        for adapter in self.adapters.values():
            for drive in adapter.drives:
                if drive.id == drive_id:
                    return drive
        return None


class Inventory(Shape):
    """All benches of a lab by name, in inventory order."""

    benches: dict[Name, Bench]


HOST_VARIABLES = tuple(_variable(name) for name in Bench.model_fields if name != "name")
"""The host variables that are read; every other `storqual_...` is a misspelling."""


def read_benches(
    hosts: Mapping[str, Mapping[str, Any]], documents: Mapping[str, Document], folder: Path
) -> tuple[Inventory, list[str]]:
    """Benches of host variables, and every problem with them.

    `documents` has, by host, a document whose `line` knows where `storqual_...` stands; `folder` is the inventory's,
    to which `{{ inventory_dir }}` and relative paths of a local bench belong; `{{ inventory_hostname }}` there is the
    bench's name. No other text is ever expanded, and a path that still holds `{{` is a problem.
    """
    problems: list[str] = []
    benches: dict[str, Bench] = {}
    half: dict[str, Bench] = {}
    for host, variables in hosts.items():
        document = documents[host]
        data: dict[str, Any] = {"name": host}
        for name, value in variables.items():
            if name in HOST_VARIABLES:
                data[name] = value
            elif name.startswith("storqual_"):
                sentence = unknown("variable", name, sorted(HOST_VARIABLES), most=len(HOST_VARIABLES))
                problems.append(document.about((name,), sentence))
        adapters = data.get(_ADAPTERS)
        if isinstance(adapters, dict):
            # ansible-inventory sorts keys; what comes first in the file comes first here
            order = sorted(adapters, key=lambda alias: document.lines.get((_ADAPTERS, alias), 0))
            data[_ADAPTERS] = {alias: adapters[alias] for alias in order}
        bench, wrong = shaped(Bench, Document(document.name, data, document.lines))
        problems += wrong
        if bench is not None:
            benches[host] = _with_paths(bench, folder)
            problems += _bench_problems(benches[host], document)
        else:
            half[host] = _sound_part(host, data)
            problems += _bench_problems(half[host], document)
    inventory = Inventory.model_construct(benches=benches)
    return inventory, problems + _lab_problems({host: benches.get(host) or half[host] for host in hosts}, documents)


def _sound_part(host: str, data: Mapping[str, Any]) -> Bench:
    """What is sound of a bench that is not: never planned with, only looked at, so that all mistakes are told."""
    adapters = {}
    raw = data.get(_ADAPTERS)
    for alias, entry in (raw if isinstance(raw, dict) else {}).items():
        listed = entry.get("drives") if isinstance(entry, dict) else None
        drives = [sound(Drive, item) or Drive() for item in (listed if isinstance(listed, list) else [])]
        adapters[str(alias)] = Adapter.model_construct(model="", drives=tuple(drives))
    return Bench.model_construct(
        name=host,
        kind=data.get("storqual_kind"),
        adapters=adapters,
        virtual=sound(Guest, data.get("storqual_virtual")),
        under_test=None,
    )


def _with_paths(bench: Bench, folder: Path) -> Bench:
    if bench.kind != "local":
        return bench

    def here(path: str) -> str:
        return bench_path(path, bench.name, folder)

    def placed(drive: Drive) -> Drive:
        return drive.model_copy(update={"file": here(drive.file)}) if drive.file else drive

    adapters = {
        alias: adapter.model_copy(update={"drives": tuple(map(placed, adapter.drives))})
        for alias, adapter in bench.adapters.items()
    }
    return bench.model_copy(update={"adapters": adapters, "state_dir": here(bench.state_dir)})


def _bench_problems(bench: Bench, document: Document) -> list[str]:
    """What the shape alone cannot see on one bench."""
    problems = []
    if bench.kind in ("hardware", "local") and bench.virtual is not None:
        problems.append(
            document.about(
                ("storqual_virtual",), f"storqual_virtual is for virtual benches only, and this bench is {bench.kind}"
            )
        )
    if bench.console is not None and (bench.console.virtual is True) != (bench.kind == "virtual"):
        whose = "virtual benches" if bench.console.virtual else "benches that are not virtual"
        sentence = f"`{bench.console.name}` is a console of {whose}, and this bench is {bench.kind}"
        problems.append(document.about(("storqual_console",), sentence))
    named: list[tuple[Keys, str]] = [(("storqual_under_test",), alias) for alias in bench.under_test or ()]
    if bench.virtual is not None:
        named += [(("storqual_virtual", "adapters", alias), alias) for alias in bench.virtual.adapters]
    for owner, adapter in bench.adapters.items():
        problems += [document.about((_ADAPTERS, owner, "pseudo"), wrong) for wrong in _pseudo_problems(bench, owner)]
        problems += [document.about((_ADAPTERS, owner, key), wrong) for key, wrong in _unknown_names(adapter)]
        for number, drive in enumerate(adapter.drives):
            keys: Keys = (_ADAPTERS, owner, "drives", number)
            problems += [document.about(keys, wrong) for wrong in _drive_problems(bench, owner, drive)]
            named += [((*keys, "paths"), alias) for alias in drive.other_adapters]
    for where, alias in named:
        if alias not in bench.adapters:
            known = f"{did_you_mean(alias, bench.adapters)}; expected {one_of(bench.adapters)}"
            problems.append(document.about(where, f"{bench.name} has no adapter {alias!r}{known}"))
    for number, entry in enumerate(bench.power):
        if bench.kind == "local":
            problems.append(
                document.about(("storqual_power",), "a local bench is this machine: it has no power switch")
            )
            break
        if entry.virtual and bench.kind != "virtual":
            wrong = f"`virtual: true` switches a virtual bench, and this bench is {bench.kind}"
            problems.append(document.about(("storqual_power", number), wrong))
    unfit = state_dir_problem(bench.state_dir, bench.kind)
    problems += [document.about(keys, wrong) for keys, wrong in _shelf_problems(bench)]
    if unfit:
        problems.append(document.about(("storqual_state_dir",), unfit))
    if not bench.adapters and bench.kind in _KINDS:
        problems.append(document.about((_ADAPTERS,), "this bench has no adapter; name at least one"))
    return problems


def _shelf_problems(bench: Bench) -> Iterable[tuple[Keys, str]]:
    """Shelves of the power that no drive is on: their drives would count as those that kept their power."""
    drives = [drive for adapter in bench.adapters.values() for drive in adapter.drives]
    shelves = {BENCH_ITSELF, *(drive.powered_by for drive in drives if drive.powered_by)}
    for number, entry in enumerate(bench.power):
        for name in entry.powers:
            if name not in shelves:
                remedy = f"no drive says `powered_by: {name}`{did_you_mean(name, shelves)}"
                yield ("storqual_power", number, "powers"), remedy


def _unknown_names(adapter: Adapter) -> Iterable[tuple[str, str]]:
    if adapter.driver is not None and slip_of(adapter.driver):
        yield "driver", no_driver(adapter.driver)
    if adapter.tool is not None and adapter.tool not in TOOLS:
        known = [name for name, tool in TOOLS.items() if "settings" in offers(tool())]
        yield "tool", unknown("tool", adapter.tool, known)


def _pseudo_problems(bench: Bench, alias: str) -> Iterable[str]:
    """What is wrong with an adapter that rests on no hardware."""
    adapter = bench.adapters[alias]
    if adapter.pseudo is None:
        return
    if bench.kind in ("hardware", "local"):
        yield f"{alias} has `pseudo` on a {bench.kind} bench: it tests no hardware and is for virtual benches only"
    if adapter.pci is not None:
        yield f"{alias} has both `pseudo` and `pci`; give one of them"
    driver = adapter.pseudo if adapter.pseudo in SOFTWARE_INITIATORS else PSEUDO_DRIVER
    if adapter.driver != driver:
        yield f"{alias} has `pseudo` with driver {shown(adapter.driver or '')}; its driver must be {driver}"


def _drive_problems(bench: Bench, alias: str, drive: Drive) -> Iterable[str]:
    if bench.kind not in _KINDS or drive == Drive():
        # what the drive should be is not known, or it was told already what is wrong with it
        return
    what = f"a drive of {alias} ({shown(drive.id)})" if drive.id else f"a drive of {alias}"
    if (drive.claim or drive.file) and drive.size is not None and drive.size < _LEAST_SIZE:
        meant = "give the unit too" if drive.file else "copy the size that `storqual facts` shows"
        yield f"{what} has a size of {drive.size:,} bytes: a number without a unit is bytes; {meant}"
    if bench.kind == "local":
        yield from _file_problems(bench, drive, what)
        return
    if drive.file is not None:
        yield f"{what} is a file, which only a local bench can have; name the drive by `wwn` and `serial`"
    elif drive.wwn is None and drive.serial is None:
        yield f"{what} has no name; give its `wwn`, or its `serial` if it has no WWN"
    elif drive.claim:
        missing = [name for name in ("serial", "model", "size") if getattr(drive, name) is None]
        if missing:
            # the guard compares them with the disk before anything is written
            yield f"{what} is claimed without {', '.join(missing)}; a claim needs WWN, serial, model and size"
    if drive.paced is not None:
        yield f"{what} has `paced`, which is for files of local benches only"
    if drive.paths is not None and len({alias, drive.port, *drive.paths}) <= len(drive.paths) + 1:
        yield f"`paths` of {what} must name each other adapter or path once, and neither {alias} nor its `port`"
    if isinstance(drive.port, Route) and drive.port.adapter not in (None, alias):
        yield f"`port` of {what} is a path of {alias}; one of {drive.port.adapter} belongs to `paths`"
    if drive.virtual is not None and bench.kind != "virtual":
        yield f"{what} has `virtual`, which is for virtual benches only"


def _file_problems(bench: Bench, drive: Drive, what: str) -> Iterable[str]:
    if drive.file is None or "{{" in drive.file:
        lacking = f"{what} has no `file`; the drives of a local bench are files"
        yield lacking if drive.file is None else f"{drive.file!r} {TEMPLATES}"
    elif not state_dir_problem(bench.state_dir, bench.kind) and not in_targets(drive.file, bench.state_dir):
        folder = targets_folder(bench.state_dir)
        yield f"{what} must be in {folder}, where storqual makes it: the guard refuses every other file"
    if drive.size is None:
        yield f"{what} has no `size`"
    if drive.paths is not None:
        yield f"{what} is a file, which has no `paths`"


def _lab_problems(benches: Mapping[str, Bench], documents: Mapping[str, Document]) -> list[str]:
    problems = []
    seen: defaultdict[tuple[str, ...], list[tuple[str, Keys]]] = defaultdict(list)
    for name, bench in benches.items():
        for alias, adapter in bench.adapters.items():
            keys: Keys = (_ADAPTERS, alias)
            if adapter.address:
                what = "pseudo" if adapter.pseudo else "pci"
                seen[("address", name, adapter.address)].append((name, (*keys, what)))
            controllers: set[str] = set()
            for number, drive in enumerate(adapter.drives):
                at: Keys = (*keys, "drives", number)
                if drive.wwn:
                    seen[("WWN", drive.wwn)].append((name, (*at, "wwn")))
                # namespaces tell themselves apart by WWN, and have the serial of their controller
                namespace = names_namespace(drive.wwn or "")
                if drive.serial and not (namespace and drive.serial in controllers):
                    # a serial is unique for its maker only; a WWN and a file are unique everywhere
                    controllers.update([drive.serial] if namespace else [])
                    seen[("serial", (drive.vendor or "").lower(), drive.serial)].append((name, (*at, "serial")))
                if drive.file:
                    seen[("file", drive.file)].append((name, (*at, "file")))
    for (what, *rest), uses in seen.items():
        first_bench, first = uses[0]
        for bench_name, at in uses[1:]:
            before = f"{documents[first_bench].name}:{documents[first_bench].line(first)}"
            sentence = f"{what} {shown(rest[-1])} is already used at {before} ({_words(first)} of {first_bench})"
            problems.append(documents[bench_name].about(at, f"{sentence}; it must be unique"))
    return problems


def _words(keys: Keys) -> str:
    """`adapter sym, drive 2` for a place in the host variables."""
    return f"adapter {keys[1]}" + (f", drive {int(keys[3]) + 1}" if len(keys) > 3 else "")
