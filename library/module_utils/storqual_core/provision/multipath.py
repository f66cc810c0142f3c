# SPDX-License-Identifier: Apache-2.0
"""How multipathd treats the maps of a bench: a file of ours in conf.d, read again by the daemon, shown by its maps.

The file is the last that the daemon reads, and says it of all devices (`overrides`), above what the arrays' own
entries say. So a bench with a map of a drive that is not claimed is refused. multipathd takes a map apart that it
cannot load with the new words; then the former file is put back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Mapping, Sequence

from ..guard.claims import Claim
from ..host.fabric import read_drive_paths
from ..kit.errors import ToolError
from ..kit.machine import visible
from ..kit.quantities import is_whole
from ..kit.waiting import await_seen
from ..tools import kmod, multipath
from ..tools.multipath import MultipathMap
from .engine import Call, Proof, Separate, StepOutcome, Values, apply, declared_by_owner, plan, saver
from .options import OptionsBench, put_file

FILE = "/etc/multipath/conf.d/zz-storqual.conf"
NOT_SET = "not set"
"""The value of a name that nothing overrides: each device has what multipathd knows of its kind."""
_HEAD = "# written by storqual for what a drop declares, and taken back with it\n"
_SECTION, _OWNER = "multipath", "bench"
_SELECTOR, _TIMERS = "path_selector", ("fast_io_fail_tmo", "dev_loss_tmo")
_LIMIT_S = 60.0
# the daemon leaves a map that waits for a path as it is, unless it is told another word first
_LETS_GO = {"no_path_retry": "fail"}
_WITHOUT_PATH = {"fail": "off", "queue": "on"}


class Overrides(Separate):
    """The words of the section `multipath` for all maps; `claims` are those of the bench, None for a restore."""

    section = _SECTION
    owned_by = ""

    def __init__(self, bench: OptionsBench, claims: Sequence[Claim] | None = None) -> None:
        self._bench = bench
        self._claims = claims

    def together(self, name: str) -> object:
        """One file, one reading of it."""
        del name
        return _SECTION

    def read(self, target: str, names: Sequence[str]) -> Values:
        """What overrides the kinds of devices now. Raises ToolError, also where no multipathd answers."""
        del target
        known = multipath.read_overrides(self._bench.runner) if names else {}
        return {name: _plain(name, known.get(name, NOT_SET)) for name in names}

    def objections(self, target: str, wanted: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
        """Maps of drives that are not claimed, a selector that the kernel lacks, timers that exclude each other."""
        del target
        if all(now.get(name) == value for name, value in wanted.items()):
            return []
        problems = [
            f"map {visible(each.name)} is of no claimed drive, and would get these settings as well; claim its "
            "drive, or take the map apart"
            for each in multipath.read_maps(self._bench.runner)
            if self._claims is not None and not any(_is_of(each, claim) for claim in self._claims)
        ]
        selector = wanted.get(_SELECTOR, NOT_SET)
        if selector != NOT_SET and not self._has(selector):
            problems.append(f"kernel {self._bench.kernel} has no path selector {selector} (module dm-{selector})")
        fails, lost = ({**self.read("", _TIMERS), **wanted}[name] for name in _TIMERS)
        if isinstance(fails, int) and isinstance(lost, int) and fails >= lost:
            problems.append(f"fast_io_fail_tmo {fails} must be below dev_loss_tmo, which is {lost}")
        return problems

    def _has(self, selector: str) -> bool:
        module = f"dm-{selector}"
        if self._bench.machine.exists(f"/sys/module/{module.replace('-', '_')}"):
            return True
        return kmod.on_disk(self._bench.runner, [module], self._bench.kernel)[module] is not None

    def write(self, target: str, values: Mapping[str, Any]) -> list[str]:
        """Write our file and have it read; what was done. Raises ToolError with the former file put back."""
        former = self.read(target, self._own())
        lines = {name: value for name, value in {**former, **values}.items() if value != NOT_SET}
        maps = self._maps()
        try:
            if "no_path_retry" in former and "no_path_retry" not in lines:
                self._put({**lines, **_LETS_GO}, maps)
            self._put(lines, maps, values)
        except ToolError as problem:
            self._put(former, maps)
            raise ToolError(f"{problem}; {FILE} was put back as it was") from problem
        words = ", ".join(f"{name} {value}" for name, value in values.items())
        return [f"{target}: {words} by {FILE}"]

    def take_away(self) -> None:
        """Our file gone, where it is there. Raises ToolError."""
        own = self._own()
        if "no_path_retry" in own:
            self._put(_LETS_GO, self._maps())
        if own:
            self._put({}, self._maps())

    def _maps(self) -> set[str]:
        return {each.wwid for each in multipath.read_maps(self._bench.runner)}

    def _own(self) -> list[str]:
        text = self._bench.text() or ""
        return [name for name in NAMES if f"\t{name} " in text]

    def _put(self, lines: Mapping[str, Any], maps: set[str], expected: Mapping[str, Any] | None = None) -> None:
        """Our file with these lines, read by the daemon, which then has these maps and says what is expected."""
        in_force = expected or {}
        words = "".join(f"\t{name} {_written(name, value)}\n" for name, value in lines.items())
        put_file(self._bench, f"{_HEAD}overrides {{\n{words}}}\n" if lines else None)
        multipath.reconfigure(self._bench.runner)

        def settled() -> bool:
            try:
                return self.read("", list(in_force)) == in_force and maps <= self._maps()
            except ToolError:
                # early releases answer no other command while they make their maps anew
                return False

        await_seen(settled, _LIMIT_S, f"multipathd did not take its configuration and keep its {len(maps)} maps")

    def prove(self, target: str, name: str, value: object) -> Proof:
        """What the maps have, or for the timers the remote ports that their paths lead through."""
        del target
        maps = multipath.read_maps(self._bench.runner)
        if value == NOT_SET or not maps:
            return None, "" if maps else "there is no map that shows it"
        shown = {text for each in maps for text in self._shown(each, name)} - {""}
        wanted = _WITHOUT_PATH.get(str(value), f"{value} chk") if name == "no_path_retry" else str(value)
        if not shown:
            return None, "no map shows it"
        return shown == {wanted}, f"{len(maps)} maps show {visible(', '.join(sorted(shown)))}"

    def _shown(self, each: MultipathMap, name: str) -> list[str]:
        if name == _SELECTOR:
            return [each.policy.partition(" ")[0]]
        if name == "no_path_retry":
            return [each.queueing]
        if name == "path_checker":
            return [path.checked_by for path in each.paths]
        machine = self._bench.machine
        ports = [port["through"] for path in each.paths for port in read_drive_paths(machine, path.device)]
        return [machine.text(f"/sys/class/fc_remote_ports/{port}/{name}") for port in ports]


NAMES = (_SELECTOR, "path_checker", "no_path_retry", *_TIMERS)


def _is_of(each: MultipathMap, claim: Claim) -> bool:
    """Whether a map is of a claimed drive: its WWID ends with the digits of the drive's WWN, or with its serial."""
    digits = claim.wwn.replace("0x", "", 1).rpartition(".")[2] or claim.serial
    return bool(digits) and each.wwid.lower().endswith(digits.lower())


