# SPDX-License-Identifier: Apache-2.0
"""The one list of setting names: what a drop may set, in which unit and range, what a change costs, how it is proven.

Manifests, role inputs and module arguments are checked against this list and nothing else. Names are unique inside
their section of the drop; `drive.WCE` is the qualified name. Mode-page fields carry their sdparm acronyms and the
place of the field in its page, so that reading and writing them needs no other table.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Callable, Collection, Iterator, Mapping, Sequence

from .errors import BadInputError
from .kernel import ARGUMENT, OWN_ARGUMENT, declared_options
from .package_names import kernel_problem, split_file
from .quantities import is_whole, parse_duration, parse_size

COSTS = ("instant", "reload", "rebuild", "reboot")
"""Change costs, cheapest first: a write; the driver loaded again; a volume made again; the bench booted again."""

SECTIONS = ("drive", "nvram", "raid", "os", "multipath", "virtual", "driver", "firmware")


@dataclass(frozen=True)
class ModeField:
    """Where a field lives: mode page, subpage, first byte of the page, its highest bit there, length in bits.

    `protocol` is the SCSI protocol identifier (1 parallel SCSI, 6 SAS) whose pages 0x18 and 0x19 have this field;
    the same bytes mean something else on another transport. None: any drive.
    """

    page: int
    subpage: int
    byte: int
    bit: int
    length: int
    protocol: int | None = None


@dataclass(frozen=True)
class Setting:
    """One name of the vocabulary. `proof` says how it can be shown in effect; empty: it is read back only.

    `disturbs`: names of its section that a write of this one may change, so they are written after it and read back.
    `refused`: why nothing here brings it about; a drop that declares it is refused with that sentence.
    """

    name: str
    section: str
    kind: str
    summary: str
    unit: str = ""
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    cost: str = "instant"
    proof: str = ""
    field: ModeField | None = None
    disturbs: tuple[str, ...] = ()
    refused: str = ""

    @property
    def qualified(self) -> str:
        """`drive.WCE`: the name as a suite's `vary` and a report write it."""
        return f"{self.section}.{self.name}"

    @property
    def switchable(self) -> bool:
        """Whether a bench that measures can change it between two launches by itself, on a drive that it holds."""
        return self.section == "drive" and self.cost == "instant"


