# SPDX-License-Identifier: Apache-2.0
"""What keywords speak about: a bench asked now or the run of a campaign, what it shows, what is expected of it."""

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from robot.api import SkipExecution
from robot.libraries.BuiltIn import BuiltIn, RobotNotRunningError

from storqual.base.text import plural
from storqual.run import Run, read_run
from storqual.run.turns import turns_of
from storqual_core.host.identity import declared_address
from storqual_core.kit.errors import BadInputError, StorqualError
from storqual_core.kit.quantities import is_whole


class NotJudgedError(StorqualError):
    """What a keyword asks about is not on record, so nothing is said about it, neither good nor bad."""


class UndecidedError(NotJudgedError):
    """There is data, and it shows neither that a threshold holds nor that it is broken."""


@dataclass(frozen=True)
class DriveSeen:
    """A drive as the kernel has it: PCI address of its adapter, port and link rate where the transport shows them."""

    id: str
    adapter_pci: str
    port: int | None
    link_rate: str
    model: str
    firmware: str
    state: str
    write_cache: str
    queue_depth: int | None


@dataclass(frozen=True)
class AdapterSeen:
    """An adapter with its driver build and its PCI link now and at most; texts are empty where nothing is shown."""

    alias: str
    firmware: str
    driver: str
    module: str
    version: str
    srcversion: str
    link: tuple[str, int | None]
    link_max: tuple[str, int | None]
    drives: Mapping[str, DriveSeen]


@dataclass(frozen=True)
class BenchSeen:
    """A look at a bench; `strangers` are drives no inventory entry names, None where the look does not tell."""

    kernel: str
    adapters: Mapping[str, AdapterSeen]
    strangers: tuple[str, ...] | None

    @classmethod
    def of(cls, environment: Mapping[str, Any], strangers: Sequence[str] | None = None) -> "BenchSeen":
        """From the fingerprint that `storqual_core.facts.bench_facts.environment_of` makes."""
        adapters = {
            str(alias): _adapter(str(alias), entry) for alias, entry in (environment.get("adapters") or {}).items()
        }
        kernel = environment.get("kernel") or {}
        return cls(str(kernel.get("release") or ""), adapters, None if strangers is None else tuple(strangers))

    def only(self, aliases: Container[str]) -> "BenchSeen":
        """The same look with the adapters in `aliases`."""
        adapters = {alias: adapter for alias, adapter in self.adapters.items() if alias in aliases}
        return replace(self, adapters=adapters)


@dataclass(frozen=True)
class ExpectedDrive:
    """A drive as the inventory names it; None where the inventory says nothing."""

    id: str
    model: str | None
    firmware: str | None
    port: int | None


@dataclass(frozen=True)
class ExpectedAdapter:
    """An adapter as the inventory names it."""

    alias: str
    driver: str | None
    pci: str | None
    drives: tuple[ExpectedDrive, ...]


_NAMES = ("id", "file", "wwn", "serial")
"""What names a drive, the first that is there: run.json has the id, an inventory what it is made of."""


def expected_of(adapters: Mapping[str, Mapping[str, Any]]) -> dict[str, ExpectedAdapter]:
    """The inventory's adapters, as `run.json` and `storqual inventory --json` print them."""
    return {
        alias: ExpectedAdapter(
            alias=alias,
            driver=entry.get("driver"),
            pci=declared_address(entry) or None,
            drives=tuple(
                ExpectedDrive(
                    id=next((str(drive[name]) for name in _NAMES if drive.get(name)), ""),
                    model=drive.get("model"),
                    firmware=drive.get("revision"),
                    # a path through a fabric is compared by the preflight
                    port=drive["port"] if isinstance(drive.get("port"), int) else None,
                )
                for drive in entry.get("drives") or ()
            ),
        )
        for alias, entry in adapters.items()
    }


def _adapter(alias: str, entry: Mapping[str, Any]) -> AdapterSeen:
    module, link = entry.get("module") or {}, entry.get("link") or {}
    drives = entry.get("drives") or {}
    return AdapterSeen(
        alias=alias,
        firmware=_text(entry.get("firmware")),
        driver=_text(entry.get("driver")),
        module=_text(module.get("name")),
        version=_text(module.get("version")),
        srcversion=_text(module.get("srcversion")),
        link=(_text(link.get("speed")), link.get("width")),
        link_max=(_text(link.get("speed_max")), link.get("width_max")),
        drives={str(name): _drive(str(name), drive) for name, drive in drives.items()},
    )


def _drive(name: str, entry: Mapping[str, Any]) -> DriveSeen:
    link = entry.get("link") or {}
    depth = _text(entry.get("queue_depth"))
    return DriveSeen(
        id=name,
        adapter_pci=_text(entry.get("adapter")),
        port=link.get("port"),
        link_rate=_text(link.get("rate")),
        model=_text(entry.get("model")),
        firmware=_text(entry.get("revision")),
        state=_text(entry.get("state")),
        # the SCSI disk driver asked the drive itself; the block layer's word is all there is for others
        write_cache=_text(entry.get("cache")) or _text(entry.get("write_cache")),
        queue_depth=int(depth) if is_whole(depth) else None,
    )


