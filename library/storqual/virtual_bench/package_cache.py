# SPDX-License-Identifier: Apache-2.0
"""Fetch packages for a bench that has no way out: with a private apt of this machine, only what the bench lacks."""

import hashlib
import json
import re
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from storqual.virtual_bench.image import BenchImage
from storqual.virtual_bench.places import cache_folder, locked
from storqual_core.kit.command import Completed, run
from storqual_core.kit.errors import BadInputError, ToolError

_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")
_VERSION = re.compile(r"[A-Za-z0-9.+:~-]+")
# one line of `apt-get --print-uris`: 'address' file size [digest]; the digest is missing for a local archive
_URI = re.compile(r"^'(?P<address>[^']+)' (?P<file>\S+) (?P<size>\d+)", re.MULTILINE)
_LISTS_LAST_S = 24 * 3600
_LIMIT_S = 900.0


@dataclass(frozen=True)
class FetchedPackage:
    """One package file in the cache, as the archive signed it."""

    package: str
    version: str
    path: str
    sha256: str

    def plain(self) -> dict[str, Any]:
        return asdict(self)


class _PrivateApt:
    """An apt of its own: sources of the bench image, package state of the bench, nothing of this machine's."""

    def __init__(self, image: BenchImage) -> None:
        self.root = cache_folder() / "packages" / image.digest[:16]
        self.archives = self.root / "archives"
        self.config = self.root / "apt.conf"
        self._image = image

    def prepare(self) -> None:
        """Write configuration and sources, and read the archive's indexes when those here are a day old."""
        parts = self.root / "etc/apt/sources.list.d"
        for name in ("archives/partial", "nothing/partial", "state/lists/partial", "empty"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        parts.mkdir(parents=True, exist_ok=True)
        for number, source in enumerate(json.loads(self._image.sources.read_text(encoding="utf-8"))):
            (parts / f"{number}.{source['form']}").write_text(source["text"], encoding="utf-8")
        self.config.write_text(self._configuration(), encoding="utf-8")
        stamp = self.root / "updated"
        if not stamp.is_file() or time.time() - stamp.stat().st_mtime > _LISTS_LAST_S:
            self.apt("update").expect()
            stamp.touch()

    def _configuration(self) -> str:
        # hooks of this machine's apt must not run, so its configuration is not read at all
        settings = {
            "Dir": self.root,
            "Dir::Etc::main": self.root / "none",
            "Dir::Etc::parts": self.root / "empty",
            "Dir::Etc::sourceparts": self.root / "etc/apt/sources.list.d",
            "Dir::Etc::sourcelist": self.root / "none",
            "Dir::Etc::preferencesparts": self.root / "empty",
            "Dir::Etc::trusted": "/etc/apt/trusted.gpg",
            "Dir::Etc::trustedparts": "/etc/apt/trusted.gpg.d",
            "Dir::State": self.root / "state",
            "Dir::State::status": self._image.packages,
            "Dir::Cache": self.root,
            "Dir::Cache::archives": self.archives,
            "APT::Architecture": "amd64",
            "APT::Sandbox::User": "root",
            "APT::Install-Recommends": "false",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
        }
        lines = [f'{name} "{value}";' for name, value in settings.items()]
        return "\n".join(
            [*lines, 'APT::Architectures { "amd64"; };', self._image.apt_options.read_text(encoding="utf-8")]
        )

    def apt(self, *words: str) -> Completed:
        return run(["apt-get", "-q", *words], timeout=_LIMIT_S, env={"APT_CONFIG": str(self.config)})


def _sha256(file: Path) -> str:
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _fields(file: Path) -> dict[str, str]:
    printed = run(["dpkg-deb", "--field", str(file), "Package", "Version"]).expect().stdout
    return {name: value.strip() for name, _, value in (line.partition(":") for line in printed.splitlines())}


def fetch_packages(image: BenchImage, package: str, version: str = "") -> list[FetchedPackage]:
    """The files of `package` and of everything it needs that the bench image lacks, from cache or archive.

    apt checks the archive's signature on every file. An empty list: the image has the package already. Raises
    BadInputError when the archive has no such package or version, ToolError when it cannot be reached.
    """
    problems = [
        f"{word!r} is no {what}"
        for what, word, shape in (("package name", package, _PACKAGE), ("version", version or "0", _VERSION))
        if not shape.fullmatch(word)
    ]
    if problems:
        raise BadInputError(problems)
    wanted = f"{package}={version}" if version else package
    apt = _PrivateApt(image)
    with locked(cache_folder() / "packages" / "lock"):
        apt.prepare()
        install = ("--yes", "--no-install-recommends", "--allow-downgrades", "install", wanted)
        # apt leaves out what it has fetched before, so it is asked with an empty cache
        listed = apt.apt("-o", f"Dir::Cache::archives={apt.root / 'nothing'}", "--print-uris", *install)
        if listed.rc != 0:
            printed = listed.stderr.strip()
            if "Unable to locate package" in printed or "was not found" in printed:
                raise BadInputError([f"the archive of the bench has no {wanted}"])
            raise ToolError(f"apt cannot plan the installation of {wanted}: {printed}")
        names = [match["file"] for match in _URI.finditer(listed.stdout)]
        apt.apt("--download-only", *install).expect()
        files = [apt.archives / name for name in names]
        fetched = []
        for file in files:
            fields = _fields(file)
            fetched.append(FetchedPackage(fields["Package"], fields["Version"], str(file), _sha256(file)))
    return fetched
