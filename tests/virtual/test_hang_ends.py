# SPDX-License-Identifier: Apache-2.0
"""A bench of a trial boot that hangs is ended without hands: by the watchdog, by a detector, by the ladder."""

import hashlib
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from storqual.bench.follow import ANSWER_SILENCE_S
from storqual.bench.ladder import Recovery
from storqual.run import append_event, iter_events
from storqual.turns.bring_back import Hung, bring_back, means_of
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import power_state
from storqual.virtual_bench.qmp import converse
from storqual_core.provision.boot import WATCHDOG_S
from tests.support.driver_sources import driver_sources
from tests.support.live_bench import REPOSITORY, bench_here, discard, over_ssh, own_lab, play, qualified
from tests.support.turn_records import REQUEST, plan_campaign

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(2400)]

INVENTORY = REPOSITORY / "inventories" / "virtual_debug"
BENCH = "vdebug"
SOON = "systemd-run --quiet --no-block sh -c "
DIES = f"{SOON}'sleep 1; echo c > /proc/sysrq-trigger'; sleep 5"
PANIC = f"sysctl -qw kernel.panic=0; {DIES}"
DISK = "/dev/$(basename $(grep -l scsi_debug /sys/block/sd*/device/model | cut -d/ -f1-4))"
READS = f"dd if={DISK} of=/dev/null bs=4k iflag=direct"
SILENT = "cd /sys/bus/pseudo/drivers/scsi_debug && echo 4 > opts && echo 1 > every_nth"
BOOT_ID = "cat /proc/sys/kernel/random/boot_id"
WATCHDOG = "cd /sys/class/watchdog/watchdog0 && echo $(cat identity), $(cat timeout) s, $(cat state)"
DETECTORS = "sysctl -n kernel.panic kernel.softlockup_panic kernel.hung_task_panic kernel.panic_on_oops kernel.sysrq"


@pytest.fixture(scope="module")
def places() -> Iterator[BenchPlaces]:
    found = BenchPlaces.of(REPOSITORY / ".cache" / "bench" / "hangs")
    discard(found.state)
    run(found, "bench_up.yml")
    yield found
    discard(found.state)


def run(places: BenchPlaces, playbook: str, *words: object) -> str:
    log = places.state.parent / "hangs.log"
    code, output = play(log, INVENTORY, playbook, "-e", f"virtual_bench_state={places.state}", *words)
    assert code == 0, output[-3000:]
    return output


@pytest.fixture
def boot(places: BenchPlaces, tmp_path: Path) -> str:
    """The bench in a fresh trial boot; its id."""
    drop = tmp_path / "drop.yml"
    drop.write_text(f"name: t\ndescription: d\nos: {{cmdline: [bench.n={time.time_ns()}]}}\n", encoding="utf-8")
    run(places, "provision.yml", "-e", f"drop={drop}", "-e", "prove_s=0")
    assert "storqual.trial=" in over_ssh(places.state, BENCH, "cat /proc/cmdline")
    return over_ssh(places.state, BENCH, BOOT_ID).strip()


def noticed(places: BenchPlaces, boot: str, began: float) -> tuple[float, bool]:
    """Since when the bench is silent, and whether it hangs though it answers: asked as a batch of launches asks."""
    answered = began
    while True:
        try:
            now = over_ssh(places.state, BENCH, BOOT_ID, limit_s=15).strip()
        except (AssertionError, subprocess.TimeoutExpired):
            if time.monotonic() - answered >= ANSWER_SILENCE_S:
                return answered, False
        else:
            answered = time.monotonic()
            if now != boot or answered - began >= STILL_S:
                return began, now == boot
        time.sleep(2)


def recovered(
    places: BenchPlaces, path: Path, boot: str, since: float, *, mark: int | None = None, hangs: bool = True
) -> Recovery:
    """What the ladder makes of a bench that is silent since `since`, in a run of its own."""
    setting = {"name": "boot.watchdog", "declared": None, "read_back": f"i6300ESB timer, {WATCHDOG_S} s"}
    started = {"bench": "vbench", "session": "s01", "boot_id": boot, "provisioned": {"settings": [setting]}}
    append_event(path, "session_started", started)
    here = replace(bench_here(places.state, BENCH, Path("p")), name="vbench", means=means_of(places))
    return bring_back(
        path,
        here,
        Hung("s01", "candidate", "s01-b001", "a-turn"),
        boot=boot,
        hangs=hangs,
        reason="it stopped answering",
        silent_s=time.monotonic() - since,
        console_mark=here.console_mark() if mark is None else mark,
        say=print,
    )


