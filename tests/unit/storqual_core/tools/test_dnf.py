# SPDX-License-Identifier: Apache-2.0
"""dnf and zypper: what a transaction would change, what it did, and why its success may be none."""

import re

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import dnf, zypper
from tests.support.replay import Call, Replay
from tests.support.tool_fixtures import fixture_text

NEW = "kernel-core-5.14.0-503.11.1.el9_5.x86_64"


def test_a_dry_run_tells_what_would_go_and_what_would_come() -> None:
    """A name that is too long for its column goes on in the next line."""
    found = dnf.parse_transaction(fixture_text("dnf", "dry_run.txt"))
    assert found.planned == {
        "install": (NEW, "kernel-modules-core-5.14.0-503.11.1.el9_5.x86_64"),
        "upgrade": ("linux-firmware-20250101-1.el9.noarch",),
        "remove": ("kernel-core-5.14.0-362.8.1.el9_3.x86_64",),
    }
    assert (found.end, found.done, found.reasons) == ("aborted", {}, ())
    five = dnf.parse_transaction(fixture_text("dnf", "dry_run_dnf5.txt"))
    assert five.planned == {
        "install": ("kernel-core-6.16.11-100.fc41.x86_64",),
        "remove": ("kernel-core-6.12.5-200.fc41.x86_64",),
    }


def test_a_table_that_is_shorter_than_its_summary_is_refused() -> None:
    text = fixture_text("dnf", "dry_run.txt")
    with pytest.raises(ToolError, match=r"lists 2 packages to install, and its summary says 3"):
        dnf.parse_transaction(text.replace("Install  2", "Install  3"))
    row = next(line for line in text.splitlines(keepends=True) if "@baseos" in line)
    with pytest.raises(ToolError, match=r"lists 0 packages to remove, and its summary says 1"):
        dnf.parse_transaction(text.replace(row, ""))
    with pytest.raises(ToolError, match="the rest of 'kernel-core"):
        dnf.parse_transaction(text.replace("                    baseos                 19 M\n", "", 1))


def test_a_script_that_failed_is_told_in_whatever_language_and_beside_success() -> None:
    found = dnf.parse_transaction(fixture_text("dnf", "installed_with_failed_script.txt"))
    assert (found.end, found.done) == ("complete", {"install": (NEW,)})
    assert len(found.failures) == 2
    five = dnf.parse_transaction(fixture_text("dnf", "installed_dnf5.txt"))
    assert five.done == {"remove": ("kernel-core-0:6.12.5-200.fc41.x86_64",)}
    assert "kernel-core-0:6.16.11-" in five.notes
    assert [failure for failure in five.failures if "%posttrans" in failure]
    german = ">>> [RPM] %posttrans(kernel-core-1-1.x86_64) Scriptlet fehlgeschlagen, Beenden-Status 11\nComplete!\n"
    assert dnf.parse_transaction(german).failures


@pytest.mark.parametrize("end", ["Complete!", "Nothing to do."])
def test_a_text_with_two_ends_is_refused(end: str) -> None:
    with pytest.raises(ToolError, match="the end of a transaction that has ended"):
        dnf.parse_transaction(f"{end}\nOperation aborted.\n")


def test_a_dependency_resolution_that_finds_nothing_to_do_is_told() -> None:
    text = fixture_text("dnf", "nothing_to_do.txt")
    assert dnf.parse_transaction(text).end == "nothing"
    assert dnf.failure(text, 0) == "it had nothing to do"


def test_the_room_that_is_missing_is_told_once_in_bytes() -> None:
    assert dnf.parse_transaction(fixture_text("dnf", "no_room.txt")).space == {"/boot": 42 << 20}


@pytest.mark.parametrize(
    "first", ["Transaction failed: Rpm transaction failed.", "Failed to resolve the transaction:"]
)
@pytest.mark.parametrize(
    "cause", ["  - file /a of two-1 conflicts with one-1", "OpenPGP check for package a has failed: x"]
)
def test_a_failure_of_dnf5_is_told_with_its_cause(first: str, cause: str) -> None:
    assert dnf.parse_transaction(f"{first}\n{cause}\n").problems == (first, cause.strip())


def test_a_dry_run_of_dnf_answers_no() -> None:
    line = f"dnf --assumeno --setopt=installonly_limit=0 install {NEW}"
    assert (
        dnf.preview(Replay([Call(line, fixture_text("dnf", "dry_run.txt"), rc=1)]), ["install", NEW]).end == "aborted"
    )


