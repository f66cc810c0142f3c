# SPDX-License-Identifier: Apache-2.0
"""Files that we write have the SELinux type of their place, or the step says which has not."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from storqual_core.kit.command import Completed
from storqual_core.kit.errors import MissingToolError, ToolError
from storqual_core.kit.machine import Machine
from storqual_core.provision.selinux import check_types, denials
from storqual_core.tools.matchpathcon import parse_verified

PLACE = "/lib/modules/5.14/updates/storqual/mpt3sas.ko"
DENIED = (
    'type=AVC msg=audit(1634143507.210:1101): avc:  denied  { module_load } for  pid=1 comm="modprobe" '
    f'path="{PLACE}" dev="dm-0" ino=3 scontext=unconfined_u:unconfined_r:kmod_t:s0 '
    "tcontext=unconfined_u:object_r:tmp_t:s0 tclass=system permissive="
)


class Policy:
    """A bench with SELinux: files have the type of `types`, and `restorecon` mends all but `stuck` ones."""

    def __init__(self, root: Path, *, on: bool = True, stuck: bool = False) -> None:
        self.machine, self.type, self.stuck = Machine(str(root)), "tmp_t", stuck
        self.denied = ""
        self.seen: list[str] = []
        if on:
            place = root / "sys" / "fs" / "selinux"
            place.mkdir(parents=True)
            (place / "enforce").write_text("1")

    def __call__(self, argv: Sequence[str], **_options: Any) -> Completed:
        self.seen.append(argv[0])
        out = ""
        if argv[0] == "restorecon":
            if self.stuck:
                raise MissingToolError("`restorecon` is not installed on this machine")
            self.type = "modules_object_t"
        elif argv[0] == "matchpathcon":
            same = self.type == "modules_object_t"
            has, wants = f"unconfined_u:object_r:{self.type}:s0", "system_u:object_r:modules_object_t:s0"
            out = f"{argv[2]} verified.\n" if same else f"{argv[2]} has context {has}, should be {wants}\n"
        else:
            out = self.denied
        return Completed(tuple(argv), 0, out, "", 0.0)


def test_without_a_policy_nothing_is_asked(tmp_path: Path) -> None:
    policy = Policy(tmp_path)
    own = tmp_path / "proc" / "self" / "attr"
    own.mkdir(parents=True)
    (own / "current").write_text("kernel\0")
    check_types(policy.machine, policy, [PLACE])
    assert denials(policy.machine, policy, PLACE) == ""
    assert policy.seen == []
    (own / "current").write_text("system_u:system_r:kernel_t:s0\0")
    check_types(policy.machine, policy, [PLACE])
    assert policy.seen == ["restorecon", "matchpathcon"]


def test_a_file_gets_the_type_of_its_place(tmp_path: Path) -> None:
    policy = Policy(tmp_path)
    check_types(policy.machine, policy, [PLACE])
    assert policy.seen == ["restorecon", "matchpathcon"]


def test_a_file_that_keeps_another_type_is_named(tmp_path: Path) -> None:
    policy = Policy(tmp_path, stuck=True)
    with pytest.raises(ToolError, match=r"mpt3sas\.ko has type tmp_t, expected modules_object_t"):
        check_types(policy.machine, policy, [PLACE])


def test_nothing_is_asked_without_selinux(tmp_path: Path) -> None:
    policy = Policy(tmp_path, on=False)
    check_types(policy.machine, policy, [PLACE])
    assert (policy.seen, denials(policy.machine, policy, PLACE)) == ([], "")


@pytest.mark.parametrize(
    ("audit", "words"),
    [
        (f"{DENIED}0", "SELinux denied module_load to modprobe"),
        (f"{DENIED}1", ""),
        (f"{DENIED}0".replace("mpt3sas", "other"), ""),
        ("<no matches>", ""),
        (DENIED[:150], ""),
    ],
)
def test_a_denial_of_the_module_is_told(tmp_path: Path, audit: str, words: str) -> None:
    policy = Policy(tmp_path)
    policy.denied = audit
    told = denials(policy.machine, policy, PLACE)
    assert words in told
    assert bool(told) == bool(words)


def test_user_and_level_of_a_context_do_not_count() -> None:
    kind = "object_r:modules_object_t:s0"
    (found,) = parse_verified(f"{PLACE} has context unconfined_u:{kind}, should be system_u:{kind}\n")
    assert found.agrees
    (unread,) = parse_verified("/boot/x error: No such file or directory\n")
    assert not unread.agrees


@pytest.mark.parametrize("text", ["matchpathcon: SELinux is off", "x verified.", "/a has context b"])
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(ToolError, match="line 1"):
        parse_verified(text)
