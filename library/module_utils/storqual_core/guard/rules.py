# SPDX-License-Identifier: Apache-2.0
"""The guard's decision: claims, one reading of the machine, a purpose and a consent in; refusals out.

Pure: nothing is read or written here. Every rule can only refuse, and what is not known is a reason to refuse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Collection, Iterable, Iterator, Sequence

from ..host.identity import same_text
from ..host.sysfs import SysfsDrive
from ..kit.machine import visible
from . import reach
from .claims import Claim, VolumeClaim, each_declared
from .reach import matching
from .signatures import AREA, UNSTEADY, objection
from .snapshot import GuardSnapshot

CONSENT_DIGITS = 6
"""Characters of a WWN's end that a consent must name at least."""


@dataclass(frozen=True)
class PurposeRule:
    """What a purpose asks of a drive beyond claim, resolution and use."""

    writes: bool
    contents: bool
    consent: bool
    any_volume: bool = False
    """The volume need not be storqual's: nothing on it is changed, or it goes and every member is consented to."""


PURPOSES = {
    "read": PurposeRule(writes=False, contents=False, consent=False),
    "settings": PurposeRule(writes=False, contents=False, consent=False, any_volume=True),
    "reset": PurposeRule(writes=False, contents=False, consent=False, any_volume=True),
    "write": PurposeRule(writes=True, contents=True, consent=False),
    "firmware": PurposeRule(writes=True, contents=True, consent=True),
    "format": PurposeRule(writes=True, contents=True, consent=True),
    "delete_volume": PurposeRule(writes=True, contents=True, consent=True, any_volume=True),
}


@dataclass(frozen=True)
class Refusal:
    """One reason why one drive may not be touched, and what a person can do."""

    drive: str
    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.drive}: {self.reason}; {self.remedy}"


_KEEP = "or take the claim out of the inventory"
_REPAIR = "repair drive or path, then try again, " + _KEEP
_GIVE_UP = "if it is not needed, zero the first and last 8 MiB of the drive yourself (storqual will not), " + _KEEP


def _named(claim: Claim, drive: SysfsDrive | None = None) -> str:
    if claim.file:
        return f"file {visible(claim.file)}"
    known = [drive.name] if drive else []
    known += [visible(text) for text in (f"{claim.vendor} {claim.model}".strip(),) if text]
    if claim.serial and claim.serial != claim.id:
        known.append(f"serial {visible(claim.serial)}")
    return f"drive {visible(claim.id)} ({', '.join(known)})"


def decide(
    claims: Sequence[Claim],
    snapshot: GuardSnapshot,
    *,
    purpose: str,
    consent: Collection[str] = (),
    volumes: Sequence[VolumeClaim] = (),
) -> list[Refusal]:
    """Every reason against touching any of the claimed drives for this purpose; none means they may be touched.

    Raises KeyError for a purpose that does not exist.
    """
    rule = PURPOSES[purpose]
    if snapshot.problem:
        return [
            Refusal(_named(claim), f"it cannot be examined: {snapshot.problem}", "repair that first")
            for claim in claims
        ]
    refusals = list(_twice(claims, snapshot))
    refusals.extend(_reached(snapshot))
    if rule.writes:
        refusals.extend(_unnamed(claims, snapshot))
    for claim in claims:
        if claim.file:
            refusals.extend(_file(claim, snapshot))
            continue
        drive = chosen(claim, snapshot)
        if drive is None:
            refusals.extend(_mismatch(claim, snapshot))
            continue
        refusals.extend(refusal for path in matching(claim, snapshot.drives) for refusal in _identity(claim, path))
        refusals.extend(_use(claim, drive, snapshot, rule, volumes))
        name = _named(claim, drive)
        refusals.extend(Refusal(name, reason, remedy) for reason, remedy in snapshot.luns.get(claim.id, ()))
        if rule.writes and snapshot.zoned.get(drive.name, "none") not in ("", "none"):
            reason = f"it has zones ({visible(snapshot.zoned[drive.name])}), which must be written in sequence"
            refusals.append(Refusal(_named(claim, drive), reason, "storqual cannot measure it, " + _KEEP))
        if rule.contents:
            refusals.extend(_remembered(claim, drive, snapshot, volumes))
            refusals.extend(_content(claim, drive, snapshot, volumes, rule))
        if rule.consent:
            refusals.extend(_consent(claim, drive, snapshot, consent))
    for volume in volumes:
        refusals.extend(_volume(volume, claims, snapshot, rule))
    return refusals


