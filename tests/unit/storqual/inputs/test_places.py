# SPDX-License-Identifier: Apache-2.0
"""Places that an inventory names: logs that a witness can be, and the key that each of them takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from storqual.inputs.places import witness_key_problem, witness_problem
from storqual_core.kit.errors import BadInputError
from tests.support.make_lab import lab_hosts
from tests.support.simulated_campaign import plan


@pytest.mark.parametrize(
    "place", ["rekor+https://rekor.lab", "rekor+https://[::1]:3000/", "rekor+http://localhost:1"]
)
def test_places_that_are_logs(place: str) -> None:
    assert witness_problem(place) == ""


@pytest.mark.parametrize(
    "place",
    [
        "rekor+http://rekor.lab",
        "rekor://rekor.lab",
        "rekor+https://",
        "rekor+https://rekor.lab/api",
        "rekor+https://rekor.lab?x",
        "rekor+https://rekor.lab#x",
        "rekor+https://me:secret@rekor.lab",
        "rekor+https://rekor.lab:x",
    ],
)
def test_places_that_are_no_logs(place: str) -> None:
    assert witness_problem(place)


def test_a_log_needs_a_key_and_nothing_else_takes_one(tmp_path: Path) -> None:
    assert "name the lab's private key" in witness_key_problem("rekor+https://rekor.lab", "")
    assert "is for a witness rekor+https" in witness_key_problem("syslog://log.lab", "key.pem")
    assert "is for a witness rekor+https" in witness_key_problem("", "key.pem")
    assert witness_key_problem("", "") == ""
    hosts = lab_hosts({"sym": 2})
    for variables in hosts.values():
        variables |= {"storqual_witness": "rekor+https://rekor.lab", "storqual_witness_key": "keys/w.pem"}
    run = plan(tmp_path, hosts=hosts)
    (bench,) = json.loads((run / "run.json").read_text())["benches"].values()
    assert Path(bench["witness_key"]).is_absolute()
    assert bench["witness_key"].endswith("/keys/w.pem")
    for variables in hosts.values():
        del variables["storqual_witness_key"]
    with pytest.raises(BadInputError, match="takes signed entries only"):
        plan(tmp_path / "bad", hosts=hosts)
