# SPDX-License-Identifier: Apache-2.0
"""An image is what the drop means: its digest, and who signed it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from storqual_core.kit.errors import BadInputError, MissingToolError
from storqual_core.provision.firmware.subject import FlashImage, image_problems, read_image
from tests.support.replay import Call, Replay

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def image(tmp_path: Path) -> FlashImage:
    """An image with a signature by a PEM key."""
    (tmp_path / "fw.bin").write_bytes(b"firmware")
    (tmp_path / "key").write_text("-----BEGIN PUBLIC KEY-----\nMFk=\n-----END PUBLIC KEY-----\n")
    return FlashImage(
        str(tmp_path / "fw.bin"),
        hashlib.sha256(b"firmware").hexdigest(),
        "2.0",
        signature=str(tmp_path / "fw.sig"),
        key=str(tmp_path / "key"),
    )


def openssl(image: FlashImage, stdout: str, rc: int = 0) -> Replay:
    """The command that checks a signature by a PEM key."""
    line = f"openssl dgst -sha256 -verify {image.key} -signature {image.signature} {image.path}"
    return Replay([Call(line, stdout, rc=rc)])


def gpgv(image: FlashImage, stdout: str, rc: int = 0) -> Replay:
    """The command that checks a signature by a keyring."""
    line = f"gpgv --status-fd 1 --keyring {image.key} {image.signature} {image.path}"
    return Replay([Call(line, stdout, "gpgv: BAD\n", rc)])


def test_a_good_signature_needs_status_and_word(image: FlashImage, tmp_path: Path) -> None:
    assert image_problems(openssl(image, "Verified OK\n"), image) == []
    for stdout, rc in (("Verified OK\n", 1), ("Verification failure\n", 0), ("", 0)):
        (problem,) = image_problems(openssl(image, stdout, rc), image)
        assert "is not good by" in problem
    (tmp_path / "key").write_bytes(b"\x99\x01keyring")
    assert image_problems(gpgv(image, "[GNUPG:] GOODSIG x\n[GNUPG:] VALIDSIG ABCD\n"), image) == []
    assert "gpgv: BAD" in image_problems(gpgv(image, "[GNUPG:] BADSIG x\n", 1), image)[0]
    assert image_problems(gpgv(image, "[GNUPG:] GOODSIG x\n"), image)


def test_a_digest_comes_before_a_signature(image: FlashImage) -> None:
    (problem,) = image_problems(Replay([]), replace(image, sha256="0" * 64))
    assert problem.endswith("expected " + "0" * 64)
    assert "cannot be read: No such file" in image_problems(Replay([]), replace(image, path="/no/image"))[0]
    assert image_problems(Replay([]), replace(image, signature="", key="")) == []


def test_a_signature_that_cannot_be_checked_is_not_good(image: FlashImage) -> None:
    assert "/no/key: cannot be read" in image_problems(Replay([]), replace(image, key="/no/key"))[0]

    def missing(_argv: object, **_options: object) -> None:
        raise MissingToolError("`openssl` is not installed on this machine")

    assert "its signature could not be checked: `openssl` is not installed" in image_problems(missing, image)[0]  # type: ignore[arg-type]


def test_an_image_survives_the_memory(image: FlashImage) -> None:
    assert read_image(image.record()) == image
    with pytest.raises(BadInputError, match="found no sha256"):
        read_image({"path": "x", "version": "1"})
