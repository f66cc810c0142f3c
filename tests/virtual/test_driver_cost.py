# SPDX-License-Identifier: Apache-2.0
"""A driver that costs more for each command is found, and one that does not is not accused.

Builds of three drivers from the sources of the bench's own kernel wait for so many nanoseconds in each command. The
bench counts instructions as time, so that what else this machine does is no noise of what a command costs.
"""

import hashlib
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.driver_sources import DriverSources, driver_sources
from tests.support.live_bench import REPOSITORY, power_fixture, qualified

pytestmark = [
    pytest.mark.bench,
    pytest.mark.long,
    pytest.mark.timeout(7200),
    pytest.mark.skipif(
        not (shutil.which("make") and shutil.which("gcc")), reason="needs gcc and make on this machine"
    ),
]

INVENTORY = REPOSITORY / "inventories" / "virtual_rate"
SOURCES = {
    "vscsi": ("virtio_scsi", "drivers/scsi", "virtio_scsi.c", "virtscsi_queuecommand"),
    "fusion": ("mptsas", "drivers/message/fusion", "mptsas.c", "mptsas_qcmd"),
    "sym": ("sym53c8xx", "drivers/scsi/sym53c8xx_2", "sym_glue.c", "sym53c8xx_queue_command_lck"),
}
SEEDS = range(int(os.environ.get("STORQUAL_LIVE_CAMPAIGNS") or "1"))


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> DriverSources:
    """What drivers are made from; unpacked once."""
    files = ["drivers/scsi/virtio_scsi.c", "drivers/scsi/sd.h", *(folder for _, folder, *_ in SOURCES.values())]
    return driver_sources(tmp_path_factory.mktemp("sources"), [file for file in files if file != "drivers/scsi"])


powered = power_fixture(INVENTORY, REPOSITORY / ".cache" / "bench" / "vrate")


def build(sources: DriverSources, adapter: str, delay_ns: int) -> Path:
    """The adapter's driver, which waits for `delay_ns` in each command."""
    module, folder, file, function = SOURCES[adapter]
    return sources.folder_module(folder, module, file, lambda text: slower(text, function, delay_ns))


def slower(text: str, function: str, delay_ns: int) -> str:
    """C source in which the function begins with a wait, after the declarations of its variables."""
    begins = re.search(rf"^(?:static int\n?\s?){function}\(struct [^{{;]*\)\n{{\n", text, re.MULTILINE)
    assert begins, function
    ends = text.index("\n\n", begins.end())
    waits = f"\n\n\tndelay({delay_ns});" if delay_ns else ""
    before = text[: begins.start()]
    # a module without a version has no srcversion by which its build could be told from another
    version = (
        "" if "MODULE_VERSION(" in text or function != "virtscsi_queuecommand" else '\nMODULE_VERSION("1.0.1");\n'
    )
    return f"{before}#include <linux/delay.h>\n{text[begins.start() : ends]}{waits}{text[ends:]}{version}"


def write_drop(folder: Path, name: str, module: Path) -> Path:
    """A drop with that build, in a file of its own."""
    kept = folder / name / module.name
    kept.parent.mkdir(parents=True)
    shutil.copy(module, kept)
    digest = hashlib.sha256(kept.read_bytes()).hexdigest()
    file = folder / f"{name}.yml"
    file.write_text(f"name: {name}\ndriver: {{module: {{file: {kept}, sha256: {digest}}}}}\n", encoding="utf-8")
    return file


def qualify(folder: Path, adapter: str, baseline: Path, candidate: Path, seed: int) -> tuple[int, Any, str]:
    words = ["--suite", "driver-cost", "--adapters", adapter, "--seed", seed, "--baseline", baseline]
    code, output, run = qualified(folder / "runs", INVENTORY, *words, "--candidate", candidate)
    return code, json.loads((run / "verdict.json").read_text(encoding="utf-8")), output


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("adapter", SOURCES)
def test_a_driver_that_takes_a_fifth_more_processor_time_fails(
    tmp_path: Path, sources: DriverSources, adapter: str, seed: int
) -> None:
    even = write_drop(tmp_path, "even", build(sources, adapter, 0))
    slow = write_drop(tmp_path, "slow", build(sources, adapter, 12_000))
    code, verdict, output = qualify(tmp_path, adapter, even, slow, seed)
    assert code == 1, output[-3000:]
    failed = {entry["metric"] for entry in verdict["criteria"] if entry["required"] and entry["outcome"] == "FAIL"}
    assert failed == {"cpu_us_per_io"}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("adapter", SOURCES)
def test_the_same_driver_built_twice_does_not_fail(
    tmp_path: Path, sources: DriverSources, adapter: str, seed: int
) -> None:
    even = write_drop(tmp_path, "even", build(sources, adapter, 0))
    again = write_drop(tmp_path, "again", build(sources, adapter, 0))
    code, verdict, output = qualify(tmp_path, adapter, even, again, seed)
    assert verdict["outcome"] in ("PASS", "MARGINAL", "INCONCLUSIVE"), output[-3000:]
    assert code != 1
