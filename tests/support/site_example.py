# SPDX-License-Identifier: Apache-2.0
"""What how-to pages speak of: the lab `room7` with two drops, a finished run, keys of a release manager."""

import hashlib
import re
import shutil
from pathlib import Path

from tests.attacks.finished_run import GATE, finished_run
from tests.support.signing import Person, make_person, sign
from tests.support.site_blocks import DOCS, Command, blocks

RUN = "20261121T101500Z-adapter-4f2a"
"""The run that the pages name."""
_HOSTS = "how-to/technician/describe-a-bench.md"
_DROPS = {
    "in_field": "driver: {kernel: {package: linux-image-6.1.0-47-amd64}}\ndrive: {queue_depth: 16}\n",
    "candidate": "driver: {kernel: {package: linux-image-6.12.0-1-amd64}}\ndrive: {queue_depth: 32}\n",
}
_FIRMWARE = Path(__file__).with_suffix(".firmware").read_text(encoding="utf-8")
_REQUIREMENTS = """\
requirements:
  REQ-1: {text: No written sector is lost., checks: ["sign_off.robot::The Evidence Is Whole"]}
"""
_LOSS_OF_A_FAILURE = 0.2
_TWO_SIGNATURES = "signatures: [technician, release-manager]\n"
"""As the gate policy of a lab that `storqual new lab` writes."""


class Example:
    """Folders for pages, each with a copy of the same runs: two that pass (one needs two signatures), one fails."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        adapters = {"sym": 2, "mpt": 2}
        self._passed = finished_run(folder / "passed", 0.0, adapters=adapters, more=_REQUIREMENTS)
        self._failed = finished_run(folder / "failed", _LOSS_OF_A_FAILURE)
        self._two = finished_run(folder / "two", 0.0, gate=f"{GATE}{_TWO_SIGNATURES}")
        self.run = ""

    def prepare(self, folder: Path, text: str) -> dict[str, str]:
        """Fill a page's folder with what its `text` does not make itself; the environment for its commands."""
        run = self._failed if "storqual waive" in text else self._passed
        run = self._two if "technician.key" in text else run
        self.run = run.name
        shutil.copytree(run, folder / "runs" / run.name)
        lab = folder / "inventories" / "room7"
        (lab / "drops").mkdir(parents=True)
        (hosts,) = (block for block in blocks(DOCS / _HOSTS) if block.title == "inventories/room7/hosts.yml")
        (lab / "hosts.yml").write_text(hosts.text, encoding="utf-8")
        for name, drop in _DROPS.items():
            if f"storqual new drop {name}" not in text:
                (lab / "drops" / f"{name}.yml").write_text(f"name: {name}\n{drop}", encoding="utf-8")
        if "--candidate firmware" in text:
            _add_firmware(lab / "drops", "in_field", "27.00.00.00", "28.00.00.00")
            _add_firmware(lab / "drops", "firmware", "28.00.00.00", "27.00.00.00")
        suite = (self._folder / "passed" / "small.suite.yml").read_text(encoding="utf-8")
        (folder / "stricter.suite.yml").write_text(suite.replace("margin: 8%", "margin: 4%"), encoding="utf-8")
        (folder / "scope.png").write_bytes(b"a picture")
        person = _make_key(folder)
        if "storqual signoff" not in text and "storqual verify" in text:
            sign(folder / "runs" / run.name, person, folder / "keys.yml")
        return {"HOME": str(folder / "home")}

    def here(self, command: Command) -> Command:
        """The command with the run that there is in the place of the one that pages name; no key is written over."""
        line = command.line.replace(RUN, self.run)
        if line.startswith("ssh-keygen"):
            line = line.replace("id_release", "id_new")
        return Command(line, command.shown)

    def planned(self, command: Command) -> Command:
        """The command up to where a server would be asked."""
        line = re.sub(r" --(trial|repeat) \S+", "", self.here(command).line)
        return Command(line.replace("storqual qualify", "storqual plan") + " --dry-run", command.shown)


def _add_firmware(drops: Path, name: str, version: str, other: str) -> None:
    """A drop with an image of the adapter; the other version is the way back."""
    for each in (version, other):
        (drops / f"{each}.rom").write_text(each, encoding="utf-8")
    digest, other_digest = (hashlib.sha256(each.encode()).hexdigest() for each in (version, other))
    told = _FIRMWARE.format(there=drops, version=version, digest=digest, other=other, other_digest=other_digest)
    (drops / f"{name}.yml").write_text(f"name: {name}\n{told}", encoding="utf-8")


def _make_key(folder: Path) -> Person:
    home = folder / "home" / ".ssh"
    home.mkdir(parents=True)
    person = make_person(home, "id_release", "release-manager", expires="2099-12-31")
    for end in ("", ".pub"):
        shutil.copy(home / f"id_release{end}", home / f"id_ed25519{end}")
    keys = f"require: [{{roles: [release-manager]}}]\nkeys:\n{person.entry()}"
    (folder / "keys.yml").write_text(keys, encoding="utf-8")
    return person
