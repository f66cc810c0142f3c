# SPDX-License-Identifier: Apache-2.0
"""Tools that say how a bench is set up: mokutil, sestatus, kdumpctl, lsinitrd, weak-modules."""

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import kdumpctl, lsinitrd, mokutil, sestatus, weak_modules
from tests.support.tool_fixtures import fixture_text


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("enabled.txt", mokutil.SecureBoot(enabled=True)),
        ("not_validated.txt", mokutil.SecureBoot(enabled=True, remark="SecureBoot validation is disabled in shim")),
        ("setup_mode.txt", mokutil.SecureBoot(enabled=False, remark="Platform is in Setup Mode")),
        ("bios.txt", mokutil.SecureBoot(enabled=None)),
    ],
)
def test_secure_boot_is_on_off_or_not_there(name: str, state: mokutil.SecureBoot) -> None:
    assert mokutil.parse_state(fixture_text("mokutil", name)) == state


@pytest.mark.parametrize("text", ["SecureBoot enabled\nSecureBoot disabled\n", "SecureBoot\n", "", "SecureBoot on\n"])
def test_a_state_of_secure_boot_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ToolError, match="state of Secure Boot"):
        mokutil.parse_state(text)


def test_keys_are_known_by_digest_and_name_however_they_are_listed() -> None:
    keys = [("aabbccddee", "Example Secure Boot CA 1"), ("0123456789", "Example Driver Signing")]
    for name in ("short.txt", "enrolled.txt"):
        assert [(key.digest, key.name) for key in mokutil.parse_keys(fixture_text("mokutil", name))] == keys
    assert mokutil.parse_keys(fixture_text("mokutil", "empty.txt")) == ()
    cut = fixture_text("mokutil", "enrolled.txt").replace("SHA1 Fingerprint: 01", "SHA1 F")
    with pytest.raises(ToolError, match="key 2 has no SHA1 Fingerprint"):
        mokutil.parse_keys(cut)


def test_selinux_now_and_at_the_next_boot_are_two_things() -> None:
    found = sestatus.parse_status(fixture_text("sestatus", "enabled.txt"))
    assert (found.enabled, found.mode, found.configured, found.policy) == (
        True,
        "enforcing",
        "permissive",
        "targeted",
    )
    assert found.booleans == {"example_can_load": False, "example_other": True}
    assert not sestatus.parse_status(fixture_text("sestatus", "disabled.txt")).enabled
    assert sestatus.parse_status(fixture_text("sestatus", "verbose.txt")).mode == "permissive"
    with pytest.raises(ToolError, match="mode 'missing'"):
        sestatus.parse_status("SELinux status:                 enabled\n")


def test_a_module_that_selinux_denied_is_told_with_its_type() -> None:
    (denial,) = sestatus.parse_denials(fixture_text("sestatus", "denied.txt"))
    assert (denial.permissions, denial.path, denial.target) == (("module_load",), "/root/a.ko", "admin_home_t")
    with pytest.raises(ToolError, match="line 1 is not a denial with both contexts"):
        sestatus.parse_denials('avc:  denied  { module_load } for  pid=1 comm="insmod" path="/a\n')


def test_kdump_is_operational_or_says_why_not() -> None:
    assert kdumpctl.parse_status(fixture_text("kdumpctl", "operational.txt")) == kdumpctl.Kdump(True, "kdump")  # noqa: FBT003 - its first field
    assert kdumpctl.parse_status(fixture_text("kdumpctl", "not_operational.txt")).operational is False
    failed = kdumpctl.parse_status(fixture_text("kdumpctl", "failed.txt"))
    assert (failed.operational, len(failed.problems)) == (None, 2)
    with pytest.raises(ToolError, match="two at once"):
        kdumpctl.parse_status("Kdump is operational\nKdump is not operational\n")


def test_an_image_is_listed_with_what_lies_in_front_of_it() -> None:
    text = fixture_text("lsinitrd", "early.txt")
    found = lsinitrd.parse_listing(text)
    assert (found.early, found.modules) == ((".", "early_cpio"), ("systemd", "kernel-modules"))
    assert found.files[1] == "bin"
    assert found.files[2].endswith("/mpt3sas.ko.xz")
    assert found.version == "dracut-057-53.git20240104.el9"
    with pytest.raises(ToolError, match="closing line are missing"):
        lsinitrd.parse_listing(text.rstrip("=\n"))


def test_a_module_that_is_not_compatible_is_told_with_its_symbols() -> None:
    found = weak_modules.parse_answer(fixture_text("weak_modules", "answer.txt"))
    assert [fit.kernel for fit in found.compatible] == ["5.14.0-427.31.1.el9_4.x86_64"]
    assert [fit.symbols for fit in found.incompatible] == [("scsi_host_alloc", "module_layout")]
    assert found.unknown == (("/lib/modules/5.14.0-503.11.1.el9_5.x86_64/weak-updates/a.ko", "a_b"),)
    assert found.problems == ("/tmp/initramfs.img: Unknown format",)
    with pytest.raises(ToolError, match="line 1 is cut"):
        weak_modules.parse_answer("Module a.ko from kernel 1 is not compatible with kernel 2 in\n")
    assert weak_modules.parse_answer("") == weak_modules.WeakModules()