def test_names_side_by_side_and_columns_of_zypper_are_read() -> None:
    found = zypper.parse_transaction(fixture_text("zypper", "dry_run.txt"))
    assert found.planned == {
        "install": ("kernel-default-6.4.0-150600.23.7.3", "example-kmp-default", "example"),
        "upgrade": ("dracut",),
        "remove": ("example-old",),
    }
    columns = zypper.parse_transaction(fixture_text("zypper", "dry_run_details.txt"))
    assert columns.planned == {
        "install": ("example-1.4-1.1", "example-kmp-default-1.4_k6.4.0-1.1"),
        "upgrade": ("dracut-059-2.1",),
    }


def test_blocks_of_zypper_are_the_same_as_its_columns() -> None:
    """Where its output is no terminal, `--details` has each column in a line of its own."""
    text = fixture_text("zypper", "dry_run_details.txt")
    blocks = re.sub(r"(?m)^  (\S+)  .*$", lambda row: re.sub(r" {2,}", "\n  ", row.group().strip()) + "\n  ", text)
    assert "\nexample\n  1.4-1.1\n  x86_64\n  lab\n  Example\n  \n" in blocks
    assert zypper.parse_transaction(blocks) == zypper.parse_transaction(text)


def test_a_list_of_zypper_that_is_not_as_long_as_it_says_is_refused() -> None:
    text = fixture_text("zypper", "dry_run.txt")
    with pytest.raises(ToolError, match="followed by as many packages"):
        zypper.parse_transaction(text.replace("following 3 NEW", "following 4 NEW"))
    with pytest.raises(ToolError, match="lists 1 packages to remove, and its summary says 2"):
        zypper.parse_transaction(text.replace("1 to remove", "2 to remove"))


def test_what_zypper_did_and_who_holds_its_lock() -> None:
    found = zypper.parse_transaction(fixture_text("zypper", "installed.txt"))
    assert found.done == {"install": ("example-1.4-1.1.x86_64", "kernel-default-6.4.0-150600.23.7.3.x86_64")}
    assert found.failures
    assert (
        zypper.parse_transaction(fixture_text("zypper", "lock.txt")).lock == "process 5899 (/usr/libexec/packagekitd)"
    )
    assert zypper.failure("(1/1) Installing: a-1-1.x86_64 [..done]\n", 102) == ""
    assert "broke off" in zypper.failure("(1/1) Installing: a-1-1.x86_64 [..error]\n", 8)


def test_a_dry_run_of_zypper_changes_nothing() -> None:
    line = "zypper --non-interactive install --dry-run --details example"
    replay = Replay([Call(line, fixture_text("zypper", "dry_run_details.txt"))])
    found = zypper.preview(replay, ["install", "example"])
    assert found.planned["install"][0] == "example-1.4-1.1"


def test_the_history_of_libzypp_names_packages_that_came_and_went() -> None:
    entries = zypper.parse_history(fixture_text("zypper", "history.txt"))
    assert [(entry.action, entry.name, entry.edition) for entry in entries] == [
        ("command", "", ""),
        ("install", "example", "1.4-1.1"),
        ("remove", "kernel-default", "6.4.0-150600.21.2"),
        ("radd", "", ""),
    ]
    with pytest.raises(ToolError, match="line 2 is not an entry"):
        zypper.parse_history("2025-01-02 03:04:00|command|root|'zypper'|\n2025-01-02 03:04:05|install|exa\n")


@pytest.mark.parametrize(
    "text",
    [
        *("", "hello\n", "SELinux status:   enabled\n", "Complete!? no\n", '{"a": 1}\n', "{\n"),
        *("Error: another program\n", "Error counter log:\n", "Total # of VD:  2\n"),
    ],
)
def test_another_text_is_no_transaction(text: str) -> None:
    for tool in (dnf, zypper):
        with pytest.raises(ToolError):
            tool.parse_transaction(text)


def test_a_transaction_of_the_other_front_end_is_refused_with_its_line() -> None:
    with pytest.raises(ToolError, match=r"dnf: line 1 is not a line of dnf: 'Reading installed packages"):
        dnf.parse_transaction(fixture_text("zypper", "nothing_to_do.txt"))
    with pytest.raises(ToolError, match=r"zypper: line 1 is not a line of zypper: 'Dependencies resolved"):
        zypper.parse_transaction(fixture_text("dnf", "nothing_to_do.txt"))


def test_a_script_of_a_package_may_print_words_of_the_other_front_end() -> None:
    text = fixture_text("zypper", "installed.txt")
    assert zypper.parse_transaction(f"{text}Complete!\n").done == zypper.parse_transaction(text).done


def test_an_error_in_words_that_no_mark_has_is_named() -> None:
    told = "Error: the lab is closed"
    front = "Last metadata expiration check: 0:10:00 ago on Mon Nov 24 10:00:00 2025.\n"
    assert dnf.parse_transaction(f"{front}{told}\n").problems == (told,)
    for tool in (dnf, zypper):
        assert told in tool.failure(f"a line before\n{told}\n", 1)
