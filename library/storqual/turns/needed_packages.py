# SPDX-License-Identifier: Apache-2.0
"""Debian packages that bring foreign test programs: installed on a bench that lacks them."""

import shlex
from pathlib import Path

from storqual.bench.follow import Connection, ConnectionLostError
from storqual.virtual_bench.image import ensure_image
from storqual.virtual_bench.package_cache import fetch_packages
from storqual_core.kit.errors import ToolError

_LIMIT_S = 900.0
_QUIET = "DEBIAN_FRONTEND=noninteractive"

_RULES = "sg3-utils-udev"
_HOOK, _ASIDE = (f"/usr/share/initramfs-tools/{folder}hooks/sg3-utils" for folder in ("", "unused/"))
_NO_UDEV = f"mkdir -p $(dirname {_ASIDE}) && dpkg-divert --quiet --local --rename --divert {_ASIDE} --add {_HOOK}"
"""The initial file system of a virtual bench has no udev: a package's hook that adds rules to it would fail."""


def installed_version(connection: Connection, package: str) -> str:
    """The version of a package on the bench, empty where it is not installed."""
    query = f"dpkg-query -W -f='${{db:Status-Status}} ${{Version}}' {shlex.quote(package)} 2>/dev/null || true"
    status, _, version = connection.run(query).strip().partition(" ")
    return version if status == "installed" else ""


def install_package(connection: Connection, package: str, state_dir: str, *, virtual: bool) -> str:
    """Have a package on the bench; its version, empty when it was there already.

    A virtual bench has no way out: its packages are fetched here, signatures checked, and sent. Raises
    ConnectionLostError, ToolError.
    """
    if installed_version(connection, package):
        return ""
    if virtual:
        names = []
        for fetched in fetch_packages(ensure_image(), package):
            name = f"{state_dir}/packages/{Path(fetched.path).name}"
            connection.put(Path(fetched.path).read_bytes(), name)
            names.append(shlex.quote(name))
            if fetched.package == _RULES:
                connection.run(_NO_UDEV)
        command = f"{_QUIET} dpkg --install {' '.join(names)}"
    else:
        command = f"{_QUIET} apt-get -q --yes --no-install-recommends install {shlex.quote(package)}"
    try:
        connection.run(f"{command} >/dev/null", limit_s=_LIMIT_S)
    except ConnectionLostError as problem:
        raise ToolError(f"package {package} cannot be installed: {problem}") from None
    version = installed_version(connection, package)
    if not version:
        raise ToolError(f"package {package} is not installed, though {command.split()[1]} ended well")
    return version
