# SPDX-License-Identifier: Apache-2.0
"""Module options as modprobe keeps them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.kit.errors import BadInputError, ToolError
from storqual_core.kit.kernel import compose, declared_options, in_file, parse_options, same_value

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
VALUES = st.from_regex(r"[A-Za-z0-9_.:,{}+-]{1,12}", fullmatch=True)


@given(st.dictionaries(NAMES, st.dictionaries(NAMES, VALUES, min_size=1, max_size=3), max_size=3))
def test_what_is_composed_is_read_back(options: dict[str, dict[str, str]]) -> None:
    """Every option and nothing else."""
    text = compose(options)
    assert in_file(text) == options
    assert (text is None) == (not options)


def test_the_last_line_holds_and_dashes_are_underscores() -> None:
    """As the kernel reads what modprobe hands it."""
    text = "alias x y\noptions virtio-scsi a=1 b\noptions virtio_scsi \\\n  a=2\n# options z q=1\n"
    assert parse_options(text) == {"virtio_scsi": {"a": "2", "b": ""}}


def test_quotes_hold_a_value_together() -> None:
    assert parse_options('options m a="1 2" b=3\n') == {"m": {"a": "1 2", "b": "3"}}
    with pytest.raises(ToolError, match="not understood"):
        parse_options('options m a="1\n')


def test_values_are_plain_words() -> None:
    """True is 1; a number is its digits; what a line cannot carry is refused, all at once."""
    assert declared_options({"scsi-mod": {"scan": "sync", "n": 4, "f": True}}) == {
        "scsi_mod": {"scan": "sync", "n": "4", "f": "1"}
    }
    wrong = {"a b": {"x": 1}, "m": {"p": "a b", "q": 'x"y', "r": "x\ny", "s;": 1, "t": ""}, "n": 5}
    with pytest.raises(BadInputError) as caught:
        declared_options(wrong)
    assert len(caught.value.problems) == 7


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Y", "1", True),
        ("N", "0", True),
        ("16", "0x10", True),
        ("4", "04x", False),
        ("a", "b", False),
        ("1", "0", False),
    ],
)
def test_values_are_compared_as_the_kernel_shows_them(one: str, other: str, *, same: bool) -> None:
    assert same_value(one, other) == same


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = parse_options(text)
    except ToolError:
        return
    assert isinstance(found, dict)
