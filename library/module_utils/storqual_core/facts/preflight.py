# SPDX-License-Identifier: Apache-2.0
"""The preflight of a bench in one call: facts, comparison with the inventory, the guard over all claims, stamps."""

from __future__ import annotations

import shutil
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Collection, Iterator, Mapping, Sequence

from ..guard import hold, reach
from ..guard.claims import Claim, Route, claims_of_adapters, each_declared, routes_of, ways_of
from ..guard.file_targets import look_at_file, make_file
from ..guard.rules import Refusal
from ..guard.signatures import own_volumes
from ..host.fabric import path_words
from ..host.identity import declared_address, names_namespace, normalise_wwn, port_name, same_text
from ..host.reach import Reached
from ..host.watchdog import has_hardware, watchdog_words
from ..kit.command import Runner, find_program, program_path, run
from ..kit.errors import BadInputError
from ..kit.lock import hold_lock
from ..kit.machine import Machine, visible
from ..kit.quantities import parse_size
from .bench_facts import environment_of, read_facts
from .bench_kind import provisioning_objections, unknown_for_provisioning
from .conditions import read_conditions
from .tool_facts import package_of, read_drive_logs

_Facts = Mapping[str, Any]


def compare(facts: _Facts, adapters: Mapping[str, _Facts], *, kind: str = "hardware") -> list[str]:
    """One sentence for each difference between a bench and its inventory; none when they agree.

    On a bench of kind `local` drives are files, which the guard knows; there is nothing to compare.
    """
    if kind == "local":
        return []
    problems = [*_twice_declared(adapters)]
    taken = {declared_address(declared) for declared in adapters.values()}
    for alias, declared in adapters.items():
        adapter = _adapter(alias, declared, facts["adapters"], problems)
        for place, drive in enumerate(declared.get("drives") or ()):
            where = f"adapter {alias}, drive {place + 1}"
            problems.extend(_drive(where, drive, adapter, facts["drives"], taken))
    problems.extend(_one_name_twice(facts, adapters))
    return problems


def _text(declared: _Facts, key: str) -> str:
    value = declared.get(key)
    if key == "wwn" and isinstance(value, int):
        # YAML 1.1, as Ansible reads it, makes a number of an unquoted 0x5000c500…
        return f"0x{value:016x}"
    return "" if value is None else str(value)


def _wwn(declared: _Facts) -> str:
    """The normalised WWN; a text that is none stays what it is, and no drive will have it."""
    text = _text(declared, "wwn")
    try:
        return normalise_wwn(text)
    except ValueError:
        return text


def _adapter(alias: str, declared: _Facts, present: Sequence[_Facts], problems: list[str]) -> _Facts | None:
    """The adapter that an alias means; what is wrong with it is added to `problems`."""
    address, driver = declared_address(declared), _text(declared, "driver")
    if address:
        match = next((adapter for adapter in present if adapter["pci"] == address), None)
        if match is None:
            known = (
                ", ".join(f"{adapter['pci']} ({adapter['driver'] or 'no driver'})" for adapter in present) or "none"
            )
            problems.append(f"adapter {alias}: there is no storage adapter at {address}; this bench has {known}")
            return None
    else:
        candidates = [adapter for adapter in present if driver in (adapter["driver"], adapter["module"]["name"])]
        if not driver or len(candidates) != 1:
            problems.append(
                f"adapter {alias}: the inventory gives no PCI address, and {len(candidates)} adapters have its driver"
            )
            return None
        match = candidates[0]
    if driver and driver.replace("-", "_") not in (
        match["driver"].replace("-", "_"),
        match["module"]["name"].replace("-", "_"),
    ):
        has = match["driver"] or "no driver"
        problems.append(f"adapter {alias} at {match['pci']}: its driver is {has}, the inventory says {driver}")
    for key in ("subsystem", "serial"):
        written = _text(declared, key)
        if written and written.lower() != str(match[key]).lower():
            has = visible(str(match[key])) or "not shown"
            problems.append(f"adapter {alias} at {match['pci']}: its {key} is {has}, the inventory says {written}")
    return match


