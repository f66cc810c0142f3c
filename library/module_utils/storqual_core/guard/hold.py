# SPDX-License-Identifier: Apache-2.0
"""The guard: the only way to a drive that may be written. Each layer can only refuse; no flag switches it off.

1 claim, 2 resolve, 3 in use, 4 signatures, 5 hold, 6 consent; layer 7, what was written, is
`guard/writes.py`; `library/README.md` says what each asks. `check` only decides; `hold` decides, takes the drives
exclusively, decides again on what is there now that nobody can change it, and keeps them until its `with` ends.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Collection, Iterator, Mapping, Sequence

from ..host.sysfs import read_drives
from ..kit import command
from ..kit.command import Runner
from ..kit.errors import GuardRefusalError, StorqualError
from ..kit.machine import Machine
from .claims import Claim, VolumeClaim
from .file_targets import FileState, lend_files, open_file, take_back_files
from .reach import STEPS, matching, with_reached
from .rules import PURPOSES, Refusal, chosen, decide, topmost
from .signatures import Ledger, Window, window, write_stamps
from .snapshot import GuardSnapshot, look
from .writes import Quiet

STATE_DIR = "/var/lib/storqual"


@dataclass(frozen=True)
class Survey:
    """Every reason against touching the claimed drives, and which of them carry no scratch stamp yet."""

    refusals: tuple[Refusal, ...]
    bare: tuple[str, ...]


def survey(
    claims: Sequence[Claim],
    *,
    purpose: str,
    consent: Collection[str] = (),
    state_dir: str | os.PathLike[str] = STATE_DIR,
    volumes: Sequence[VolumeClaim] = (),
    beside: Sequence[Claim] = (),
    machine: Machine | None = None,
    runner: Runner | None = None,
) -> Survey:
    """Layers 1 to 4 and 6 over one reading of the machine.

    `beside` are further claims of the bench: those whose drives the step reaches are decided about as well.
    """
    machine, runner = machine or Machine(), runner or command.run
    claims = _widened(claims, beside, purpose, machine, runner)
    snapshot = look(
        machine,
        claims,
        state_dir=os.fspath(state_dir),
        purpose=purpose,
        volumes=volumes,
        contents=PURPOSES[purpose].contents,
        runner=runner,
    )
    refusals = decide(claims, snapshot, purpose=purpose, consent=consent, volumes=volumes)
    return Survey(tuple(refusals), tuple(name for name, content in snapshot.contents.items() if not content.stamped))


def _widened(
    claims: Sequence[Claim], beside: Sequence[Claim], purpose: str, machine: Machine, runner: Runner
) -> Sequence[Claim]:
    """The claims, and those of `beside` whose drives are reached; without `beside`, nothing is read."""
    if purpose not in STEPS or not beside:
        return claims
    return with_reached(machine, read_drives(machine), claims, beside, purpose, runner)


def check(
    claims: Sequence[Claim],
    *,
    purpose: str,
    consent: Collection[str] = (),
    state_dir: str | os.PathLike[str] = STATE_DIR,
    volumes: Sequence[VolumeClaim] = (),
    beside: Sequence[Claim] = (),
    machine: Machine | None = None,
    runner: Runner | None = None,
) -> list[Refusal]:
    """Layers 1 to 4 and 6 over one reading of the machine: every reason against, none when all may be touched."""
    result = survey(
        claims,
        purpose=purpose,
        consent=consent,
        state_dir=state_dir,
        volumes=volumes,
        beside=beside,
        machine=machine,
        runner=runner,
    )
    return list(result.refusals)


def refuse(refusals: Sequence[Refusal]) -> None:
    if refusals:
        raise GuardRefusalError([str(refusal) for refusal in refusals])


class Hold(Mapping[str, str]):
    """Drives that are held exclusively: drive id to device node (or file, or volume), until the block ends.

    `stamped` names the drives that carried no stamp before and do now.
    """

    def __init__(
        self,
        claims: Sequence[Claim],
        *,
        purpose: str,
        consent: Collection[str],
        state_dir: str,
        run_id: str,
        volumes: Sequence[VolumeClaim],
        machine: Machine,
        runner: Runner,
    ) -> None:
        self._claims, self._volumes = tuple(claims), tuple(volumes)
        self._purpose, self._consent = purpose, tuple(consent)
        self._state_dir, self._run = state_dir, run_id
        self._machine, self._runner = machine, runner
        self._nodes: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._files: dict[str, FileState] = {}
        self._members: dict[str, str] = {}
        self._paths: dict[str, list[str]] = {}
        self._sizes: dict[str, int] = {}
        self._open: dict[str, int] = {}
        self._lent = False
        self.stamped: tuple[str, ...] = ()

    def __getitem__(self, drive: str) -> str:
        return self._nodes[drive]

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def window(self, drive: str) -> Window:
        """What fio may touch of a target; all of a file or a volume, of a drive all but the guard's areas."""
        claim = next((claim for claim in self._claims if claim.id == drive), None)
        if claim is None or claim.file:
            return Window(0, self._sizes[drive])
        return window(self._sizes[drive])

    def announce(self, *drives: str, name: str = "") -> str:
        """The UUID (`name`, or a new one) of what a tool is about to make on drives or volumes that are held.

        It is on disk before this returns.
        """
        return self._ledger.announce(*map(self._held_drive, drives), name=name)[1]

    def adopt(self, volume: str) -> None:
        """Take a held volume that is about to be deleted by consent for storqual's own, so that it can be cleared.

        Its UUID is on disk before this returns: after a power cut in the middle its remains are known.
        """
        claim = next(claim for claim in self._volumes if claim.id == self._held_drive(volume))
        if self._purpose != "delete_volume":
            raise StorqualError(f"{volume} cannot be taken over: it is not held for being deleted")
        self._ledger.announce(*claim.members, name=claim.uuid)

    def member(self, drive: str) -> str:
        """The node of a drive that is a member of a held volume; members are not held themselves."""
        return self._members[drive]

    def paths(self, drive: str) -> list[str]:
        """The disks that are paths to a drive, where it has several."""
        return self._paths.get(drive, [])

    def opened(self, drive: str) -> str:
        """A path that leads to the very device or file that is held, whatever its node or name leads to by now.

        It is there until the drive is let go.
        """
        return f"/proc/{os.getpid()}/fd/{self._open[self._held_drive(drive)]}"

    def release(self, drive: str) -> str:
        """Let go of a drive for a tool that must open it exclusively itself; its node."""
        os.close(self._open.pop(self._held_drive(drive)))
        return self._nodes[drive]

    def retake(self, drive: str) -> str:
        """Take a drive again after such a tool, and repeat layers 2 to 4. Raises GuardRefusalError."""
        if drive not in self._open:
            self._take(self._held_drive(drive))
        refuse(self._decide(self._look(contents=self._contents)))
        return self._nodes[drive]

    def stamp(self, *drives: str) -> None:
        """Clear what storqual made on held drives and stamp them as scratch. Raises GuardRefusalError."""
        for drive in drives:
            self._whole(drive)
        refuse(self._decide(self._look(contents=True)))
        for drive in drives:
            ledger = self._ledger.clearing(drive)
            self._write_stamps(drive, clear=True)
            ledger.cleared(drive)

    def lend(self, drive: str) -> None:
        """Give a drive that is held to a program that may write anywhere on it, over the stamps too.

        That it was lent is on disk before this returns: after a reset in the middle what lies there is known.
        """
        self._ledger.lending(self._whole(drive))

    def reclaim(self, drive: str) -> None:
        """Stamp a drive that was lent; what the program left in the guard's areas is cleared."""
        if drive not in self._ledger.lent:
            raise StorqualError(f"{drive} cannot be stamped again: it was never lent")
        self._write_stamps(self._whole(drive), clear=True)
        self._ledger.cleared(drive)

    def _whole(self, drive: str) -> str:
        claim = next((claim for claim in self._claims if claim.id == self._held_drive(drive)), None)
        if claim is None or claim.file or drive not in self._open or not PURPOSES[self._purpose].writes:
            raise StorqualError(f"{drive} cannot be stamped: it is not held for writing as a drive")
        return drive

    def _held_drive(self, drive: str) -> str:
        if drive not in self._nodes:
            raise StorqualError(f"{drive} is not among the drives that are held")
        return drive

    @property
    def _ledger(self) -> Ledger:
        return Ledger.read(self._machine.path(self._state_dir))

    @property
    def _contents(self) -> bool:
        return PURPOSES[self._purpose].contents

    def _look(self, *, contents: bool) -> GuardSnapshot:
        return look(
            self._machine,
            self._claims,
            state_dir=self._state_dir,
            purpose=self._purpose,
            volumes=self._volumes,
            contents=contents,
            held={self._names.get(drive, drive): self.opened(drive) for drive in self._open},
            runner=self._runner,
        )

    def _decide(self, snapshot: GuardSnapshot) -> list[Refusal]:
        """Of what is held now: a drive or volume that was let go for a tool may be mounted or a member by now."""
        volumes = [volume for volume in self._volumes if volume.id in self._open]
        members = {member for volume in volumes for member in volume.members}
        claims = [claim for claim in self._claims if claim.id in self._open or claim.id in members]
        return [
            *self._moved(claims, snapshot),
            *decide(claims, snapshot, purpose=self._purpose, consent=self._consent, volumes=volumes),
        ]

    def _moved(self, claims: Sequence[Claim], snapshot: GuardSnapshot) -> Iterator[Refusal]:
        """A drive that was unplugged and came back under another name is no longer the one that is held."""
        for claim in claims:
            drive = chosen(claim, snapshot) if claim.id in self._names else None
            if drive is not None and topmost(drive, snapshot) != self._names[claim.id]:
                reason = f"it is {drive.name} now, {self._names[claim.id]} was taken"
                yield Refusal(
                    f"drive {claim.id}", reason, "find out why it disappeared and came back, then try again"
                )

    def enter(self) -> None:
        """Decide, take, decide again on what is there now, stamp what is empty."""
        first = self._look(contents=False)
        refuse(decide(self._claims, first, purpose="settings", volumes=self._volumes))
        self._settle(first)
        for drive in self._nodes:
            self._take(drive)
        quiet = Quiet(self._machine, self._watched(first))
        second = self._look(contents=self._contents)
        disturbed = quiet.end()
        refuse([*self._decide(second), *self._disturbed(first, disturbed)])
        if PURPOSES[self._purpose].writes and self._files:
            lend_files(list(self._files.values()), self._state_dir)
            self._lent = True
        if self._purpose == "write":
            bare = [name for name, content in second.contents.items() if not content.stamped and name in self._open]
            members = {member for volume in self._volumes for member in volume.members}
            for drive in bare:
                if drive not in members and not second.contents[drive].signatures:
                    self._write_stamps(drive, clear=False)
                    self.stamped += (drive,)

    def _watched(self, snapshot: GuardSnapshot) -> dict[str, str]:
        """The disks that nobody may write to from now on, with their nodes; all paths of a drive, no files.

        Members of a volume are left out: md writes to them whenever it likes.
        """
        if not PURPOSES[self._purpose].writes:
            return {}
        paths = {
            path.name
            for claim in self._claims
            if claim.id in self._names
            for path in matching(claim, snapshot.drives)
        }
        return {name: snapshot.nodes.get(name, "") for name in sorted({*self._names.values(), *paths})}

    def _disturbed(self, snapshot: GuardSnapshot, seen: Mapping[str, str]) -> Iterator[Refusal]:
        """What was seen of the watched disks, told of the drives and volumes that they are."""
        paths = {
            claim.id: [path.name for path in matching(claim, snapshot.drives)]
            for claim in self._claims
            if claim.id in self._names
        }
        for drive, name in self._names.items():
            reason = next((seen[disk] for disk in (name, *paths.get(drive, ())) if disk in seen), "")
            if reason:
                yield Refusal(f"drive {drive} ({name})", reason, "find out what writes to it, and stop it")

    def _settle(self, snapshot: GuardSnapshot) -> None:
        """Which node and how many bytes each id stands for; members of a volume are reached through it only."""
        members = {member for volume in self._volumes for member in volume.members}
        for claim in self._claims:
            drive = None if claim.file else chosen(claim, snapshot)
            paths = [] if claim.file else matching(claim, snapshot.drives)
            if len(paths) > 1:
                self._paths[claim.id] = [path.name for path in paths]
            if claim.file:
                self._files[claim.id] = snapshot.files[claim.id]
                self._nodes[claim.id], self._sizes[claim.id] = self._files[claim.id].path, claim.size
            elif drive is not None and claim.id in members:
                self._members[claim.id] = snapshot.nodes[topmost(drive, snapshot)]
            elif drive is not None:
                self._names[claim.id] = topmost(drive, snapshot)
                self._nodes[claim.id] = snapshot.nodes[self._names[claim.id]]
                self._sizes[claim.id] = drive.identity.size
        for volume in self._volumes:
            state = snapshot.volumes[volume.id]
            self._names[volume.id], self._nodes[volume.id] = state.name, state.node
            self._sizes[volume.id] = (self._machine.number(f"/sys/class/block/{state.name}/size") or 0) * 512

    def _take(self, drive: str) -> None:
        path = self._machine.path(self._nodes[drive])
        try:
            if drive in self._names:
                descriptor = os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC)
            else:
                descriptor = open_file(self._files[drive])
        except OSError as problem:
            taken = problem.errno in (errno.EBUSY, errno.EAGAIN)
            reason = (
                "another program opened it in the meantime" if taken else f"it cannot be opened: {problem.strerror}"
            )
            refuse([Refusal(f"drive {drive}", reason, "find out what uses it (lsblk, fuser), and stop it")])
        self._open[drive] = descriptor
        name = self._names.get(drive)
        if name and self._machine.opened(descriptor) != self._machine.text(f"/sys/class/block/{name}/dev"):
            refuse([Refusal(f"drive {drive}", f"{self._nodes[drive]} is a different device now", "try again")])

    def _write_stamps(self, drive: str, *, clear: bool) -> None:
        try:
            write_stamps(self.opened(drive), drive, self._sizes[drive], run=self._run, clear=clear)
        except OSError as problem:
            raise StorqualError(f"drive {drive} could not be stamped: {problem.strerror}") from problem

    def close(self) -> None:
        try:
            if self._lent:
                held = {state.path: self._open[drive] for drive, state in self._files.items() if drive in self._open}
                take_back_files(held, self._state_dir)
        finally:
            for descriptor in self._open.values():
                os.close(descriptor)
            self._open.clear()


@contextmanager
def hold(
    claims: Sequence[Claim],
    *,
    purpose: str,
    consent: Collection[str] = (),
    state_dir: str | os.PathLike[str] = STATE_DIR,
    run: str = "",
    volumes: Sequence[VolumeClaim] = (),
    beside: Sequence[Claim] = (),
    machine: Machine | None = None,
    runner: Runner | None = None,
) -> Iterator[Hold]:
    """Layers 1 to 6, then the drives held exclusively while the block runs.

    `beside` are further claims of the bench: those whose drives the step reaches are held like `claims`. Raises
    GuardRefusalError with every refusal; then nothing was written and nothing is held.
    """
    machine, runner = machine or Machine(), runner or command.run
    held = Hold(
        _widened(claims, beside, purpose, machine, runner),
        purpose=purpose,
        consent=consent,
        state_dir=os.fspath(state_dir),
        run_id=run,
        volumes=volumes,
        machine=machine,
        runner=runner,
    )
    try:
        held.enter()
        yield held
    finally:
        held.close()
