# SPDX-License-Identifier: Apache-2.0
"""Trials and foreign programs of one bench: what is tried where, in which session, at which moment.

All is drawn from one recorded seed. The n-th trial of a fault on an adapter has the same load and the same moment in
both arms: the arms are compared trial by trial. Sessions of the arms alternate (A B, B A, A B …), so that no arm is
always the later one.
"""

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import cycle, islice
from typing import Any

from storqual.inputs.drop import Drop
from storqual.inputs.inventory import PSEUDO_DRIVER, Bench
from storqual.inputs.power import BENCH_ITSELF
from storqual.inputs.shape import raise_all
from storqual.inputs.suite import Profile, Suite
from storqual.inputs.trials import EVERY, SECTOR, IntegrityLoad, Trial
from storqual.plan.batches import batch_of, claim
from storqual.plan.covering import covering
from storqual.plan.resolve import resolve
from storqual_core.data.faults import FAULTS, LOGGING_WAY, NOTHING, POWER, WAYS, Fault, Way
from storqual_core.guard.signatures import window
from storqual_core.host.identity import SOFTWARE_INITIATORS
from storqual_core.kit.errors import BadInputError
from storqual_core.provision.boot import HUNG_TASK_S
from storqual_core.turns.load_levels import COMMAND_FACTORS, FACTORS, LAYER_S, LAYERS, reached_places
from storqual_core.turns.load_sweep import span_of
from storqual_core.turns.requests import SILENCE_S

PURPOSE = "trials"
"""Of a session that has trials or programs, and no launches."""
_FIRST, _LAST = 0.2, 0.6
"""Between which parts of the load's time a fault's moment is drawn: some load comes before it, more after."""
_FIRST_BYTE = 2 << 20
"""Where a load begins on its drive: behind the stamps of the guard."""
_MIB_SECTORS = 2048
_PART_ROWS = 480
"""So many rows of triples a trial has at most."""
_MOST_BESIDE = 3


@dataclass(frozen=True)
class _Spared:
    """What a sweep spares an emulation, so that other errors are seen: ways to read, pieces of memory above so many.

    `commands` are pairs of a size and a command that is seldom sent.
    With `alone` no other drive of the adapter is busy at the same time, and a busy drive is asked nothing that it
    refuses. `lacks` tells each, with the reason.
    """

    lacks: tuple[tuple[str, str], ...]
    reads: tuple[str, ...] = ()
    commands: tuple[tuple[str, str], ...] = ()
    pieces: int = 0
    alone: bool = False


_SPARED: Mapping[str, _Spared] = {
    "megaraid_sas": _Spared(
        (
            ("read verify", "QEMU's MegaRAID fails every VERIFY"),
            (
                "more than 60 pieces of memory in a command",
                "the driver has room for 61 in a command, QEMU says 80: the rest would be another command's",
            ),
            (
                "READ(6) and WRITE(6) of 256 blocks",
                "megaraid_sas takes the 0 that stands for 256 in their length for none, and answers good",
            ),
        ),
        reads=("verify",),
        commands=(("2^8", "read6"), ("2^8", "write6")),
        pieces=60,
    ),
    "sym53c8xx": _Spared(
        (
            (
                "further drives of the adapter at the same time",
                "QEMU's LSI 53C895A loses a reselection when several drives answer at once, and hangs",
            ),
            (
                "enquiries that the drive refuses, while it is busy",
                "QEMU's LSI 53C895A hands the reason over with the next command, and another one may come between",
            ),
        ),
        alone=True,
    ),
}
"""By driver. megaraid_sas keeps 1024 bytes for a command, of which a piece takes 16. QEMU's firmware promises 80
pieces; those after the 61st overwrite the context of another command: at its answer the driver panics ("Unexpected
context value"). In one of fourteen sweeps of an unchanged sym53c8xx the adapter said "No MSG IN phase after
reselection" while four drives were busy, and recovered from no abort and no reset after it.
"""
_HARDWARE = _Spared(())
_NO_LAYER = ("file systems, dm-crypt and dm-integrity on top of the drive", "the profile covers no triples")
_NEEDS = {True: "a second path", False: "one path"}


