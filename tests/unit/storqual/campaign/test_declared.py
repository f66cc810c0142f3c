# SPDX-License-Identifier: Apache-2.0
"""Tests of what is declared for a bench by a session's specification."""

import hashlib
from pathlib import Path

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


def test_the_files_of_a_kernel_travel_to_the_bench(tmp_path: Path) -> None:
    """In the order of the drop, below a folder that is named by what is in them."""
    names = ["kernel-core-5.14.0-70.el9.x86_64.rpm", "kernel-modules-5.14.0-70.el9.x86_64.rpm"]
    sources = [str(tmp_path / name) for name in names]
    for source in sources:
        Path(source).write_text(source)
    declared = declared_document({"driver": {"kernel": {"files": sources}}})
    digests = [hashlib.sha256(source.encode()).hexdigest() for source in sources]
    places = [f"packages/{digest}/{name}" for digest, name in zip(digests, names, strict=True)]
    assert declared["driver"]["kernel"] == {"files": places}
    assert declared["files"] == [
        {"subsystem": "driver", "from": source, "to": place, "sha256": digest}
        for source, place, digest in zip(sources, places, digests, strict=True)
    ]