# page[/subpage] [protocol] : title; ACRONYM byte:bit:length[:unit] summary; names and places of `sdparm --enumerate`
_MODE_PAGES = """
0x01 : read write error recovery
AWRE 2:7:1 automatic write reallocation enabled
ARRE 2:6:1 automatic read reallocation enabled
TB 2:5:1 transfer block
RC 2:4:1 read continuous
EER 2:3:1 enable early recovery
PER 2:2:1 post error
DTE 2:1:1 data terminate on error
DCR 2:0:1 disable correction
RRC 3:7:8 read retry count
COR_S 4:7:8 correction span
HOC 5:7:8 head offset count
DSOC 6:7:8 data strobe offset count
LBPERE 7:7:1 logical block provisioning error reporting enabled
MWR 7:6:2 misaligned write reporting
EMCDR 7:1:2 enhanced media certification and defect reporting
WRC 8:7:8 write retry count
ERWS 9:7:24:blocks error reporting window size
RTL 10:7:16:ms recovery time limit
0x02 : disconnect-reconnect
BFR 2:7:8 buffer full ratio
BER 3:7:8 buffer empty ratio
BIL 4:7:16 bus inactivity limit
BITL 4:7:16 bus inactivity time limit (SAS)
DTL 6:7:16 disconnect time limit
PDTL 6:7:16:100us physical disconnect time limit (parallel SCSI)
CTL 8:7:16 connect time limit
MCTL 8:7:16 maximum connect time limit (SAS)
MBS 10:7:16:512B maximum burst size
EMDP 12:7:1 enable modify data pointers
FA 12:6:3 fair arbitration
DIMM 12:3:1 disconnect immediate
DTDC 12:2:3 data transfer disconnect control
FBS 14:7:16:512B first burst size
0x08 : caching
IC 2:7:1 initiator control
ABPF 2:6:1 abort pre-fetch
CAP 2:5:1 caching analysis permitted
DISC 2:4:1 discontinuity
SIZE 2:3:1 size enable
WCE 2:2:1 write cache enable
MF 2:1:1 multiplication factor
RCD 2:0:1 read cache disable
DRRP 3:7:4 demand read retention priority
WRP 3:3:4 write retention priority
DPTL 4:7:16:blocks disable pre-fetch transfer length
MIPF 6:7:16:blocks minimum pre-fetch
MAPF 8:7:16:blocks maximum pre-fetch
MAPFC 10:7:16:blocks maximum pre-fetch ceiling
FSW 12:7:1 force sequential write
LBCSS 12:6:1 logical block cache segment size
DRA 12:5:1 disable read ahead
SYNC_PROG 12:2:2 synchronous cache progress indication
NV_DIS 12:0:1 non-volatile cache disable
NCS 13:7:8 number of cache segments
CSS 14:7:16 cache segment size
0x0a : control
TST 2:7:3 task set type
TMF_ONLY 2:4:1 task management functions only
DPICZ 2:3:1 disable protection information check if protect field is zero
D_SENSE 2:2:1 descriptor format sense data
GLTSD 2:1:1 global logging target save disable
RLEC 2:0:1 report log exception condition
QAM 3:7:4 queue algorithm modifier (0 restricted reordering, 1 unrestricted)
NUAR 3:3:1 no unit attention on release
QERR 3:2:2 queue error management
VS_CTL 4:7:1 vendor specific
RAC 4:6:1 report a check
UA_INTLCK 4:5:2 unit attention interlocks control
SWP 4:3:1 software write protect
ATO 5:7:1 application tag owner
TAS 5:6:1 task aborted status
ATMPE 5:5:1 application tag mode page enabled
RWWP 5:4:1 reject write without protection
SBLP 5:3:1 supported block lengths and protection information
AUTOLOAD 5:2:3 autoload mode
BTP 8:7:16:100us busy timeout period
ESTCT 10:7:16:s extended self-test completion time
0x0a/1 : control extension
DLC 4:3:1 device life control
TCMOS 4:2:1 timestamp changeable by methods outside the standard
SCSIP 4:1:1 SCSI timestamp commands take precedence
IALUAE 4:0:1 implicit asymmetric logical unit access enabled
INIT_PR 5:3:4 initial command priority
MSDL 6:7:8 maximum sense data length
0x18 1 : protocol specific logical unit (parallel SCSI)
LUPID 2:3:4 logical unit's protocol identifier
0x19 1 : port, short format (parallel SCSI)
PPID 2:3:4 port's protocol identifier
STT 4:7:16:ms synchronous transfer timeout
0x19/1 1 : port margin control (parallel SCSI)
DS 7:7:4 driver strength
DA 8:7:4 driver asymmetry
DP 8:3:4 driver precompensation
DSR 9:7:4 driver slew rate
0x19/2 1 : port saved training configuration (parallel SCSI)
DB0 10:7:32 training value of DB(0)
DB1 14:7:32 training value of DB(1)
DB2 18:7:32 training value of DB(2)
DB3 22:7:32 training value of DB(3)
DB4 26:7:32 training value of DB(4)
DB5 30:7:32 training value of DB(5)
DB6 34:7:32 training value of DB(6)
DB7 38:7:32 training value of DB(7)
P_CRCA 74:7:32 training value of P_CRCA
P1 78:7:32 training value of P1
0x19 6 : protocol specific port (SAS)
ITNLT 4:7:16:ms I_T nexus loss time
IRT 6:7:16:ms initiator response timeout
RTOL 8:7:16:10us reject to open limit
0x1a : power condition
PM_BG 2:7:2 power management precedence over background functions
STANDBY_Y 2:0:1 standby_y timer enable
IDLE_C 3:3:1 idle_c timer enable
IDLE_B 3:2:1 idle_b timer enable
IDLE_A 3:1:1 idle_a timer enable
STANDBY_Z 3:0:1 standby_z timer enable
IACT 4:7:32:100ms idle_a condition timer
SZCT 8:7:32:100ms standby_z condition timer
IBCT 12:7:32:100ms idle_b condition timer
ICCT 16:7:32:100ms idle_c condition timer
SYCT 20:7:32:100ms standby_y condition timer
0x1c : informational exceptions control
PERF 2:7:1 performance impact of informational exceptions not acceptable
EBF 2:5:1 enable background function
EWASC 2:4:1 enable warning
DEXCPT 2:3:1 disable exceptions
TEST 2:2:1 test (simulate a failure)
EBACKERR 2:1:1 enable background error reporting
LOGERR 2:0:1 log informational exception errors
MRIE 3:3:4 method of reporting informational exceptions
INTT 4:7:32:100ms interval timer
REPC 8:7:32 report count
0x1c/1 : background control
S_L_FULL 4:2:1 suspend on log full
LOWIR 4:1:1 log only when intervention is required
EN_BMS 4:0:1 enable background medium scan
EN_PS 5:0:1 enable pre-scan
BMS_I 6:7:16:h background medium scan interval
BPS_TL 8:7:16:h background pre-scan time limit
MIN_IDLE 10:7:16:ms minimum idle time before background scan
MAX_SUSP 12:7:16:ms maximum time to suspend background scan
"""

