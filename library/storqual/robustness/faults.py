# SPDX-License-Identifier: Apache-2.0
"""The vocabulary of faults: what each is, the ways to bring it about, what proves that it was, what it may cost.

It is data: a way that is not here does not exist, and one that cannot be proven is not here. `where` is `bench` for
what the bench does to itself (`storqual_core.trial.bench_faults`), `virtual` for what QEMU does to a virtual bench.
"""

from __future__ import annotations

from collections.abc import Mapping

from storqual.robustness.fault import Fault, Proof, Way

LOGGING_WAY = "qmp_log_writes"
"""The way that leaves a log of the drive's writes, from which images of power cuts are built."""

_RESET_LINE = r"[Pp]ower-on or device reset|\breset\b|RESET"
_UNIT_ATTENTION = Proof(kernel=r"Power-on or device reset occurred")
_RESET_SEEN = Proof(kernel=_RESET_LINE)


def _seen(*names: str) -> tuple[Proof, ...]:
    return tuple(Proof(seen=name) for name in names)


_MARKED = _seen("marked", "unreadable", "mended")
# sense 11/00, or 11/14 where the drive remembers who marked the block
_UNREADABLE_BLOCK = Proof(kernel=r"Add\. Sense: (?:Unrecovered read error|Read error - LBA marked bad)")

_SWITCHED_OFF = _seen("switched_off", "gone")
_INJECTED = _seen("injected", "counted")
_MOVED = _seen("interrupts_moved", "interrupts_back")
_BENEATH = _seen("inserted", "event:BLOCK_IO_ERROR", "removed")
_NOT_CORRECTED = "severity=Uncorrect(?:ed|able)"

# drivers without a handler of their own answer that such a reset is not available
_BUS_RESETS = ("sym53c8xx", "am53c974", "mptspi")
_HOST_RESETS = ("sym53c8xx", "am53c974", "mptspi", "mptsas", "mpt3sas", "megaraid_sas")


def _by_rules(name: str, *lines: str, also: str = "") -> Way:
    """A way of scsi_debug: its rules acted as often as they were to, the kernel told of it, and all was put back."""
    proofs = (*_INJECTED, *(Proof(kernel=line) for line in lines), *_seen(*also.split()))
    # a recovery that escalates resets what is behind the adapter
    return Way(name, "bench", "adapter" if also else "drive", proofs, ("scsi_debug",), returns=("running",))


def _failed(step: str, sentence: str, *lines: str) -> Fault:
    """A step of the kernel's recovery fails, and its error handler logs that it takes the next; no I/O may fail."""
    way = _by_rules(f"rule_failed_{step}", *lines, also="escalated")
    return Fault(f"failed_{step}", "adapter", sentence, (way,))


