# SPDX-License-Identifier: Apache-2.0
"""Keywords about a bench's adapters and drives: cabling, identity, links, firmware, caches, throttles."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Literal

from robot.api import SkipExecution
from robot.api.deco import keyword

from storqual.checks.seen import (
    AboutSubject,
    AdapterSeen,
    DriveSeen,
    ExpectedDrive,
    LiveBench,
    NotJudgedError,
    fail_with,
    looked_at,
    not_judged_with,
    not_judged_without,
    some,
)
from storqual_core.facts.preflight import behind

Trait = Literal["firmware", "link rate", "write cache", "queue depth", "state"]

_TRAITS = {
    "firmware": "firmware",
    "link rate": "link_rate",
    "write cache": "write_cache",
    "queue depth": "queue_depth",
    "state": "state",
}
_WORKING = ("running", "live", "")
"""What the kernel says of a drive that takes commands: SCSI, NVMe, and transports without such a word."""


class BenchKeywords(AboutSubject):
    """Acceptance of a bench. Each keyword reports all problems together."""

    @keyword
    def look_at_the_bench(self) -> None:
        """Read the bench now; keywords use the last reading. A run directory is used as it was written."""
        if isinstance(self.subject, LiveBench):
            self.subject.look()

    @keyword
    def every_adapter_should_run_its_driver(self) -> None:
        """Every adapter of the inventory is there, with the kernel driver that the inventory expects."""
        seen = self.subject.seen.adapters
        problems = []
        for alias, expected in self.subject.expected.items():
            adapter = seen.get(alias)
            if adapter is None:
                problems.append(f"adapter {alias}: nothing is at {expected.pci or 'its place'}")
            elif expected.driver and not _same_driver(expected.driver, adapter):
                has = adapter.driver or "no driver"
                problems.append(f"adapter {alias} runs {has}, the inventory says {expected.driver}")
        fail_with(problems)
        not_judged_without(len(self.subject.expected), f"the inventory names no adapter of {self.subject.bench}")
        sentences = (
            f"{alias} runs {card.driver}" if card.driver else f"{alias} is here, and the inventory names no driver"
            for alias, card in self.subject.expected.items()
        )
        looked_at(some(sentences))

    @keyword
    def adapter_should_run_driver(
        self, adapter: str, driver: str, version: str | None = None, srcversion: str | None = None
    ) -> None:
        """The adapter is bound to this kernel driver, where given in this version and of this source build.

        | `Adapter Should Run Driver` | fusion | mptsas | version=3.04.20 |
        """
        seen = self._adapter(adapter)
        problems = []
        if not _same_driver(driver, seen):
            problems.append(f"adapter {adapter} runs {seen.driver or 'no driver'}, not {driver}")
        for name, expected in (("version", version), ("srcversion", srcversion)):
            has = getattr(seen, name)
            if expected is not None and has != expected:
                problems.append(f"adapter {adapter}: {name} of {seen.module} is {has or 'not shown'}, not {expected}")
        fail_with(problems)

    @keyword
    def adapter_firmware_should_be(self, adapter: str, version: str) -> None:
        """The adapter runs this firmware, as its driver shows it. Not judged where the driver shows none."""
        seen = self._adapter(adapter)
        if not seen.firmware:
            raise NotJudgedError(f"adapter {adapter}: its driver {seen.driver} shows no firmware version")
        if seen.firmware != version:
            raise AssertionError(f"adapter {adapter} runs firmware {seen.firmware}, not {version}")

    @keyword
    def every_adapter_link_that_is_shown_should_run_at_full_rate(self) -> None:
        """PCI Express links run at the speed and width their adapters can do; a narrow slot or a bad riser fails.

        Adapters without such a link are reported. Not judged where no adapter shows one; skipped on a virtual bench,
        whose adapters have no slots.
        """
        seen = self.subject.seen.adapters.values()
        shown = [adapter for adapter in seen if adapter.link_max[0]]
        if not shown:
            self._nothing_shown("no adapter of this bench shows a PCI Express link", "has no slots")
        unread = [f"adapter {card.alias} does not show how its link runs now" for card in shown if not card.link[0]]
        not_judged_with(unread)
        fail_with(
            f"adapter {card.alias}: its link runs at {_link(card.link)}, it could run at {_link(card.link_max)}"
            for card in shown
            if card.link != card.link_max
        )
        silent = [adapter.alias for adapter in seen if adapter not in shown]
        rates = some(f"{adapter.alias} at {_link(adapter.link)}" for adapter in shown)
        looked_at(f"{rates}; no link is shown by {some(silent)}" if silent else rates)

    @keyword
    def every_expected_drive_should_be_in_place(self) -> None:
        """Every drive of the inventory answers, on its adapter, and on its port if the transport reports ports."""
        seen = self.subject.seen.adapters
        problems: list[str] = []
        for alias, expected in self.subject.expected.items():
            adapter = seen.get(alias)
            drives = adapter.drives if adapter is not None else {}
            for drive in expected.drives:
                name = f"{alias}: drive {drive.id}"
                problems += _misplaced(name, drive, drives.get(drive.id), expected.pci, self._declared())
        fail_with(problems)
        placed = [(alias, drive) for alias, card in self.subject.expected.items() for drive in card.drives]
        not_judged_without(len(placed), f"the inventory names no drive of {self.subject.bench}")
        pairs = [(drive, seen[alias].drives[drive.id]) for alias, drive in placed]
        unread = [drive.id for drive, shown in pairs if not shown.adapter_pci]
        not_judged_with([f"it is not known behind which adapter they are: {some(unread)}"] if unread else [])
        ports = sum(drive.port is not None and shown.port is not None for drive, shown in pairs)
        looked_at(f"{len(pairs)} drives, the port of {ports} of them")

    @keyword
    def drive_should_be_on_adapter_and_port(self, drive: str, adapter: str, port: int | None = None) -> None:
        """The drive (WWN or serial) is on this adapter and, where given, on this port of it."""
        expected = self.subject.expected.get(adapter)
        if expected is None:
            raise NotJudgedError(f"the inventory has no adapter {adapter}")
        seen = self._drives().get(drive)
        declared = ExpectedDrive(drive, None, None, port)
        if port is not None and seen is not None and seen.port is None:
            raise NotJudgedError(f"drive {drive}: its transport tells no ports apart")
        fail_with(_misplaced(f"drive {drive}", declared, seen, expected.pci, self._declared()))

    @keyword
    def no_unknown_drive_should_be_attached(self) -> None:
        """Every drive of the bench is in its inventory, or is a system disk. Reads the bench."""
        strangers = self.subject.seen.strangers
        if strangers is None:
            raise NotJudgedError("a run directory keeps what its inventory names; ask the bench itself")
        fail_with(f"drive {stranger} is not in the inventory" for stranger in strangers)
        looked_at(f"{len(self._drives())} drives of the inventory and no other")

    @keyword
    def drive_firmware_levels_should_match_the_inventory(self) -> None:
        """Every drive whose inventory entry names a revision runs it. Skipped where no entry names one."""
        with_revision = [
            (alias, drive)
            for alias, expected in self.subject.expected.items()
            for drive in expected.drives
            if drive.firmware
        ]
        drives = self._drives()
        if not with_revision and any(adapter.drives for adapter in self.subject.expected.values()):
            raise SkipExecution("the inventory names the revision of no drive")
        named = [(alias, drive) for alias, drive in with_revision if drive.id in drives]
        not_judged_without(len(named), "no drive is here whose revision the inventory names")
        unread = [drive.id for _, drive in named if not drives[drive.id].firmware]
        not_judged_with([f"drives that show no firmware: {some(unread)}"] if unread else [])
        fail_with(
            f"{alias}: drive {drive.id} runs firmware {drives[drive.id].firmware}, not {drive.firmware}"
            for alias, drive in named
            if drives[drive.id].firmware != drive.firmware
        )
        looked_at(f"firmware of {len(named)} of {len(drives)} drives")

    @keyword
    def drives_of_one_model_should_agree_on(self, trait: Trait) -> None:
        """Drives of one model on an adapter are alike: the odd one out is a bad cable, old firmware, a lost setting.

        ``trait`` is what is compared: firmware, link rate, write cache, queue depth or state. Not judged where no
        drive shows it, but skipped for link rates on a virtual bench, which has no cables; skipped, too, where the
        inventory names no two drives of one model on an adapter.
        """
        drives = self._drives()
        named = [adapter for adapter in self.subject.expected.values() if adapter.drives]
        if named and all(len(adapter.drives) == len({drive.model for drive in adapter.drives}) for adapter in named):
            raise SkipExecution("the inventory names no two drives of one model on one adapter")
        shown = [drive for drive in drives.values() if getattr(drive, _TRAITS[trait]) not in ("", None)]
        if not shown:
            why = f"no drive of this bench shows its {trait}"
            self._nothing_shown(why, "has no cables") if trait == "link rate" else not_judged_with([why])
        adapters = self.subject.seen.adapters.values()
        fail_with(problem for adapter in adapters for problem in _odd_ones(adapter, trait))
        groups = Counter((drive.adapter_pci, drive.model) for drive in shown)
        alike = sum(number for number in groups.values() if number > 1)
        not_judged_without(alike, f"no two drives of one model on one adapter show their {trait}")
        looked_at(f"{trait} of {alike} of {len(drives)} drives")

    def _nothing_shown(self, why: str, because: str) -> None:
        """Not judged, unless the plan says that it cannot be: the inventory calls the bench virtual."""
        if self.subject.kind == "virtual":
            raise SkipExecution(f"{why}; it was planned as a virtual bench, which {because}")
        raise NotJudgedError(f"there was nothing to check: {why}")

    @keyword
    def every_drive_should_be_running(self) -> None:
        """No drive is offline, blocked or in the middle of error recovery."""
        drives = self._drives().values()
        fail_with(f"drive {drive.id} is {drive.state}" for drive in drives if drive.state not in _WORKING)
        shown = sum(drive.state != "" for drive in drives)
        not_judged_without(shown, "the kernel tells the state of no drive")
        looked_at(f"state of {shown} of {len(drives)} drives")

    @keyword
    def drive_firmware_should_be(self, drive: str, revision: str) -> None:
        """The drive runs this firmware revision."""
        seen = self._drive(drive)
        if seen.firmware != revision:
            raise AssertionError(f"drive {drive} runs firmware {seen.firmware or 'unknown'}, not {revision}")

    @keyword
    def drive_write_cache_should_be(self, drive: str, state: Literal["on", "off"]) -> None:
        """The drive's write cache is ``on`` or ``off``, as the drive told the kernel."""
        seen = self._drive(drive)
        if not seen.write_cache:
            raise NotJudgedError(f"drive {drive} does not report its write cache")
        has = "on" if seen.write_cache.startswith("write back") else "off"
        if has != state:
            raise AssertionError(f"drive {drive}: its write cache is {has} ({seen.write_cache}), not {state}")

    @keyword
    def drive_queue_depth_should_be(self, drive: str, depth: int) -> None:
        """The kernel lets the drive hold this many commands."""
        seen = self._drive(drive)
        if seen.queue_depth is None:
            raise NotJudgedError(f"drive {drive} has no queue depth of its own")
        if seen.queue_depth != depth:
            raise AssertionError(f"drive {drive} has a queue depth of {seen.queue_depth}, not {depth}")

    @keyword
    def execution_throttle_should_be_in_effect(self, adapter: str, throttle: int) -> None:
        """At most ``throttle`` commands are in flight to each drive of the adapter, and that many were seen.

        A value that was only read back proves nothing (a driver may ignore what it stored), so it is not judged.
        On a bench the drives are read for a second each and watched; in a run the proofs of its sessions count.
        """
        expected = self.subject.expected.get(adapter)
        if expected is None:
            raise NotJudgedError(f"the inventory has no adapter {adapter}")
        records = list(self.subject.throttled([drive.id for drive in expected.drives], throttle))
        if not records:
            raise NotJudgedError(f"adapter {adapter}: nothing shows a throttle of {throttle}")
        problems = [
            f"{_about(record, adapter)} is {record.get('read_back')}, not {throttle}"
            for record in records
            if record.get("read_back") != throttle
        ]
        problems += [
            f"{_about(record, adapter)}: {record.get('proof')}" for record in records if record.get("proven") is False
        ]
        fail_with(problems)
        unproven = [record for record in records if record.get("proven") is not True]
        if unproven:
            why = unproven[0].get("proof") or "it was read back only"
            raise NotJudgedError(f"{_about(unproven[0], adapter)}: not shown to be in effect: {why}")
        looked_at(f"{throttle} commands on {len(records)} drives of {adapter}")

    @keyword
    def kernel_log_should_be_clean(self) -> None:
        """No reset, timeout, sense error, bus error or oops: in any block of the run, or since the bench booted.

        Trouble in a batch spoils what was measured in it: that is not judged, where a bench by itself fails.
        """
        tell = fail_with if isinstance(self.subject, LiveBench) else not_judged_with
        tell(self.subject.findings())

    def _adapter(self, alias: str) -> AdapterSeen:
        adapter = self.subject.seen.adapters.get(alias)
        if adapter is None:
            raise AssertionError(f"there is no adapter {alias} on {self.subject.bench}")
        return adapter

    def _declared(self) -> set[str]:
        """The PCI addresses that the inventory gives to adapters."""
        return {expected.pci.lower() for expected in self.subject.expected.values() if expected.pci}

    def _drives(self) -> dict[str, DriveSeen]:
        """Every drive that was seen. Raises NotJudgedError for none: what is true of none says nothing."""
        adapters = self.subject.seen.adapters.values()
        drives = {name: drive for adapter in adapters for name, drive in adapter.drives.items()}
        if not drives:
            raise NotJudgedError(f"no drive was seen on {self.subject.bench}")
        return drives

    def _drive(self, drive: str) -> DriveSeen:
        seen = self._drives().get(drive)
        if seen is None:
            raise AssertionError(f"there is no drive {drive} on {self.subject.bench}")
        return seen


