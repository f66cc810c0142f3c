# SPDX-License-Identifier: Apache-2.0
"""What a bench's policy says against a module file: signatures and known keys, SUSE's mark, packing that kmod reads.

Sources: kernel documentation admin-guide/module-signing; modprobe.d(5) of SUSE (`allow_unsupported_modules`).
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import PurePath
from typing import Iterator

from ..kit.command import Runner
from ..kit.errors import StorqualError
from ..kit.machine import Machine, selected_word
from ..tools import mokutil

_MODPROBE = tuple(f"{root}/modprobe.d" for root in ("/etc", "/run", "/usr/local/lib", "/lib", "/usr/lib"))
_LOCKDOWN, _EFI = "/sys/kernel/security/lockdown", "/sys/firmware/efi"
_PACKINGS = {".zst": "ZSTD", ".xz": "XZ", ".gz": "ZLIB"}
# `... asymmetri ACME driver signing: 0b7a45: X509.rsa 2fc5 []`; the name is that of the certificate
_KEY = re.compile(r".*\basymmetri\s+(.+): [0-9a-f]+: X509\b.*")


def enforced(machine: Machine) -> str:
    """Why this kernel loads signed modules only, as part of a sentence; empty when it does not."""
    if machine.text("/sys/module/module/parameters/sig_enforce") == "Y":
        return "module.sig_enforce"
    word = selected_word(machine.text(_LOCKDOWN))
    return f"lockdown [{word}]" if word not in ("", "none") else ""


def _checked_by_firmware(machine: Machine, runner: Runner) -> str:
    """The same by Secure Boot: kernels that do not show their lockdown have it wherever that is on."""
    if machine.exists(_LOCKDOWN) or not machine.exists(_EFI):
        return ""
    with suppress(StorqualError):
        state = mokutil.parse_state(runner(["mokutil", "--sb-state"], timeout=60.0).stdout)
        return "Secure Boot" if state.enabled and not state.remark else ""
    return ""


def known_keys(machine: Machine, runner: Runner) -> frozenset[str]:
    """The names of the certificates whose signatures this machine takes; empty where nothing tells of any."""
    names = {match.group(1).strip() for match in map(_KEY.match, machine.lines("/proc/keys")) if match}
    for words in (["--list-enrolled"], ["--db"]) if machine.exists(_EFI) else ():
        with suppress(StorqualError):
            output = runner(["mokutil", *words, "--short"], timeout=60.0).stdout
            names |= {key.name for key in mokutil.parse_keys(output)}
    return frozenset(names)


def _modprobe_setting(machine: Machine, word: str) -> tuple[str, str]:
    """The last value of a setting of modprobe, and the file that has it; both empty where none has."""
    files: dict[str, str] = {}
    for folder in _MODPROBE:
        for name in machine.names(folder):
            files.setdefault(name, f"{folder}/{name}")
    setting = ("", "")
    for name in sorted(files):
        for line in machine.lines(files[name]) if name.endswith(".conf") else ():
            words = line.split()
            if len(words) == 2 and words[0] == word:
                setting = (words[1], files[name])
    return setting


def policy_objections(path: str, signer: str, supported: str, machine: Machine, runner: Runner) -> Iterator[str]:
    """Why this bench does not load a module, beside what its kernel says of itself (`enforced`).

    `signer` and `supported` are what the module's file says of itself.
    """
    by_firmware = _checked_by_firmware(machine, runner)
    why = enforced(machine) or by_firmware
    if by_firmware and not signer:
        yield f"{path} is not signed, and this kernel loads signed modules only ({why})"
    elif why and signer:
        keys = known_keys(machine, runner)
        if keys and signer not in keys:
            yield (
                f"{path} is signed by '{signer}', a key that this machine does not know, and its kernel loads "
                f"modules of known keys only ({why}): enrol it at the machine's console (mokutil --import), then boot"
            )
    value, file = _modprobe_setting(machine, "allow_unsupported_modules")
    if value == "0" and supported not in ("yes", "external"):
        yield (
            f"{path} has no mark of SUSE's support, and {file} says allow_unsupported_modules 0: modprobe refuses to "
            "load it; set it to 1, or have a module that is marked"
        )


def packing_objections(place: str, runner: Runner) -> Iterator[str]:
    """Why the module tools of this bench cannot read a module that is packed as its name says."""
    wanted = _PACKINGS.get(PurePath(place).suffix)
    if wanted is None:
        return
    features = runner(["modprobe", "--version"], timeout=60.0).expect().stdout.split()
    if f"+{wanted}" not in features:
        has = " ".join(word for word in features if word.startswith("+")) or "none"
        yield (
            f"{place} is packed in a way that the module tools of this bench cannot read (it needs +{wanted}, "
            f"modprobe --version says {has}), so that no kernel of it would find the module; `as: module` unpacks it"
        )
