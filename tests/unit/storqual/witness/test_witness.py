# SPDX-License-Identifier: Apache-2.0
"""A run is told to a second place batch by batch, and a run that was rewritten as a whole is not what was told."""

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from storqual.cli import main
from storqual.inputs.inventory import witness_problem
from storqual.run import append_event, iter_events, sha256_of
from storqual.run.events import FIRST_DIGEST
from storqual.run.layout import dump_line
from storqual.signoff.verify import verify_run
from storqual.witness import check_witness, notify_witness
from storqual.witness.milestones import NOT_WITNESSED, WITNESSED, Milestone, milestones_of, tell
from storqual_core.kit.errors import BadInputError, StorqualError
from tests.support.make_lab import lab_hosts
from tests.support.make_run import make_run
from tests.support.sealed_run import sealed
from tests.support.signing import make_person, write_keys
from tests.support.simulated_campaign import Bench, Rates, drive, plan
from tests.support.synthetic_shape import POINTS
from tests.support.time_authority import notify_own, time_authority

OTHER_TIME = "2026-11-21T09:58:59.000Z"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "runs", points=POINTS[:1], adapters=("sym",))


def with_witness(run: Path, address: str) -> Path:
    """The run as if its bench had been planned with a witness."""
    document = json.loads((run / "run.json").read_text())
    document["benches"]["vbench"]["witness"] = address
    (run / "run.json").write_text(json.dumps(document))
    return run