def _same_driver(driver: str, adapter: AdapterSeen) -> bool:
    """Module names and driver names differ in `-` and `_` only, or are two names of one thing."""
    return driver.replace("-", "_") in (adapter.driver.replace("-", "_"), adapter.module.replace("-", "_"))


def _link(link: tuple[str, int | None]) -> str:
    return f"{link[0]} x{link[1]}"


def _misplaced(
    name: str, expected: ExpectedDrive, seen: DriveSeen | None, pci: str | None, declared: Collection[str]
) -> Iterator[str]:
    if seen is None:
        yield f"{name} does not answer"
        return
    if pci and seen.adapter_pci and not behind(seen.adapter_pci, pci.lower(), declared):
        yield f"{name} is on the adapter at {seen.adapter_pci}, not at {pci}"
    if expected.port is not None and seen.port is not None and seen.port != expected.port:
        yield f"{name} is on port {seen.port}, not on port {expected.port}"


def _odd_ones(adapter: AdapterSeen, trait: str) -> Iterator[str]:
    """Drives that differ from most of their model."""
    models: defaultdict[str, list[DriveSeen]] = defaultdict(list)
    for drive in adapter.drives.values():
        models[drive.model].append(drive)
    for model, drives in models.items():
        values = {drive.id: getattr(drive, _TRAITS[trait]) for drive in drives}
        usual, _ = Counter(values.values()).most_common(1)[0]
        for name, value in values.items():
            if value != usual:
                has, most = (text if text not in ("", None) else "unknown" for text in (value, usual))
                yield f"{adapter.alias}: drive {name} has {trait} {has}, other {model} drives have {most}"


def _about(record: Mapping[str, object], adapter: str) -> str:
    return f"{record.get('name')} of {record.get('drive') or adapter}"