@dataclass(frozen=True)
class Seat:
    """An adapter under test with its claimed drives by id and their sizes in bytes, and its driver.

    `shared` are those that it reaches as one of several adapters, each with its multipath device on top. `through`
    are the ids of those that are known to take writes through their cache.
    """

    alias: str
    driver: str
    drives: tuple[tuple[str, int], ...]
    shared: tuple[tuple[str, int], ...] = ()
    through: frozenset[str] = frozenset()

    def for_way(self, way: Way) -> tuple[tuple[str, int], ...]:
        """The drives that a fault may be aimed at: the loss of a path at one of several, any other at one of one."""
        return self.shared if way.shared else self.drives


@dataclass(frozen=True)
class Sweeping:
    """What of a sweep follows from the bench: bytes of its drive, further drives that are busy at the same time.

    `covers` are pairs or triples, of which each `repeat` has a part; `emulated` is the driver of an adapter that QEMU
    emulates.
    """

    size: int
    beside: tuple[str, ...]
    covers: str
    repeat: int
    limit_s: float
    emulated: str = ""


@dataclass(frozen=True)
class PlannedTrial:
    """One trial. `id` names it everywhere; `pair` is the same for the trials of both arms that are compared.

    With `baseline_later` that of the baseline is planned when something of the candidate failed.
    """

    id: str
    pair: str
    session: str
    arm: str
    adapter: str
    drive: str
    fault: str
    way: str
    load: str
    seed: int
    load_s: float
    at_s: float
    away_s: float
    number: int
    sweep: Sweeping | None = None
    baseline_later: bool = False

    @property
    def seconds(self) -> float:
        """How long it may take on the bench, without what every trial takes."""
        return self.load_s + self.away_s + (self.sweep.limit_s if self.sweep else 0.0)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class PlannedProgram:
    """One run of a program. `id` names it everywhere; `number` is the same for the runs of both arms."""

    id: str
    session: str
    arm: str
    adapter: str
    drive: str
    program: str
    number: int

    def to_json(self) -> dict[str, Any]:
        """The entry of `plan.external` in run.json."""
        return asdict(self)


@dataclass(frozen=True)
class TurnPlan:
    """Trials and programs of a bench in the order of their sessions (id, arm), and what is left out and why.

    `drawn` are the ids of all trials where only one of them is wanted.
    """

    trials: tuple[PlannedTrial, ...] = ()
    programs: tuple[PlannedProgram, ...] = ()
    sessions: tuple[tuple[str, str], ...] = ()
    left_out: tuple[str, ...] = ()
    drawn: tuple[str, ...] = ()


def seats_of(bench: Bench, under_test: Sequence[str], drops: Sequence[Drop]) -> list[Seat]:
    """The adapters under test that reach a claimed drive which no drop makes a member of a volume.

    Raises BadInputError for an adapter all of whose claimed drives are members.
    """
    volumes = [volume for drop in drops for volume in resolve(drop, bench, list(bench.adapters)).raid]
    members = {member for volume in volumes for member in volume["members"]}
    seats, problems = [], []
    for alias in under_test if bench.kind != "local" else ():
        adapter, reached = bench.adapters[alias], bench.reached_by(alias)
        own, shared = (
            tuple(
                (drive.id, drive.size or 0)
                for drive in reached
                if bool(drive.paths) is several and drive.id not in members
            )
            for several in (False, True)
        )
        if not adapter.address:
            continue
        if reached and not own and not shared:
            problems.append(
                f"{bench.name}: every claimed drive of adapter {alias} is a member of a volume of the drops; trials "
                "need one that is none: leave it out of the volume, or exclude the adapter (--adapters)"
            )
        if own or shared:
            through = frozenset(drive.id for drive in reached if drive.virtual and drive.virtual.fua)
            seats.append(Seat(alias, adapter.driver or "", own, shared, through))
    raise_all(problems)
    return seats


