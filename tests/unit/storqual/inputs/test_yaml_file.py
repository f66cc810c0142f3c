# SPDX-License-Identifier: Apache-2.0
"""Reading YAML 1.2 with lines: what is a word, what is refused, and that nothing else ever happens."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.inputs.suite_file import load_suite
from storqual.inputs.yaml_file import parse_yaml, read_yaml
from storqual_core.kit.errors import BadInputError


def problems(text: str) -> list[str]:
    with pytest.raises(BadInputError) as caught:
        parse_yaml(text, name="x.yml")
    return caught.value.problems


def test_off_and_yes_are_words() -> None:
    """YAML 1.1 would make them false and true."""
    assert parse_yaml("scheduler: off\nanswer: yes\non: {model: no}\n", name="x").data == {
        "scheduler": "off",
        "answer": "yes",
        "on": {"model": "no"},
    }


def test_dates_stay_words() -> None:
    assert parse_yaml("expiry: 2027-01-31", name="x").data == {"expiry": "2027-01-31"}


def test_a_number_remembers_how_it_was_written() -> None:
    assert parse_yaml("serial: 0012", name="x").data["serial"].written == "0012"


def test_every_value_has_its_line() -> None:
    """Lines count from 1; what has none gets the line of what is around it."""
    document = parse_yaml("a:\n  b: 1\n  c:\n    - x\n    - y: 2\n", name="x")
    assert [
        document.line(place) for place in (("a", "b"), ("a", "c", 0), ("a", "c", 1, "y"), ("a", "c", 1, "z"))
    ] == [2, 4, 5, 5]


def test_a_doubled_key_is_told_with_both_lines() -> None:
    document = parse_yaml("a: 1\nb: 2\na: 3\n", name="x.yml")
    assert list(document.problems) == ["x.yml:3: key 'a' is already set in line 1; remove one of the two"]
    assert document.data["a"] == 1


def test_a_tag_is_told() -> None:
    document = parse_yaml("a: !!python/object/apply:os.system ['true']\n", name="x.yml")
    assert list(document.problems) == [
        (
            "x.yml:1: the tag 'tag:yaml.org,2002:python/object/apply:os.system' is not allowed; write "
            "plain YAML without tags"
        )
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [1, 2", "x.yml:1: a `[` is opened here and not closed; put `,` between entries and `]` at the end"),
        ("a: 1\n---\nb: 2\n", "x.yml:3: a second document (`---`) begins here; a file has one"),
        ("\ta: 1", "x.yml:1: a tab is not allowed here; YAML is indented with spaces"),
        ("a: *nowhere", "x.yml:1: YAML reads `*nowhere` as an alias; put quotes around text that begins with `*`"),
    ],
    ids=["syntax", "two documents", "tab", "alias"],
)
def test_what_is_no_yaml_is_told_with_its_line(text: str, said: str) -> None:
    """The words after `found` are the parser's."""
    assert [said] == problems(text)


def test_aliases_cannot_grow_without_end() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert "200000 values" in problems("\n".join(lines))[0]


def test_an_alias_of_itself_ends() -> None:
    assert "60 levels" in problems("a: &a [*a]")[0]


def test_deep_nesting_is_refused() -> None:
    assert problems("[" * 5000)


def test_a_missing_file_and_foreign_bytes_are_told(tmp_path: Path) -> None:
    binary = tmp_path / "b.yml"
    binary.write_bytes(b"a: 1\nb: \xff\xfe\n")
    for path, said in ((tmp_path / "none.yml", "No such file"), (binary, "b.yml:2: this is not UTF-8 text")):
        with pytest.raises(BadInputError, match=said):
            read_yaml(path)


def test_an_empty_file_is_nothing() -> None:
    assert parse_yaml("# only a comment\n", name="x").data is None


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(BadInputError):
        parse_yaml(text, name="x")


@given(st.text(alphabet="abc:-?[]{}&*!|>'\"#%@`,\n \t01.~<=", max_size=60))
def test_any_yaml_punctuation_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(BadInputError):
        parse_yaml(text, name="x")


WIDE = "this line has a no-break space (or another wide one) where YAML needs a plain space; type it anew"


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\n\u00a0 b: 2\n",
        "a:\n\u00a0\u00a0b: 2\n",
        "a: 1\nb:\u00a02\n",
        "a: {x: 1}\nb: {c:\u202f2}\n",
        "\n-\u00a0b: 2\n",
    ],
)
def test_a_space_that_is_none_to_yaml_is_told_with_its_line(text: str) -> None:
    assert problems(text) == [f"x.yml:2: {WIDE}"]


@pytest.mark.parametrize("value", ["5\u00a0ms", "'a:\u00a0b'", "note\u00a0b", "|\n  a:\u00a0b\n  \u00a0c"])
def test_a_no_break_space_inside_a_text_is_text(value: str) -> None:
    assert "\u00a0" in parse_yaml(f"a: {value}\n", name="x").data["a"]


def test_a_key_in_quotes_may_have_a_no_break_space() -> None:
    assert parse_yaml("'a:\u00a0b': 1\n", name="x").data == {"a:\u00a0b": 1}


def test_a_character_that_json_escapes_as_a_pair_is_one_and_half_a_pair_is_told(tmp_path: Path) -> None:
    assert parse_yaml(r'{"a": "\ud83d\ude00"}', name="f").data == {"a": "\U0001f600"}
    path = tmp_path / "half.suite.yml"
    path.write_text(r'workloads: {"\ud83d": {rw: "\ud83d"}}', encoding="utf-8")
    with pytest.raises(BadInputError, match=r"half\.suite\.yml:1: "):
        load_suite(path)