_ALL: tuple[Fault, ...] = (
    Fault(
        "device_reset",
        "drive",
        "the drive is reset while it has commands under way",
        (Way("sg_reset_device", "bench", "drive", (Proof(seen="command"), _RESET_SEEN), not_by=("megaraid_sas",)),),
    ),
    Fault(
        "target_reset",
        "drive",
        "the target is reset while it has commands under way",
        (Way("sg_reset_target", "bench", "target", (Proof(seen="command"), _RESET_SEEN)),),
    ),
    Fault(
        "bus_reset",
        "path",
        "the bus is reset under load",
        (Way("sg_reset_bus", "bench", "bus", (Proof(seen="command"), _RESET_SEEN), _BUS_RESETS),),
    ),
    Fault(
        "host_reset",
        "adapter",
        "the adapter is reset under load",
        (
            Way("sg_reset_host", "bench", "adapter", (Proof(seen="command"), _RESET_SEEN), _HOST_RESETS),
            Way(
                "sysfs_host_reset", "bench", "adapter", (Proof(seen="command"), _RESET_SEEN), not_by=("virtio_scsi",)
            ),
        ),
    ),
    Fault(
        "function_reset",
        "adapter",
        "the PCI function is reset under load",
        (Way("pci_reset", "bench", "adapter", (Proof(seen="command"), _UNIT_ATTENTION)),),
        io_errors=True,
        settings_stay=False,
    ),
    Fault(
        "link_error_corrected",
        "adapter",
        "an error of PCI Express that the hardware corrected is reported of the adapter under load: no I/O may fail",
        (Way("aer_corrected", "bench", "link", (*_INJECTED, Proof(kernel=r"severity=Correct(?:ed|able)\b"))),),
    ),
    Fault(
        "link_error",
        "adapter",
        "an uncorrected error of PCI Express is reported of the adapter under load, and its driver recovers",
        (Way("aer_not_fatal", "bench", "link", (*_INJECTED, Proof(kernel=rf"{_NOT_CORRECTED} \(Non-Fatal\)"))),),
        io_errors=True,
        settings_stay=False,
    ),
    Fault(
        "link_reset",
        "adapter",
        "a fatal error of PCI Express is reported of the adapter under load, and the kernel resets the link",
        (Way("aer_fatal", "bench", "link", (*_INJECTED, Proof(kernel=rf"{_NOT_CORRECTED} \(Fatal\)"))),),
        io_errors=True,
        settings_stay=False,
    ),
    Fault(
        "drive_removal",
        "drive",
        "the drive goes under load and comes back",
        (Way("sysfs_delete", "bench", "drive", _seen("drive_gone"), returns=("drive_back",)),),
        io_errors=True,
        settings_stay=False,
    ),
    Fault(
        "drive_unplug",
        "drive",
        "the drive is pulled under load, without a word to the kernel, and put back",
        (
            Way("qmp_unplug", "virtual", "drive", _seen("event:DEVICE_DELETED", "plugged")),
            Way("sas_phy_off", "bench", "drive", _SWITCHED_OFF, returns=("back",), named_only=True),
            Way("bay_power_off", "bench", "drive", _SWITCHED_OFF, returns=("back",), named_only=True),
        ),
        io_errors=True,
        settings_stay=False,
    ),
    Fault(
        "path_loss",
        "path",
        "one of several paths to a drive is lost under load, and used again when it is back",
        (
            Way("path_offline", "bench", "path", _seen("path_lost"), returns=("path_back",)),
            Way(
                "qmp_path_unplug",
                "virtual",
                "path",
                _seen("event:DEVICE_DELETED", "path_lost", "plugged"),
                returns=("path_back",),
            ),
        ),
        settings_stay=False,
    ),
    Fault(
        "drive_exchange",
        "drive",
        "the drive is pulled under load, another drive answers in its slot for a while, and the first comes back",
        (
            Way(
                "qmp_exchange",
                "virtual",
                "drive",
                _seen("event:DEVICE_DELETED", "exchanged", "plugged"),
                # QEMU's other adapters tell their drivers nothing of a drive that went: what the kernel holds for the
                # same drive is then another, and its writes reach it
                ("virtio_scsi",),
            ),
        ),
        io_errors=True,
        settings_stay=False,
    ),
    Fault(
        "adapter_removal",
        "adapter",
        "the adapter goes under load and comes back",
        (
            Way("pci_remove", "bench", "adapter", _seen("adapter_gone"), returns=("adapter_back",)),
            Way("slot_power_off", "bench", "link", _SWITCHED_OFF, returns=("back",), named_only=True),
        ),
        io_errors=True,
        settings_stay=False,
    ),
    Fault(
        "driver_rebind",
        "driver",
        "the driver lets go of the adapter under load and takes it again",
        (Way("driver_rebind", "bench", "adapter", _seen("driver_gone"), returns=("driver_back",)),),
        io_errors=True,
        settings_stay=False,
    ),
    Fault(
        "driver_reload",
        "driver",
        "the driver's module is unloaded under load and loaded again, for all adapters that it drives",
        (Way("module_reload", "bench", "driver", _seen("module_gone", "module_back")),),
        io_errors=True,
        settings_stay=False,
    ),
    Fault(
        "processor_removal",
        "bench",
        "a processor is taken away under load and comes back",
        (Way("processor_offline", "bench", "drive", _seen("processor_gone", "processor_back")),),
    ),
    Fault(
        "interrupt_change",
        "adapter",
        "the adapter's interrupts are moved to another processor under load and back",
        (
            # the kernel spreads the queues of these itself and lets nobody move them
            Way("interrupt_move", "bench", "drive", _MOVED, not_by=("virtio_scsi", "nvme")),
        ),
    ),
    Fault(
        "scheduler_change",
        "drive",
        "the scheduler is changed under load and changed back",
        (Way("scheduler_switch", "bench", "drive", _seen("read_back", "put_back")),),
    ),
    Fault(
        "depth_change",
        "drive",
        "the queue depth is changed under load and changed back",
        (Way("depth_switch", "bench", "drive", _seen("read_back", "put_back")),),
    ),
    Fault(
        "write_error",
        "drive",
        "the drive answers a write with an error, and takes the next",
        (
            Way("qmp_write_error", "virtual", "drive", _BENEATH),
            Way("dm_flakey", "bench", "drive", _seen("inserted", "refused", "taken_again"), named_only=True),
            _by_rules("rule_write_error", r"fail command 0x2a .*sense_key=0x4,"),
        ),
        io_errors=True,
    ),
    Fault(
        "read_error",
        "drive",
        "the drive answers a read with an error, and the next as ever",
        (
            Way("qmp_read_error", "virtual", "drive", _BENEATH),
            Way(
                "sg_write_uncorrectable",
                "bench",
                "drive",
                (*_MARKED, Proof(kernel="Sense Key : Medium Error"), _UNREADABLE_BLOCK),
                not_by=("nvme",),
                spares_load=True,
            ),
            Way(
                "nvme_write_uncorrectable",
                "bench",
                "drive",
                (*_MARKED, Proof(kernel=r"Unrecovered Read Error|sct 0x2 / sc 0x81|critical medium error")),
                ("nvme",),
                spares_load=True,
            ),
            _by_rules("rule_read_error", r"Add\. Sense: Unrecovered read error"),
        ),
        io_errors=True,
    ),
    Fault(
        "flush_error",
        "drive",
        "the drive answers a flush with an error, and takes the next",
        (
            # flushes of volumes end in the driver: the cache is the firmware's to keep
            Way("qmp_flush_error", "virtual", "drive", _BENEATH, not_by=("megaraid_sas",)),
            _by_rules("rule_flush_error", r"fail command 0x35 .*sense_key=0x4,"),
        ),
        io_errors=True,
    ),
    Fault(
        "task_set_full",
        "drive",
        "the drive answers writes with TASK SET FULL for a while: the kernel sends them again, and no I/O fails",
        (
            # NVMe has no such status
            Way("qmp_task_set_full", "virtual", "drive", _BENEATH, not_by=("nvme",)),
            _by_rules("rule_task_set_full", r"fail command 0x2a .*statusbyte=0x28,"),
        ),
        # the kernel takes the queue depth down when a drive's queue is full, and up again only minutes later
        settings_stay=False,
    ),
    Fault(
        "slow_drive",
        "drive",
        "the drive answers one command a second for a while",
        (Way("qmp_throttle", "virtual", "drive", _seen("throttled", "released")),),
    ),
    Fault(
        "command_timeout",
        "drive",
        "the drive keeps commands for longer than their timeout, and the kernel aborts them",
        (
            Way(
                "qmp_hang",
                "virtual",
                "adapter",
                _seen("throttled", "timed_out", "released"),
                # their drivers start the clock of a command anew, or wait for longer than a trial lasts
                not_by=("virtio_scsi", "megaraid_sas", "nvme"),
            ),
            _by_rules("rule_lost_write", "timeout command 0x2a", "retry aborted command", also="escalated"),
        ),
        io_errors=True,
    ),
    Fault(
        "busy",
        "drive",
        "the drive answers writes with BUSY for a while: the kernel sends them again, and no I/O fails",
        (_by_rules("rule_busy", r"fail command 0x2a .*statusbyte=0x8,"),),
    ),
    _failed("abort", "an abort fails, and the kernel resets the drive", "cmd abort failed", "Sending BDR"),
    _failed("lun_reset", "the drive's reset fails too: the target's follows", "BDR failed", "Sending target reset"),
    _failed("target_reset", "the target's reset fails too: the bus's follows", "Target reset failed", "Sending BRST"),
    _failed("bus_reset", "no reset helps but the adapter's, which follows", "timeout command 0x0 *$", "Sending HRST"),
    Fault(
        "drive_offline",
        "adapter",
        "the drive answers after no reset, is taken offline by the kernel, and set running again",
        (_by_rules("rule_drive_offline", "Sending HRST", "Device offlined", also="escalated offline"),),
        io_errors=True,
    ),
    Fault(
        "abort_storm",
        "adapter",
        "many commands are aborted at once beside the load, whose own I/Os all end well",
        (
            Way(
                "sg_short_timeouts",
                "bench",
                "adapter",
                (Proof(seen="aborted"), Proof(kernel="attempting task abort")),
                # the log of other drivers does not say what they abort, or their adapters do not come back from it
                ("mptsas", "mptspi", "mpt3sas"),
            ),
        ),
    ),
    Fault(
        "power_cut",
        "bench",
        "a power cut at every flush point is simulated from a log of all that reached the drive",
        (
            Way(
                LOGGING_WAY,
                "virtual",
                "drive",
                _seen("inserted", "logged", "removed"),
                # flushes end in the driver: the firmware's cache has a battery, which no emulation has
                not_by=("megaraid_sas",),
            ),
        ),
    ),
    Fault(
        "bench_reset",
        "bench",
        "the bench's reset button is pressed under load",
        (Way("qmp_reset", "virtual", "adapter", _seen("event:RESET", "other_boot"), downs_bench=True),),
        io_errors=True,
    ),
    Fault(
        "bench_panic",
        "bench",
        "the bench's kernel panics under load, and the bench starts again",
        (Way("sysrq_panic", "virtual", "adapter", _seen("panicked", "other_boot"), downs_bench=True),),
        io_errors=True,
    ),
    Fault(
        "crash_dump",
        "bench",
        "the bench's kernel panics under load, and its dump is written to a drive behind the adapter",
        (
            Way(
                "kdump",
                "bench",
                "adapter",
                _seen("armed", "other_boot", "dumped"),
                downs_bench=True,
                packages=("busybox", "makedumpfile"),
                boot_word="crashkernel=",
            ),
        ),
        io_errors=True,
    ),
    Fault(
        "connection_loss",
        "bench",
        "the control node's connection is cut under load and made again",
        (Way("ssh_cut", "virtual", "drive", _seen("cut", "connected")),),
    ),
)

FAULTS: Mapping[str, Fault] = {fault.name: fault for fault in _ALL}


def way_of(name: str) -> tuple[Fault, Way]:
    """A way and its fault by the way's name. Raises KeyError."""
    return next((fault, way) for fault in _ALL for way in fault.ways if way.name == name)
