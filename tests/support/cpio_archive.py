# SPDX-License-Identifier: Apache-2.0
"""Archives as an initramfs and an RPM package hold them: cpio, packed in several ways."""

import bz2
import gzip
import lzma
import shutil
import subprocess

import pytest


def archive(files: dict[str, bytes]) -> bytes:
    """A cpio archive in the format newc."""
    body = b""
    for name, content in {**files, "TRAILER!!!": b""}.items():
        raw = name.encode() + b"\0"
        fields = [0, 0o100644, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(raw), 0]
        body += b"070701" + b"".join(b"%08x" % field for field in fields) + raw
        body += bytes(-len(body) % 4) + content
        body += bytes(-len(body) % 4)
    return body


def zstd(data: bytes) -> bytes:
    """Packed by the tool that Debian packs with."""
    if shutil.which("zstd") is None:
        pytest.skip("zstd is not installed")
    return subprocess.run(["zstd", "-cq"], input=data, capture_output=True, check=True).stdout


PACKERS = {"gzip": gzip.compress, "xz": lzma.compress, "bzip2": bz2.compress, "zstd": zstd, "plain": bytes}
