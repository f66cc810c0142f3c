# SPDX-License-Identifier: Apache-2.0
"""Run inside a bench: every state against the guard and against bare fio, then the drive that may be written.

Reads `{"adapters": storqual_adapters, "adapter": alias, "only": [names], "untried": bool}` from standard input and
prints one JSON line per state and one for the acceptance. Nothing outside the named drives is written.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from guard_states import STATES, UNTRIED, State
from guard_tools import FIO_OFFSET, MOUNT, Bench, CannotMakeError, bench_of, empty, peek, run, sectors

from storqual_core.guard import hold
from storqual_core.guard.claims import VolumeClaim, claims_of_adapters
from storqual_core.guard.signatures import Ledger
from storqual_core.host.block_stack import resolve
from storqual_core.host.in_use import ways
from storqual_core.kit.errors import GuardRefusalError
from storqual_core.kit.machine import Machine

STATE_DIR = "/var/lib/storqual"


def tell(**line: Any) -> None:
    print(json.dumps(line), flush=True)


def ask_guard(state: State, bench: Bench) -> dict[str, Any]:
    """Ask for the drives for writing, as a block does; what it said, and every sector that was written meanwhile."""
    run("sync")
    before, began = bench.sectors(), time.monotonic()
    try:
        machine = state.machine(bench) if state.machine else None
        claims = state.claims(bench)
        with hold.hold(
            claims,
            purpose=state.purpose,
            consent=[claim.id for claim in claims],
            state_dir=STATE_DIR,
            run="guard-trial",
            machine=machine,
            runner=state.runner,
        ) as held:
            said = [f"GIVEN OUT: {dict(held)}"]
    except GuardRefusalError as refusal:
        said = refusal.refusals
    seconds = time.monotonic() - began
    after = bench.sectors()
    written = {
        name: after[name] - before.get(name, 0)
        for name in after
        if name != "vda" and after[name] != before.get(name, 0)
    }
    return {"said": said, "written": written, "seconds": round(seconds, 2)}


def ask_fio(path: str, engine: str, bench: Bench) -> dict[str, Any]:
    """The same target under bare fio: 4 KiB written 16 KiB into it; what fio and the drive say of it."""
    targets = {drive.name for drive in bench.drives.values()} | set(resolve(Machine(), path).disks)
    before, was = bench.sectors(), [peek(drive.node) for drive in bench.drives.values()]
    ended = subprocess.run(
        ["fio", "--name=x", f"--filename={path}", f"--ioengine={engine}", "--rw=write", "--bs=4k", "--size=4k",
         f"--offset={FIO_OFFSET}", "--allow_file_create=0", "--output-format=json", "--end_fsync=1"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    after, now = bench.sectors(), [peek(drive.node) for drive in bench.drives.values()]
    written = sum(after[name] - before.get(name, 0) for name in after if name in targets)
    # the kernel's counters do not see what goes through an sg node, so the medium is looked at too
    wrote = written > 0 or was != now
    text = ended.stdout[ended.stdout.find("{") :]
    try:
        job = json.loads(text)["jobs"][0]
        done = {"exit": ended.returncode, "error": job["error"], "ios": job["write"]["total_ios"]}
    except (ValueError, KeyError, IndexError):
        done = {"exit": ended.returncode, "error": None, "ios": 0}
    return {**done, "sectors": written, "wrote": wrote}


def try_state(state: State, bench: Bench) -> None:
    """One state, cleaned up whatever happens."""
    began = time.monotonic()
    result: dict[str, Any] = {"state": state.name, "says": state.says}
    try:
        path = state.arrange(bench) or bench.node()
        result["guard"] = ask_guard(state, bench)
        if path != "/dev/zero":
            result["leads_to"] = list(resolve(Machine(), path).disks)
            result["fio"] = ask_fio(path, state.engine, bench)
            # what fio wrote is undone with the rest
            bench.touched.add("n" if path == bench.drives.get("n", bench.drives["a"]).node else "a")
    except CannotMakeError as problem:
        result["skipped"] = str(problem)
    except Exception:  # noqa: BLE001 - a state that cannot be made is a result, and the next one must start clean
        result["trouble"] = traceback.format_exc(limit=3)
    finally:
        bench.clean()
    tell(**result, seconds=round(time.monotonic() - began, 2))


INTRUDERS = {
    "mkfs.ext4": lambda bench: ["mkfs.ext4", "-q", bench.node()],
    "mkfs.xfs": lambda bench: ["mkfs.xfs", "-q", bench.node()],
    "mkswap": lambda bench: ["mkswap", bench.node()],
    "pvcreate": lambda bench: ["pvcreate", "-y", bench.node()],
    "mdadm --create": lambda bench: [
        "mdadm", "--create", "/dev/md78", "--run", "--level=0", "--force", "--raid-devices=1", bench.node(),
    ],
    "dmsetup create": lambda bench: [
        "dmsetup", "create", "--noudevsync", "sqintruder", "--table", f"0 2048 linear {bench.node()} 0",
    ],
    "wipefs -a": lambda bench: ["wipefs", "-a", bench.node()],
    "swapon": lambda bench: ["swapon", bench.node()],
    "mount": lambda bench: ["mount", bench.node(), MOUNT],
    "blkdiscard": lambda bench: ["blkdiscard", bench.node()],
}  # fmt: skip


def accept(bench: Bench) -> None:
    """The claimed empty drive is given out, stamped, held against all, written in its window, known again."""
    claim = bench.claim()
    empty(bench.node())
    before = sectors()
    with hold.hold([claim], purpose="write", state_dir=STATE_DIR, run="guard-trial") as held:
        window = held.window(claim.id)
        first = {"stamped": list(held.stamped), "node": held[claim.id], "window": [window.offset, window.size]}
        refused = {}
        Path(MOUNT).mkdir(parents=True, exist_ok=True)
        for name, argv in INTRUDERS.items():
            ended = run(*argv(bench), check=False, text="y\n")
            refused[name] = {"rc": ended.returncode, "said": (ended.stderr or ended.stdout).strip()[-120:]}
        for offset in (window.offset, window.offset + window.size - 65536):
            run("fio", "--name=x", f"--filename={held[claim.id]}", "--rw=randwrite", "--bs=4k", "--ioengine=libaio",
                "--direct=1", f"--offset={offset}", "--size=64k", "--iodepth=4", "--allow_file_create=0")  # fmt: skip
    with hold.hold([claim], purpose="write", state_dir=STATE_DIR, run="guard-trial-2") as held:
        again = list(held.stamped)
    after = sectors()
    others = {name: after[name] - before[name] for name in before if name not in ("vda", bench.name())}
    tell(
        accepted="claimed empty drive",
        first=first,
        intruders=refused,
        stamped_again=again,
        sectors_on_it=after[bench.name()] - before[bench.name()],
        sectors_elsewhere={name: count for name, count in others.items() if count},
    )
    bench.touched.add("a")
    bench.clean()


def made_by_storqual(bench: Bench) -> None:
    """A file system and an array that storqual made are known by their UUID, also when nothing was put away."""
    claim = bench.claim()
    with hold.hold([claim], purpose="write", state_dir=STATE_DIR, run="guard-trial") as held:
        uuid = held.announce(claim.id)
        run("mkfs.xfs", "-q", "-f", "-K", "-m", f"uuid={uuid}", held.release(claim.id))
        held.retake(claim.id)
    # as after a power cut: the next hold finds the file system, and clears it
    with hold.hold([claim], purpose="write", state_dir=STATE_DIR, run="guard-trial") as held:
        kept = list(held.stamped)
        held.stamp(claim.id)
    with hold.hold([claim], purpose="write", state_dir=STATE_DIR, run="guard-trial"):
        pass
    run("mkfs.xfs", "-q", "-f", "-K", bench.node())
    foreign = [str(refusal) for refusal in hold.check([claim], purpose="write", state_dir=STATE_DIR)]
    bench.touched |= {"a", "b"}
    bench.clean()

    pair = [bench.claim("a"), bench.claim("b")]
    ledger = Ledger.read(STATE_DIR)
    ledger, name = ledger.announce(pair[0].id)
    Ledger(ledger.path, {**ledger.made, **{one.id: frozenset({name}) for one in pair}}, ledger.restamping).written()
    with hold.hold(pair, purpose="write", state_dir=STATE_DIR, run="guard-trial") as held:
        nodes = [held.release(one.id) for one in pair]
        run("mdadm", "--create", "/dev/md79", "--run", "--force", "--level=1", "--raid-devices=2", "--assume-clean",
            f"--uuid={name}", "--homehost=any", *nodes)  # fmt: skip
    volume = VolumeClaim("mirror", "/dev/md79", name, tuple(one.id for one in pair))
    with hold.hold(pair, purpose="write", state_dir=STATE_DIR, run="guard-trial", volumes=[volume]) as held:
        given = dict(held)
    half = hold.check(pair[:1], purpose="write", state_dir=STATE_DIR, volumes=[volume])
    run("mdadm", "--stop", "/dev/md79")
    with hold.hold(pair, purpose="write", state_dir=STATE_DIR, run="guard-trial") as held:
        for one in pair:
            held.stamp(one.id)
    tell(
        accepted="what storqual made",
        stamped_over_a_file_system=kept,
        foreign=foreign,
        volume=given,
        half_a_volume=[str(refusal) for refusal in half],
        refused_after=[str(refusal) for refusal in hold.check(pair, purpose="write", state_dir=STATE_DIR)],
    )
    bench.touched |= {"a", "b"}
    bench.clean()


def main() -> None:
    asked = json.load(sys.stdin)
    claims = {alias: claims_of_adapters({alias: adapter}) for alias, adapter in asked["adapters"].items()}
    nvme = [claim for claim in claims.get("nvme", ()) if claim.model]
    bench = bench_of(claims[asked["adapter"]], nvme)
    wanted, untried = set(asked.get("only") or ()), bool(asked.get("untried"))
    run("udevadm", "control", "--stop-exec-queue")
    try:
        bench.touched |= set(bench.drives)
        bench.clean()
        for state in UNTRIED if untried else STATES:
            if not wanted or state.name in wanted:
                try_state(state, bench)
        if not untried and (not wanted or "accept" in wanted):
            accept(bench)
        if not untried and (not wanted or "made" in wanted):
            made_by_storqual(bench)
    finally:
        run("udevadm", "control", "--start-exec-queue")
    tell(ways=dict(ways(Machine())))
    tell(done=True)


if __name__ == "__main__":
    main()