def plan_turns(
    suite: Suite,
    profile: Profile,
    bench: Bench,
    under_test: Sequence[str],
    drops: Mapping[str, Drop],
    *,
    seed: int,
    prefix: str,
    after: int,
    only: tuple[str, int] | None = None,
) -> TurnPlan:
    """Draw what is tried on a bench, in sessions that are numbered on `after` those that it has.

    With `only` one trial is made, so many times.
    """
    if not suite.trials and not suite.programs:
        return TurnPlan()
    if bench.kind == "local":
        return TurnPlan(left_out=("this bench has files for drives; trials and programs need adapters",))
    seats = seats_of(bench, under_test, list(drops.values()))
    sessions = _sessions(list(drops), profile.sessions, prefix, after)
    lines = [_boot_words(drop) for drop in drops.values()]
    trials, no_trial = plan_trials(
        *(suite, profile, seats, sessions),
        bench=bench.name,
        kind=bench.kind,
        seed=seed,
        boot_lines=lines,
        cuts_power=bench.cuts_power,
    )
    programs, no_program = plan_programs(suite, profile, seats, sessions, bench=bench.name)
    used = {trial.session for trial in trials} | {program.session for program in programs}
    plan = TurnPlan(trials, programs, tuple(pair for pair in sessions if pair[0] in used), (*no_trial, *no_program))
    return plan if only is None else _one_trial(plan, *only)


def usable_ways(fault: Fault, driver: str, kind: str, wanted: str | None, *, cuts_power: bool = False) -> list[Way]:
    """The ways of a fault for an adapter with that driver on a bench of that kind.

    scsi_debug has neither hardware nor a drive of QEMU's to act on: its ways are those that name it.
    """
    return [
        way
        for way in fault.ways
        if (way.where == "bench" or (cuts_power if way.where == POWER else kind == "virtual"))
        and (driver in way.drivers or not (way.drivers or driver == PSEUDO_DRIVER))
        and driver not in way.not_by
        and not (way.card and driver in SOFTWARE_INITIATORS)
        and (wanted == way.name or (wanted is None and not way.named_only))
    ]


def plan_trials(
    suite: Suite,
    profile: Profile,
    seats: Sequence[Seat],
    sessions: Sequence[tuple[str, str]],
    *,
    bench: str,
    kind: str,
    seed: int,
    boot_lines: Sequence[Sequence[str]] = (),
    cuts_power: bool = False,
) -> tuple[tuple[PlannedTrial, ...], tuple[str, ...]]:
    """The trials in their order, and what is left out and why.

    `boot_lines` are the words that each arm's drop adds to the kernel's command line, `cuts_power` is whether the
    bench's own power can be removed. Raises BadInputError for a load that fits on no drive.
    """
    left_out: list[str] = []
    trials: list[PlannedTrial] = []
    for index, trial in enumerate(suite.trials):
        if profile.faults and trial.fault not in profile.faults:
            continue
        for seat in seats:
            if trial.adapters and seat.alias not in trial.adapters:
                continue
            ways = usable_ways(FAULTS[trial.fault], seat.driver, kind, trial.way, cuts_power=cuts_power)
            if {seat.alias, EVERY} & set(profile.leave_out.get(trial.fault, ())):
                why = "the profile leaves it out"
            elif not ways:
                why = f"no way with {seat.driver or 'no driver'} on a {kind} bench"
                if any(way.where == POWER for way in FAULTS[trial.fault].ways) and not cuts_power:
                    why += _NO_POWER_CUT
            elif not _boots_with(ways[0].boot_word, boot_lines):
                why = f"os.cmdline of not every drop has a word {ways[0].boot_word}…"
            elif not seat.for_way(ways[0]):
                why = f"no claimed drive with {_NEEDS[ways[0].shared]}"
            else:
                trials += _repeats(
                    *(suite, trial, index, seat, ways[0], profile, sessions),
                    bench=bench,
                    seed=seed,
                    kind=kind,
                    others=[other for other in seats if other is not seat],
                )
                continue
            left_out.append(f"{trial.fault} on {seat.alias}: {why}")
    trials = _candidate_first(trials, profile.candidate_first)
    order = random.Random(f"{seed}/order")  # noqa: S311 - a drawn plan, no secret
    listed: list[PlannedTrial] = []
    for session, _ in sessions:
        here = [trial for trial in trials if trial.session == session]
        order.shuffle(here)
        # what comes back after a removal, or after a bench went down, has lost its session's settings: those are last
        listed += sorted(here, key=lambda trial: (_downs(trial), not FAULTS[trial.fault].settings_stay))
    return tuple(listed), tuple(left_out)


