# SPDX-License-Identifier: Apache-2.0
"""A log that speaks as Rekor does, on the loopback: a Merkle tree, signed entry timestamps, signed checkpoints.

The tree is written from the recursive definitions of RFC 6962, and not as the code under test walks it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_public_key,
)


def tree_root(records: list[bytes]) -> bytes:
    """The Merkle tree hash of a list."""
    if len(records) == 1:
        return hashlib.sha256(b"\x00" + records[0]).digest()
    at = split(len(records))
    return hashlib.sha256(b"\x01" + tree_root(records[:at]) + tree_root(records[at:])).digest()


def tree_path(index: int, records: list[bytes]) -> list[bytes]:
    """The audit path of one entry of a list."""
    if len(records) == 1:
        return []
    at = split(len(records))
    if index < at:
        return [*tree_path(index, records[:at]), tree_root(records[at:])]
    return [*tree_path(index - at, records[at:]), tree_root(records[:at])]


def split(size: int) -> int:
    """The largest power of two below `size`."""
    return 1 << (size - 1).bit_length() - 1


def public_pem(key: EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def new_key(path: Path) -> EllipticCurvePrivateKey:
    """A key of a lab, and its file."""
    key = generate_private_key(SECP256R1())
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return key


@dataclass
class Log:
    """What is in a log; `integrate` adds a proposed entry and answers as Rekor does."""

    key: EllipticCurvePrivateKey = field(default_factory=lambda: generate_private_key(SECP256R1()))
    records: list[bytes] = field(default_factory=list)
    tree: str = "00000000000004d2"
    earlier: int = 1000
    """Entries of former trees of this log, which its index counts and its proof does not."""

    @property
    def name(self) -> str:
        der = self.key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return hashlib.sha256(der).hexdigest()

    def sign(self, data: bytes) -> bytes:
        return self.key.sign(data, ECDSA(SHA256()))

    def checkpoint(self) -> str:
        root = base64.b64encode(tree_root(self.records)).decode()
        text = f"rekor.lab - {int(self.tree, 16)}\n{len(self.records)}\n{root}\nTimestamp: 1\n"
        line = bytes.fromhex(self.name)[:4] + self.sign(text.encode())
        return f"{text}\n— rekor.lab {base64.b64encode(line).decode()}\n"

    def integrate(self, data: bytes) -> dict[str, Any]:
        """Raises what a bad proposal deserves: the signature must fit the digest."""
        proposed = json.loads(data)
        assert (proposed["kind"], proposed["apiVersion"]) == ("hashedrekord", "0.0.1")
        spec = proposed["spec"]
        signature = spec["signature"]
        lab = load_pem_public_key(base64.b64decode(signature["publicKey"]["content"], validate=True))
        digest = bytes.fromhex(spec["data"]["hash"]["value"])
        lab.verify(base64.b64decode(signature["content"], validate=True), digest, ECDSA(Prehashed(SHA256())))
        return self.add(json.dumps(proposed, sort_keys=True, separators=(",", ":")).encode())

    def add(self, record: bytes) -> dict[str, Any]:
        self.records.append(record)
        index = len(self.records) - 1
        body = base64.b64encode(record).decode()
        entry = {
            "body": body,
            "integratedTime": int(time.time()),
            "logID": self.name,
            "logIndex": self.earlier + index,
        }
        promise = self.sign(json.dumps(entry, sort_keys=True, separators=(",", ":")).encode())
        proof = {
            "hashes": [one.hex() for one in tree_path(index, self.records)],
            "logIndex": index,
            "rootHash": tree_root(self.records).hex(),
            "treeSize": len(self.records),
            "checkpoint": self.checkpoint(),
        }
        signed = {"signedEntryTimestamp": base64.b64encode(promise).decode(), "inclusionProof": proof}
        uuid = self.tree + hashlib.sha256(b"\x00" + record).hexdigest()
        return {uuid: {**entry, "verification": signed}}


Reply = tuple[int, dict[str, str], bytes]


@contextmanager
def rekor_log(
    log: Log, reply: Callable[[bytes], Reply] | None = None, certificate: Path | None = None
) -> Iterator[str]:
    """`log` behind HTTP, or HTTPS with a certificate and its key in one file; its place, until the block ends.

    `reply` answers in place of the log: status, headers and body for what was posted.
    """

    def logged(data: bytes) -> Reply:
        return 201, {"Content-Type": "application/json"}, json.dumps(log.integrate(data)).encode()

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            found = self.path == "/api/v1/log/entries" and self.headers["Content-Type"] == "application/json"
            status, headers, body = (reply or logged)(data) if found else (404, {}, b"")
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:
                """Who asked has gone: the answer was too long."""

        def log_message(self, *_words: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Answers)
    scheme = "rekor+http"
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "rekor+https"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"{scheme}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
