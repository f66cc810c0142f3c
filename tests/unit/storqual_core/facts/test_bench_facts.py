# SPDX-License-Identifier: Apache-2.0
"""One fact set of a bench: everything sysfs shows, at most one command, nothing guessed."""

import json
from pathlib import Path
from typing import Any

import pytest

from storqual_core.facts.bench_facts import environment_of, read_facts
from storqual_core.facts.tool_facts import parse_status, tool_versions
from storqual_core.kit.command import Completed
from tests.support.bench_tree import STATE, BenchTree

STATUS = Path(__file__).with_suffix(".status").read_text(encoding="utf-8")
GRUB = """
set default="0"
menuentry 'Debian GNU/Linux' --id first {
    linux /boot/vmlinuz-6.1.0-47-amd64 root=/dev/vda ro
}
"""


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    """A bench with an adapter, two drives, an array, a kernel and a boot loader."""
    tree = BenchTree(tmp_path).adapter().scsi("sda").scsi("sdb", wwn="0x5000c50000000002", serial="SER2")
    tree.stacked("md0", ["sda", "sdb"], level="raid1")
    for path, text in {
        "/proc/sys/kernel/osrelease": "6.1.0-47-amd64\n",
        "/proc/cmdline": "root=/dev/vda ro\n",
        "/proc/cpuinfo": "processor : 0\nmodel name : A CPU\nphysical id : 0\n\nprocessor : 1\nphysical id : 0\n",
        "/proc/meminfo": "MemTotal:       1024 kB\n",
        "/etc/os-release": 'ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian 12"\n',
        "/var/lib/dpkg/status": STATUS,
        "/boot/grub/grub.cfg": GRUB,
        "/sys/block/sda/device/queue_depth": "30\n",
        "/sys/block/sda/queue/scheduler": "[mq-deadline] none\n",
        "/sys/block/sda/device/ioerr_cnt": "0x1f\n",
        "/sys/block/sda/device/scsi_disk/2:0:0:0/cache_type": "write back\n",
        "/usr/bin/fio": "",
        "/usr/bin/sg_modes": "",
    }.items():
        tree.write(path, text)
    return tree


def no_tool(argv: list[str], **_: Any) -> Completed:
    raise AssertionError(f"{argv} was run")


def test_the_fact_set(tree: BenchTree) -> None:
    facts = json.loads(json.dumps(read_facts(tree.machine, state_dir=STATE, runner=no_tool)))
    assert facts["schema"] == "storqual.facts/1"
    assert (facts["kernel"]["release"], facts["kernel"]["cmdline"]) == ("6.1.0-47-amd64", "root=/dev/vda ro")
    assert facts["default_boot"] == {"release": "6.1.0-47-amd64", "entry": "first"}
    assert facts["cpu"] == {"model": "A CPU", "online": 2, "sockets": 1, "governor": "", "smt": "", "nodes": 0}
    assert facts["memory"]["total"] == 1 << 20
    assert facts["adapters"][0]["drives"] == ["0x5000c50000000001", "0x5000c50000000002"]
    drive = next(drive for drive in facts["drives"] if drive["name"] == "sda")
    assert (drive["queue"]["queue_depth"], drive["cache"], drive["errors"]["ioerr_cnt"]) == ("30", "write back", 31)
    assert drive["errors"]["iotmo_cnt"] is None
    assert facts["volumes"][0]["members"] == ["0x5000c50000000001", "0x5000c50000000002"]
    assert facts["drivers"]["sym53c8xx"]["srcversion"] == "ABCDEF0123456789"
    assert facts["tools"] == {
        "fio": {"path": "/usr/bin/fio", "version": "3.33-3"},
        "sg_modes": {"path": "/usr/bin/sg_modes", "version": "1.46-3"},
    }
    assert facts["disks"]["disks"]["vda"]["system"] == "carries / and storqual's spool"


def test_a_fio_that_no_package_brought_is_asked(tree: BenchTree) -> None:
    tree.write("/usr/local/bin/fio", "")
    found = tool_versions(tree.machine, lambda argv, **_: Completed(tuple(argv), 0, "fio-3.41\n", "", 0.1))
    assert found["fio"] == {"path": "/usr/local/bin/fio", "version": "fio-3.41"}


def test_a_bench_of_rpm_packages_is_asked_once(tree: BenchTree) -> None:
    (tree.root / "var/lib/dpkg/status").unlink()
    tree.write("/usr/bin/rpm", "")
    asked = []

    def runner(argv: list[str], **_: Any) -> Completed:
        asked.append(argv[0])
        return Completed(tuple(argv), 1, "fio\t0\t3.36\t1\tx86_64\t1\npackage sg3_utils is not installed\n", "", 0.1)

    assert tool_versions(tree.machine, runner)["fio"]["version"] == "3.36-1"
    assert asked == ["rpm"]


def test_only_installed_packages_count() -> None:
    assert parse_status(STATUS) == {"fio": "3.33-3", "sg3-utils": "1.46-3"}


def test_a_bench_that_shows_nothing_gives_empty_facts(tmp_path: Path) -> None:
    facts = read_facts(BenchTree(tmp_path).machine, state_dir=STATE, runner=no_tool)
    assert facts["default_boot"] is None
    assert facts["memory"]["total"] is None
    assert facts["tools"] == {}


def test_the_fingerprint_has_the_inventorys_names_and_no_counters(tree: BenchTree) -> None:
    facts = read_facts(tree.machine, state_dir=STATE, runner=no_tool)
    declared = {"sym": {"pci": "0000:00:05.0", "drives": [{"wwn": "0x5000c50000000001"}, {"serial": "SER2"}]}}
    found = environment_of(facts, declared)
    assert set(found["adapters"]["sym"]["drives"]) == {"0x5000c50000000001", "0x5000c50000000002"}
    assert found["adapters"]["sym"]["drives"]["0x5000c50000000001"]["queue_depth"] == "30"
    assert found["adapters"]["sym"]["drives"]["0x5000c50000000001"]["adapter"] == "0000:00:05.0"
    assert {"rom", "boot_code", "cdroms", "can_queue", "pci", "root", "bridges"} <= set(found["adapters"]["sym"])
    assert "sda" not in json.dumps(found)
    assert "cnt" not in json.dumps(found)
