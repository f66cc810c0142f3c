# SPDX-License-Identifier: Apache-2.0
"""Tests of what is declared for a bench by a session's specification."""

from __future__ import annotations

import pytest

from storqual.campaign.declared import declared_document


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
    assert declared_document({"os": system})["driver"]["cmdline"] == words