_PROVEN = {
    "WCE": "a flush reaches the drive while the cache is on; single writes slow down when a batch switches it off",
    "RCD": "reads of one block again and again are quicker than random ones while the read cache is on",
    "DRA": "reads of blocks in a row are quicker than random ones while the drive reads ahead",
}

_DISTURBS = {
    # the kernel gives a new scheduler a number of requests of its own (elevator_switch, blk_mq_init_sched)
    "drive.scheduler": ("nr_requests",),
    # the kernel is told to read the drive again, and sets the limits of its queue anew (sd_revalidate_disk)
    "drive.WCE": ("max_sectors_kb", "read_ahead_kb"),
    # new limits of a queue raise a read-ahead that was lowered (blk_apply_bdi_limits, since Linux 6.9)
    "drive.max_sectors_kb": ("read_ahead_kb",),
    # of a remote port the kernel takes the one only below the other (fc_rport_fast_io_fail_tmo_store)
    "drive.dev_loss_tmo": ("fast_io_fail_tmo",),
    # of an NVMe controller the kernel keeps a number of attempts, and shows their time (nvme_ctrl_loss_tmo_show)
    "drive.reconnect_delay": ("ctrl_loss_tmo",),
}


def _mode_settings() -> Iterator[Setting]:
    page = subpage = 0
    protocol: int | None = None
    title = ""
    for line in _MODE_PAGES.strip().splitlines():
        head, _, rest = line.partition(" ")
        if head.startswith("0x"):
            numbers, _, title = line.partition(" : ")
            codes, _, transport = numbers.partition(" ")
            code, _, sub = codes.partition("/")
            page, subpage, protocol = int(code, 16), int(sub or "0"), int(transport) if transport else None
            continue
        place, _, summary = rest.partition(" ")
        byte, bit, length, *unit = place.split(":")
        bits = int(length)
        yield Setting(
            name=head,
            section="drive",
            kind="flag" if bits == 1 else "integer",
            summary=f"{summary} ({title} page)",
            unit=unit[0] if unit else "",
            minimum=0,
            maximum=(1 << bits) - 1,
            proof=_PROVEN.get(head, ""),
            field=ModeField(page, subpage, int(byte), int(bit), bits, protocol),
            disturbs=_DISTURBS.get(f"drive.{head}", ()),
        )


