# SPDX-License-Identifier: Apache-2.0
"""A firmware image on a bench: the bytes that the drop means, signed by whom the drop says."""

from __future__ import annotations

import hashlib
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Mapping, Sequence

from ...kit.command import Runner
from ...kit.errors import BadInputError, ToolError
from ...tools.capabilities import FirmwareImage

_CHUNK = 1 << 20
_PUBLIC_KEY = b"-----BEGIN PUBLIC KEY-----"


@dataclass(frozen=True)
class Image:
    """An image as a drop declares it: a file on the bench, its SHA-256, its version; `signature` and `key` are files.

    The key is a PEM public key (openssl) or an OpenPGP keyring (gpgv); without a signature the digest alone counts.
    """

    path: str
    sha256: str
    version: str
    component: str = "firmware"
    signature: str = ""
    key: str = ""

    @property
    def for_tool(self) -> FirmwareImage:
        """The same as a tool takes it."""
        return FirmwareImage(self.path, self.sha256, self.version, self.component)

    def record(self) -> dict[str, str]:
        """The same for saved.json."""
        return asdict(self)


def read_image(fields: Mapping[str, Any], what: str = "image") -> Image:
    """An image of a module's argument or of saved.json. Raises BadInputError with every problem."""
    texts = {name: str(fields.get(name) or "") for name in Image.__dataclass_fields__}
    problems = [f"{what}: found no {name}, expected one" for name in ("path", "sha256", "version") if not texts[name]]
    if bool(texts["signature"]) != bool(texts["key"]):
        problems.append(f"{what}: found a signature without a key or a key without one, expected both or none")
    if problems:
        raise BadInputError(problems)
    texts["component"] = texts["component"] or "firmware"
    return Image(**{**texts, "sha256": texts["sha256"].lower()})


def image_problems(runner: Runner, image: Image) -> list[str]:
    """Why the file is not the image that is meant; none when it is."""
    try:
        found = _digest(Path(image.path))
    except OSError as problem:
        return [f"{image.path}: cannot be read: {problem.strerror}"]
    if found != image.sha256:
        return [f"{image.path}: found SHA-256 {found}, expected {image.sha256}"]
    if not image.signature:
        return []
    try:
        return _signature_problems(runner, image)
    except OSError as problem:
        return [f"{problem.filename}: cannot be read: {problem.strerror}"]
    except ToolError as problem:
        return [f"{image.path}: its signature could not be checked: {problem}"]


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        for chunk in iter(lambda: stream.read(_CHUNK), b""):
            digest.update(chunk)
    return digest.hexdigest()


def _signature_problems(runner: Runner, image: Image) -> list[str]:
    """Both the exit status and the tool's own word must say that the signature is good."""
    if Path(image.key).read_bytes().lstrip().startswith(_PUBLIC_KEY):
        argv = ["openssl", "dgst", "-sha256", "-verify", image.key, "-signature", image.signature, image.path]
        good = "Verified OK"
    else:
        argv = ["gpgv", "--status-fd", "1", "--keyring", image.key, image.signature, image.path]
        good = "[GNUPG:] VALIDSIG "
    ended = runner(argv, timeout=120.0)
    if ended.rc == 0 and any(line.startswith(good) for line in ended.stdout.splitlines()):
        return []
    return [f"{image.path}: its signature {image.signature} is not good by {image.key}: {ended.last_words()}"]


_RUN = re.compile(r"(\d+)")


def _parts(version: str) -> tuple[list[str], list[int]]:
    """What stands between the numbers, and the numbers."""
    words = _RUN.split(version.strip().lower())
    return words[::2], [int(number) for number in words[1::2]]


def same_version(one: str, other: str) -> bool:
    """Whether two texts name one version: equal but for case, leading zeros of a number, and blanks around."""
    return _parts(one) == _parts(other)


def compare(one: str, other: str) -> int | None:
    """-1, 0 or 1 as `one` is older, equal or newer; None when the two are not numbered alike (`2B3Q`, `GPK2`)."""
    (words, numbers), (others, other_numbers) = _parts(one), _parts(other)
    if words != others:
        length = min(len(words), len(others)) - 1
        dotted = all(set(word) <= set(".-") for word in (*words, *others))
        if not dotted or not length or numbers[:length] == other_numbers[:length]:
            return None
    return (numbers > other_numbers) - (numbers < other_numbers)


def _allows(allowed: str, version: str) -> bool:
    """`26.00` allows `26.00` and `26.00.03.00`, not `26.001`."""
    if same_version(allowed, version):
        return True
    return version.strip().lower().startswith(allowed.strip().lower() + ".")


def order_problem(found: str, wanted: str, allowed: Sequence[str] | None) -> str:
    """Why `wanted` may not replace `found`; empty when it may. `allowed`: the versions that a drop says it may.

    Without such a list only a newer version replaces an older one: a downgrade is possible, but it is somebody's
    decision, and so is a step between versions whose order nobody can tell.
    """
    if allowed is not None:
        if any(_allows(each, found) for each in allowed):
            return ""
        return f"it runs {found}, and {wanted} may replace only {', '.join(allowed)}; add it to `from` if it may"
    order = compare(found, wanted)
    if order == -1:
        return ""
    told = {None: "is not numbered like", 0: "is the same as", 1: "is newer than"}[order]
    return f"it runs {found}, which {told} {wanted}; name {found} in `from` if that step is meant"