def _plain(name: str, text: str) -> object:
    """`service-time 0` is the selector with its one argument; numbers are whole."""
    if name == _SELECTOR and text.endswith(" 0"):
        return text[: -len(" 0")]
    return int(text) if is_whole(text) else text


def _written(name: str, value: object) -> str:
    return f'"{value} 0"' if name == _SELECTOR else str(value)


def multipath_bench(bench: OptionsBench) -> OptionsBench:
    """The same bench with our file of multipathd instead of that of modprobe."""
    return OptionsBench(bench.runner, bench.machine, bench.release, FILE)


def provision_multipath(
    declared: Mapping[str, Any], as_found: Sequence[str], claims: Sequence[Claim], call: Call, bench: OptionsBench
) -> dict[str, Any]:
    """Have multipathd treat the maps as declared; the module's result. Raises StorqualError (see `engine.apply`)."""
    wanted = declared_by_owner(
        _SECTION, {_OWNER: declared} if declared else {}, {_OWNER: as_found} if as_found else {}, call.state_dir
    )
    # what nobody changed is as it was found
    values = {name: value for name, value in wanted.get(_OWNER, {}).items() if value is not None}
    if not values:
        return StepOutcome([], []).result()
    overrides = Overrides(multipath_bench(bench), claims)
    planned = plan(overrides, _OWNER, _OWNER, values)
    with call.lock("multipath") as lock:
        return apply(overrides, [planned], save=saver(lock)).result()


def restore_multipath(values: Mapping[str, Any], bench: OptionsBench, *, check: bool) -> StepOutcome:
    """What was found, and our file gone unless it is needed for that. Raises StorqualError."""
    overrides = Overrides(multipath_bench(bench))
    before = overrides.read(_OWNER, list(values))
    if not check:
        overrides.take_away()
    planned = plan(overrides, _OWNER, _OWNER, values)
    outcome = apply(overrides, [planned], save=None if check else lambda _memory: None)
    settings = [
        replace(entry, before=was, changed=was != entry.read_back)
        for was, entry in zip(before.values(), outcome.settings)
    ]
    steps = [] if check or before == values else [f"{FILE} taken away"]
    return StepOutcome(settings, [*steps, *outcome.steps])
