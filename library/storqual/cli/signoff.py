# SPDX-License-Identifier: Apache-2.0
"""`storqual signoff`, `verify` and `note`: sign a judged run, check what was signed, add notes before and after."""

from __future__ import annotations

import getpass
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from storqual.base.text import terminal_text
from storqual.cli.options import EXISTING_FILE, Moment, as_json, print_json, print_pairs, print_rows, run_argument
from storqual_core.kit.errors import BadInputError

if TYPE_CHECKING:
    from storqual.signoff.annex import AnnexNote
    from storqual.signoff.verify import Verification

_keys_option = partial(
    click.option, "--keys", "trusted", type=EXISTING_FILE, envvar="STORQUAL_KEYS", show_envvar=True
)
trusted_keys = _keys_option(required=True, help="Trusted keys: whose signature counts, in which role, until when.")


@click.command("signoff")
@run_argument
@click.option(
    "--key",
    type=EXISTING_FILE,
    required=True,
    help="Your Ed25519 private key; with --ssh also a public key whose private key is in an agent or on a token.",
)
@trusted_keys
@click.option(
    "--role",
    help="Role to sign in: for a key with several roles, and for a co-signer whom the gate does not require.",
)
@click.option(
    "--waivers",
    type=EXISTING_FILE,
    help="Waiver file; it must cover every failure of the run, and nothing that passed.",
)
@click.option(
    "--ssh", is_flag=True, help="Sign with `ssh-keygen -Y sign`, for keys in an agent or on a security token."
)
@as_json
def signoff_command(
    run: Path, key: Path, trusted: Path, role: str | None, waivers: Path | None, ssh: bool, as_json: bool
) -> None:
    """Sign off a judged run: every file of it, and what the candidate consists of.

    The verdict is first recomputed from the files. A run that failed can only be signed with waivers for every
    failure; a run that could not be judged cannot be signed. The gate policy says which roles must sign.

    \b
    Examples:
      storqual signoff runs/20261121T101500Z-adapter-4f2a --key ~/.ssh/id_ed25519 --keys keys.yml
      storqual signoff runs/20261121T101500Z-adapter-4f2a --key ~/.ssh/id_ed25519 --keys keys.yml --ssh --json
    """
    from storqual.campaign.pipeline import seal
    from storqual.signoff.sign import SignRequest

    signed = seal(
        SignRequest(
            run=run.resolve(),
            key=key,
            trusted=trusted,
            passphrase=lambda: _passphrase(key),
            role=role,
            waivers=waivers,
            ssh=ssh,
        )
    )
    if as_json:
        print_json(signed.to_json())
        return
    pairs: list[tuple[str, object]] = [
        ("run", signed.run),
        ("outcome", signed.told),
        ("signed by", f"{signed.name} as {signed.role} ({signed.key})"),
        ("files", " ".join(signed.files)),
        ("still needed", " and ".join(signed.missing) or "none: the sign-off is complete"),
        ("who must sign", signed.policy),
    ]
    print_pairs(pairs)


def _passphrase(key: Path) -> str:
    """Ask for it. Raises BadInputError where there is nobody to ask."""
    if not sys.stdin.isatty():
        remedy = "add the key to an agent and sign with --ssh"
        raise BadInputError([f"{key}: this key has a passphrase, and there is no terminal to ask for it; {remedy}"])
    return str(click.prompt(f"Passphrase of {key}", hide_input=True, err=True))


@click.command("verify")
@run_argument
@trusted_keys
@click.option("--as-of", type=Moment(), help="Verify as if it were this time (UTC): keys and waivers expire.")
@click.option(
    "--require-role",
    "roles",
    multiple=True,
    help="Require a signature in this role, whatever the run says; can be repeated.",
)
@click.option(
    "--witness",
    help=(
        "What the witness recorded, with its kind: syslog:FILE or ssh:FILE with its lines, ssh://HOST/PATH to read "
        "them there, rfc3161:FILE with the certificates of the time authority. Without a kind, the one in run.json."
    ),
)
@click.option("--allow-virtual", is_flag=True, help="Accept a run on emulated hardware or on files as a release too.")
@as_json
def verify_command(
    run: Path,
    trusted: Path,
    as_of: datetime | None,
    roles: tuple[str, ...],
    witness: str | None,
    allow_virtual: bool,
    as_json: bool,
) -> int:
    """Verify a sign-off, offline: every file as signed, and every signature that is required.

    `require` in the trusted keys, or --require-role, says who must have signed; signatures that the run's own gate
    requires are needed too. Exit codes: 0 valid as a release, 1 not valid, 2 the signatures are valid but do not make
    it a release (measured on emulated hardware or on files, or only the run itself says who must sign).

    \b
    Examples:
      storqual verify runs/20261121T101500Z-adapter-4f2a --keys keys.yml
      storqual verify runs/20261121T101500Z-adapter-4f2a --keys keys.yml --require-role release-manager --json
    """
    from storqual.signoff.verify import verify_run

    moment = None if as_of is None else as_of.replace(tzinfo=UTC)
    check = verify_run(run, trusted, as_of=moment, require_roles=roles, allow_virtual=allow_virtual, witness=witness)
    if as_json:
        print_json(check.to_json())
        return check.exit_code
    print_rows(
        ("Signed", "As", "By", "Key", "At"),
        [
            ("refused" if signer.problem else "valid", signer.role, signer.name, signer.key, signer.signed_at)
            for signer in check.signatures
        ],
    )
    print_pairs(_findings(check))
    return check.exit_code