# section.name kind [range|choice,...] [unit] [cost] : summary [: proof]
_OTHERS = """
drive.queue_depth integer 1..65535 : commands the kernel lets the drive hold : in-flight
drive.scheduler choice none,mq-deadline,kyber,bfq,noop,deadline,cfq \
: I/O scheduler, where the kernel has it : own attributes
drive.nr_requests integer 1..65535 : requests the block layer queues per hardware queue : in-flight
drive.read_ahead_kb integer 0..1073741824 KiB : read-ahead of buffered I/O : request size
drive.max_sectors_kb integer 4..4194304 KiB : largest request the block layer makes : request size
drive.nomerges integer 0..2 : 0 all merges, 1 simple merges only, 2 none
drive.rq_affinity integer 0..2 : 0 any CPU, 1 group of the submitting CPU, 2 that CPU completes
drive.dev_loss_tmo integer 1..2147483647 s : FC: wait for a lost remote port before its drives are removed
drive.fast_io_fail_tmo seconds_or_off 0..2147483647 s : FC, NVMe: wait for a lost port or controller before I/O fails
drive.recovery_tmo integer 0..2147483647 s : iSCSI: wait for a lost session before I/O fails (replacement_timeout)
drive.ctrl_loss_tmo seconds_or_off 0..2147483647 s : NVMe: wait for a lost controller before it is removed
drive.reconnect_delay integer 1..2147483647 s : NVMe: time between two attempts to connect again
drive.cmds_max integer 16..2048 reload : iSCSI: commands of a session, a power of two (node.session.cmds_max) : login
drive.header_digest choice None,CRC32C reload : iSCSI, NVMe/TCP: digest of headers (HeaderDigest, hdr_digest) : login
drive.data_digest choice None,CRC32C reload : iSCSI, NVMe/TCP: digest of data (DataDigest, data_digest) : login
drive.noop_out_interval integer 0..32767 s reload : iSCSI: silence before a ping of the target, 0 for none : login
drive.noop_out_timeout integer 0..32767 s reload : iSCSI: wait for the answer to a ping, 0 for none : login
drive.nr_sessions integer 1..32 reload : iSCSI: sessions with each portal, each a path to the LUN : login
drive.nr_io_queues integer 1..65535 reload : NVMe over fabrics: I/O queues of a controller : login
drive.queue_size integer 16..1024 reload : NVMe over fabrics: entries of each queue : login
drive.keep_alive_tmo integer 0..65535 s reload : NVMe over fabrics: time between two keep-alives, 0 for none : login
drive.link_rate link_rate : highest rate of the drive's SAS link (1.5, 3.0, 6.0, 12.0, 22.5 Gbit) : negotiated
nvram.execution_throttle integer 1..65535 reload : commands the adapter sends to one port : in-flight
nvram.frame_size integer 512..2048 B reload : Fibre Channel frame payload
nvram.interrupt_delay integer 0..255 100us reload : interrupt delay timer
nvram.fifo_threshold integer 0..3 reload : fill of the adapter's FIFO that starts a transfer
nvram.fast_memory_timing flag 0..1 reload : Fast Memory Timing of the QLA1040's own menu
nvram.completion_posting_mode integer 0..1 reload : Completion Posting Mode of the QLA1040's own menu
nvram.command_completion integer 0..6 reload : operation mode, when a completion interrupts
nvram.connection_options integer 0..2 reload : 0 loop only, 1 point to point only, 2 loop preferred
nvram.data_rate text reload : link speed, or auto
nvram.hard_loop_id integer 0..125 reload : arbitrated loop address
nvram.loop_reset_delay integer 0..60 s reload : quiet time after a loop reset
nvram.login_retry integer 0..255 reload : login attempts
nvram.login_timeout integer 0..255 s reload : login timeout
nvram.port_down_retry integer 0..255 reload : retries or seconds while a port is down
nvram.link_down_timeout integer 0..255 s reload : wait for the link before failing I/O
nvram.max_luns integer 1..256 reload : LUNs looked for per target
nvram.interrupt_coalescing_depth integer 1..255 reload : completions gathered per interrupt
nvram.interrupt_coalescing_timeout integer 0..65535 us reload : longest wait for more completions
nvram.sata_queue_depth integer 1..255 reload : commands per SATA drive
nvram.host_scsi_id integer 0..15 reload : the adapter's own SCSI id : the kernel reports the id
nvram.max_tags integer 1..255 reload : tagged commands per target : the driver gives its drives that queue depth
nvram.scsi_parity flag 0..1 reload : parity checking on the SCSI bus
nvram.scsi_bus_reset flag 0..1 reload : reset the SCSI bus at start
nvram.boot_rom flag 0..1 reboot : the adapter's boot code is enabled
raid.level choice 0,1,5,6,10,50,60 rebuild : RAID level
raid.members list rebuild : claimed drives by WWN or serial, in order; a suite varies their number
raid.strip size 512..1073741824 B rebuild : bytes on one drive before the next is used
raid.name text rebuild : the volume's name
raid.read_policy choice ra,nora,adaptive : read-ahead by the controller
raid.write_policy choice wb,wt,awb : write back, write through, back without a battery too
raid.io_policy choice direct,cached : direct or cached I/O
raid.disk_cache choice enable,disable,default : write cache of the members; with md drive.WCE of each
raid.initialisation choice none,fast,full rebuild : how much of a new volume is written first
raid.hot_spares list rebuild : claimed drives kept as spares
raid.rebuild_rate integer 0..100 % : share of the controller that a rebuild may use
raid.bitmap choice none,internal : md write-intent bitmap
raid.tool text rebuild : the tool that makes the volume (mdadm, storcli, ...); by default what fits the adapter
os.governor choice performance,powersave,schedutil,ondemand,conservative,userspace \
: CPU frequency governor; a bench without cpufreq (a virtual one) is refused : frequency
os.irq_affinity cpu_lists 0..4095 : adapter alias to the CPUs that take its interrupts : interrupts
os.nr_requests integer 1..65535 : drive.nr_requests of drives under test that declare none of their own : in-flight
os.cpus integer 1..4096 reboot : processors that the kernel brings up (maxcpus)
os.cmdline arguments reboot : arguments added to the kernel command line
multipath.path_selector choice service-time,queue-length,round-robin,historical-service-time,io-affinity \
: how the path of the next I/O is chosen : maps
multipath.path_checker choice tur,readsector0,directio,rdac,hp_sw,emc_clariion : what tells that a path works : maps
multipath.no_path_retry retries 1..65535 : checks without a path until I/O fails, or `fail` or `queue` : maps
multipath.fast_io_fail_tmo seconds_or_off 0..2147483647 s : wait for a lost remote port before I/O fails : maps' ports
multipath.dev_loss_tmo integer 1..2147483647 s : wait for a lost remote port before its drives go : maps' ports
virtual.iops_limit drive_numbers 1..1000000000 1/s : I/O per second, by drive or `all`
virtual.panic_at_boot flag 0..1 reboot : the trial kernel of this drop panics
virtual.unplug unplug : take a drive away while a batch runs, {drive, after_s}
driver.kernel kernel_package reboot \
: a kernel: {package, version}, or {files} of its packages : uname and the loaded modules' srcversion
driver.dkms dkms_package reboot : a DKMS package, {package, module, version} : three srcversions
driver.kmod kmod_package reboot \
: a built driver in packages (kmod RPM, KMP), {files or driver_disk, module, version, as} : three srcversions
driver.module module_file reboot : a prebuilt module, {file, sha256} : three srcversions
firmware.firmware mapping reboot : the code an adapter or drive runs, {file, sha256, tool, ...} : version
firmware.bios mapping reboot : an adapter's boot code, {file, sha256, tool, ...} : version
driver.can_queue integer 1..65535 reload : commands that the driver holds for each adapter under test : can_queue
driver.options module_options reload : module options, {module, {parameter, value}} : /sys/module/<module>/parameters
"""