def behind(address: str, adapter: str, taken: Collection[str]) -> bool:
    """Whether a drive at a PCI address is on an adapter: at its own, or at another function of its card.

    A card of several channels is several functions in one slot; one that is declared by itself is another adapter.
    """
    return address == adapter or (address.partition(".")[0] == adapter.partition(".")[0] and address not in taken)


def _drive(
    where: str, declared: _Facts, adapter: _Facts | None, present: Sequence[_Facts], taken: Collection[str]
) -> Iterator[str]:
    wwn, serial = _wwn(declared), _text(declared, "serial")
    if wwn:
        matches = [drive for drive in present if drive["wwn"] == wwn]
    else:
        matches = [drive for drive in present if serial and drive["serial"] == serial]
    name = f"{where} ({visible(wwn or serial)})"
    if not matches:
        others = [drive for drive in present if serial and drive["serial"] == serial]
        hint = (
            f"; {others[0]['name']} has its serial, with WWN {visible(others[0]['wwn']) or 'none'}" if others else ""
        )
        yield f"{name}: no drive of this bench has {'that WWN' if wwn else 'that serial'}{hint}"
        return
    drive = next((each for each in matches if adapter and behind(each["adapter"], adapter["pci"], taken)), matches[0])
    yield from (f"{name}: {sentence}" for sentence in _paths(declared, matches))
    for key, word in (("serial", "serial"), ("model", "model"), ("vendor", "vendor")):
        written = _text(declared, key)
        if written and drive[key] and not same_text(written, drive[key]):
            yield f"{name}: its {word} is '{visible(drive[key])}', the inventory says '{visible(written)}'"
    if declared.get("size") is not None:
        try:
            size = parse_size(declared["size"])
        except ValueError as problem:
            yield f"{name}: {problem}"
        else:
            if size != drive["size"]:
                yield f"{name}: its size is {drive['size']} bytes, the inventory says {size}"
    if adapter is not None and not behind(drive["adapter"], adapter["pci"], taken):
        yield f"{name}: it is on the adapter at {drive['adapter'] or 'no PCI address'}, not on {adapter['pci']}"


def _paths(declared: _Facts, drives: Sequence[_Facts]) -> Iterator[str]:
    """Differences between the paths through a fabric that a drive is declared to have, and those that it has.

    A drive whose `port` is a number says nothing of its paths.
    """
    listed = [declared.get("port"), *(declared.get("paths") or ())]
    named = [each for each in listed if isinstance(each, Mapping)]
    there = [path for drive in drives for path in drive.get("paths") or ()]
    unknown = list(there)
    for route in named:
        ends = [port_name(route.get(key)) for key in ("initiator", "target")]
        same = [
            path for path in there if path["initiator"] == ends[0] and ends[1] in (path["target"], path["portal"])
        ]
        unknown = [path for path in unknown if path not in same]
        if not same:
            has = "; ".join(path_words(path) for path in there) or "none through a fabric"
            yield visible(f"the path from {ends[0]} to {ends[1]} is not there; its paths are {has}")
    for path in unknown if named else ():
        yield visible(f"it is also reached from {path_words(path)}, which the inventory does not name")


def _twice_declared(adapters: Mapping[str, _Facts]) -> Iterator[str]:
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for alias, declared in adapters.items():
        if declared_address(declared):
            places["address", declared_address(declared)].append(f"adapter {alias}")
        controllers: set[str] = set()
        for place, drive in enumerate(declared.get("drives") or ()):
            where = f"adapter {alias}, drive {place + 1}"
            if _wwn(drive):
                places["WWN", _wwn(drive)].append(where)
            serial = _text(drive, "serial")
            # namespaces tell themselves apart by WWN, and have the serial of their controller
            if serial and not (serial in controllers and names_namespace(_wwn(drive))):
                places["serial", f"{_text(drive, 'vendor')} {_text(drive, 'serial')}".strip()].append(where)
            controllers.update([serial] if names_namespace(_wwn(drive)) else [])
    for (what, name), entries in places.items():
        if len(entries) > 1:
            yield f"{what} {visible(name)} stands twice in the inventory: {'; '.join(entries)}"


