# SPDX-License-Identifier: Apache-2.0
"""A time authority (RFC 3161) made of `openssl ts` behind a small HTTP server on the loopback."""

import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from storqual.run import read_run_json
from storqual.witness import notify_witness, witness_addresses

_CONFIG = Path(__file__).with_suffix(".cnf").read_text(encoding="utf-8")


@dataclass(frozen=True)
class TimeAuthority:
    """Where it listens, and the file of its root certificate."""

    place: str
    certificates: Path


def _openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


@contextmanager
def time_authority(name: str = "lab time") -> Iterator[TimeAuthority]:
    """An authority of its own, with a root and a leaf, until the block ends."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        config = folder / "openssl.cnf"
        config.write_text(_CONFIG.format(folder=folder, name=name), encoding="utf-8")
        (folder / "serial").write_text("01\n", encoding="ascii")
        new = ("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-config", config)
        root = (*new, "-x509", "-days", "2", "-extensions", "ca")
        _openssl(*root, "-keyout", folder / "root.key", "-out", folder / "root.pem")
        _openssl(*new, "-subj", f"/CN={name} signer", "-keyout", folder / "leaf.key", "-out", folder / "leaf.csr")
        signed = (
            "x509",
            "-req",
            "-in",
            folder / "leaf.csr",
            "-CA",
            folder / "root.pem",
            "-CAkey",
            folder / "root.key",
        )
        _openssl(*signed, "-days", "2", "-extfile", config, "-extensions", "leaf", "-out", folder / "leaf.pem")

        class Answers(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                query, answer = folder / "query.tsq", folder / "answer.tsr"
                query.write_bytes(self.rfile.read(int(self.headers["Content-Length"])))
                _openssl("ts", "-reply", "-config", config, "-queryfile", query, "-out", answer)
                self.send_response(200)
                self.send_header("Content-Type", "application/timestamp-reply")
                self.end_headers()
                self.wfile.write(answer.read_bytes())

            def log_message(self, *_words: object) -> None:
                """Say nothing."""

        server = HTTPServer(("127.0.0.1", 0), Answers)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield TimeAuthority(f"rfc3161+http://127.0.0.1:{server.server_port}/", folder / "root.pem")
        finally:
            server.shutdown()
            server.server_close()


def notify_own(run: Path, bench: str | None = None) -> list[str]:
    """The witness is told by who planned the run."""
    return notify_witness(run, witness_addresses(read_run_json(run)).values(), bench)