def _text(value: object) -> str:
    return "" if value is None else str(value)


def looked_at(what: str) -> None:
    """Have the running test say what it looked at: the evidence of a check that passes."""
    with suppress(RobotNotRunningError):
        BuiltIn().set_test_message(message_of([what]), append=True, separator="; ")


def not_judged_without(number: int, what: str) -> None:
    """Raise NotJudgedError when a check would have looked at nothing."""
    if number == 0:
        raise NotJudgedError(f"there was nothing to check: {what}")


def some(names: Iterable[str], most: int = 6) -> str:
    """The first names of a list, and how many more there are."""
    every = list(names)
    more = [f"{len(every) - most} more"] if len(every) > most else []
    return ", ".join([*every[:most], *more])


def message_of(lines: Iterable[str]) -> str:
    """Lines as one message that is no page of HTML to Robot Framework, whatever a device or a run is called."""
    message = "\n".join(lines)
    return f" {message}" if message.startswith("*HTML*") else message


def fail_with(problems: Iterable[str]) -> None:
    """Raise AssertionError with every problem on a line of its own; nothing for none."""
    lines = list(problems)
    if lines:
        raise AssertionError(message_of(lines))


def not_judged_with(problems: Iterable[str]) -> None:
    """Raise NotJudgedError likewise: what is wrong is the rig or the record, not what is qualified."""
    lines = list(problems)
    if lines:
        raise NotJudgedError(message_of(lines))


Setting = Mapping[str, Any]
"""One provisioned setting: name, target, declared, before, read_back, proven, proof."""


class Subject(Protocol):
    """A bench, wherever the answers come from; `kind` is the inventory's word for it."""

    bench: str
    kind: str

    @property
    def expected(self) -> Mapping[str, ExpectedAdapter]:
        """The inventory's adapters by alias."""

    @property
    def seen(self) -> BenchSeen:
        """What the bench shows. Raises NotJudgedError where no look is on record."""

    def findings(self) -> list[str]:
        """What the kernel's log says of trouble, a sentence each. Raises NotJudgedError without a log."""

    def throttled(self, drives: Sequence[str], depth: int) -> Iterator[Setting]:
        """The records that show whether a queue depth of `depth` is in effect on `drives`."""


class AboutSubject(ABC):
    """Keywords that need to know what they speak about; the library that has them says it."""

    @property
    @abstractmethod
    def subject(self) -> Subject:
        """The bench or run that the library was imported for."""


class RecordedBench:
    """One bench of a run directory: nothing is asked again, everything was written down while it happened.

    It speaks of the adapters under test; the bench's others are no part of the campaign.
    """

    def __init__(self, run: Path, bench: str) -> None:
        self.run: Run = read_run(run)
        if bench not in self.run.benches:
            benches = ", ".join(self.run.benches)
            raise BadInputError([f"{run}: this run has no bench {bench!r}; its benches: {benches}"])
        self.bench = bench
        self.kind = str(self.run.benches[bench].get("kind") or "")

    @cached_property
    def expected(self) -> Mapping[str, ExpectedAdapter]:
        adapters = self.run.benches[self.bench].get("adapters") or {}
        return expected_of({alias: entry for alias, entry in adapters.items() if entry.get("under_test", True)})

    @cached_property
    def seen(self) -> BenchSeen:
        """What preflight saw before anything was touched; of a run killed before that, what was seen after it."""
        looks = {
            event.text("when"): event.fields["facts"]
            for event in self.run.events
            if event.kind == "environment" and event.bench == self.bench and "adapters" in event.fields["facts"]
        }
        for when in ("before", "after"):
            if when in looks:
                return BenchSeen.of(looks[when]).only(self.expected)
        raise NotJudgedError(f"{self.bench} was not read in this run, so its adapters are not known")

    def findings(self) -> list[str]:
        """The findings of all batches of launches: what the kernel says in a trial is part of the trial's record.

        Raises NotJudgedError when no batch was finished.
        """
        ended = [event for event in self.run.events if event.kind == "block_finished" and event.bench == self.bench]
        turns = turns_of(self.run)
        batches = [event for event in ended if not turns.of_batch(event.text("block"))]
        if ended and not batches:
            raise SkipExecution("no batch of launches was run; the kernel's log of other turns is in their records")
        if not batches:
            raise NotJudgedError(f"no batch was finished on {self.bench}: no kernel log was read")
        unread = {str((event.fields.get("end") or {}).get("kernel_log_reason") or "") for event in batches} - {""}
        if unread:
            why = f"the kernel's log of a batch was not read: {some(sorted(unread))}"
            if self.kind == "local":
                raise SkipExecution(f"files of this machine were planned, not a bench; {why}")
            raise NotJudgedError(why)
        looked_at(f"kernel log of {plural(len(batches), 'batch')}")
        return [
            f"batch {event.text('block')}, {finding.get('kind')}: {(finding.get('lines') or ['no line was kept'])[0]}"
            for event in batches
            for finding in event.fields.get("findings") or ()
            if finding.get("severity") != "warning"
        ]

    def settings(self, arm: str = "") -> Iterator[tuple[str, Setting]]:
        """(session, setting) of every session of `arm`, or of both arms."""
        for event in self.run.events:
            if event.kind == "session_started" and event.bench == self.bench and arm in ("", event.text("arm")):
                for setting in (event.fields.get("provisioned") or {}).get("settings") or ():
                    yield event.text("session"), setting

    def throttled(self, drives: Sequence[str], depth: int) -> Iterator[Setting]:
        """Queue depths and execution throttles that were declared as `depth` in any session."""
        for _, setting in self.settings():
            about = str(setting.get("drive") or "")
            named = str(setting.get("name")) in _THROTTLES and about in ("", *drives)
            if named and setting.get("declared") == depth:
                yield setting


