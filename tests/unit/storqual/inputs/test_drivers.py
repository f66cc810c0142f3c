# SPDX-License-Identifier: Apache-2.0
"""Names of drivers: a slip is told, and a driver that nobody here knows is none."""

from __future__ import annotations

import pytest

from storqual.inputs.drivers import slip_of


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("megaraid", "megaraid_sas"),
        ("megaraid-sass", "megaraid_sas"),
        ("mpt3sass", "mpt3sas"),
        ("qla2xx", "qla2xxx"),
        ("smartqpi", "smartpqi"),
        ("virtio", "virtio_scsi"),
    ],
)
def test_a_name_that_no_driver_has_and_that_looks_like_one_is_a_slip(written: str, meant: str) -> None:
    assert slip_of(written) == meant


@pytest.mark.parametrize(
    "name",
    [
        "megaraid_sas",
        "megaraid-sas",
        "mpt3sas_oem",
        "megaraid_sas_x",
        "mpt4sas",
        "mpi4mr",
        "leapraid",
        "scsi_mod",
        "nvme_core",
        "x",
        "",
    ],
)
def test_a_driver_and_a_name_that_may_be_one_are_none(name: str) -> None:
    """A vendor's build has more behind the driver's name, a next generation other digits."""
    assert slip_of(name) == ""