_PROOFS = {
    "can_queue": "the kernel shows it of the adapter's SCSI hosts",
    "frequency": "the frequency of each CPU",
    "interrupts": "the CPUs that take interrupts (/proc/interrupts) while drives are read",
    "own attributes": "the queue has that scheduler's own attributes while it serves reads",
    "request size": "reads become requests of that size",
    "login": "the kernel shows it of the session or controller that was made with it",
    "maps": "multipathd shows it of its maps",
    "maps' ports": "the remote ports that the paths of maps lead through have it",
    "negotiated": "the rate that the link was negotiated at",
    "in-flight": "the in-flight count of a drive never exceeds it while more is offered",
    "version": "the version is read back, settings and links are compared with those before",
    "three srcversions": "srcversion in the initramfs, on disk and of the loaded module",
}

_NO_TOOL = "no tool here is known to set it; set it in the adapter's own menu, identically for both drops"
_MENU_ONLY = ("fifo_threshold", "fast_memory_timing", "completion_posting_mode", "data_rate", "login_timeout")
_REFUSED = {f"nvram.{name}": _NO_TOOL for name in _MENU_ONLY}


def _other_settings() -> Iterator[Setting]:
    for line in _OTHERS.strip().splitlines():
        head, summary, *proof = line.split(" : ")
        qualified, kind, *words = head.split(" ")
        section, _, name = qualified.partition(".")
        cost = words.pop() if words and words[-1] in COSTS else "instant"
        span = words[0] if words else ""
        low, dots, high = span.partition("..")
        yield Setting(
            name=name,
            section=section,
            kind=kind,
            summary=summary,
            unit=words[1] if len(words) > 1 else "",
            minimum=int(low) if dots else None,
            maximum=int(high) if dots else None,
            choices=() if dots or not span else tuple(span.split(",")),
            cost=cost,
            proof=_PROOFS.get(proof[0], proof[0]) if proof else "",
            disturbs=_DISTURBS.get(qualified, ()),
            refused=_REFUSED.get(qualified, ""),
        )


