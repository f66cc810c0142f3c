# SPDX-License-Identifier: Apache-2.0
"""`storqual man`: manual pages of all commands, made from the command line's own parser."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click

from storqual.cli.options import as_json, print_json

_FOLDER = Path("~/.local/share/man/man1")
_SECTION = 1
_EXAMPLE_HEADS = ("Example:", "Examples:")


@click.command("man")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=_FOLDER)
@as_json
def man_command(folder: Path, as_json: bool) -> None:
    """Write a manual page for each command to FOLDER, by default where `man` looks for pages of this user.

    Then `man storqual` lists them, and `man storqual-qualify` is one. After an upgrade, write them again.

    \b
    Examples:
      storqual man
      storqual man build/share/man/man1
    """
    from storqual.cli import storqual
    from storqual_core.kit.durable import replace_file

    folder = folder.expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in manual_pages(storqual):
        path = folder / f"{name}.{_SECTION}"
        replace_file(path, text, durable=False)
        written.append(str(path))
    if as_json:
        print_json({"files": written})
        return
    for line in written:
        click.echo(line)


def manual_pages(program: click.Group) -> Iterator[tuple[str, str]]:
    """Name and text (roff, macros of man) of the page of `program` and of each of its commands that people call."""
    context = click.Context(program, info_name="storqual")
    shown = {name: command for name, command in commands_of(program).items() if not command.hidden}
    pages = {f"storqual-{name.replace(' ', '-')}": command for name, command in shown.items()}
    yield "storqual", _page("storqual", "storqual", program, context, tuple(pages))
    for (page, command), name in zip(pages.items(), shown, strict=True):
        yield page, _page(page, f"storqual {name}", command, click.Context(command, context, name), ("storqual",))


def commands_of(program: click.Group) -> dict[str, click.Command]:
    """Every command by its name; those of a group have the name of the group in front: `bench power`."""
    context = click.Context(program)
    commands: dict[str, click.Command] = {}
    for name in program.list_commands(context):
        command = program.get_command(context, name)
        if isinstance(command, click.Group):
            commands |= {f"{name} {inner}": each for inner, each in commands_of(command).items()}
        elif command is not None:
            commands[name] = command
    return commands


def _page(page: str, called: str, command: click.Command, context: click.Context, others: tuple[str, ...]) -> str:
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(command.help or "").replace("\b\n", ""))
    summary = " ".join(paragraphs[0].split()).partition(". ")[0]
    lines = [
        f'.TH "{page.upper()}" "{_SECTION}" "" "storqual" "storqual"',
        ".SH NAME",
        f"{_text(page)} \\- {_text(summary.rstrip('.'))}",
        ".SH SYNOPSIS",
        f".B {_text(called)}",
        _text(" ".join(command.collect_usage_pieces(context))),
        ".SH DESCRIPTION",
    ]
    for paragraph in paragraphs:
        head, _, body = paragraph.partition("\n")
        if head in _EXAMPLE_HEADS:
            lines += [
                f".SH {head.rstrip(':').upper()}",
                ".nf",
                *map(_text, inspect.cleandoc(body).splitlines()),
                ".fi",
            ]
        else:
            lines += [".PP", _text(" ".join(paragraph.split()))]
    lines.append(".SH OPTIONS")
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option):
            lines += [".TP", f".B {_text(record[0])}", _text(record[1])]
    lines += [".SH SEE ALSO", _text(", ".join(f"{other}({_SECTION})" for other in others))]
    return "\n".join(lines) + "\n"


def _text(text: str) -> str:
    """Text that roff takes as it stands: no escapes, no requests, and hyphens that can be copied."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("\n", " ")
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped
