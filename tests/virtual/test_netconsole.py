# SPDX-License-Identifier: Apache-2.0
"""A panic of which the serial console says nothing leaves its trace in the report by netconsole."""

from pathlib import Path

import pytest
import yaml

from storqual.virtual_bench.places import BenchPlaces
from tests.support.live_bench import GATE, REPOSITORY, discard, drops, finished, over_ssh, own_lab, powered_on, ran

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(5400)]

PLACES = BenchPlaces.of(REPOSITORY / ".cache" / "bench" / "netconsole")
WORDS = [
    "modules_load=netconsole",
    "netconsole.netconsole=+6665@10.0.3.15/eth1,6666@10.0.3.2/ff:ff:ff:ff:ff:ff",
    "bench.dies",
]
DIES = Path(__file__).with_suffix(".dies").read_text(encoding="utf-8")
"""As without `console=` on its command line: from here on the kernel writes nothing to the serial line."""


def test_a_panic_behind_a_silent_console_is_in_the_report_by_netconsole(tmp_path: Path) -> None:
    discard(PLACES.state)
    (bench,) = yaml.safe_load((GATE / "hosts.yml").read_text(encoding="utf-8"))["benches"]["hosts"].values()
    guest = {**bench["storqual_virtual"], "netconsole": True}
    lab = own_lab(tmp_path, GATE, PLACES.state, storqual_virtual=guest)
    drop = {"name": "dies", "description": "Its trial boot panics.", "os": {"cmdline": WORDS}}
    (lab / "drops" / "dies.yml").write_text(yaml.safe_dump(drop), encoding="utf-8")
    with powered_on(tmp_path / "power.log", lab):
        unit = "cat > /etc/systemd/system/dies.service && systemctl --quiet enable dies.service"
        over_ssh(PLACES.state, "gatebench", unit, data=DIES.encode())
        words = (*drops("even", "dies", suite=GATE / "live.suite.yml"), "--profile", "quick")
        code, output = ran(tmp_path / "output.log", "storqual", "qualify", "-i", lab, "--runs", tmp_path, *words)
    done = finished(code, tmp_path)
    assert (code, done.verdict["outcome"]) == (2, "ERROR"), output[-3000:]
    [panic, *_] = done.events("kernel_panic")
    assert (panic["sources"]["console"], panic["sources"]["netconsole"]) == (False, True)
    assert "sysrq triggered crash" in panic["text"]
    assert "sysrq triggered crash" not in PLACES.console.read_text(encoding="utf-8", errors="replace")
    assert done.run is not None
    report = (done.run / "report.html").read_text(encoding="utf-8")
    assert "Kernel panic, by netconsole" in report
    assert "its trace was in netconsole" in report