def chosen(claim: Claim, snapshot: GuardSnapshot) -> SysfsDrive | None:
    """The one drive that a claim means, None when it is not exactly one; of several paths to one drive the first.

    They are paths to one drive when its multipath device is over them, or when each is a declared one.
    """
    matches = matching(claim, snapshot.drives)
    if len(matches) <= 1:
        return matches[0] if matches else None
    tops = [{layer.name for layer in snapshot.layers.get(drive.name, ()) if layer.multipath} for drive in matches]
    ways = (snapshot.ways.get(drive.name, ()) for drive in matches)
    return matches[0] if set.intersection(*tops) or each_declared(claim.routes, ways) else None


def topmost(drive: SysfsDrive, snapshot: GuardSnapshot) -> str:
    return next((layer.name for layer in snapshot.layers.get(drive.name, ()) if layer.multipath), drive.name)


# layer 1: the claim


def _twice(claims: Sequence[Claim], snapshot: GuardSnapshot) -> Iterator[Refusal]:
    owners: dict[str, Claim] = {}
    for claim in claims:
        drive = chosen(claim, snapshot)
        key = drive.name if drive else claim.file
        if not key:
            continue
        if key in owners:
            reason = f"it is the same device as {_named(owners[key])}"
            yield Refusal(_named(claim, drive), reason, "claim each drive once")
        owners.setdefault(key, claim)


def _mismatch(claim: Claim, snapshot: GuardSnapshot) -> Iterator[Refusal]:
    matches = matching(claim, snapshot.drives)
    if matches:
        names = ", ".join(drive.name for drive in matches)
        reason = f"{len(matches)} devices of this bench answer to that name ({names})"
        yield Refusal(
            _named(claim), reason, "set up multipath for the paths of one drive, or find out which drive is a copy"
        )
        return
    others = [drive for drive in snapshot.drives if claim.serial and drive.identity.serial == claim.serial]
    if others and claim.wwn:
        other = others[0]
        says = f"WWN {visible(other.identity.wwn)}" if other.identity.wwn else "no WWN"
        reason = f"{other.name} has its serial but says {says}, the claim says WWN {visible(claim.wwn)}"
        yield Refusal(_named(claim), reason, "find out which drive is meant, and correct the claim")
        return
    by = f"WWN {visible(claim.wwn)}" if claim.wwn else f"serial {visible(claim.serial)}"
    reason = f"no drive of this bench has {by}"
    yield Refusal(
        _named(claim), reason, "check that the claim is in the right bench's inventory and the drive is plugged in"
    )


def _identity(claim: Claim, drive: SysfsDrive) -> Iterator[Refusal]:
    """WWN, serial, model, size must be what the drive says, no more and no less; the vendor where both have one."""
    there = drive.identity
    wrong = []
    for what, written, read in (
        ("WWN", claim.wwn, there.wwn),
        ("serial", claim.serial, there.serial),
        ("model", claim.model, there.model),
    ):
        if not same_text(written, read):
            wrong.append(
                f"{what} is {_value_text(read)}, the claim "
                + (f"says {_value_text(written)}" if written else "does not state it")
            )
    if claim.vendor and there.vendor and not same_text(claim.vendor, there.vendor):
        wrong.append(f"vendor is {_value_text(there.vendor)}, the claim says {_value_text(claim.vendor)}")
    if claim.size != there.size:
        wrong.append(f"size is {there.size} bytes, the claim says {claim.size}")
    if wrong:
        yield Refusal(
            _named(claim, drive),
            "it is not the claimed drive: its " + ", its ".join(wrong),
            "find out which drive is meant, and correct the claim",
        )


def _value_text(text: str) -> str:
    return f"'{visible(text)}'" if text else "nothing"


def _reached(snapshot: GuardSnapshot) -> Iterator[Refusal]:
    """Drives that nobody claimed, and that the step would erase or take away all the same."""
    for stranger in snapshot.strangers:
        name = stranger.drive.name
        carries = snapshot.system.get(name) or "; it ".join(snapshot.uses.get(name, ()))
        yield Refusal(*reach.objection(stranger, snapshot.step, carries))


# layers 2 and 3: what it is part of, who uses it


