# SPDX-License-Identifier: Apache-2.0
"""The command line: one file per command, each imported only when it is called."""

import contextlib
import importlib
import json
import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

import click

from storqual import __version__
from storqual.base.text import terminal_text
from storqual_core.kit.errors import EXIT_UNEXPECTED, StorqualError

__all__ = ["main", "storqual"]

EXIT_NOT_JUDGED = 2
EXIT_WRONG_USE = 3
EXIT_INTERRUPTED = 130
_SAID = 300
"""Characters of an unexpected error that are shown."""

_PATHS = {
    "The way of a qualification": ("new", "inventory", "resolve", "plan", "qualify", "judge", "signoff", "verify"),
    "After a run": ("report", "publish", "waive", "note", "compare", "history", "export", "audit"),
    "Benches": ("facts", "sheet", "bench", "packages", "playbook", "robot"),
    "Others": ("events", "keywords", "man", "schema"),
}
"""Commands in the order in which people come to them."""
_INTERNAL = ("next", "record")
"""Playbooks call these, people do not."""
_COMMANDS = frozenset({*_INTERNAL, *(name for names in _PATHS.values() for name in names)})
_FILES = {
    **{name: f"playbook.{name}" for name in ("next", "playbook", "publish", "record")},
    "events": "playbook.record",
    "keywords": "robot",
    "note": "signoff",
    "resolve": "inventory",
    "verify": "signoff",
    "waive": "judge",
}
"""Of commands that are in no file of their name."""
_WHOLE = 1000
"""Characters: longer than any first sentence."""


class _Lazy(click.Group):
    """A group whose commands are imported when they are asked for: `next` is called between batches."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in the order of the alphabet."""
        del ctx
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command called `cmd_name`, or None."""
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        module = f"storqual.cli.{_FILES.get(cmd_name, cmd_name)}"
        command = getattr(importlib.import_module(module), f"{cmd_name}_command")
        if not isinstance(command, click.Command):
            raise TypeError(f"{module} has no command {cmd_name}")
        command.hidden = cmd_name in _INTERNAL
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands with the whole first sentence of each: click itself cuts it to one line."""
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = {name: cmd.get_short_help_str(_WHOLE) for name, cmd in commands if cmd is not None and not cmd.hidden}
        for title, names in _PATHS.items():
            with formatter.section(title):
                formatter.write_dl([(name, rows[name]) for name in names if name in rows])

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; click itself would end with 1, "shown to be worse", where a pipe breaks."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as problem:
            raise StorqualError(
                "a program that storqual writes to has exited, so the answer was not delivered; repeat the command"
            ) from problem


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", prog_name="storqual")
def storqual() -> None:
    """Qualify storage adapters, drives, drivers and firmware; decide PASS or FAIL, with evidence.

    \b
    Exit codes: 0 pass, 1 fail, 2 could not judge, 3 wrong usage or bad input,
    4 refused by the guard or for another owner of the bench, 5 bench out of
    service, 70 unexpected error.
    """


def _one_line(problem: click.ClickException) -> str:
    """What is wrong with a command line, and where it is told how it should be."""
    context = problem.ctx if isinstance(problem, click.UsageError) else None
    path = context.command_path if context is not None else "storqual"
    message = " ".join(problem.format_message().split()).rstrip(".")
    return f"{path}: {message}; see {path} --help"


def _tell(lines: Sequence[str], code: int, words: Sequence[str]) -> None:
    """What went wrong, for a person on standard error; with --json for a program on standard output as well."""
    shown = [terminal_text(line) for line in lines]
    # whoever reads may have gone; the exit code is still theirs
    with contextlib.suppress(BrokenPipeError):
        for line in shown:
            click.echo(line, err=True)
    if "--json" in words:
        problems = [line.removeprefix("storqual: ") for line in shown]
        with contextlib.suppress(BrokenPipeError):
            click.echo(json.dumps({"errors": problems, "exit_code": code}, indent=1))


def _leave(code: int) -> NoReturn:
    """Exit with `code`; Python itself would exit with 120 where the last lines cannot be written any more."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)


def _command_line(words: Sequence[str]) -> list[str]:
    """The command line, where `help` and `help COMMAND` mean the option of that name."""
    return [*words[1:2], "--help"] if list(words[:1]) == ["help"] else list(words)


def tell_unexpected(problem: BaseException, command: str, arguments: Sequence[str]) -> str:
    """One sentence about an error that nobody foresaw; what a maintainer needs lies in the file that it names.

    The file has the command and the traceback, not the arguments: there may be secrets in them.
    """
    report = "\n".join(
        [
            f"storqual {__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"command: {command}",
            "".join(traceback.format_exception(problem)),
        ]
    )
    first_line = (str(problem).strip().splitlines() or [""])[0][:_SAID]
    what = f"{type(problem).__name__}: {first_line}" if first_line else type(problem).__name__
    if isinstance(problem, OSError):
        place = f"{problem.filename}: " if problem.filename else ""
        what = f"{place}{problem.strerror or first_line}"
    for folder in _folders(arguments):
        try:
            handle, name = tempfile.mkstemp(dir=folder, prefix="storqual-error-", suffix=".txt")
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(report)
        except OSError:
            continue
        return f"{command} stopped by an unexpected error: {what}; details for a maintainer are in {name}"
    return f"{command} stopped by an unexpected error: {what}; a report could not be written"


def _refusal_of_machine(problem: BaseException) -> str:
    """The sentence for what this machine does not permit, which is no fault of the code; empty for other problems."""
    from storqual.run.layout import machine_error

    refused = machine_error(problem, str(getattr(problem, "filename", None) or "a file"))
    return "" if refused is None else str(refused)


def _folders(arguments: Sequence[str]) -> list[Path]:
    """Where the report may lie, best first: the folder of runs, as it was named or as it is by default, then /tmp."""
    named = [after for word, after in pairwise(arguments) if word == "--runs"]
    named += [word.partition("=")[2] for word in arguments if word.startswith("--runs=")]
    return [folder for folder in (*map(Path, named), Path("runs"), Path(tempfile.gettempdir())) if folder.is_dir()]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code; no traceback reaches a user."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        code = storqual.main(_command_line(words), prog_name="storqual", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as problem:
        problem.show()
        _leave(EXIT_WRONG_USE)
    except click.ClickException as problem:
        _tell([_one_line(problem)], EXIT_WRONG_USE, words)
        _leave(EXIT_WRONG_USE)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except StorqualError as problem:
        _tell([f"storqual: {line}" for line in str(problem).splitlines()], problem.exit_code, words)
        _leave(problem.exit_code)
    except Exception as problem:  # noqa: BLE001 - whatever it is, 1 would mean that something was shown to be worse
        refused = _refusal_of_machine(problem)
        code = EXIT_NOT_JUDGED if refused else EXIT_UNEXPECTED
        command = " ".join(["storqual", *(word for word in words[:1] if word in _COMMANDS)])
        _tell([f"storqual: {refused}" if refused else tell_unexpected(problem, command, words)], code, words)
        _leave(code)
    _leave(code if isinstance(code, int) else 0)