SETTINGS: Mapping[str, Setting] = {setting.qualified: setting for setting in (*_mode_settings(), *_other_settings())}
"""Every setting by its qualified name, in the order of this file."""


def section_of(section: str) -> dict[str, Setting]:
    return {setting.name: setting for setting in SETTINGS.values() if setting.section == section}


def find(section: str, name: str) -> Setting:
    """The setting `name` of `section`. Raises BadInputError that names the nearest known names."""
    if f"{section}.{name}" in SETTINGS:
        return SETTINGS[f"{section}.{name}"]
    known = section_of(section)
    if not known:
        raise BadInputError([f"{section!r} is no section of settings; known: {', '.join(SECTIONS)}"])
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    near += [other for other in known if other.lower() == name.lower() and other not in near]
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise BadInputError([f"{section}.{name} is not a known setting{hint}"])


def disturbed_by(section: str, name: str) -> tuple[str, ...]:
    """The names of a section that a write of `name` may change, and so on. Raises BadInputError."""
    hits: list[str] = []
    left = list(find(section, name).disturbs)
    while left:
        hits.append(left.pop(0))
        left += [hit for hit in find(section, hits[-1]).disturbs if hit not in (*hits, *left)]
    return tuple(hits)


MEMBERS, RAID_LEVEL = "raid.members", "raid.level"
"""The members of a volume, and what may say how many they are."""

_MOST_DRIVES = 4096


def _integer(setting: Setting, value: object) -> int:
    if isinstance(value, bool):
        value = int(value)
    try:
        number = int(str(value), 0)
    except ValueError:
        raise ValueError(f"{value!r} is not a whole number") from None
    unit = f" {setting.unit}" if setting.unit else ""
    if setting.minimum is not None and number < setting.minimum:
        raise ValueError(f"{number}{unit} is below {setting.minimum}{unit}")
    if setting.maximum is not None and number > setting.maximum:
        raise ValueError(f"{number}{unit} is above {setting.maximum}{unit}")
    return number


def _size(setting: Setting, value: object) -> int:
    return _integer(setting, parse_size(str(value)))


def _choice(setting: Setting, value: object) -> str:
    if str(value) not in setting.choices:
        raise ValueError(f"{value!r} is not one of {', '.join(setting.choices)}")
    return str(value)


def _text(_setting: Setting, value: object) -> str:
    if not isinstance(value, (str, int, float)) or isinstance(value, bool) or not str(value).strip():
        raise ValueError(f"{value!r} is not a word or text")
    if not str(value).isprintable():
        raise ValueError(f"{value!r} holds characters that cannot be printed")
    return str(value)


def _list(setting: Setting, value: object) -> list[str]:
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"{value!r} is not a list")  # noqa: TRY004 - a wrong word in a manifest, not a wrong call
    return [_text(setting, item) for item in value]


def _arguments(setting: Setting, value: object) -> list[str]:
    words = _list(setting, value)
    wrong = next((word for word in words if not ARGUMENT.match(word) or word.startswith(OWN_ARGUMENT)), "")
    if wrong:
        raise ValueError(f"{wrong!r} is no word of the command line: it has blanks or quotes, or is storqual's own")
    return words


def _mapping(_setting: Setting, value: object) -> dict[str, object]:
    if not isinstance(value, Mapping) or not value:
        raise ValueError(f"{value!r} is not a mapping")
    return {str(key): item for key, item in value.items()}


def _module_options(setting: Setting, value: object) -> dict[str, dict[str, str]]:
    try:
        return declared_options(_mapping(setting, value))
    except BadInputError as problem:
        raise ValueError("; ".join(problem.problems)) from None


def _fields(setting: Setting, value: object, needed: Collection[str], optional: Collection[str]) -> dict[str, str]:
    return {name: _text(setting, item) for name, item in _checked_entries(setting, value, needed, optional).items()}


def _checked_entries(
    setting: Setting, value: object, needed: Collection[str], optional: Collection[str]
) -> Mapping[str, object]:
    entries = _mapping(setting, value)
    missing = sorted(set(needed) - set(entries))
    unknown = sorted(set(entries) - {*needed, *optional})
    if missing or unknown:
        problems = [f"needs {', '.join(missing)}"] * bool(missing) + [f"does not know {', '.join(unknown)}"] * bool(
            unknown
        )
        raise ValueError("; ".join(problems))
    return entries


_PACKAGE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9+._~-]*\Z")


def _kernel_package(setting: Setting, value: object) -> dict[str, object]:
    """A package that the bench's package manager knows by name, or the files of one kernel's packages."""
    entries = _mapping(setting, value)
    if ("package" in entries) == ("files" in entries):
        raise ValueError("needs package or files, and not both")
    if "files" in entries:
        return {**entries, "files": _kernel_files(_list(setting, entries["files"]))}
    package = _text(setting, entries["package"])
    if not _PACKAGE_NAME.match(package) or package.endswith((".deb", ".rpm")):
        raise ValueError(f"{package!r} is not the name of a package, such as linux-image-6.1.0-47-amd64")
    return entries


def _kernel_files(files: Sequence[str]) -> list[str]:
    names = [file.rpartition("/")[2] for file in files]
    if {name[-4:] for name in names} not in ({".rpm"}, {".deb"}):
        raise ValueError(f"{', '.join(names) or 'no file'}: expected package files, all .rpm or all .deb")
    packages = [split_file(name) for name in names]
    # what is in files whose names follow no rule is read on the bench only
    problem = kernel_problem([each for each in packages if each]) if all(packages) else ""
    if problem:
        raise ValueError(problem)
    return list(files)


def _dkms_package(setting: Setting, value: object) -> dict[str, str]:
    fields = _fields(setting, value, ("package", "module"), ("version",))
    if not fields["package"].endswith(".deb"):
        raise ValueError(f"{fields['package']!r} is not a package file (.deb)")
    return fields


KMOD_FORMS = ("package", "module")
"""How a driver in a package comes to a bench: installed as its customers do, or its module alone."""


def _kmod_package(setting: Setting, value: object) -> dict[str, object]:
    entries = _checked_entries(setting, value, ("module",), ("files", "driver_disk", "version", "as"))
    if ("files" in entries) == ("driver_disk" in entries):
        raise ValueError("needs files or driver_disk, and not both")
    named: dict[str, object] = {}
    if "files" in entries:
        files = _list(setting, entries["files"])
        names = [file.rpartition("/")[2] for file in files]
        if not names or any(not name.endswith(".rpm") for name in names):
            raise ValueError(f"{', '.join(names) or 'no file'}: expected package files (.rpm)")
        named["files"] = list(files)
    else:
        named["driver_disk"] = _text(setting, entries["driver_disk"])
        if not str(named["driver_disk"]).endswith(".iso"):
            raise ValueError(f"{named['driver_disk']!r} is not a disc image (.iso)")
    form = _text(setting, entries.get("as", KMOD_FORMS[0]))
    if form not in KMOD_FORMS:
        raise ValueError(f"as is {form!r}, expected {' or '.join(KMOD_FORMS)}")
    version = {"version": _text(setting, entries["version"])} if "version" in entries else {}
    return {**named, "module": _text(setting, entries["module"]), **version, "as": form}


def _module_file(setting: Setting, value: object) -> dict[str, str]:
    fields = _fields(setting, value, ("file", "sha256"), ())
    if not re.search(r"\.ko(?:\.(?:xz|zst|gz))?\Z", fields["file"]):
        raise ValueError(f"{fields['file']!r} is not a kernel module (.ko, plain or compressed)")
    if not re.fullmatch(r"[0-9a-fA-F]{64}", fields["sha256"]):
        raise ValueError(f"{fields['sha256']!r} is not a SHA-256 of 64 hexadecimal digits")
    return fields


def _drive_numbers(setting: Setting, value: object) -> dict[str, int]:
    entries = _mapping(setting, value) if isinstance(value, Mapping) else {"all": value}
    return {drive: _integer(setting, number) for drive, number in entries.items()}


def _cpu_lists(setting: Setting, value: object) -> dict[str, list[int]]:
    """CPU numbers by adapter alias, sorted; none is no list."""
    lists = {}
    for alias, cpus in _mapping(setting, value).items():
        if not isinstance(cpus, (list, tuple)) or not cpus:
            raise ValueError(f"{alias}: {cpus!r} is not a list of CPU numbers")
        lists[alias] = sorted({_integer(setting, cpu) for cpu in cpus})
    return lists


