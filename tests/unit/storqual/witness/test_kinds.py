# SPDX-License-Identifier: Apache-2.0
"""The kind of a witness is said by the caller or by run.json, and is never concluded from what is in a file."""

import json
import shutil
from pathlib import Path

import pytest

from storqual.inputs.inventory import witness_kind, witness_problem
from storqual.run import append_event
from storqual.witness import check_witness
from storqual.witness.milestones import WITNESSED, milestones_of
from storqual_core.kit.errors import BadInputError
from tests.support.make_run import make_run
from tests.support.sealed_run import lines_of
from tests.support.synthetic_shape import POINTS
from tests.support.time_authority import notify_own, time_authority

PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


@pytest.fixture(scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs"), points=POINTS[:1], adapters=("sym",))


@pytest.fixture
def run(_made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(_made, tmp_path / "runs" / _made.name))


@pytest.fixture
def log(run: Path, tmp_path: Path) -> Path:
    lines = "".join(f"Nov 22 10:00:00 lab storqual {milestone.line()}\n" for milestone in milestones_of(run).values())
    path = tmp_path / "kept.log"
    path.write_text(f"Nov 22 09:59:59 lab sshd[1]: session opened\n{lines}")
    return path


def with_witness(run: Path, address: str) -> Path:
    document = json.loads((run / "run.json").read_text())
    document["benches"]["vbench"]["witness"] = address
    (run / "run.json").write_text(json.dumps(document))
    return run


@pytest.mark.parametrize("kind", ["syslog", "ssh"])
def test_the_caller_says_the_kind(kind: str, run: Path, log: Path) -> None:
    assert check_witness(run, f"{kind}:{log}") == []


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("syslog://log.lab", "syslog"),
        ("ssh://log.lab/kept", "ssh"),
        ("rfc3161+https://tsa.lab/x", "rfc3161"),
        ("rekor+https://rekor.lab", ""),
    ],
)
def test_a_place_has_a_kind(address: str, kind: str) -> None:
    assert witness_kind(address) == kind
    assert bool(witness_problem(address)) is (kind == "")


def test_without_a_kind_it_is_that_of_run_json(run: Path, log: Path) -> None:
    assert check_witness(with_witness(run, "syslog://log.lab"), str(log)) == []
    with pytest.raises(BadInputError, match=r"kept.log:1: found 'Nov 22 .*expected certificates"):
        check_witness(with_witness(run, "rfc3161+https://tsa.lab/x"), str(log))


def test_nobody_says_a_kind(run: Path, log: Path) -> None:
    with pytest.raises(BadInputError, match=r"run\.json names none; say which kind this is: syslog:FILE"):
        check_witness(run, str(log))
    document = json.loads((run / "run.json").read_text())
    bench = document["benches"]["vbench"]
    both = {"a": {**bench, "witness": "syslog://log.lab"}, "b": {**bench, "witness": "ssh://log.lab/kept"}}
    (run / "run.json").write_text(json.dumps({**document, "benches": both}))
    with pytest.raises(BadInputError, match=r"witnesses of several kinds \(ssh, syslog\)"):
        check_witness(run, str(log))
    assert check_witness(run, f"ssh:{log}") == []


@pytest.mark.parametrize(("address", "named"), [("syslog://log.lab", "rfc3161"), ("rfc3161+https://tsa/x", "syslog")])
def test_a_run_that_says_another_kind_is_refused(address: str, named: str, run: Path, log: Path) -> None:
    (sentence,) = check_witness(with_witness(run, address), f"{named}:{log}")
    assert sentence.startswith(f"run.json: the witness of this run is {witness_kind(address)}, and not {named}")


@pytest.mark.parametrize("kind", ["syslog", "ssh"])
def test_a_certificate_in_a_log_is_refused(kind: str, run: Path, log: Path) -> None:
    """Somebody appended it, so that answers of a time authority of his own should count instead of the lines."""
    number = len(log.read_text().splitlines()) + 1
    log.write_text(log.read_text() + PEM)
    with pytest.raises(BadInputError, match=rf"kept.log:{number}: found a certificate"):
        check_witness(run, f"{kind}:{log}")


