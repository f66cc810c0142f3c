# SPDX-License-Identifier: Apache-2.0
"""`storqual note`: notes, links and attachments of a run, before and after it was signed."""

from __future__ import annotations

import getpass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from storqual.base.text import terminal_text
from storqual.cli.options import as_json, print_json, run_argument
from storqual.cli.signoff import passphrase_of
from storqual_core.kit.errors import BadInputError

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command("note")
@run_argument
@click.argument("text")
@click.option("--link", "links", multiple=True, help="A web address, such as one of a tracker; repeat.")
@click.option("--attach", "attached", multiple=True, type=_FILE, help="A file that is kept with the note; repeat.")
@click.option("--by", help="Whose note it is, before signing (your login); after it the key says so.")
@click.option("--key", type=_FILE, help="Your Ed25519 private key: needed once somebody has signed.")
@click.option(
    "--keys",
    "trusted",
    type=_FILE,
    envvar="STORQUAL_KEYS",
    show_envvar=True,
    help="Trusted keys: needed once somebody has signed.",
)
@as_json
def note_command(
    run: Path,
    text: str,
    links: tuple[str, ...],
    attached: tuple[Path, ...],
    by: str | None,
    key: Path | None,
    trusted: Path | None,
    as_json: bool,
) -> None:
    """Add a note to a run.

    Before anybody has signed it becomes part of the run: it stands in the report and is signed with it. Afterwards it
    goes to the annex, signed by itself; what was signed is not touched, and annex/index.html shows all notes.

    \b
    Examples:
      storqual note runs/20261121T101500Z-adapter-4f2a "fan tray replaced before session 2" --link https://t/LAB-7
      storqual note runs/20261121T101500Z-adapter-4f2a "seen in the field" --key ~/.ssh/id_ed25519 --keys keys.yml
    """
    from storqual.inputs import load_trust
    from storqual.report import build_report
    from storqual.report.documents import annex_page, write_document
    from storqual.run import is_signed, read_run
    from storqual.run.closing import is_closed
    from storqual.run.notes import add_note
    from storqual.run.published import record_published
    from storqual.signoff.annex import NoteRequest, add_to_annex, annex_notes

    run = run.resolve()
    if is_signed(run):
        if key is None or trusted is None:
            raise BadInputError([f"{run}: found a signed run, expected --key and --keys: its notes are signed too"])
        request = NoteRequest(
            run=run, text=text, links=links, attached=attached, key=key, trusted=trusted,
            passphrase=lambda: passphrase_of(key),
        )  # fmt: skip
        added = add_to_annex(request)
        trust = {one.id: one for one in load_trust(trusted).keys}
        notes = [one.note for one in annex_notes(run, trust, datetime.now(UTC)) if not one.problem]
        page = write_document(annex_page(read_run(run), notes), run / "annex" / "index.html")
        answer: dict[str, Any] = {**added.to_json(), "page": str(page)}
    else:
        note = add_note(run, text, by or getpass.getuser(), links, attached)
        answer = {"at": note.at, **note.to_fields()}
        if is_closed(run) and (run / "verdict.json").is_file():
            answer["page"] = str(build_report(run))
            record_published(run)
    if as_json:
        print_json(answer)
    else:
        click.echo(terminal_text(f"{answer['at']} {answer['by']}: {answer['text']}"))
        if "page" in answer:
            click.echo(answer["page"])