def start(places: BenchPlaces, line: str) -> float:
    """Have the bench run what hangs it, and when that was."""
    with suppress(AssertionError, subprocess.TimeoutExpired):
        over_ssh(places.state, BENCH, line, limit_s=15)
    return time.monotonic()


@pytest.fixture(scope="module")
def hang(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The driver that hangs as it is told, for the bench's kernel."""
    sources = driver_sources(tmp_path_factory.mktemp("sources"), ())
    return sources.whole_module(REPOSITORY / "tests/virtual/guest/hang.c").read_bytes()


def test_a_trial_boot_has_its_watchdog_armed_and_its_detectors_set(places: BenchPlaces, boot: str) -> None:
    assert boot
    assert over_ssh(places.state, BENCH, WATCHDOG).strip() == f"i6300ESB timer, {WATCHDOG_S} s, active"
    assert over_ssh(places.state, BENCH, DETECTORS).split() == ["10", "1", "1", "1", "1"]


STILL_S = 200.0
"""As `still_limit_s` of a plan without faults."""
WATCHDOG_ENDS, PANIC_ENDS = "watchdog i6300ESB timer", "detector of the kernel: Kernel panic - not syncing: "
PLANTED = {
    "spin at the 1000th command": (f"insmod /root/hang.ko at=command; {READS}", WATCHDOG_ENDS),
    "spin at unload": ("insmod /root/hang.ko at=unload; rmmod hang", WATCHDOG_ENDS),
    "sleep with its lock": ("insmod /root/hang.ko at=lock", f"{PANIC_ENDS}hung_task"),
    "panic": (DIES, f"{PANIC_ENDS}sysrq triggered crash"),
    "silent drives": (f"{SILENT}; {SOON}'{READS}'", "restart by the kernel"),
    "SSH that accepts and never answers": (f"{SOON}'pkill -STOP -o sshd'", "restart by the kernel"),
    "spin at load": ("insmod /root/hang.ko; sleep 5", WATCHDOG_ENDS),
    "panic without panic=": (PANIC, WATCHDOG_ENDS),
}
"""How the bench is made to hang, and what ends it by the plan."""


@pytest.mark.parametrize("planted", PLANTED)
def test_what_hangs_is_ended_within_five_minutes_by_what_the_plan_foresaw(
    places: BenchPlaces, boot: str, hang: bytes, planted: str, tmp_path: Path
) -> None:
    over_ssh(places.state, BENCH, "cat > /root/hang.ko", data=hang)
    path, mark = plan_campaign(REQUEST, tmp_path / "runs"), bench_here(places.state, BENCH, Path("p")).console_mark()
    line, foreseen = PLANTED[planted]
    began = start(places, line)
    since, hangs = noticed(places, boot, began)
    recovery = recovered(places, path, boot, since, mark=mark, hangs=hangs)
    seconds = time.monotonic() - began
    state = power_state(places)
    assert state is not None
    # five minutes with a boot of one; where other programs keep this machine busy, a boot takes as long as it takes
    limit_s = 240 + max(60.0, state.ssh_s)
    print(f"{planted}: ended after {seconds:.0f} s (limit {limit_s:.0f} s) by {recovery.ended_by}")
    # a line of the console has its time
    assert re.sub(r"\[ *[0-9.]+\] ", "", recovery.ended_by).startswith(foreseen)
    assert recovery.boot_id not in ("", boot)
    assert seconds < limit_s
    [hung] = [event for event in iter_events(path) if event.kind == "bench_hung"]
    assert hung.text("ended_by") == recovery.ended_by
    if "panic" in foreseen or "panic" in planted:
        assert "Kernel panic" in "".join(event.text("evidence") for event in iter_events(path))
    assert "storqual.trial=" not in over_ssh(places.state, BENCH, "cat /proc/cmdline")


STAYS = "systemd-run --quiet --unit stays -p RemainAfterExit=yes -p TimeoutStopSec=infinity"
MENU = 'if [ "$boot_once" = true ]; then set timeout=-1; fi'
BOOTS = {
    "shutdown": (f"{STAYS} -p 'ExecStop=/bin/sleep infinity' /bin/true", "", "restart by the kernel"),
    "init without SSH": ("true", "systemd.unit=basic.target", "restart by the kernel"),
    "boot loader": (f"echo '{MENU}' >> /boot/grub/grub.cfg", "bench.waits", "power cycle"),
}
"""What never ends: what is planted, a word of the trial's command line, and what ends it by the plan."""


@pytest.mark.parametrize("planted", BOOTS)
def test_a_boot_that_hangs_is_ended_by_what_the_plan_foresaw(
    places: BenchPlaces, planted: str, tmp_path: Path
) -> None:
    line, word, foreseen = BOOTS[planted]
    before = over_ssh(places.state, BENCH, f"{line}; sync; cat /proc/sys/kernel/random/boot_id")
    drop = tmp_path / "drop.yml"
    words = [word or f"bench.n={time.time_ns()}"]
    drop.write_text(f"name: t\ndescription: d\nos: {{cmdline: {words}}}\n", encoding="utf-8")
    words = ["-e", f"virtual_bench_state={places.state}", "-e", f"drop={drop}", "-e", "provision_boot_limit_s=120"]
    _, output = play(tmp_path / "log", INVENTORY, "provision.yml", *words)
    assert f"; ended by {foreseen}" in " ".join(output.split()), output[-3000:]
    assert over_ssh(places.state, BENCH, BOOT_ID) != before
    over_ssh(places.state, BENCH, "sed -i /boot_once.*timeout=-1/d /boot/grub/grub.cfg; sync")


def _firmware(folder: Path, version: str) -> str:
    """An image of a drive's firmware, as an entry of a drop."""
    file = folder / f"fw-{version}.bin"
    file.write_bytes(version.encode() * 8192)
    return f"file: {file}, sha256: {hashlib.sha256(file.read_bytes()).hexdigest()}, version: '{version}'"


def test_a_firmware_step_that_loses_the_bench_fails_its_drop_and_the_bench_is_back(
    places: BenchPlaces, tmp_path: Path
) -> None:
    unit = Path(__file__).with_suffix(".service").read_bytes()
    plant = "cat > /run/systemd/system/drive.service && touch /root/hangs-once && systemctl daemon-reload"
    over_ssh(places.state, BENCH, f"{plant} && systemctl start --no-block drive", data=unit)
    drops, lab = [], own_lab(tmp_path, INVENTORY, places.state)
    back = _firmware(tmp_path, "0191")
    for version in ("0191", "0192"):
        says = f"tool: sg_write_buffer, activation: none, {_firmware(tmp_path, version)}, rollback: {{{back}}}"
        drops.append(tmp_path / f"{version}.yml")
        drops[-1].write_text(f"name: d{version}\ndescription: d\nfirmware: {{on: {{adapter: debug}}, {says}}}\n")
    suite = shutil.copy(Path(__file__).with_suffix(".suite"), tmp_path / "reads.suite.yml")
    words = ("--baseline", drops[0], "--candidate", drops[1], "--suite", suite, "--consent", "000007d0")
    code, output, path = qualified(tmp_path / "runs", lab, *words)
    assert code == 1, output[-3000:]
    [hung] = [event for event in iter_events(path) if event.kind == "bench_hung"]
    assert (hung.text("arm"), hung.text("ended_by")) == ("candidate", "power cycle")
    assert hung.fields["seconds"] < 300
    assert [event.kind for event in iter_events(path) if event.kind.startswith("restore")] == ["restored"]
    assert "Kernel panic" in (path / "report.html").read_text(encoding="utf-8")


def test_tasks_are_shown_over_the_keyboard_of_a_bench_that_answers_and_it_is_restarted(
    places: BenchPlaces, boot: str, tmp_path: Path
) -> None:
    path = plan_campaign(REQUEST, tmp_path / "runs")
    recovery = recovered(places, path, boot, time.monotonic())
    assert recovery.ended_by == "restart by the kernel"
    look = next(event for event in iter_events(path) if event.text("step") == "look")
    assert "sysrq: Show Blocked State" in look.text("evidence")


def test_a_bench_that_hangs_is_started_again_by_bench_up_and_ended_by_bench_down(places: BenchPlaces) -> None:
    before = over_ssh(places.state, BENCH, BOOT_ID)
    state = power_state(places)
    assert state is not None
    converse(Path(state.monitor), lambda monitor: monitor.ask("stop"))
    assert f"{BENCH} was on and did not answer, so its plug was pulled" in run(places, "bench_up.yml", "-v")
    assert over_ssh(places.state, BENCH, BOOT_ID) != before
    # and one whose kernel has stopped for good, which still computes
    start(places, f"sysctl -qw kernel.sysrq=1; {PANIC}")
    assert "Kernel panic" in places.console.read_text(encoding="utf-8", errors="replace")
    assert "the guest did not answer, so the plug was pulled" in run(places, "bench_down.yml", "-v")
    assert power_state(places) is None
    # the plug is pulled once
    assert "it was off" in run(places, "bench_down.yml", "-v")