def _one_name_twice(facts: _Facts, adapters: Mapping[str, _Facts]) -> Iterator[str]:
    """Names of the inventory that two drives of the bench answer to, when they are not paths of one drive."""
    one_drive = [set(volume["members"]) for volume in facts["volumes"] if volume["kind"] == "multipath"]
    for alias, declared in adapters.items():
        for drive in declared.get("drives") or ():
            for key, name in (("wwn", _wwn(drive)), ("serial", _text(drive, "serial"))):
                matches = [other for other in facts["drives"] if name and other[key] == name]
                if key == "serial":
                    # namespaces of one NVMe controller share its serial, and tell themselves apart by WWN
                    matches = [other for other in matches if other["transport"] != "nvme" or not other["wwn"]]
                    vendor = _text(drive, "vendor")
                    matches = [other for other in matches if not vendor or same_text(vendor, other["vendor"])]
                names = ", ".join(other["name"] for other in matches)
                together = any({other["id"] for other in matches} <= members for members in one_drive)
                together = together or each_declared(routes_of(drive, alias, adapters), map(_ways, matches))
                if len(matches) > 1 and not together:
                    yield f"{len(matches)} drives of this bench have {key} {visible(name)}: {names}"


def _ways(drive: _Facts) -> Collection[Route]:
    return ways_of(drive["adapter"], drive.get("paths") or ())


def claimed_drives(facts: _Facts, adapters: Mapping[str, _Facts]) -> list[_Facts]:
    """The claimed drives of adapters under test that the bench has, found by WWN, else by serial."""
    by_id = {drive["id"]: drive for drive in facts["drives"]}
    by_serial = {drive["serial"]: drive for drive in facts["drives"] if drive["serial"]}
    tested = [adapter for adapter in adapters.values() if adapter.get("under_test", True)]
    declared = [drive for adapter in tested for drive in adapter.get("drives") or () if drive.get("claim")]
    drives = (by_id.get(_wwn(drive)) or by_serial.get(_text(drive, "serial")) for drive in declared)
    return [drive for drive in drives if drive is not None]


def missing_programs(needs: Sequence[_Facts], machine: Machine) -> Iterator[str]:
    """One sentence for each program that will be run and is not installed; of several names one is enough."""
    for need in needs:
        names = [str(name) for name in need["programs"]]
        if not names or any(_installed(machine, name) for name in names):
            continue
        package = next((package_of(name, machine) for name in names if package_of(name, machine)), "")
        remedy = f"install the package {package}" if package else "install it from its vendor"
        yield f"{' or '.join(names)} is not installed, and is needed for {need['for']}: {remedy}"


def _installed(machine: Machine, name: str) -> bool:
    """Whether a program is found as the bench program finds it: by its PATH, then in vendors' folders."""
    if machine.root:
        return bool(find_program(machine, name))
    return shutil.which(name, path=program_path()) is not None


_BY_PATHS = ("read", "settings", "write")
"""What may be done by one of several declared paths; what is flashed or made of a drive is not."""


@dataclass(frozen=True)
class Request:
    """What a preflight is asked: the inventory's adapters, and whether empty drives may be stamped now.

    `needs` are the programs that will be run: each with `programs`, of which one is enough, and what it is `for`;
    one with `boots` is a kernel or driver that the bench is to be booted with, one with `one_disk` takes no several
    paths for a drive.

    For purpose `firmware` the adapters are those that are flashed, and `beside` are the others of the bench.
    `logs`: claimed drives are asked for what they have on record, a command or two each.
    """

    adapters: Mapping[str, Any]
    kind: str = "hardware"
    state_dir: str = hold.STATE_DIR
    purpose: str = "write"
    consent: Sequence[str] = ()
    beside: Mapping[str, Any] = field(default_factory=dict)
    stamp: bool = False
    check: bool = False
    run: str = "preflight"
    logs: bool = False
    needs: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class Result:
    """Facts and fingerprint; problems of identity (exit code 3); refusals (4); what was stamped or made.

    `logs` is what claimed drives have on record of themselves, see `tool_facts`; `conditions` are sentences on what
    is not well around the drives or under way on their adapters, `unread` on what tools could not tell of that.
    """

    facts: Mapping[str, Any]
    environment: Mapping[str, Any]
    problems: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    stamped: list[str] = field(default_factory=list)
    logs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    conditions: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """3 when the bench is not what the inventory says, 4 when the guard refuses, else 0."""
        return 3 if self.problems else 4 if self.refusals else 0


