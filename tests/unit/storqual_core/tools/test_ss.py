# SPDX-License-Identifier: Apache-2.0
"""ss: the bytes of all connections to a peer together; a connection without its count is refused."""

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools.ss import parse_acknowledged, read_acknowledged
from tests.support.replay import Call, Replay
from tests.support.tool_fixtures import fixture_text

BOTH = fixture_text("ss", "two_connections.txt")


def test_the_bytes_of_all_connections_are_added() -> None:
    line = "ss --tcp --info --numeric --no-header state established dst 192.0.2.7:4420"
    assert read_acknowledged(Replay([Call(line, BOTH)]), "192.0.2.7:4420") == 3169 + 1225


@pytest.mark.parametrize("text", ["", BOTH + fixture_text("ss", "nothing_acknowledged.txt"), BOTH.partition("\t")[0]])
def test_a_connection_without_its_count_is_refused(text: str) -> None:
    with pytest.raises(ToolError, match="ss counts the bytes of"):
        parse_acknowledged(text)