def _use(
    claim: Claim, drive: SysfsDrive, snapshot: GuardSnapshot, rule: PurposeRule, volumes: Sequence[VolumeClaim]
) -> Iterator[Refusal]:
    name = _named(claim, drive)
    paths = [other.name for other in matching(claim, snapshot.drives)]
    carried = [snapshot.system[path] for path in paths if path in snapshot.system]
    if carried:
        yield Refusal(name, f"it is a system disk: it {carried[0]}", "take the claim out of the inventory")
        return
    well = drive.state in ("", "running", "live")
    if not well:
        yield Refusal(name, f"its state is {visible(drive.state)}", "bring the drive back, then try again")
    if drive.read_only and rule.writes:
        yield Refusal(name, "it is read-only", "remove its write protection, " + _KEEP)
    top = topmost(drive, snapshot)
    reasons = list(_uses(paths, snapshot, _own_layers(claim, top, paths, snapshot, volumes)))
    yield from (Refusal(name, reason, f"{remedy}, {_KEEP}") for reason, remedy in reasons)
    if not snapshot.nodes.get(top):
        yield Refusal(name, f"its device node /dev/{top} is missing or is another device", "repair /dev (udev)")
    elif snapshot.busy.get(top) and well and not reasons and not _is_member(claim, volumes):
        loaded = f" (ZFS pools are loaded: {', '.join(map(visible, snapshot.pools))})" if snapshot.pools else ""
        yield Refusal(
            name, f"{snapshot.busy[top]}{loaded}", f"find out what uses it (lsblk, fuser), and stop it, {_KEEP}"
        )


def _is_member(claim: Claim, volumes: Sequence[VolumeClaim]) -> bool:
    return any(claim.id in volume.members for volume in volumes)


def _own_layers(
    claim: Claim, top: str, paths: Sequence[str], snapshot: GuardSnapshot, volumes: Sequence[VolumeClaim]
) -> frozenset[str]:
    """Devices that may be on top: the multipath device of this drive alone, and claimed volumes it is a member of."""
    own = {
        layer.name
        for path in paths
        for layer in snapshot.layers.get(path, ())
        if layer.name == top and layer.multipath and layer.disks <= set(paths)
    }
    own |= {snapshot.volumes[volume.id].name for volume in volumes if claim.id in volume.members}
    return frozenset(own)


def _uses(paths: Sequence[str], snapshot: GuardSnapshot, own: frozenset[str]) -> Iterator[tuple[str, str]]:
    """(reason, remedy) for each use of a drive, its partitions, and what is made of it."""
    seen: set[str] = set()
    for path in paths:
        for use in snapshot.uses.get(path, ()):
            yield f"it {use}", _remedy(use)
        for layer in snapshot.layers.get(path, ()):
            if layer.name in seen:
                continue
            seen.add(layer.name)
            for use in snapshot.uses.get(layer.name, ()):
                yield f"{layer.words} on it {use}", _remedy(use)
            if not layer.partition and layer.name not in own:
                yield f"{layer.words} is made of it", "take that apart"


def _remedy(use: str) -> str:
    for word, remedy in (
        ("mounted btrfs", "unmount it"),
        ("mounted on", "unmount it"),
        ("swap", "switch that swap space off (swapoff)"),
        ("loop device", "detach the loop device (losetup -d)"),
        ("served", "stop serving it"),
        ("open for", "end that program"),
        ("registered with io_uring", "end that program"),
        ("mapped into the memory", "end that program"),
    ):
        if word in use:
            return remedy
    return "stop that use"


def _unnamed(claims: Sequence[Claim], snapshot: GuardSnapshot) -> Iterator[Refusal]:
    """Open files and exports that may be any device: nobody can say that they are none of these drives."""
    for sentence in snapshot.unnamed:
        for claim in claims:
            if not claim.file:
                reason = f"it cannot be ruled out that a program writes to it: {sentence}"
                yield Refusal(_named(claim, chosen(claim, snapshot)), reason, "end that")


# layer 4: what is on it


def _remembered(
    claim: Claim, drive: SysfsDrive, snapshot: GuardSnapshot, volumes: Sequence[VolumeClaim]
) -> Iterator[Refusal]:
    """Partitions that the kernel still knows tell of data, also where the table on the drive is gone.

    storqual's own part (provision/drives.py) is in the window of a stamped drive, or of a volume that it made: a
    killed batch leaves it.
    """
    content, paths = snapshot.contents.get(claim.id), [path.name for path in matching(claim, snapshot.drives)]
    own = {snapshot.volumes[volume.id].name for volume in volumes if snapshot.is_own(volume)}
    own.update(paths if content and len(content.stamps) == 2 else ())
    known = {
        layer.name
        for path in paths
        for layer in snapshot.layers.get(path, ())
        if layer.partition and not (layer.of in own and layer.start == AREA)
    }
    if known:
        reason = f"the kernel knows partitions of it ({', '.join(sorted(known))})"
        yield Refusal(
            _named(claim, drive), reason, "if not needed, remove them from the kernel (partx --delete), " + _KEEP
        )