def _candidate_first(trials: Sequence[PlannedTrial], faults: Sequence[str]) -> list[PlannedTrial]:
    """The trials without those of the baseline that are made later; all where the baseline had no other.

    A baseline that was never tried on its bench would have no session that further trials could repeat.
    """
    kept = [trial for trial in trials if trial.arm != "baseline" or trial.fault not in faults]
    if not any(trial.arm == "baseline" for trial in kept):
        return list(trials)
    return [replace(trial, baseline_later=trial.fault in faults) for trial in kept]


def plan_programs(
    suite: Suite, profile: Profile, seats: Sequence[Seat], sessions: Sequence[tuple[str, str]], *, bench: str
) -> tuple[tuple[PlannedProgram, ...], tuple[str, ...]]:
    planned, left_out = [], []
    for name, program in suite.programs.items():
        for seat in seats if not profile.programs or name in profile.programs else ():
            if program.adapters and seat.alias not in program.adapters:
                continue
            if not seat.drives:
                left_out.append(f"{name} on {seat.alias}: no claimed drive with {_NEEDS[False]}")
                continue
            for number in range(1, program.repeats * profile.repeats + 1):
                planned += [
                    PlannedProgram(
                        id=f"{name}.{bench}.{seat.alias}.{number}.{arm}",
                        session=session,
                        arm=arm,
                        adapter=seat.alias,
                        drive=seat.drives[0][0],
                        program=name,
                        number=number,
                    )
                    for arm, session in _turns_of(sessions, number)
                ]
    order = [session for session, _ in sessions]
    return tuple(sorted(planned, key=lambda run: order.index(run.session))), tuple(left_out)


def _one_trial(plan: TurnPlan, wanted: str, times: int) -> TurnPlan:
    """One trial, `times` times, in the first session of a bench; nothing where the plan has none of that id."""
    trial = next((trial for trial in plan.trials if trial.id == wanted), None)
    if trial is None:
        return TurnPlan(left_out=plan.left_out, drawn=tuple(other.id for other in plan.trials))
    first = plan.sessions[0][0]
    again = [
        replace(trial, id=f"{trial.id}.r{number}", pair=f"{trial.pair}.r{number}", session=first)
        for number in range(1, times + 1)
    ]
    return TurnPlan(tuple(again), (), ((first, trial.arm),))


def batches_of_turns(run: str, suite: Suite, plan: TurnPlan, bench: Bench) -> Iterator[dict[str, Any]]:
    """A batch for each trial and each program: what a bench is like after one decides whether the next is run on it.

    Trials of a session come before its programs.
    """
    targets = {drive.id: {"claim": claim(drive)} for adapter in bench.adapters.values() for drive in adapter.claimed}
    for session, _ in plan.sessions:
        turns: list[tuple[str, PlannedTrial | PlannedProgram, dict[str, Any]]] = []
        turns += [
            ("trial", trial, {**_trial(suite, trial, mixes=bench.kind == "virtual"), **_shelf(bench, trial)})
            for trial in plan.trials
            if trial.session == session
        ]
        turns += [("program", run, _program(suite, run)) for run in plan.programs if run.session == session]
        for number, (kind, turn, request) in enumerate(turns, start=1):
            entry = {
                "kind": kind,
                "index": 0,
                "id": turn.id,
                "adapter": turn.adapter,
                "arm": turn.arm,
                "configuration": turn.arm,
                "point": turn.fault if isinstance(turn, PlannedTrial) else turn.program,
                "n": turn.number,
                "drives": [turn.drive],
                "request": {"pci": bench.adapters[turn.adapter].address, **request},
            }
            name = f"{session}-b{number:03d}"
            yield batch_of(run, name, session, bench, targets, [entry], spool="streamed")


_NO_POWER_CUT = (
    "; its power is not cut: no entry of `storqual_power` says `removes`, or a shelf has drives that are not claimed"
)


