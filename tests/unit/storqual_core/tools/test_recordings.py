# SPDX-License-Identifier: Apache-2.0
"""Recorded outputs of real tools, where they lie beside the checkout: each is read, or refused with a sentence.

The recordings are other people's and stay outside the project. `recordings.json` says which function meets which
output, and for an output that must be refused a part of the sentence.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings

from storqual_core.kit.errors import StorqualError, ToolError
from storqual_core.tools import TOOLS
from storqual_core.turns import fio_result
from tests.support.mangle import mangled

if TYPE_CHECKING:
    from collections.abc import Callable

MET: dict[str, tuple[str, str, str]] = {
    output: (tool, parse, refusal)
    for output, (tool, parse, refusal) in json.loads(
        Path(__file__).with_name("recordings.json").read_text(encoding="utf-8")
    ).items()
}
"""Each output with its tool, its parser, and a part of the refusal or nothing."""


def parser(output: str) -> tuple[Callable[[str], Any], str]:
    """The function that meets an output, and a part of its refusal."""
    tool, name, refusal = MET[output]
    return getattr(TOOLS[tool](), name), refusal


def text_of(transcripts: Path, output: str) -> str:
    """A recording, as a runner decodes what a tool prints."""
    return (transcripts / output).read_bytes().decode("utf-8", "replace")


@pytest.mark.parametrize("output", sorted(MET))
def test_a_recording_is_read_or_refused_with_a_sentence(transcripts: Path, output: str) -> None:
    parse, refusal = parser(output)
    if refusal:
        with pytest.raises(ToolError) as caught:
            parse(text_of(transcripts, output))
        assert refusal in str(caught.value)
    else:
        # nothing under way and no adapter found are good answers too
        assert parse(text_of(transcripts, output)) is not None


@pytest.mark.parametrize("tool", sorted({tool for tool, _, _ in MET.values()}))
def test_a_mangled_recording_is_read_or_refused(transcripts: Path, tool: str) -> None:
    outputs = [output for output, (owner, _, _) in MET.items() if owner == tool]
    parsers = {MET[output][1]: parser(output)[0] for output in outputs}

    @settings(max_examples=20, deadline=None)
    @given(mangled([text_of(transcripts, output) for output in outputs]))
    def check(text: str) -> None:
        for parse in parsers.values():
            try:
                parse(text)
            except StorqualError:
                continue

    check()


def test_recorded_fio_outputs_are_found_or_known_to_hold_no_result(transcripts: Path) -> None:
    for path in sorted((transcripts / "fio").iterdir()):
        found, rest = fio_result.find_document(path.read_text(encoding="utf-8", errors="replace"))
        assert (found is None) == (path.name == "engine_not_loadable.txt")
        assert found is not None or "engine libaio not loadable" in rest
