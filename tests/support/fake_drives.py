# SPDX-License-Identifier: Apache-2.0
"""SCSI drives with a caching page and the kernel's queue, which does to its attributes what Linux does.

Modelled after Linux: a new scheduler has a number of requests of its own (`blk_mq_init_sched`); without a scheduler
the adapter's tags are the limit; new limits of a queue raise a lowered read-ahead (`blk_apply_bdi_limits`); a
rescan reads the cache type and sets the largest request anew (`sd_revalidate_disk`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from storqual_core.host.block_stack import DriveTarget
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import ToolError
from tests.support.bench_tree import BenchTree

SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")
TAGS = 64
LEAST, MOST = 4, 1024
READ_AHEAD = 128
LARGEST = 1280
DEPTH = 32


@dataclass
class FakeDrives:
    """Drives `sda`, `sdb`, ... of one adapter on a tree; `writes` is every attribute that was written, in order."""

    tree: BenchTree
    names: Sequence[str] = ("sda", "sdb")
    requests: int = 2 * TAGS
    pages: dict[str, bytearray] = field(default_factory=dict)
    writes: list[tuple[str, str, object]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tree.adapter()
        for place, name in enumerate(self.names):
            self.tree.scsi(name, hctl=f"2:0:{place}:0", wwn=self.wwn(name), serial=f"S{place}")
            self.pages[name] = bytearray(bytes.fromhex("881204" + "00" * 17))
            for attribute, value in {
                "scheduler": "none [mq-deadline] kyber bfq",
                "nr_requests": self.requests,
                "read_ahead_kb": READ_AHEAD,
                "max_sectors_kb": LARGEST,
                "nomerges": 0,
                "rq_affinity": 1,
            }.items():
                self._put(name, f"queue/{attribute}", value)
            self._put(name, "device/queue_depth", DEPTH)
            self._put(name, "device/rescan", "")
            self._put(name, "device/scsi_disk/2:0:0:0/cache_type", "write back")

    @property
    def sysfs(self) -> str:
        return self.tree.machine.path("/sys")

    def wwn(self, name: str) -> str:
        return f"0x5000c50015ea00{self.names.index(name):02x}"

    def targets(self) -> dict[str, DriveTarget]:
        return {self.wwn(name): DriveTarget(self.wwn(name), name, f"/dev/{name}") for name in self.names}

    def connect(self, monkeypatch: pytest.MonkeyPatch) -> "FakeDrives":
        """Let what the code under test writes go to this kernel."""
        for module in ("queue", "mode_pages"):
            monkeypatch.setattr(f"storqual_core.provision.{module}.write_attribute", self.write)
        return self

    def get(self, name: str, attribute: str) -> Any:
        """The value of a setting: an attribute of the queue, or a field of the caching page."""
        if attribute in ("WCE", "RCD"):
            return self.pages[name][2] >> {"WCE": 2, "RCD": 0}[attribute] & 1
        text = self._place(name, attribute).read_text().strip()
        if attribute == "scheduler":
            return next(word[1:-1] for word in text.split() if word.startswith("["))
        return int(text)

    def takes(self, name: str, attribute: str, value: Any) -> bool:
        """Whether the kernel takes a value with the others as they are."""
        if attribute == "nr_requests":
            return LEAST <= value <= (TAGS if self.get(name, "scheduler") == "none" else MOST)
        return True

    def write(self, path: str | Path, value: object) -> None:
        """As an attribute of the kernel is written. Raises ToolError."""
        path = Path(path)
        name = next(name for name in self.names if f"/block/{name}/" in str(path))
        attribute = path.name
        self.writes.append((name, attribute, value))
        if not self.takes(name, attribute, value) or (attribute == "scheduler" and value not in SCHEDULERS):
            raise ToolError(f"the kernel refused {value!r} for {path}: Invalid argument")
        if attribute == "scheduler":
            if value != self.get(name, attribute):
                self._put(name, "queue/nr_requests", TAGS if value == "none" else 2 * TAGS)
            words = [f"[{word}]" if word == value else word for word in SCHEDULERS]
            self._put(name, "queue/scheduler", " ".join(words))
        elif attribute == "rescan":
            back = "write back" if self.get(name, "WCE") else "write through"
            self._put(name, "device/scsi_disk/2:0:0:0/cache_type", back)
            self._limits(name, LARGEST)
        elif attribute == "max_sectors_kb":
            self._limits(name, value)
        else:
            path.write_text(f"{value}\n")

    def _limits(self, name: str, largest: object) -> None:
        self._put(name, "queue/max_sectors_kb", largest)
        self._put(name, "queue/read_ahead_kb", max(self.get(name, "read_ahead_kb"), READ_AHEAD))

    def _place(self, name: str, attribute: str) -> Path:
        folder = "device" if attribute in ("queue_depth", "rescan") else "queue"
        return Path(self.sysfs) / "block" / name / folder / attribute

    def _put(self, name: str, place: str, value: object) -> None:
        path = Path(self.sysfs) / "block" / name / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")

    def __call__(self, argv: Sequence[str], **_options: Any) -> Completed:
        tool, *words, device = argv
        target = next(name for name in self.names if device in (f"/dev/{name}", self._generic(name)))
        given = dict(word.lstrip("-").split("=", 1) for word in words if "=" in word)
        page = self.pages[target]
        if tool == "sg_modes":
            shown = {"0": bytes(page), "1": b"\x88\x12" + b"\xff" * 18}[given["control"]]
            return Completed(tuple(argv), 0, shown.hex(" "), "", 0.0)
        assert tool == "sg_wr_mode", argv
        new, mask = (bytes(int(byte, 16) for byte in given[name].split(",")) for name in ("contents", "mask"))
        page[:] = bytes((a & ~m) | (b & m) for a, b, m in zip(page, new, mask, strict=True))
        return Completed(tuple(argv), 0, "", "", 0.0)

    def _generic(self, name: str) -> str:
        (node,) = (Path(self.sysfs) / "block" / name / "device" / "scsi_generic").iterdir()
        return f"/dev/{node.name}"