def rewritten(run: Path, folder: Path) -> Path:
    copy = Path(shutil.copytree(run, folder / run.name))
    text = (copy / "samples.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    for sample in lines:
        if sample["arm"] == "candidate":
            sample["series"]["iops"] = [2 * value for value in sample["series"]["iops"]]
    (copy / "samples.jsonl").write_bytes(b"".join(map(dump_line, lines)))
    previous, chain = FIRST_DIGEST, b""
    for number, line in enumerate((copy / "events.jsonl").read_text(encoding="utf-8").splitlines()):
        event = dump_line({**json.loads(line), **({} if number else {"time": OTHER_TIME}), "previous": previous})
        previous, chain = sha256_of(event[:-1]), chain + event
    (copy / "events.jsonl").write_bytes(chain)
    assert list(iter_events(copy))
    return copy


def log_of(run: Path, folder: Path) -> Path:
    """What a witness that keeps lines has of a run."""
    path = folder / "kept.log"
    path.write_text("".join(f"Nov 22 10:00:00 lab {milestone.line()}\n" for milestone in milestones_of(run).values()))
    return path


def test_what_was_told_holds_and_a_rewritten_run_does_not(run: Path, tmp_path: Path) -> None:
    kept = log_of(run, tmp_path)
    assert check_witness(run, f"syslog:{kept}") == []
    sentences = check_witness(rewritten(run, tmp_path / "copy"), f"syslog:{kept}")
    assert len(sentences) == len(milestones_of(run)) >= 4
    assert all("recorded another digest, so the run was changed afterwards" in text for text in sentences)


def test_a_digest_that_is_told_later_does_not_undo_the_first(run: Path, tmp_path: Path) -> None:
    kept = log_of(run, tmp_path)
    other = rewritten(run, tmp_path / "copy")
    kept.write_text(
        kept.read_text() + "".join(f"{milestone.line()}\n" for milestone in milestones_of(other).values())
    )
    assert all("contradict each other" in text for text in check_witness(other, f"syslog:{kept}"))


def test_a_batch_that_one_side_does_not_have_is_told(run: Path, tmp_path: Path) -> None:
    kept = log_of(run, tmp_path)
    first, *rest = kept.read_text().splitlines(keepends=True)
    kept.write_text("".join(rest))
    assert check_witness(run, f"syslog:{kept}") == ["batch s01-b01: the witness has no record of it"]
    kept.write_text("".join([first, *rest, first.replace("batch=s01-b01", "batch=s99-b01")]))
    assert check_witness(run, f"syslog:{kept}") == [
        "batch s99-b01: the witness has a record of it, but the run does not have it"
    ]


def test_a_witness_that_cannot_be_read_is_bad_input(run: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="cannot be read"):
        check_witness(run, f"syslog:{tmp_path}/none")
    (tmp_path / "bad.pem").write_text("-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n")
    with pytest.raises(BadInputError, match="expected those of the time authority"):
        check_witness(run, f"rfc3161:{tmp_path}/bad.pem")


@pytest.mark.parametrize(
    "address", ["syslog://log.lab", "syslog://[::1]:6514", "ssh://w@h:22/var/log/x", "rfc3161+https://tsa.lab/tsr"]
)
def test_places_that_are_witnesses(address: str) -> None:
    assert witness_problem(address) == ""


@pytest.mark.parametrize(
    "address", ["", "log.lab", "ssh://h", "ssh://-oProxyCommand=x/f", "http://x/", "syslog://h:x"]
)
def test_places_that_are_none(address: str) -> None:
    assert witness_problem(address)


def test_the_inventory_names_the_witness_and_run_json_keeps_it(tmp_path: Path) -> None:
    hosts = lab_hosts({"sym": 2})
    for variables in hosts.values():
        variables["storqual_witness"] = "syslog://log.lab:6514"
    path = plan(tmp_path, hosts=hosts)
    assert json.loads((path / "run.json").read_text())["benches"]["b1"]["witness"] == "syslog://log.lab:6514"
    for variables in hosts.values():
        variables["storqual_witness"] = "log.lab"
    with pytest.raises(BadInputError, match="storqual_witness"):
        plan(tmp_path / "bad", hosts=hosts)


def test_a_witness_that_is_away_stops_nothing_and_is_told_later(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    run = with_witness(make_run(tmp_path, points=POINTS[:1], adapters=("sym",)), f"syslog://127.0.0.1:{port}")
    wrong = notify_own(run, "vbench")
    assert len(wrong) == len(milestones_of(run))
    kinds = [event.kind for event in iter_events(run)]
    assert kinds.count(NOT_WITNESSED) == len(wrong)
    with time_authority() as authority:
        with_witness(run, authority.place)
        assert notify_own(run, "vbench") == []
    assert [event.kind for event in iter_events(run)].count(WITNESSED) == len(wrong)


@pytest.mark.parametrize("name", ["s01\nssh-ed25519 AAAA", "s01 sha256=0", "s01\r"])
def test_no_name_of_a_run_writes_a_line_of_its_own(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever publishes somebody's run would append it to a file of another machine, with his own SSH key."""
    monkeypatch.setattr("storqual.witness.milestones.run", lambda *_, **__: pytest.fail("it was sent"))
    for milestone in (Milestone(name, "b1", "b", "", "0" * 64), Milestone("run", "b1", name, "", "0" * 64)):
        with pytest.raises(StorqualError):
            tell("ssh://keeper@log.lab/home/keeper/.ssh/authorized_keys", milestone.line(), b"")


def test_nothing_is_told_without_a_witness(run: Path) -> None:
    before = (run / "events.jsonl").read_bytes()
    assert notify_own(run, "vbench") == []
    assert (run / "events.jsonl").read_bytes() == before


def test_verify_finds_a_rewritten_run_by_its_witness(run: Path, tmp_path: Path) -> None:
    keys = write_keys(tmp_path, make_person(tmp_path, "Pat", "technician"))
    kept = log_of(run, tmp_path)
    assert not any("witness" in text for text in verify_run(run, keys, witness=f"syslog:{kept}").problems)
    sentences = verify_run(rewritten(run, tmp_path / "copy"), keys, witness=f"syslog:{kept}").problems
    assert any("the witness recorded another digest" in text for text in sentences)


@pytest.fixture
def syslog(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """An rsyslog of its own on a free port; its place and the file that it keeps."""
    program = shutil.which("rsyslogd", path="/usr/sbin:/usr/bin:/sbin:/bin")
    if program is None:
        pytest.skip("rsyslogd is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    kept, config = tmp_path / "kept.log", tmp_path / "rsyslog.conf"
    config.write_text(
        f'module(load="imtcp")\ninput(type="imtcp" address="127.0.0.1" port="{port}")\n'
        f'action(type="omfile" file="{kept}" flushInterval="1")\n'
    )
    server = subprocess.Popen([program, "-n", "-f", config, "-i", tmp_path / "pid"], stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"syslog://127.0.0.1:{port}", kept
    finally:
        server.terminate()
        server.wait(10)


def test_an_rsyslog_server_keeps_what_a_campaign_tells_it(syslog: tuple[str, Path], tmp_path: Path) -> None:
    address, kept = syslog
    hosts = lab_hosts({"sym": 2})
    for variables in hosts.values():
        variables["storqual_witness"] = address
    run = plan(tmp_path / "lab", hosts=hosts)
    drive(run, Bench(Rates(noise=0.003)))
    assert notify_own(run, "b1") == []
    assert notify_own(run, "b1") == []
    batches = milestones_of(run)
    for _ in range(100):
        if kept.is_file() and kept.read_text().count("storqual run=") == len(batches):
            break
        time.sleep(0.05)
    assert kept.read_text().count("storqual run=") == len(batches) >= 1
    assert check_witness(run, f"syslog:{kept}") == []
    assert check_witness(rewritten(run, tmp_path / "copy"), f"syslog:{kept}")


def test_a_time_authority_signs_each_milestone_when_it_is_over(tmp_path: Path) -> None:
    with time_authority() as authority, time_authority("another") as other:
        run = with_witness(make_run(tmp_path / "a", points=POINTS[:1], adapters=("sym",)), authority.place)
        append_event(run, "published", {"files": {}})
        assert notify_own(run, "vbench") == []
        sentences = check_witness(run, f"rfc3161:{authority.certificates}")
        # what `make_run` made is of another day than the answers
        assert [text for text in sentences if "events/published-1" in text] == []
        assert len(sentences) == len(milestones_of(run)) - 1
        assert all("and was recorded at" in text for text in sentences)
        # without a kind it is that of run.json
        assert check_witness(run, str(authority.certificates)) == sentences
        assert all("did not sign this" in text for text in check_witness(run, f"rfc3161:{other.certificates}"))
        again = check_witness(rewritten(run, tmp_path / "copy"), f"rfc3161:{authority.certificates}")
        assert any(
            text.startswith("publication events/published-1: the time authority did not sign") for text in again
        )


def test_a_file_on_another_machine_gets_a_line_for_each_batch(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/called\nwhile [ "$1" != -- ]; do shift; done\nexec sh -c "$3"\n'
    )
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}:/usr/bin:/bin")
    kept = tmp_path / "a file; of $lines"
    address = f"ssh://keeper@log.lab:2222{kept}"
    with_witness(run, address)
    assert notify_own(run, "vbench") == []
    assert len(kept.read_text().splitlines()) == len(milestones_of(run))
    assert "-p 2222 -- keeper@log.lab" in (tmp_path / "called").read_text()
    assert check_witness(run, address) == []
    assert check_witness(rewritten(run, tmp_path / "copy"), address)


@pytest.mark.slow
def test_the_witness_of_a_strangers_run_is_told_nothing_until_its_user_confirms_it(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would be told with this user's SSH key, at whatever place the run names."""
    told: list[str] = []
    monkeypatch.setattr("storqual.witness.milestones.tell", lambda address, *_: told.append(address) or b"")
    address = "ssh://keeper@log.lab/home/keeper/kept"
    sealed(with_witness(run, address))
    assert (len(notify_witness(run, (), "vbench")), notify_witness(run, (), "another"), told) == (1, [], [])
    for words, code in (([], 0), (["--witness", "syslog://x"], 3), (["--witness", address], 0)):
        with pytest.raises(SystemExit, match=str(code)):
            main(["publish", str(run), *words])
        silent = address not in words
        assert (told == [], address in capsys.readouterr().err) == (silent, silent)