def test_the_certificate_of_a_strangers_authority_in_a_log_does_not_make_his_answers_count(
    run: Path, log: Path
) -> None:
    with time_authority() as stranger:
        other = with_witness(run, stranger.place)
        append_event(other, "published", {"files": {}})
        assert notify_own(other) == []
        assert any(event["kind"] == WITNESSED for event in lines_of(other / "events.jsonl"))
        log.write_text(log.read_text() + stranger.certificates.read_text())
        for witness in (f"rfc3161:{log}", str(log)):
            with pytest.raises(BadInputError, match="expected certificates"):
                check_witness(other, witness)
        (sentence,) = check_witness(other, f"syslog:{log}")
        assert "the witness of this run is rfc3161, and not syslog" in sentence


@pytest.mark.parametrize("line", ["Nov 22 lab storqual run=x", "hello", "-----BEGIN PUBLIC KEY-----", "MIIB"])
def test_anything_else_in_a_file_of_certificates_is_refused(line: str, run: Path, tmp_path: Path) -> None:
    path = tmp_path / "tsa.pem"
    path.write_text(f"# the lab's authority\n\n{PEM}{line}\n")
    with pytest.raises(BadInputError, match=r"tsa.pem:6: found .*expected certificates \(PEM\) and nothing else"):
        check_witness(run, f"rfc3161:{path}")
    path.write_text(f"# storqual run=x batch=y\n{PEM}")
    with pytest.raises(BadInputError, match=r"tsa.pem:1: "):
        check_witness(run, f"rfc3161:{path}")


def test_a_line_of_ours_that_cannot_be_read_is_told_with_its_number(run: Path, log: Path) -> None:
    whole = log.read_text()
    number = len(whole.splitlines()) + 1
    name = json.loads((run / "run.json").read_text())["run"]
    broken = [
        f"storqual run={name}",
        f"storqual run={name[:-2]}",
        f"storqual run={name} batch=s01-b01 sha256={'a' * 63}",
        f"storqual run={name} batch=s01-b01 sha256={'a' * 64} storqual run={name}",
        f"storqual run={name} sha256={'a' * 64} batch=s01-b01",
        "storqual run=",
    ]
    for line in broken:
        log.write_text(f"{whole}Nov 22 lab {line}\n")
        (sentence,) = check_witness(run, f"syslog:{log}")
        assert sentence.startswith(f"{log}:{number}: is a line of storqual that cannot be read"), line
    for line in (f"storqual run=another batch=x sha256={'a' * 64}", "storqual run=another", "storqual ran"):
        log.write_text(f"{whole}Nov 22 lab {line}\n")
        assert check_witness(run, f"syslog:{log}") == [], line


def test_two_digests_of_one_batch_contradict_each_other(run: Path, log: Path) -> None:
    first = next(iter(milestones_of(run).values()))
    log.write_text(f"{log.read_text()}storqual run={first.run} batch={first.name} sha256={'a' * 64}\n")
    (sentence,) = check_witness(run, f"syslog:{log}")
    assert sentence == f"batch {first.name}: the witness recorded 2 digests, which contradict each other"


def test_the_end_and_what_was_published_are_told_once_to_each_place(run: Path, tmp_path: Path) -> None:
    with time_authority() as authority:
        document = json.loads((run / "run.json").read_text())
        bench = {**document["benches"]["vbench"], "witness": authority.place}
        document["benches"] = {"vbench": bench, "other": bench}
        (run / "run.json").write_text(json.dumps(document))
        append_event(run, "published", {"files": {}})
        assert notify_own(run, "other") == []
        notified = [event for event in lines_of(run / "events.jsonl") if event["kind"] == WITNESSED]
        assert [(event["bench"], event["block"]) for event in notified] == [
            ("vbench", "events/closed-1"),
            ("vbench", "events/published-1"),
        ]
        assert notify_own(run) == []
        names = [event["block"] for event in lines_of(run / "events.jsonl") if event["kind"] == WITNESSED]
        assert sorted(names) == sorted(milestones_of(run))
        assert notify_own(run) == []
        assert len([event for event in lines_of(run / "events.jsonl") if event["kind"] == WITNESSED]) == len(names)


def test_a_witness_that_was_never_reached_is_told_with_the_reason(run: Path, log: Path) -> None:
    with_witness(run, "syslog://127.0.0.1:1")
    assert notify_own(run)
    log.write_text("")
    sentences = check_witness(run, f"syslog:{log}")
    assert len(sentences) == len(milestones_of(run))
    assert all("has no record of it (the run says that it could not be told: " in text for text in sentences)
