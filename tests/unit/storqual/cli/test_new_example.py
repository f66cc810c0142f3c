# SPDX-License-Identifier: Apache-2.0
"""The finished run that is shipped: copied by one command, then judged, waived, published, signed and verified."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from storqual.base.files import example_run
from storqual.cli import storqual
from storqual_core.kit.errors import BadInputError
from tests.support.signing import make_person

pytestmark = pytest.mark.slow


def command(*words: object) -> Result:
    ended = CliRunner().invoke(storqual, [str(word) for word in words], standalone_mode=False)
    if ended.exception is not None:
        raise ended.exception
    return ended


def test_the_example_run_is_judged_waived_signed_and_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = json.loads(command("new", "example", "practice", "--json").stdout)
    run = Path(answer["files"][0])
    assert run.parent == Path("practice")
    assert (run / "report.html").is_file()
    judged = command("judge", run, "--json")
    verdict = json.loads(judged.stdout)
    failed = [row for row in verdict["criteria"] if row["outcome"] == "FAIL"]
    assert (judged.return_value, verdict["outcome"], len(failed)) == (1, "FAIL", 1)
    command("waive", run, "--output", "practice/waivers.yml")
    draft = yaml.safe_load(Path("practice/waivers.yml").read_text(encoding="utf-8"))
    for waiver in draft["waivers"]:
        waiver |= {"owner": "A. Engineer", "reason": "known", "reference": "LAB-1", "expiry": "2099-12-31"}
        assert waiver["max_loss"], "the measured loss is what is accepted"
    Path("practice/waivers.yml").write_text(yaml.safe_dump(draft), encoding="utf-8")
    assert command("publish", run, "--waivers", "practice/waivers.yml").return_value == 0
    person = make_person(tmp_path, "key", "release-manager", expires="2099-12-31")
    entry = f"require: [{{roles: [release-manager]}}]\nkeys:\n{person.entry()}"
    Path("practice/keys.yml").write_text(entry, encoding="utf-8")
    signing = ("--key", tmp_path / "key", "--keys", "practice/keys.yml", "--waivers", "practice/waivers.yml")
    command("signoff", run, *signing)
    verified = command("verify", run, "--keys", "practice/keys.yml", "--json")
    assert json.loads(verified.stdout)["valid"] is True
    with pytest.raises(BadInputError, match="this folder exists already"):
        command("new", "example", "practice")


def test_the_example_is_small() -> None:
    assert example_run().stat().st_size < 100_000
