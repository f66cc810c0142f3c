# SPDX-License-Identifier: Apache-2.0
import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools.dmsetup import parse_status
from tests.support.paths import status


@pytest.mark.parametrize(
    ("said", "paths"),
    [
        (status([("8:16", True), ("8:32", True)]), {"8:16": True, "8:32": True}),
        (status([("8:16", True), ("8:32", False)]), {"8:16": True, "8:32": False}),
        # two groups, a name in front, a hardware handler, a selector without words of its own
        (
            "mpatha: 0 409600 multipath 2 1 0 1 alua 2 2 E 0 1 0 65:16 F 3 A 0 1 0 8:32 A 0\n",
            {"65:16": False, "8:32": True},
        ),
        # no path at all is left
        ("0 409600 multipath 2 0 0 0 0 0\n", {}),
    ],
)
def test_the_paths_of_a_map_are_read_from_its_status(said: str, paths: dict[str, bool]) -> None:
    assert parse_status(said) == paths


@pytest.mark.parametrize(
    "said",
    [
        "",
        "0 2048 linear\n",
        status([("8:16", True)]) * 2,
        status([("8:16", True)]).replace(" A 0 0 1", " A 0 0"),
        status([("8:16", True)]).replace("8:16 A", "8:16 B"),
        status([("8:16", True)]).replace("8:16", "sdb"),
        status([("8:16", True)]).replace("\n", " 8:32\n"),
        status([("8:16", True)]).replace("A 0 1 2", "A 0 -1 2"),
        status([("8:16", True)]).replace("A 0 1 2", "A 0 99999 2"),
    ],
)
def test_anything_else_is_refused(said: str) -> None:
    with pytest.raises(ToolError, match="not a status of a multipath device"):
        parse_status(said)
