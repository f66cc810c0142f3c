# SPDX-License-Identifier: Apache-2.0
"""`storqual bench power` from inventory and vault to a new boot, with stand-ins for ssh and ipmitool."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from storqual.bench.lease import lease_question, new_owner
from storqual.plan.make import PlanRequest, plan_run
from storqual.run import iter_events
from storqual_core.kit.lease import LeaseBook
from tests.unit.storqual.power.test_backends import ArgumentsSeen

pytestmark = pytest.mark.plays

CANARY = "canary-" + "92eb5ffe"
BIN = Path(sys.executable).parent

# A bench that runs while its file says on; with another password nothing is switched.
IPMITOOL = Path(__file__).with_suffix(".ipmitool").read_text(encoding="utf-8")
SSH = Path(__file__).with_suffix(".ssh").read_text(encoding="utf-8")
HOSTS = Path(__file__).with_suffix(".hosts").read_text(encoding="utf-8")
DRIVE = '            - {{wwn: "0x5000c50015ea71a{0}", serial: S{0}, model: ST1, size: 1GiB, claim: true}}\n'


@dataclass(frozen=True)
class Lab:
    """A bench that is a file, in the inventory `inventory`, with its password in a vault."""

    folder: Path

    @property
    def inventory(self) -> Path:
        return self.folder / "lab"

    def power(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "storqual", "bench", "power", "-i", str(self.inventory), "bench01", *words],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            env={
                **os.environ,
                "PATH": f"{self.folder}:{os.environ['PATH']}",
                "ANSIBLE_VAULT_PASSWORD_FILE": str(self.folder / "vault-password"),
                "ANSIBLE_VERBOSITY": "3",
            },
        )


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    made = Lab(tmp_path)
    for name, text in (("ipmitool", IPMITOOL), ("ssh", SSH)):
        (tmp_path / name).write_text(text.format(folder=tmp_path, canary=CANARY), encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    contents = {"power": "on\n", "boot": "0c7f4a0e-0f5c-4a39-9d0c-2c7a4a3d8a11\n", "lock": "free\n"}
    contents["reserved"] = "--storqual--\n--storqual--\n100 1\n"
    for name, text in {**contents, "vault-password": "open\n"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    secret = made.inventory / "host_vars" / "bench01.yml"
    secret.parent.mkdir(parents=True)
    secret.write_text(f"vault_bmc01: {CANARY}\n", encoding="utf-8")
    vault = [BIN / "ansible-vault", "encrypt", "--vault-password-file", tmp_path / "vault-password", secret]
    subprocess.run(vault, check=True, capture_output=True)
    hosts = HOSTS.format(folder=tmp_path) + "".join(map(DRIVE.format, range(4)))
    (made.inventory / "hosts.yml").write_text(hosts, encoding="utf-8")
    return made


def test_a_power_cycle_ends_with_a_new_boot_and_its_password_is_seen_by_nobody(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    (lab.inventory / "drops").mkdir()
    for drop in ("field", "new"):
        (lab.inventory / "drops" / f"{drop}.yml").write_text(f"name: {drop}\ndrive: {{WCE: 0}}\n", encoding="utf-8")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(lab.folder / "vault-password"))
    run = plan_run(PlanRequest((lab.inventory,), "field", "new", "adapter", seed=1), lab.folder / "runs").path
    assert run is not None
    with ArgumentsSeen() as seen:
        ended = lab.power("cycle", "--reason", "hangs", "--run", str(run), "--json")
    assert ended.returncode == 0, ended.stderr
    answer = json.loads(ended.stdout)
    assert (answer["state"], answer["proven"]) == ("on", True)
    assert answer["boot_id"] == (lab.folder / "boot").read_text(encoding="utf-8").strip()
    assert answer["boot_id"] != "0c7f4a0e-0f5c-4a39-9d0c-2c7a4a3d8a11"

    events = list(iter_events(run))
    orders = [(event.text("backend"), event.text("action")) for event in events if event.kind == "power_step"]
    assert orders.index(("ipmi", "state")) < orders.index(("ipmi", "off")) < orders.index(("ipmi", "on"))
    (switched,) = [event for event in events if event.kind == "power_switched"]
    assert (switched.text("reason"), switched.text("boot_id")) == ("hangs", answer["boot_id"])

    assert any(b"ipmitool" in line for line in seen.lines)
    assert not any(CANARY.encode() in line for line in seen.lines)
    assert CANARY not in ended.stdout + ended.stderr
    assert [path for path in run.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()] == []


def test_a_bench_that_a_run_holds_is_not_switched(lab: Lab) -> None:
    holder = {"run": "20261126T210000Z-adapter-ab12", "purpose": "batch", "block": "b1", "pid": 7, "since": "today"}
    (lab.folder / "lock").write_text(json.dumps(holder), encoding="utf-8")
    ended = lab.power("cycle")
    assert ended.returncode == 2
    assert "20261126T210000Z-adapter-ab12" in ended.stderr
    assert (lab.folder / "power").read_text(encoding="utf-8") == "on\n"
    # to look at it disturbs nobody
    assert lab.power("state").returncode == 0


def test_a_bench_that_somebody_else_has_reserved_is_not_switched(lab: Lab) -> None:
    book = LeaseBook(lab.folder / "state")
    book.reserve(replace(new_owner("soldering", 3600), who="ann"))
    said = subprocess.run(["sh", "-c", lease_question(str(lab.folder / "state"))], capture_output=True, check=True)
    (lab.folder / "reserved").write_bytes(said.stdout)
    ended = lab.power("off")
    assert ended.returncode == 4
    assert "ann" in ended.stderr
    assert "soldering" in ended.stderr
    assert (lab.folder / "power").read_text(encoding="utf-8") == "on\n"


def test_a_bench_without_power_in_its_inventory_is_wrong_use(lab: Lab) -> None:
    hosts = lab.inventory / "hosts.yml"
    lines = hosts.read_text(encoding="utf-8").splitlines(keepends=True)
    hosts.write_text("".join(line for line in lines if "power" not in line and "ipmi" not in line), encoding="utf-8")
    ended = lab.power("state")
    assert ended.returncode == 3
    assert "storqual_power" in ended.stderr
    assert "Traceback" not in ended.stderr