def _shelf(bench: Bench, planned: PlannedTrial) -> dict[str, str]:
    """What the drive is powered by, for a way that removes the power of its bench."""
    drive = bench.drive(planned.drive)
    if WAYS[planned.way][1].where != POWER or drive is None:
        return {}
    return {"powered_by": drive.powered_by or BENCH_ITSELF}


def _trial(suite: Suite, planned: PlannedTrial, *, mixes: bool = False) -> dict[str, Any]:
    load = suite.loads[planned.load]
    own = ("pair", "fault", "way", "seed", "at_s", "away_s", "load_s", "number")
    later = {"baseline_later": True} if planned.baseline_later else {}
    return {
        **{name: value for name, value in planned.to_json().items() if name in own},
        **later,
        "expect": suite.trials[planned.number].expect.model_dump(mode="json"),
        "silence_s": SILENCE_S,
        "load": {
            "first": _FIRST_BYTE // SECTOR,
            "sectors": load.region // SECTOR,
            "workers": load.workers,
            "sizes": [size // SECTOR for size in load.sizes],
            "read_share": load.reads,
            "through_share": load.write_through,
            "flush_every": load.flush_every,
            "seed": planned.seed,
            "mixes": mixes,
            **_sweep_of(load, planned),
        },
    }


def _sweep_of(load: IntegrityLoad, planned: PlannedTrial) -> dict[str, Any]:
    """The rows of a sweep, where the load is one: levels of what the drive has room for, by their names."""
    sweep = planned.sweep
    if sweep is None:
        return {"idles_s": list(load.idles)}
    inner = window(sweep.size)
    first, end, most = inner.offset // SECTOR, (inner.offset + inner.size) // SECTOR, load.longest // SECTOR
    places = reached_places(first, end, span_of(most), planned.seed)
    spared = _SPARED.get(sweep.emulated, _HARDWARE)
    reads = [way for way in FACTORS["read"] if way not in spared.reads]
    rows = covering({**FACTORS, "place": places, "read": reads}, 3 if sweep.covers == "triples" else 2, planned.seed)
    if sweep.covers == "triples":
        # each repeat has another part, of the same seed
        parts = -(-len(rows) // _PART_ROWS)
        rows = rows[(sweep.repeat - 1) % parts :: parts]
    # each repeat has another of them on top
    layers = [LAYERS[(sweep.repeat - 1) % len(LAYERS)]] if sweep.covers == "triples" else []
    lacks = (*spared.lacks, *(() if layers else (_NO_LAYER,)))
    # at no round share of the drive: the places of the sweep lie at powers of two
    middle = first + (end - first) * 41 // 100 // _MIB_SECTORS * _MIB_SECTORS
    return {
        "first": middle,
        "sweep": {
            "rows": rows,
            "commands": [
                row
                for row in covering({**COMMAND_FACTORS, "place": places}, 2, planned.seed)
                if (row[0], row[2]) not in spared.commands
            ],
            "most": most,
            "idles_s": list(load.idles),
            "beside": list(sweep.beside),
            "memory_commands": load.memory_commands,
            "limit_s": load.limit,
            "pieces": spared.pieces,
            "lacks": [list(pair) for pair in lacks],
            "layers": layers,
            "enquiries": "answered" if spared.alone else "all",
        },
    }


def _program(suite: Suite, planned: PlannedProgram) -> dict[str, Any]:
    program = suite.programs[planned.program]
    return {
        "program": planned.program,
        "number": planned.number,
        "words": list(program.run),
        "reads": program.reads,
        "report": program.report,
        "package": program.package,
        "checkout": program.checkout,
        "limit_s": program.limit,
        "silence_s": SILENCE_S,
    }


def _boot_words(drop: Drop) -> list[str]:
    listed = [value for section, _, name, value in drop.settings() if (section, name) == ("os", "cmdline")]
    return [str(word) for value in listed for word in value]


def _boots_with(begin: str, lines: Sequence[Sequence[str]]) -> bool:
    """Whether every arm's kernel is given a word that begins so."""
    return not begin or (bool(lines) and all(any(word.startswith(begin) for word in line) for line in lines))


_COMMAND_S, _SENDINGS = 30.0, 6
"""The kernel's timeout of a command, and how often it sends one before it gives up: once, and five times again."""
_BEYOND_S = 30.0


def hung_task_s(trials: Iterable[PlannedTrial]) -> int:
    """After how many seconds of waiting a task hangs: above the longest wait that the trials themselves make.

    A fault may keep a command until the kernel has given up all its sendings, from when the fault is over.
    """
    faults = [trial for trial in trials if FAULTS[trial.fault].acts_on != NOTHING and not _downs(trial)]
    longest = max((_COMMAND_S * _SENDINGS + trial.away_s + _BEYOND_S for trial in faults), default=0.0)
    return max(HUNG_TASK_S, math.ceil(longest))


def _downs(trial: PlannedTrial) -> bool:
    return WAYS[trial.way][1].downs_bench


def _sessions(arms: Sequence[str], count: int, prefix: str, after: int) -> list[tuple[str, str]]:
    """`count` sessions of both arms, or half of that of one: A B, B A, A B."""
    order = cycle((*arms, *reversed(arms)))
    return [
        (f"{prefix}{number:02d}", arm) for number, arm in enumerate(islice(order, count * len(arms) // 2), after + 1)
    ]


def _turns_of(sessions: Sequence[tuple[str, str]], number: int) -> Iterator[tuple[str, str]]:
    """Each arm with the session in which its repeat of that number is made."""
    for arm in dict.fromkeys(arm for _, arm in sessions):
        own = [session for session, of in sessions if of == arm]
        yield arm, own[(number - 1) % len(own)]


def _repeats(
    suite: Suite,
    trial: Trial,
    index: int,
    seat: Seat,
    way: Way,
    profile: Profile,
    sessions: Sequence[tuple[str, str]],
    *,
    bench: str,
    seed: int,
    kind: str,
    others: Sequence[Seat] = (),
) -> Iterator[PlannedTrial]:
    load = suite.loads[trial.load]
    lasts = profile.time or load.time
    least = load.region + ((4 << 20) if not load.sweep else 8 * load.longest)
    fitting = [drive for drive, size in seat.for_way(way) if size >= least]
    if not fitting:
        raise BadInputError([f"{bench}: no claimed drive of adapter {seat.alias} has room for load {trial.load}"])
    if way.name == LOGGING_WAY:
        # beside flushes, writes through the cache are tried where there are any
        fitting = [drive for drive in fitting if drive in seat.through] or fitting
    for number in range(1, trial.repeats * profile.repeats + 1):
        pair = f"{trial.fault}.{bench}.{seat.alias}.{index + 1}.{number}"
        draw = random.Random(f"{seed}/{pair}")  # noqa: S311 - as above
        moment = round(lasts * draw.uniform(_FIRST, _LAST), 3)
        drive = draw.choice(fitting)
        # the triples of a trial are divided among its repeats: they are drawn from one seed
        whole = random.Random(f"{seed}/{pair.rpartition('.')[0]}")  # noqa: S311 - as above
        load_seed = (whole if load.sweep and profile.covers == "triples" else draw).randrange(1 << 31)
        sweep = None
        if load.sweep:
            emulated = seat.driver if kind == "virtual" else ""
            alone = _SPARED.get(emulated, _HARDWARE).alone
            beside = [] if alone else [name for name, _ in seat.for_way(way) if name != drive][:_MOST_BESIDE]
            beside += [name for other in others[:1] for name, _ in other.drives[:1]]
            limit_s = load.limit + sum(load.idles) + (LAYER_S if profile.covers == "triples" else 0.0)
            size = dict(seat.for_way(way))[drive]
            sweep = Sweeping(size, tuple(beside), profile.covers, number, limit_s, emulated)
        for arm, session in _turns_of(sessions, number):
            yield PlannedTrial(
                id=f"{pair}.{arm}",
                pair=pair,
                session=session,
                arm=arm,
                adapter=seat.alias,
                drive=drive,
                fault=trial.fault,
                way=way.name,
                load=trial.load,
                seed=load_seed,
                load_s=lasts,
                at_s=moment,
                away_s=trial.away,
                number=index,
                sweep=sweep,
            )