def examine(request: Request, *, machine: Machine | None = None, runner: Runner = run) -> Result:
    """Look, compare, decide; with `stamp` mark what is empty. Raises StorqualError when the bench cannot be read."""
    machine = machine or Machine()
    facts = read_facts(machine, state_dir=request.state_dir, runner=runner)
    environment = environment_of(facts, request.adapters)
    problems = [*compare(facts, request.adapters, kind=request.kind), *missing_programs(request.needs, machine)]
    provisions = [str(need["for"]) for need in request.needs if need.get("boots")]
    problems += provisioning_objections(facts["kind"], provisions)
    by_paths = request.purpose in _BY_PATHS and not any(need.get("one_disk") for need in request.needs)
    try:
        claims = claims_of_adapters(request.adapters, kind=request.kind, routes=by_paths)
        beside = claims_of_adapters(request.beside, kind=request.kind)
    except BadInputError as problem:
        return Result(facts, environment, [*problems, *problem.problems])
    strange: list[Reached] = []
    if request.purpose == "firmware":
        places = map(declared_address, request.adapters.values())
        claims, strange = reach.with_card(machine, places, claims, beside)
    made = [] if problems else _make_files(claims, request)
    looked_at = [claim for claim in claims if claim.id not in made or not request.check]
    # a bench may be set up to keep volumes that storqual made: they are its own, not somebody's data
    volumes = own_volumes(machine, request.state_dir, looked_at)
    members = {member for volume in volumes for member in volume.members}
    survey = hold.survey(
        looked_at,
        volumes=volumes,
        purpose=request.purpose,
        consent=request.consent,
        beside=beside,
        state_dir=request.state_dir,
        machine=machine,
        runner=runner,
    )
    refusals = [str(refusal) for refusal in survey.refusals]
    refusals += [str(Refusal(*reach.objection(each, reach.STEPS["firmware"]))) for each in strange]
    refusals = list(dict.fromkeys(refusals))
    stamped = made
    if request.stamp and request.purpose == "write" and not problems and not refusals:
        bare = [claim for claim in claims if claim.id in survey.bare and claim.id not in members]
        stamped = made + _stamp(bare, request, machine, runner)
    if not request.logs or problems:
        return Result(facts, environment, problems, refusals, stamped)
    claimed = claimed_drives(facts, request.adapters)
    logs = read_drive_logs(claimed, runner=runner)
    around = read_conditions(facts, sorted({drive["adapter"] for drive in claimed}), machine, runner)
    if request.kind == "hardware" and not has_hardware(facts["watchdogs"]):
        around.conditions.append(watchdog_words(facts["watchdogs"]))
    unread = [*around.unread, *(unknown_for_provisioning(facts["kind"]) if provisions else ())]
    return Result(facts, environment, problems, refusals, stamped, logs, around.conditions, unread)


def _make_files(claims: Sequence[Claim], request: Request) -> list[str]:
    """Make the claimed files that do not exist yet; in check mode only name them."""
    missing = [claim for claim in claims if claim.file and look_at_file(claim, request.state_dir).missing]
    if not request.stamp:
        return []
    if missing and not request.check:
        with hold_lock(Path(request.state_dir), request.run, "bench_guard"):
            for claim in missing:
                make_file(claim, request.state_dir)
    return [claim.id for claim in missing]


def _stamp(bare: Sequence[Claim], request: Request, machine: Machine, runner: Runner) -> list[str]:
    """Stamp the claimed drives that carry no stamp; in check mode only name them."""
    if not bare or request.check:
        return [claim.id for claim in bare]
    with hold_lock(Path(machine.path(request.state_dir)), request.run, "bench_guard"), hold.hold(
        bare, purpose="write", state_dir=request.state_dir, run=request.run, machine=machine, runner=runner
    ) as held:
        return list(held.stamped)
