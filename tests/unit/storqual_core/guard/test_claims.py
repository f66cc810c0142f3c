# SPDX-License-Identifier: Apache-2.0
"""Claims come from the inventory or a block file; what is wrong with them is told all at once."""

import pytest

from storqual_core.guard.claims import VolumeClaim, claims_of_adapters, read_claims, read_volumes
from storqual_core.kit.errors import BadInputError

DRIVE = {
    "wwn": "0x5000C50000000001",
    "serial": "SER1",
    "vendor": "SEAGATE",
    "model": "ST",
    "size": "1GiB",
    "claim": True,
}


def test_only_what_is_claimed_is_a_claim() -> None:
    """In inventory order; `claim: yes please` is no claim."""
    adapters = {
        "sym": {"drives": [DRIVE, {**DRIVE, "claim": False}, {**DRIVE, "claim": "true"}]},
        "empty": {"drives": None},
        "nvme": {"drives": [{"serial": "N1", "model": "M", "size": 512, "claim": True}]},
    }
    claims = claims_of_adapters(adapters)
    assert [claim.id for claim in claims] == ["0x5000c50000000001", "N1"]
    assert (claims[0].size, claims[0].vendor, claims[1].wwn) == (1 << 30, "SEAGATE", "")


def test_a_block_files_targets() -> None:
    """With the claim beside what else a target has, or alone."""
    fields = {key: value for key, value in DRIVE.items() if key != "claim"}
    assert read_claims({"0x5000c50000000001": {"claim": fields, "queue": {}}}) == read_claims(
        {"0x5000c50000000001": fields}
    )


def test_an_unclaimed_target_is_refused() -> None:
    """`claim: false` is no claim, whatever stands beside it."""
    with pytest.raises(BadInputError, match="it is not claimed, so it is not a target"):
        read_claims({"x": {**DRIVE, "claim": False}})


def test_a_wwn_that_yaml_made_a_number_is_understood() -> None:
    """Ansible reads an unquoted 0x… as an integer."""
    assert read_claims({"x": {"claim": {**DRIVE, "wwn": 0x5000C50000000001}}})[0].wwn == "0x5000c50000000001"


def test_every_problem_of_every_claim_is_told() -> None:
    bad = {"claim": True, "wwn": "sda", "size": "big"}
    with pytest.raises(BadInputError) as caught:
        claims_of_adapters({"sym": {"drives": [bad, {"claim": True}, {**DRIVE, "file": "/x"}]}})
    text = "\n".join(caught.value.problems)
    for words in (
        "adapter sym, drive 1: 'sda' is not a WWN",
        "adapter sym, drive 1: 'big' is not a size",
        "adapter sym, drive 1: the claim states no model",
        "adapter sym, drive 2: the claim states neither WWN nor serial number",
        "adapter sym, drive 2: the claim states no size",
        "adapter sym, drive 3: only a bench of kind local has files for drives",
    ):
        assert words in text


def test_on_a_local_bench_drives_are_files() -> None:
    """And nothing else."""
    adapters = {"files": {"drives": [{"file": "/s/targets/a", "size": "64MiB", "claim": True}]}}
    assert claims_of_adapters(adapters, kind="local")[0].id == "/s/targets/a"
    with pytest.raises(BadInputError, match="and this is not a file"):
        claims_of_adapters({"sym": {"drives": [DRIVE]}}, kind="local")


def test_volumes_stand_beside_drives() -> None:
    targets = {"v": {"volume": {"path": "/dev/md9", "uuid": "AB", "members": ["a", "b"]}}, "a": {"claim": DRIVE}}
    assert read_volumes(targets) == (VolumeClaim("v", "/dev/md9", "ab", ("a", "b")),)
