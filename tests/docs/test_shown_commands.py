# SPDX-License-Identifier: Apache-2.0
"""Commands that a page shows are commands that there are, and what it shows of their output is compared with it."""

import re

import click
import pytest

from storqual.cli import storqual
from storqual.cli.playbook.playbook import playbook_names
from tests.support.site_blocks import REPOSITORY, Block, blocks, commands, pages, shows, words_of

CONSOLES = [block for page in pages() for block in blocks(page) if block.language == "console"]
OTHERS = frozenset(
    {
        *("apt-get", "cat", "cp", "echo", "eval", "export", "git", "ls", "mkdir", "mv", "pip", "pipx", "sed"),
        *("ssh", "ssh-keygen", "sudo"),
    }
)
"""Programs that are not this project's: a page may show them with any option."""


@pytest.mark.parametrize("block", CONSOLES, ids=lambda block: block.name)
def test_a_command_that_a_page_shows_is_one_that_there_is(block: Block) -> None:
    found = list(commands(block))
    assert found
    for one in found:
        for words in words_of(one):
            check(words)


def check(words: list[str]) -> None:
    """A program of ours with options that it has, playbooks and targets that are there. Raises AssertionError."""
    program, *rest = words
    program = program.removeprefix(".venv/bin/")
    if program == "storqual":
        context = click.Context(storqual, info_name="storqual")
        command = storqual.get_command(context, rest[0]) if rest and not rest[0].startswith("-") else storqual
        assert command is not None, words
        arguments = rest[1:] if command is not storqual else rest
        if isinstance(command, click.Group) and command is not storqual and not arguments[0].startswith("-"):
            command = command.get_command(context, arguments.pop(0))
            assert command is not None, words
        parser = command.make_parser(click.Context(command, **command.context_settings))
        values, _, _ = parser.parse_args(list(arguments))
        missing = [
            option.name for option in command.params if option.required and values.get(option.name or "") is None
        ]
        assert not missing or "--help" in arguments, (words, missing)
        assert rest[:1] != ["playbook"] or values["name"] in playbook_names(), words
    elif program == "make":
        known = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        assert {word for word in rest if "=" not in word} <= set(known), words
    elif program.startswith("ci/"):
        assert (REPOSITORY / program).is_file(), words
    elif program == "python":
        assert rest[:2] == ["-m", "pytest"], words
    else:
        assert program in OTHERS, words


@pytest.mark.parametrize(
    ("printed", "shown", "missing"),
    [
        ("one\ntwo  three\n", ("one", "two three"), ""),
        ("one\ntwo\nthree\n", ("one", "...", "three"), ""),
        ("head\none\n", ("one",), ""),
        ("one\ntwo\nthree\n", ("one", "three"), "three"),
        ("a run of 12 s\n", ("a run of ... s",), ""),
        ("a run of 12 s, more\n", ("a run of ... s",), "a run of ... s"),
        ("valid  SHA256:x  today\n", ("valid ... today",), ""),
        ("", ("one",), "one"),
    ],
)
def test_a_line_that_is_not_printed_is_found(printed: str, shown: tuple[str, ...], missing: str) -> None:
    assert shows(printed, shown) == missing


@pytest.mark.parametrize(
    "line",
    [
        *("storqual qualify -i lab --candidat x", "storqual qualfy", "storqual signoff runs/x --key me"),
        *("storqual playbook none -i lab", "ansible-playbook -i lab playbooks/setup.yml", "make coffee"),
        "curl example.org",
    ],
)
def test_a_command_that_there_is_not_is_found(line: str) -> None:
    with pytest.raises((AssertionError, click.UsageError)):
        check(line.split())