LINK_RATES = ("1.5 Gbit", "3.0 Gbit", "6.0 Gbit", "12.0 Gbit", "22.5 Gbit")
"""Rates of a SAS link, lowest first, in the words of the kernel (scsi_transport_sas)."""


def _link_rate(_setting: Setting, value: object) -> str:
    """`3 Gbit`, `3.0 Gbit/s` and `3` are `3.0 Gbit`."""
    match = re.fullmatch(r"([0-9]{1,2}(?:\.[0-9])?)(?: ?Gbit(?:/s)?)?", str(value).strip())
    rate = f"{float(match.group(1)):.1f} Gbit" if match else ""
    if rate not in LINK_RATES:
        raise ValueError(f"{value!r} is not one of {', '.join(LINK_RATES)}")
    return rate


def _unplug(setting: Setting, value: object) -> dict[str, object]:
    entries = _mapping(setting, value)
    wrong = sorted(set(entries) ^ {"drive", "after_s"})
    if wrong:
        raise ValueError(f"needs exactly `drive` and `after_s` (look at {', '.join(wrong)})")
    return {"drive": _text(setting, entries["drive"]), "after_s": parse_duration(str(entries["after_s"]))}


def _retries(setting: Setting, value: object) -> object:
    """A number of checks, or a word of multipath.conf."""
    return value if value in ("fail", "queue") else _integer(setting, value)


def _seconds_or_off(setting: Setting, value: object) -> object:
    """Whole seconds, or `off` where the kernel is to wait for ever."""
    return "off" if value == "off" else _integer(setting, value)


_KINDS: Mapping[str, Callable[[Setting, object], object]] = {
    "flag": _integer,
    "integer": _integer,
    "size": _size,
    "choice": _choice,
    "cpu_lists": _cpu_lists,
    "text": _text,
    "kernel_package": _kernel_package,
    "link_rate": _link_rate,
    "retries": _retries,
    "seconds_or_off": _seconds_or_off,
    "list": _list,
    "arguments": _arguments,
    "mapping": _mapping,
    "dkms_package": _dkms_package,
    "kmod_package": _kmod_package,
    "drive_numbers": _drive_numbers,
    "module_file": _module_file,
    "module_options": _module_options,
    "unplug": _unplug,
}


def check_value(setting: Setting, value: object) -> object:
    """`value` in its plain form: whole numbers, bytes, text. Raises ValueError that names the setting.

    So it does for a setting that nothing here brings about.
    """
    if setting.refused:
        raise ValueError(f"{setting.qualified}: {setting.refused}")
    try:
        return _KINDS[setting.kind](setting, value)
    except ValueError as problem:
        raise ValueError(f"{setting.qualified}: {problem}") from None


def check_level(setting: Setting, level: object) -> object:
    """One level of a setting that a suite varies, in plain form. Raises ValueError that names the setting.

    The members of a volume are varied by their number: a count of the drives that the drop names, or counts by RAID
    level (a mapping of level to tuple).
    """
    if setting.qualified != MEMBERS:
        return check_value(setting, level)
    if not isinstance(level, Mapping):
        return _count(level)
    raid = SETTINGS[RAID_LEVEL]
    return {
        str(check_value(raid, key)): tuple(map(_count, counts if isinstance(counts, (list, tuple)) else [counts]))
        for key, counts in level.items()
    }


def _count(value: object) -> int:
    if isinstance(value, (bool, list, tuple)) or not is_whole(str(value)) or not 1 <= int(str(value)) <= _MOST_DRIVES:
        raise ValueError(f"{MEMBERS}: {value!r} is not a number of drives from 1 to {_MOST_DRIVES}")
    return int(str(value))


def _checked(section: str, name: str, value: object) -> tuple[object, list[str]]:
    try:
        return check_value(find(section, name), value), []
    except BadInputError as problem:
        return None, problem.problems
    except ValueError as problem:
        return None, [str(problem)]


def check_section(section: str, values: Mapping[str, object]) -> dict[str, object]:
    """All values of one section in their plain form. Raises BadInputError with every problem, not only the first."""
    checked = {name: _checked(section, name, value) for name, value in values.items()}
    problems = [problem for _, reasons in checked.values() for problem in reasons]
    if problems:
        raise BadInputError(problems)
    return {name: value for name, (value, _) in checked.items()}