_THROTTLES = ("drive.queue_depth", "nvram.execution_throttle", "nvram.max_tags", "nvram.sata_queue_depth")
"""Settings that say how many commands a drive is sent at once."""


class LiveBench:
    """A bench that answers now, over the inventory's own connection; looks are kept until somebody looks again."""

    def __init__(self, inventories: Sequence[str], bench: str) -> None:
        from storqual.inputs import load_inventory  # noqa: PLC0415 - a run directory needs no inventory

        self.inventories = tuple(inventories)
        self.bench = bench
        self._described = load_inventory([Path(source) for source in inventories], limit=bench).benches[bench]
        self.kind = str(self._described.kind)
        self._answer: Mapping[str, Any] | None = None

    def look(self) -> None:
        """Ask the bench again. Raises StorqualError when it does not answer."""
        self._answer = self._ask({})

    def _ask(self, depths: Mapping[str, Mapping[str, int]]) -> Mapping[str, Any]:
        from storqual.bench.ansible_run import ask_benches  # noqa: PLC0415 - Ansible is slow to start and not always needed

        answers = ask_benches("facts.yml", self.inventories, limit=self.bench, variables={"look_depths": depths})
        return dict(answers[self.bench])

    @property
    def _looked(self) -> Mapping[str, Any]:
        if self._answer is None:
            self.look()
        return self._answer or {}

    @cached_property
    def expected(self) -> Mapping[str, ExpectedAdapter]:
        return expected_of(self._declared)

    @cached_property
    def _declared(self) -> Mapping[str, Any]:
        return dict(self._described.model_dump(mode="json", exclude_none=True)["adapters"])

    @property
    def seen(self) -> BenchSeen:
        from storqual_core.facts.bench_facts import environment_of  # noqa: PLC0415 - as above

        facts = self._looked["facts"]
        drives = [drive for adapter in self._described.adapters.values() for drive in adapter.drives]
        names = {name for drive in drives for name in (drive.id, drive.serial) if name}
        strangers = [
            f"{drive['name']} ({drive['vendor']} {drive['model']}, {drive['id']})"
            for drive in facts["drives"]
            if not drive["system"] and not names & {drive["id"], drive["serial"]}
        ]
        return BenchSeen.of(environment_of(facts, self._declared), strangers)

    def findings(self) -> list[str]:
        """The kernel's log since boot. Raises NotJudgedError when it could not be read."""
        from storqual_core.host.kernel_log import errors_of, find_all  # noqa: PLC0415 - as above

        lines = self._looked["kernel_log"]
        if lines is None:
            raise NotJudgedError(f"{self.bench}: the kernel's log could not be read (dmesg was refused)")
        return [finding.sentence() for finding in errors_of(find_all(lines))]

    def throttled(self, drives: Sequence[str], depth: int) -> Iterator[Setting]:
        """Whether a depth that the drives have already is in effect; nothing is set, other depths prove nothing."""
        shown = {name: drive for adapter in self.seen.adapters.values() for name, drive in adapter.drives.items()}
        for drive in drives:
            seen = shown.get(drive)
            if seen is not None and seen.queue_depth != depth:
                read_back = seen.queue_depth
                yield {"name": "drive.queue_depth", "drive": drive, "declared": depth, "read_back": read_back}
        same = [name for name in drives if name in shown and shown[name].queue_depth == depth]
        if same:
            yield from self._ask({name: {"queue_depth": depth} for name in same})["settings"]


def subject_of(run: str, inventory: str, bench: str) -> RecordedBench | LiveBench:
    """The subject that a suite names. Raises BadInputError unless it names a run or an inventory, and one bench."""
    if bool(run) == bool(inventory):
        raise BadInputError(
            [f"StorqualLibrary: found run={run!r} and inventory={inventory!r}, expected one of the two"]
        )
    if run:
        benches = list(read_run(Path(run)).benches)
        if not bench and len(benches) != 1:
            raise BadInputError([f"StorqualLibrary: name the bench; the benches are: {', '.join(benches)}"])
        return RecordedBench(Path(run), bench or benches[0])
    if not bench:
        raise BadInputError(["StorqualLibrary: name the bench (bench=...) along with the inventory"])
    return LiveBench(inventory.split(","), bench)
