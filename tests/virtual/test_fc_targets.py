# SPDX-License-Identifier: Apache-2.0
"""FC targets in a guest of their own: lost under writes and back, and an initiator that does so wrongly is found."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from storqual.bench.program import build_program
from storqual.plan import PlanRequest
from storqual.run import read_run
from storqual.run.turns import turns_of
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import guests, reset
from tests.support.driver_sources import DriverSources, driver_sources
from tests.support.live_bench import REPOSITORY, bench_here, discard, over_ssh, powered_on, qualified
from tests.support.turn_records import drive, plan_campaign

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(5400)]

INVENTORY = REPOSITORY / "inventories" / "virtual_fc_apart"
SUITE = REPOSITORY / "suites" / "fabric-targets.suite.yml"
BENCH, STATE = "vfcapart", REPOSITORY / ".cache" / "bench" / "vfcapart"


@pytest.fixture(scope="module", autouse=True)
def powered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Both guests, without what an earlier run left on their disks."""
    discard(STATE)
    STATE.mkdir(parents=True)
    with powered_on(tmp_path_factory.mktemp("power") / "log", INVENTORY):
        yield
    assert guests(BenchPlaces.of(STATE)) == []
    discard(STATE)


PROOFS = {"target_loss": "blocked", "link_loss": "link_down", "target_absence": "gone"}


@pytest.mark.parametrize(
    ("drop", "profile", "faults"),
    [
        # with timers that a port outlasts, and with timers after which what is under way comes back with an error
        ("patient", "quick", ["link_loss", "target_loss"]),
        ("short_timers", "gone", ["target_absence"]),
    ],
    ids=["patient", "short_timers"],
)
def test_targets_are_lost_and_back_under_writes_and_nothing_is_lost(
    tmp_path: Path, drop: str, profile: str, faults: list[str]
) -> None:
    words = ["--baseline", drop, "--candidate", drop, "--suite", "fabric-targets", "--profile", profile]
    code, said, run = qualified(tmp_path, INVENTORY, *words)
    records = turns_of(read_run(run)).records
    assert sorted(record["fault"] for record in records) == sorted(2 * faults), said[-3000:]
    for record in records:
        assert (record["outcome"], record["errors"] > 0) == ("passed", profile == "gone"), record["reasons"]
        told = {text.partition(":")[0] for _, what, text in record["timeline"] if what == "proof"}
        assert told >= {PROOFS[record["fault"]], "target_off", "target_on", "back"}
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    assert (code, verdict["outcome"], verdict["sectors_written_outside_claims"]) == (0, "PASS", 0), said[-3000:]
    assert len(guests(BenchPlaces.of(STATE))) == 2


ENDED = "\tscsi_done(sc_cmd);\n\n\t/* release ref from initial allocation in queue command */\n"
ANSWERED = """\
	if (fsp->status_code != FC_COMPLETE && !(fsp->state & FC_SRB_RCV_STATUS) && !(fsp->req_flags & FC_SRB_READ)) {
		pr_info("planted: a write of a lost port is answered as good\\n");
		sc_cmd->result = DID_OK << 16;
	}
"""
BACK = "\t\t\t\tif (rport->scsi_target_id != -1) {\n"
UNBLOCK = "\t\t\t\t\tscsi_target_unblock(&rport->dev,\n\t\t\t\t\t\t\t    SDEV_RUNNING);\n"
DEFECTS = {
    "lost_port_answers_good": ("libfc", "libfc/fc_fcp.c", ENDED, ANSWERED + ENDED, r"^data: (lost|stale): .* at \d+"),
    "stays_blocked": ("scsi_transport_fc", "scsi_transport_fc.c", BACK + UNBLOCK, BACK, "is Online again, and 0x"),
}
"""Module and file of the initiator, what stands there, what comes in its place, and what the check says of it."""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> DriverSources:
    scsi = [f"drivers/scsi/{name}" for name in ("libfc", "scsi_transport_fc.c", "scsi_priv.h")]
    return driver_sources(tmp_path_factory.mktemp("sources"), scsi)


@pytest.mark.skipif(not (shutil.which("make") and shutil.which("gcc")), reason="needs gcc and make on this machine")
@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_of_the_initiator_is_found_and_named(
    name: str, sources: DriverSources, tmp_path: Path
) -> None:
    """The candidate is judged alone, so that one failure is enough."""
    module, path, kept, changed, reason = DEFECTS[name]

    def plant(text: str) -> str:
        assert text.count(kept) == 1
        return text.replace(kept, changed) + 'MODULE_VERSION("planted");\n'

    folder, _, source = f"drivers/scsi/{path}".rpartition("/")
    file = sources.folder_module(folder, module, source, plant)
    suite = tmp_path / SUITE.name
    planted = "  planted: {faults: [target_loss], sessions: 2}\n"
    suite.write_text(SUITE.read_text(encoding="utf-8") + planted, encoding="utf-8")
    run = plan_campaign(
        PlanRequest((INVENTORY,), candidate="patient", baseline="", suite=str(suite), profile="planted", seed=1),
        tmp_path / "runs",
    )
    program = build_program()
    here = bench_here(STATE, BENCH, program)

    def load() -> None:
        place = "/lib/modules/$(uname -r)/updates"
        keep = f"rm -rf {place}; mkdir {place}; cat > {place}/{file.name}; depmod; sync"
        over_ssh(STATE, BENCH, keep, data=file.read_bytes())
        reset(BenchPlaces.of(STATE), limit_s=900.0)
        here.connection.cut()
        assert over_ssh(STATE, BENCH, f"cat /sys/module/{module}/version").strip() == "planted"
        # as the drop has it: this session is made without the plays around it
        over_ssh(STATE, BENCH, "for port in /sys/class/fc_remote_ports/*; do echo 600 > $port/dev_loss_tmo; done")
        here.connection.put(program.read_bytes(), here.program)

    drive(run, here, provision=load)
    (check,) = (check.fields for check in turns_of(read_run(run)).checks() if check.id == "trials.target_loss")
    print(check["reason"])
    assert check["outcome"] == "FAIL"
    assert re.search(reason, check["reason"])
