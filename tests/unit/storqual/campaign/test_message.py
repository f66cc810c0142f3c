# SPDX-License-Identifier: Apache-2.0
"""The message at the end of a campaign: to whom, on which occasion, and what is in it."""

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storqual.campaign.message import campaign_message, read_notify, send_message
from storqual.inputs.inventory import Notify
from tests.support.power_services import speaking

BENCHES = ["bench01", "bench02"]


class Webhook:
    """A server on loopback that keeps what it was sent."""

    def __init__(self, status: int = 200) -> None:
        self.sent: list[dict[str, Any]] = []
        here = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                here.sent.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(status)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hooks/token-7f3a"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    made = Webhook()
    yield made
    made.close()


def notify(**given: object) -> Notify:
    made = read_notify(given)
    assert made is not None
    return made


def run_of(folder: Path, outcome: str, secret: str = "") -> Path:
    run = folder / "20261127T010000Z-adapter-ab12"
    run.mkdir()
    criteria = [{"outcome": outcome, "reason": secret}, {"outcome": "PASS", "reason": secret}]
    verdict = {"outcome": outcome, "criteria": criteria, "warnings": [secret]}
    (run / "verdict.json").write_text(json.dumps(verdict))
    (run / "report.html").write_text(secret)
    return run


def test_a_webhook_gets_names_and_outcomes_and_no_text_of_anybody(webhook: Webhook, tmp_path: Path) -> None:
    message = campaign_message(run_of(tmp_path, "FAIL", "canary-81b2"), 1, BENCHES, [])
    assert send_message(notify(url=webhook.url), message) == ""
    (sent,) = webhook.sent
    assert sent["run"] == "20261127T010000Z-adapter-ab12"
    assert (sent["outcome"], sent["exit_code"], sent["criteria"]) == ("FAIL", 1, {"FAIL": 1, "PASS": 1})
    assert sent["benches"] == BENCHES
    assert "FAIL" in sent["text"]
    assert "canary" not in json.dumps(sent)
    assert "token" not in json.dumps(sent)


@pytest.mark.parametrize(
    ("on", "code", "lost", "told"),
    [
        (["fail"], 1, [], True),
        (["fail"], 0, [], False),
        (["fail"], 5, ["bench02"], False),
        (["bench_lost"], 5, ["bench02"], True),
        (["bench_lost"], 1, [], False),
        (["end"], 0, [], True),
        (["fail", "bench_lost"], 2, [], False),
    ],
)
def test_it_is_sent_on_the_occasions_that_are_named(
    webhook: Webhook, tmp_path: Path, on: list[str], code: int, lost: list[str], *, told: bool
) -> None:
    send_message(notify(url=webhook.url, on=on), campaign_message(None, code, BENCHES, lost))
    assert bool(webhook.sent) == told
    if told and lost:
        assert webhook.sent[0]["benches_lost"] == lost


def test_a_program_gets_it_on_standard_input(tmp_path: Path) -> None:
    file = tmp_path / "mail"
    command = ["sh", "-c", f"cat > {file}"]
    assert send_message(notify(command=command), campaign_message(None, 3, [], [])) == ""
    assert json.loads(file.read_text())["exit_code"] == 3


def test_who_does_not_answer_is_named_without_the_address() -> None:
    refusing = Webhook(status=500)
    url = refusing.url
    message = campaign_message(None, 0, BENCHES, [])
    assert "500" in send_message(notify(url=url, command=["false"]), message)
    refusing.close()
    problem = send_message(notify(url=url, command=["false"]), message)
    assert "false" in problem
    assert "token" not in problem


def test_who_answers_no_http_is_a_problem_and_no_error() -> None:
    with speaking() as url:
        assert "does not answer" in send_message(notify(url=url), campaign_message(None, 1, BENCHES, []))


def test_on_without_quotes_and_what_names_nobody() -> None:
    assert read_notify({True: ["fail"], "url": "http://chat.lab/x"}) == notify(url="http://chat.lab/x", on=["fail"])
    for wrong in ({"on": ["end"]}, {"url": "ftp://x"}, {"url": "http://x", "on": ["never"]}):
        assert read_notify(wrong) is None
    assert read_notify(None) is None
