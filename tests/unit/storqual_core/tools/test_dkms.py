# SPDX-License-Identifier: Apache-2.0
"""What DKMS says it has."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.kit.errors import ToolError
from storqual_core.tools import dkms
from tests.support.replay import Call, Replay

TEXT = """\
Deprecated feature: REMAKE_INITRD (/etc/dkms/framework.conf)
hba/1.2.3, 6.1.0-1-amd64, x86_64: installed (original_module exists)
hba/1.2.4: added
old, 2.0-k, 6.1.0-2-amd64, x86_64: built
"""


def test_both_grammars_are_read() -> None:
    """Of release 3 and of release 2."""
    states = dkms.status(Replay([Call("dkms status", TEXT)]))
    assert [(each.module, each.version, each.kernel, each.state) for each in states] == [
        ("hba", "1.2.3", "6.1.0-1-amd64", "installed"),
        ("hba", "1.2.4", "", "added"),
        ("old", "2.0-k", "6.1.0-2-amd64", "built"),
    ]
    assert states[0].remark == "(original_module exists)"
    assert dkms.built_for(states, "1.2.3", "6.1.0-1-amd64") == [states[0]]
    assert dkms.built_for(states, "1.2.4", "6.1.0-1-amd64") == []


def test_the_end_of_the_newest_build_log_is_told(tmp_path: Path) -> None:
    assert dkms.last_build_words(str(tmp_path)) == ""
    log = tmp_path / "hba" / "1.2.3" / "build" / "make.log"
    log.parent.mkdir(parents=True)
    log.write_text("".join(f"line {number}\n" for number in range(9)) + "hba.c:3: error: no such member\n")
    assert dkms.last_build_words(str(tmp_path)).endswith("line 8; hba.c:3: error: no such member")


def test_a_line_without_the_architecture_is_of_its_kernel() -> None:
    for line in ("hba/1.2.3, 6.1.0-1-amd64: installed (a remark)", "hba, 1.2.3, 6.1.0-1-amd64: installed (a remark)"):
        assert dkms.parse_status(line) == [dkms.State("hba", "1.2.3", "6.1.0-1-amd64", "installed", "(a remark)")]


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        states = dkms.parse_status(text)
    except ToolError:
        return
    assert all(each.module and each.state for each in states)


def test_sources_are_named_by_their_own_configuration(tmp_path: Path) -> None:
    place = tmp_path / "usr/src/hba-lab-2.0/dkms.conf"
    place.parent.mkdir(parents=True)
    place.write_text('PACKAGE_NAME="hba-lab"\nPACKAGE_VERSION=2.0~rc1 # a comment\nBUILT_MODULE_NAME[0]="hba"\n')
    listed = Call("dpkg-query -L -- hba-dkms", "/.\n/usr/src/hba-lab-2.0/hba.c\n/usr/src/hba-lab-2.0/dkms.conf\n")
    source = dkms.source_of(Replay([listed]), "hba-dkms", str(tmp_path))
    assert source == dkms.DkmsSource("hba-lab", "2.0~rc1")
    assert source.words("build", "6.1") == ["dkms", "build", "-m", "hba-lab", "-v", "2.0~rc1", "-k", "6.1"]
    place.write_text('PACKAGE_NAME="hba-$(arch)"\nPACKAGE_VERSION="1"\n')
    with pytest.raises(ToolError, match="does not say PACKAGE_NAME and PACKAGE_VERSION in plain words"):
        dkms.source_of(Replay([listed]), "hba-dkms", str(tmp_path))
    with pytest.raises(ToolError, match="it is not a DKMS package"):
        dkms.source_of(Replay([Call("dpkg-query -L -- other", "/usr/share/doc\n")]), "other", str(tmp_path))


def test_a_build_that_gives_no_module_says_what_the_compiler_said(tmp_path: Path) -> None:
    source = dkms.DkmsSource("hba-lab", "2.0")
    log = tmp_path / "var/lib/dkms/hba-lab/2.0/build/make.log"
    log.parent.mkdir(parents=True)
    log.write_text("hba.c:3: error: no such member\n")
    calls = [Call("dkms status", "hba-lab/2.0: added\n"), Call("dkms build -m hba-lab -v 2.0 -k 6.1", "")]
    with pytest.raises(ToolError, match=r"could not build hba of hba-lab 2\.0: .*no such member"):
        dkms.build(Replay(calls), source, "hba", "6.1", str(tmp_path))


def test_what_is_built_is_found_and_what_is_installed_is_taken_off_first(tmp_path: Path) -> None:
    folder = tmp_path / "var/lib/dkms/hba-lab/2.0/6.1/x86_64/module"
    folder.mkdir(parents=True)
    for name in ("other.ko", "hba-one.ko.xz"):
        (folder / name).write_bytes(b"")
    source = dkms.DkmsSource("hba-lab", "2.0")
    calls = [
        Call("dkms status", "hba-lab/2.0, 6.1, x86_64: installed\nhba-lab/1.0, 6.1, x86_64: built\n"),
        Call("dkms uninstall -m hba-lab -v 2.0 -k 6.1", ""),
    ]
    replay = Replay(calls)
    assert dkms.build(replay, source, "hba_one", "6.1", str(tmp_path)).name == "hba-one.ko.xz"
    assert dkms.built(source, "hba_two", "6.1", str(tmp_path)) is None


def test_a_line_in_another_language_is_refused() -> None:
    with pytest.raises(ToolError, match="not understood"):
        dkms.parse_status("hba ist eingerichtet\n")


def test_another_kernels_build_is_a_state_of_its_own_and_is_installed() -> None:
    text = "hba, 1.2.3, 3.10.0-2.el7.x86_64, x86_64: installed-weak from 3.10.0-1.el7.x86_64\nold/1: broken\n"
    weak, broken = dkms.parse_status(text)
    assert (weak.state, weak.remark, broken.state) == ("installed-weak", "from 3.10.0-1.el7.x86_64", "broken")
    assert dkms.built_for([weak, broken], "1.2.3", "3.10.0-2.el7.x86_64") == [weak]
