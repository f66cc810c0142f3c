# SPDX-License-Identifier: Apache-2.0
"""What keywords speak about: a bench that is asked now, or the run directory of a campaign on it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from storqual.checks.seen import BenchSeen, ExpectedAdapter, NotJudgedError, expected_of
from storqual.run import Run, read_run
from storqual_core.kit.errors import BadInputError
from storqual_core.kit.settings import SETTINGS

Setting = Mapping[str, Any]
"""One provisioned setting: name, target, declared, before, read_back, proven, proof."""


class Subject(Protocol):
    """A bench, wherever the answers come from."""

    bench: str

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
            raise BadInputError([f"{run}: found no bench {bench!r}, expected one of {', '.join(self.run.benches)}"])
        self.bench = bench

    @cached_property
    def expected(self) -> Mapping[str, ExpectedAdapter]:
        """The adapters as the run was planned with them."""
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
        raise NotJudgedError(f"nobody looked at {self.bench} in this run: its adapters are not on record")

    def findings(self) -> list[str]:
        """The findings of all blocks. Raises NotJudgedError when no block was finished."""
        blocks = [event for event in self.run.events if event.kind == "block_finished" and event.bench == self.bench]
        if not blocks:
            raise NotJudgedError(f"no block was finished on {self.bench}: no kernel log was read")
        return [
            f"block {event.text('block')}, {finding.get('kind')}: {(finding.get('lines') or ['no line was kept'])[0]}"
            for event in blocks
            for finding in event.fields.get("findings") or ()
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


_THROTTLES = tuple(name for name, setting in SETTINGS.items() if setting.proof == SETTINGS["drive.queue_depth"].proof)
"""Settings that are shown in effect as a queue depth is: by counting what is in flight."""


class LiveBench:
    """A bench that answers now, over the inventory's own connection; looks are kept until somebody looks again."""

    def __init__(self, inventories: Sequence[str], bench: str) -> None:
        from storqual.inputs import load_inventory  # noqa: PLC0415 - a run directory needs no inventory

        self.inventories = tuple(inventories)
        self.bench = bench
        self._described = load_inventory([Path(source) for source in inventories], limit=bench).benches[bench]
        self._answer: Mapping[str, Any] | None = None

    def look(self) -> None:
        """Ask the bench again. Raises StorqualError when it does not answer."""
        self._answer = self._ask({})

    def _ask(self, depths: Mapping[str, Mapping[str, int]]) -> Mapping[str, Any]:
        from storqual.bench.ask import ask_benches  # noqa: PLC0415 - Ansible is slow to start and not always needed

        answers = ask_benches("look.yml", self.inventories, limit=self.bench, variables={"look_depths": depths})
        return dict(answers[self.bench])

    @property
    def _looked(self) -> Mapping[str, Any]:
        if self._answer is None:
            self.look()
        return self._answer or {}

    @cached_property
    def expected(self) -> Mapping[str, ExpectedAdapter]:
        """The adapters of the inventory."""
        return expected_of(self._declared)

    @cached_property
    def _declared(self) -> Mapping[str, Any]:
        return dict(self._described.model_dump(mode="json", exclude_none=True)["adapters"])

    @property
    def seen(self) -> BenchSeen:
        """The last look at it."""
        from storqual_core.facts.bench_facts import environment_of  # noqa: PLC0415 - as above

        facts = self._looked["facts"]
        drives = [drive for adapter in self._described.adapters.values() for drive in adapter.drives]
        known = {name for drive in drives for name in (drive.id, drive.serial) if name}
        strangers = [
            f"{drive['name']} ({drive['vendor']} {drive['model']}, {drive['id']})"
            for drive in facts["drives"]
            if not drive["system"] and not known & {drive["id"], drive["serial"]}
        ]
        return BenchSeen.of(environment_of(facts, self._declared), strangers)

    def findings(self) -> list[str]:
        """The kernel's log since boot. Raises NotJudgedError when it could not be read."""
        from storqual_core.host.log_findings import find_all  # noqa: PLC0415 - as above

        lines = self._looked["kernel_log"]
        if lines is None:
            raise NotJudgedError(f"{self.bench}: the kernel's log could not be read (dmesg was refused)")
        return [finding.sentence() for finding in find_all(lines)]

    def throttled(self, drives: Sequence[str], depth: int) -> Iterator[Setting]:
        """Whether a depth that the drives have already is in effect; nothing is set, other depths prove nothing."""
        shown = {name: drive for adapter in self.seen.adapters.values() for name, drive in adapter.drives.items()}
        for drive in drives:
            found = shown.get(drive)
            if found is not None and found.queue_depth != depth:
                read_back = found.queue_depth
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
            raise BadInputError([f"StorqualLibrary: found no bench, expected one of {', '.join(benches)}"])
        return RecordedBench(Path(run), bench or benches[0])
    if not bench:
        raise BadInputError(["StorqualLibrary: found no bench, expected one of the inventory's"])
    return LiveBench(inventory.split(","), bench)
