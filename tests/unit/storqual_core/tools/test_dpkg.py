# SPDX-License-Identifier: Apache-2.0
"""dpkg: what is installed, which kernel a package carries, installing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.kit.errors import BadInputError, ToolError
from storqual_core.tools import dpkg
from tests.support.replay import Call, Replay

QUERY = r"dpkg-query -W -f '${Package}\t${Version}\t${db:Status-Abbrev}\n' -- linux-image-x"
LIST = "dpkg-query -L -- linux-image-x"


@pytest.mark.parametrize(
    ("call", "package"),
    [
        (Call(QUERY, "linux-image-x\t6.1.2-1\tii \n"), dpkg.Package("linux-image-x", "6.1.2-1", complete=True)),
        (Call(QUERY, "linux-image-x\t6.1.2-1\thi \n"), dpkg.Package("linux-image-x", "6.1.2-1", complete=True)),
        # deselected, and still there
        (Call(QUERY, "linux-image-x\t6.1.2-1\tri \n"), dpkg.Package("linux-image-x", "6.1.2-1", complete=True)),
        (Call(QUERY, "linux-image-x\t6.1.2-1\tiiR\n"), dpkg.Package("linux-image-x", "6.1.2-1", complete=False)),
        (Call(QUERY, "linux-image-x\t6.1.2-1\tiF \n"), dpkg.Package("linux-image-x", "6.1.2-1", complete=False)),
        (Call(QUERY, "linux-image-x\t\tun \n"), None),
        (Call(QUERY, stderr="dpkg-query: no packages found matching linux-image-x\n", rc=1), None),
    ],
)
def test_a_package_is_installed_half_installed_or_not(call: Call, package: dpkg.Package | None) -> None:
    assert dpkg.installed(Replay([call]), "linux-image-x") == package


def test_the_kernel_of_a_package_is_in_its_file_names() -> None:
    """The release is not the package's name: `-unsigned` and versions differ."""
    files = "/.\n/boot\n/boot/vmlinuz-6.1.0-2-amd64\n/lib/modules/6.1.0-2-amd64/kernel/a.ko\n/usr/share/doc/x\n"
    assert dpkg.kernel_of(Replay([Call(LIST, files)]), "linux-image-x") == "6.1.0-2-amd64"


def test_a_meta_package_is_followed_to_its_kernel() -> None:
    """linux-image-amd64 is empty and depends on the kernel that is meant."""
    depends = Call(
        "dpkg-query -W -f '${Depends}' -- linux-image-x", "linux-image-6.1.0-2-amd64 (= 6.1.2-1), kmod | kmodx"
    )
    replay = Replay(
        [
            Call(LIST, "/.\n"),
            depends,
            Call("dpkg-query -L -- linux-image-6.1.0-2-amd64", "/boot/vmlinuz-6.1.0-2-amd64\n"),
        ]
    )
    assert dpkg.kernel_of(replay, "linux-image-x") == "6.1.0-2-amd64"
    replay.done()


@pytest.mark.parametrize(
    "calls",
    [
        [Call(LIST, "/usr/share/doc/x\n"), Call("dpkg-query -W -f '${Depends}' -- linux-image-x", "kmod")],
        [Call(LIST, "/boot/vmlinuz-1\n/boot/vmlinuz-2\n")],
        [Call(LIST, "/lib/modules/../x\n"), Call("dpkg-query -W -f '${Depends}' -- linux-image-x")],
    ],
)
def test_a_package_without_exactly_one_kernel_is_refused(calls: list[Call]) -> None:
    """Nobody could say which one would be booted."""
    with pytest.raises(ToolError, match="should carry one kernel"):
        dpkg.kernel_of(Replay(calls), "linux-image-x")


def test_what_was_installed_is_on_the_disk_before_anybody_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the files are there, and once; dpkg may have been told to leave it to the kernel."""
    line = "dpkg --force-confold --force-confdef -i -- a.deb"
    replay = Replay([Call(line)])
    before_sync: list[list[str]] = []
    monkeypatch.setattr("os.sync", lambda: before_sync.append(list(replay.seen)))
    dpkg.install_packages(replay, ["a.deb"])
    assert before_sync == [[line]]


def test_files_are_installed_in_one_transaction() -> None:
    line = "dpkg --force-confold --force-confdef -i -- a.deb b.deb"
    dpkg.install_packages(Replay([Call(line)]), ["a.deb", "b.deb"])
    with pytest.raises(ToolError, match="no space left"):
        dpkg.install_packages(
            Replay([Call(line, rc=1, stderr="unpacking\nno space left on device\n")]), ["a.deb", "b.deb"]
        )


@given(st.text())
def test_other_text_is_a_sentence(text: str) -> None:
    try:
        dpkg.parse_packages(text)
    except ToolError:
        return


@pytest.mark.parametrize(
    "name", ["-i", "--purge", "-oDPkg::Pre-Invoke::=sh", "a b", "a=1", "", "a", "a;b", "../a", "A"]
)
def test_a_package_name_can_be_no_option(name: str) -> None:
    for ask in (dpkg.installed, dpkg.kernel_of, dpkg.remove_package):
        with pytest.raises(BadInputError, match="expected a name"):
            ask(Replay([]), name)


@pytest.mark.parametrize("version", ["-1", "--purge", "1,--purge", "1 2", "$(id)"])
def test_a_version_can_be_no_option(version: str) -> None:
    with pytest.raises(BadInputError, match="expected a version"):
        dpkg.named("linux-image-x", version)
    assert dpkg.named("linux-image-x", "1:6.1.2-1~bpo12+1") == "linux-image-x"


def test_a_file_name_that_looks_like_an_option_is_a_file_name() -> None:
    dpkg.install_packages(Replay([Call("dpkg --force-confold --force-confdef -i -- --purge")]), ["--purge"])
