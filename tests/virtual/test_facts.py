# SPDX-License-Identifier: Apache-2.0
"""Facts of the virtual bench, as deep as its tools go, and the inventory that is drafted from them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from storqual.bench.draft import draft_inventory
from storqual.inputs import load_inventory
from storqual_core.facts.preflight import compare
from tests.support.live_bench import INVENTORY, Bench, powered_bench

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A bench of our own, powered on for these tests and off again."""
    with powered_bench("facts", tmp_path_factory.mktemp("facts")) as found:
        yield found


@pytest.fixture(scope="module")
def facts(bench: Bench) -> dict[str, Any]:
    played = bench.play("facts.yml", "-e", f"answers_folder={bench.drops}", "-e", '{"facts_deep": true}')
    assert played.code == 0, played.output
    found = json.loads((bench.drops / "vbench.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def test_every_drive_of_the_inventory_tells_its_pages_and_its_place(facts: dict[str, Any]) -> None:
    (declared,) = load_inventory([INVENTORY]).benches.values()
    by_id = {drive["id"]: drive for drive in facts["drives"]}
    for adapter in declared.adapters.values():
        for drive in adapter.drives:
            found = by_id[drive.id]
            if found["transport"] == "scsi":
                assert found["mode_pages"]["WCE"]["value"] in (0, 1)
            if found["transport"] == "nvme":
                assert found["health"]["passed"] is True
                assert found["namespace"]["sector"] in (512, 4096)


def test_what_could_not_be_read_is_a_sentence_and_no_tool_misbehaved(facts: dict[str, Any]) -> None:
    assert not [sentence for sentence in facts["unread"] if "printed" in sentence]
    assert len(facts["pci"]) >= len(facts["adapters"])


def test_the_drafted_inventory_is_accepted_and_describes_the_bench(facts: dict[str, Any], tmp_path: Path) -> None:
    """What the loader of inventories takes, and what the preflight would find in agreement."""
    place = tmp_path / "hosts.yml"
    place.write_text(draft_inventory({"vbench": facts}), encoding="utf-8")
    (drafted,) = load_inventory([place]).benches.values()
    assert not any(adapter.claimed for adapter in drafted.adapters.values())
    document = yaml.safe_load(place.read_text(encoding="utf-8").replace("!unsafe ", ""))
    assert compare(facts, document["benches"]["hosts"]["vbench"]["storqual_adapters"]) == []
