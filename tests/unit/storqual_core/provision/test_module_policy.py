# SPDX-License-Identifier: Apache-2.0
"""What a bench's policy says against a module: signatures, keys that it knows, SUSE's mark."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from storqual_core.kit.command import Completed
from storqual_core.kit.errors import MissingToolError
from storqual_core.provision.module_policy import packing_objections, policy_objections
from tests.support.bench_tree import BenchTree

EFI = {"/sys/firmware/efi/runtime": ""}
LOCKED = {**EFI, "/sys/kernel/security/lockdown": "none [integrity] confidentiality\n"}
OPEN = {**EFI, "/sys/kernel/security/lockdown": "[none] integrity confidentiality\n"}
KEYS = {"/proc/keys": "0a I--- 1 perm 1f0f0000 0 0 asymmetri Red Hat driver (key 3): bf57: X509.rsa 2fc5 []\n"}


class Mokutil:
    def __init__(self, *, on: bool = True, there: bool = True) -> None:
        self.on, self.there = on, there

    def __call__(self, argv: Sequence[str], **_options: Any) -> Completed:
        if not self.there:
            raise MissingToolError("`mokutil` is not installed on this machine")
        state = f"SecureBoot {'enabled' if self.on else 'disabled'}\n"
        answers = {"--sb-state": state, "--list-enrolled": "b7b180e323 ACME\n", "--db": "db is empty\n"}
        return Completed(tuple(argv), 0, answers[argv[1]], "", 0.0)


@pytest.mark.parametrize(
    ("files", "runner", "signer", "words"),
    [
        (LOCKED, Mokutil(), "ACME", ""),
        (LOCKED, Mokutil(), "Other", "signed by 'Other', a key that this machine does not know"),
        ({**LOCKED, **KEYS}, Mokutil(there=False), "Red Hat driver (key 3)", ""),
        ({**LOCKED, **KEYS}, Mokutil(there=False), "ACME", "mokutil --import"),
        # nothing tells of any key, so that nothing can be said against one
        (LOCKED, Mokutil(there=False), "ACME", ""),
        (OPEN, Mokutil(), "", ""),
        # a kernel that does not show its lockdown
        (EFI, Mokutil(), "", "loads signed modules only (Secure Boot)"),
        (EFI, Mokutil(), "Other", "known keys only (Secure Boot)"),
        (EFI, Mokutil(on=False), "", ""),
        (EFI, Mokutil(there=False), "", ""),
        ({}, Mokutil(), "", ""),
    ],
)
def test_who_signed_a_module_is_compared_with_the_keys_of_the_machine(
    tmp_path: Path, files: dict[str, str], runner: Mokutil, signer: str, words: str
) -> None:
    tree = BenchTree(tmp_path)
    for path, text in files.items():
        tree.write(path, text)
    told = list(policy_objections("/x/hba.ko", signer, "", tree.machine, runner))
    assert len(told) == bool(words)
    assert words in "".join(told)


@pytest.mark.parametrize(
    ("files", "mark", "refused"),
    json.loads(Path(__file__).with_name("module_policies.json").read_text(encoding="utf-8")),
)
def test_suses_mark_is_asked_for_where_the_bench_asks(
    tmp_path: Path, files: dict[str, str], mark: str, refused: bool
) -> None:
    tree = BenchTree(tmp_path)
    for path, text in files.items():
        tree.write(path, text)
    assert bool(list(policy_objections("/x/hba.ko", "", mark, tree.machine, Mokutil()))) is refused


@pytest.mark.parametrize(
    ("place", "printed", "refused"),
    [
        ("extra/hba.ko.zst", "kmod version 28\n+XZ +ZLIB -ZSTD", True),
        ("extra/hba.ko.zst", "kmod version 30\n+ZSTD +XZ", False),
        ("extra/hba.ko.xz", "kmod version 28\n-XZ", True),
        ("extra/hba.ko", "kmod version 28", False),
    ],
)
def test_a_packing_that_the_module_tools_cannot_read_is_refused(place: str, printed: str, refused: bool) -> None:
    def runner(argv: Sequence[str], **_options: Any) -> Completed:
        return Completed(tuple(argv), 0, printed, "", 0.0)

    assert bool(list(packing_objections(place, runner))) is refused