def _content(
    claim: Claim, drive: SysfsDrive, snapshot: GuardSnapshot, volumes: Sequence[VolumeClaim], rule: PurposeRule
) -> Iterator[Refusal]:
    """What is on a drive. Being a member of a volume that is deleted by consent is no reason against it."""
    content, of = snapshot.contents.get(claim.id), [volume for volume in volumes if claim.id in volume.members]
    if content is None:
        yield Refusal(_named(claim, drive), "what is on it could not be read", "repair that first")
        return
    reason = objection(
        content,
        made={*snapshot.made.get(claim.id, ()), *(volume.uuid for volume in of if rule.any_volume)},
        restamping=claim.id in snapshot.restamping,
        lent=claim.id in snapshot.lent,
        member=any(rule.any_volume or snapshot.is_own(volume) for volume in of),
    )
    if reason:
        # what is on a drive that gives nothing out is no reason to give it up
        repair = content.problem or reason == UNSTEADY
        yield Refusal(_named(claim, drive), f"it {reason}", _REPAIR if repair else _GIVE_UP)


# layer 6: consent


def _consent(claim: Claim, drive: SysfsDrive, snapshot: GuardSnapshot, consent: Iterable[str]) -> Iterator[Refusal]:
    yield from missing_consent(claim, {other.id for other in snapshot.drives}, consent, _named(claim, drive))


def missing_consent(
    claim: Claim, known: Collection[str], consent: Iterable[str], named_as: str = ""
) -> Iterator[Refusal]:
    """Why a consent does not cover a drive: it does not name it, or it also names another of the `known` ones."""
    tails = [tail.strip().lower() for tail in consent]
    named = [tail for tail in tails if len(tail) >= CONSENT_DIGITS and claim.id.lower().endswith(tail)]
    if not named:
        yield Refusal(
            named_as or _named(claim),
            "this goes beyond the claim, and there is no consent to it",
            f"add -e consent={visible(claim.id[-max(CONSENT_DIGITS, 8) :])} if you mean this drive",
        )
        return
    others = {other for other in known if other != claim.id and any(other.lower().endswith(tail) for tail in named)}
    if others:
        yield Refusal(
            named_as or _named(claim),
            f"the consent '{visible(named[0])}' also names {', '.join(visible(other) for other in sorted(others))}",
            "name more characters of the WWN",
        )


# targets that are no drives


def _file(claim: Claim, snapshot: GuardSnapshot) -> Iterator[Refusal]:
    state = snapshot.files.get(claim.id)
    if state is None:
        yield Refusal(_named(claim), "it could not be examined", "repair that first")
    elif state.problem:
        yield Refusal(_named(claim), state.problem, state.remedy)


def _volume(
    volume: VolumeClaim, claims: Sequence[Claim], snapshot: GuardSnapshot, rule: PurposeRule
) -> Iterator[Refusal]:
    """A volume may be written when all its disks are claimed and named as members, and storqual made it."""
    state = snapshot.volumes.get(volume.id)
    name = f"volume {visible(volume.id)}"
    if state is None or state.problem:
        yield Refusal(name, state.problem if state else "it could not be examined", "check the volume's path")
        return
    by_id = {claim.id: claim for claim in claims}
    members = set()
    for member in volume.members:
        claim = by_id.get(member)
        drive = chosen(claim, snapshot) if claim else None
        if drive is None:
            yield Refusal(name, f"its member {visible(member)} is not claimed", "claim every member of the volume")
        else:
            members.add(drive.name)
    foreign = sorted(set(state.disks) - members)
    if foreign and rule.writes:
        reason = f"it is also on {', '.join(foreign)}, which the claim does not name"
        yield Refusal(name, reason, "name all members of the volume, or leave it alone")
    if not rule.any_volume and not snapshot.is_own(volume):
        yield Refusal(name, "storqual did not make it", "delete it yourself if it is not needed")
    if rule.contents and not rule.any_volume and state.content is not None:
        made = snapshot.made.get(volume.id, ())
        known = [signature for signature in state.content.signatures if signature.uuid not in made]
        problem = state.content.problem or (f"it {UNSTEADY}" if state.content.unsteady else "")
        if known or problem:
            kinds = ", ".join(visible(signature.kind) for signature in known)
            yield Refusal(name, problem or f"it holds {kinds}", "delete that yourself if it is not needed")
    if snapshot.busy.get(state.name):
        yield Refusal(name, snapshot.busy[state.name], "find out what uses it (lsblk, fuser), and stop it")
    if not state.node:
        yield Refusal(name, "its device node is missing", "repair /dev (udev)")
