# SPDX-License-Identifier: Apache-2.0
"""Notes after signing: signed by themselves, shown on a page, and nothing that was signed before is touched."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from storqual.cli import main
from storqual.signoff.annex import AnnexNote, NoteRequest, add_to_annex
from storqual.signoff.verify import verify_run
from storqual_core.kit.errors import BadInputError
from tests.support.signing import NOW, Person, make_person

LATER = NOW + timedelta(hours=2)


@pytest.fixture
def run(signed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(signed, tmp_path / signed.name))


def noted(run: Path, person: Person, keys: Path, *attached: Path, **more: object) -> AnnexNote:
    note = {"text": "seen in the field", "links": ("https://tracker.example.com/LAB-7",), **more}
    return add_to_annex(
        NoteRequest(run=run, attached=attached, key=person.key, trusted=keys, passphrase=lambda: "", now=NOW, **note)  # type: ignore[arg-type]
    )


def test_a_note_is_signed_and_leaves_what_was_signed_as_it_was(
    run: Path, people: tuple[Person, Person], keys: Path, tmp_path: Path
) -> None:
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    shot = tmp_path / "scope.png"
    shot.write_bytes(b"picture")
    noted(run, people[0], keys, shot)
    noted(run, people[1], keys, text="closed by the vendor")
    assert before.items() <= {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}.items()
    verification = verify_run(run, keys, as_of=LATER)
    assert verification.problems == ()
    assert [(entry.note.by, entry.note.text) for entry in verification.notes] == [
        ("Pat", "seen in the field"),
        (people[1].name, "closed by the vendor"),
    ]
    assert (run / verification.notes[0].note.files[0].path).read_bytes() == b"picture"


def test_a_note_that_was_changed_is_a_problem(
    run: Path, people: tuple[Person, Person], keys: Path, tmp_path: Path
) -> None:
    shot = tmp_path / "scope.png"
    shot.write_bytes(b"picture")
    added = noted(run, people[0], keys, shot)
    (run / added.note.files[0].path).write_bytes(b"another")
    assert any(
        "scope.png: is not what was attached" in sentence for sentence in verify_run(run, keys, as_of=LATER).problems
    )
    (run / added.file).write_bytes((run / added.file).read_bytes().replace(b"A", b"B", 1))
    (problem,) = verify_run(run, keys, as_of=LATER).problems
    assert problem.startswith("annex/notes/0001.json: it is not a signed note")


def test_only_a_trusted_key_adds_to_the_annex(run: Path, keys: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"is not listed in .*; add it there"):
        noted(run, make_person(tmp_path, "Eve", "technician"), keys)
    assert not (run / "annex").exists()


def test_a_note_that_is_none_is_refused_with_every_reason(
    run: Path, people: tuple[Person, Person], keys: Path, tmp_path: Path
) -> None:
    odd = tmp_path / "a b.png"
    odd.touch()
    with pytest.raises(BadInputError) as caught:
        noted(run, people[0], keys, odd, text=" ", links=("javascript:alert(1)",))
    assert len(caught.value.problems) == 3


def test_the_page_of_the_annex_shows_the_notes(
    run: Path, people: tuple[Person, Person], keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["note", str(run), "<b>seen</b>", "--link", "https://tracker.example.com/LAB-7", "--keys", str(keys)]
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 3
    with pytest.raises(SystemExit) as ended:
        main([*words, "--key", str(people[0].key)])
    assert ended.value.code == 0
    page = (run / "annex" / "index.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;seen&lt;/" in page
    assert "<b>seen" not in page
    assert '<a href="https://tracker.example.com/LAB-7" rel="noreferrer">' in page
    capsys.readouterr()
    later = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S")
    with pytest.raises(SystemExit):
        main(["verify", str(run), "--keys", str(keys), "--as-of", later])
    assert "Pat: <b>seen</b> (https://tracker.example.com/LAB-7)" in capsys.readouterr().out


def test_a_note_of_a_key_that_has_expired_does_not_count(
    run: Path, people: tuple[Person, Person], keys: Path
) -> None:
    """Whoever has the key can say any time; a signature of it counts no more either."""
    noted(run, people[0], keys)
    (note,) = verify_run(run, keys, as_of=datetime(2028, 1, 1, tzinfo=UTC)).notes
    assert note.problem.startswith(f"the key of {people[0].name} expired on 2027-12-31; ")
