# SPDX-License-Identifier: Apache-2.0
"""Tests of what the provisioning roles get of a session's specification."""

from __future__ import annotations

import pytest

from storqual.campaign.role_inputs import role_inputs


@pytest.mark.parametrize(
    ("system", "words"),
    [
        ({}, []),
        ({"cmdline": ["scsi_mod.use_blk_mq=1"]}, ["scsi_mod.use_blk_mq=1"]),
        ({"cpus": 2}, ["maxcpus=2"]),
        ({"cmdline": ["quiet"], "cpus": 4}, ["quiet", "maxcpus=4"]),
    ],
)
def test_a_number_of_processors_is_a_word_of_the_kernel_command_line(
    system: dict[str, object], words: list[str]
) -> None:
    assert role_inputs({"os": system})["cmdline"] == words