def _findings(check: Verification) -> list[tuple[str, object]]:
    """What a person reads below the signatures; the last line is what came of it."""
    pairs: list[tuple[str, object]] = [
        ("candidate", check.candidate),
        ("measured on", ", ".join(f"{bench}: {kind}" for bench, kind in check.kinds.items())),
        ("must sign", f"{' and '.join(check.required)} ({check.policy})" if check.required else ""),
        ("checked by", check.rules),
        ("evidence", check.evidence),
        ("witness", check.witness or "not checked (--witness): only the run itself vouches for when it was measured"),
        *(("waived", waiver) for waiver in check.waivers),
        *(("co-signed", signer) for signer in check.co_signers),
        *(
            ("note after signing", f"{entry.note.at} {entry.note.by}: {entry.note.text}{_beside(entry)}")
            for entry in check.notes
            if not entry.problem
        ),
        *(("after signing", f"{file.path} (SHA-256 {file.sha256})") for file in check.annex),
        *(("problem", problem) for problem in check.problems),
    ]
    if not check.problems:
        pairs += [("withheld", why) for why in check.withheld]
    pairs = [pair for pair in pairs if pair[1]]
    if check.problems:
        return [
            *pairs,
            ("NOT VALID", f"{check.run}: {len(check.problems)} problem{'s' * (len(check.problems) != 1)}"),
        ]
    summary = f"{check.summary}; outcome {check.outcome}" if check.accepted else check.outcome
    head = "VALID, NOT RELEASED" if check.withheld else "VALID, RELEASED"
    return [*pairs, (head, f"{check.run}: {summary}, {check.files} files as signed")]


def _beside(entry: AnnexNote) -> str:
    named = [*entry.note.links, *(file.name for file in entry.note.files)]
    return f" ({', '.join(named)})" if named else ""


@click.command("note")
@run_argument
@click.argument("text")
@click.option("--link", "links", multiple=True, help="A web address, such as that of a ticket; can be repeated.")
@click.option(
    "--attach", "attached", multiple=True, type=EXISTING_FILE, help="A file to keep with the note; can be repeated."
)
@click.option(
    "--by",
    help=(
        "Author of the note, before the run is signed (default: your login name); afterwards the key "
        "names the author."
    ),
)
@click.option("--key", type=EXISTING_FILE, help="Your Ed25519 private key: needed once the run is signed.")
@_keys_option(help="Trusted keys: needed once the run is signed.")
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

    Before the run is signed, the note becomes part of the run: the report shows it, and it is signed with the run.
    Afterwards it goes to the annex with a signature of its own; signed files are not changed, and annex/index.html
    shows all notes.

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
    from storqual.run.evidence import record_published
    from storqual.run.layout import locked
    from storqual.run.notes import add_note
    from storqual.signoff.annex import NoteRequest, add_to_annex, annex_notes

    run = run.resolve()
    # whether the run is signed must stay so until the note is there
    with locked(run, signed=True):
        if is_signed(run):
            if key is None or trusted is None:
                raise BadInputError(
                    [f"{run}: this run is signed, so its notes must be signed too; give --key and --keys"]
                )
            request = NoteRequest(
                run=run, text=text, links=links, attached=attached, key=key, trusted=trusted,
                passphrase=lambda: _passphrase(key),
            )  # fmt: skip
            added = add_to_annex(request)
            trust = {entry.id: entry for entry in load_trust(trusted).keys}
            notes = [entry.note for entry in annex_notes(run, trust, datetime.now(UTC)) if not entry.problem]
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
