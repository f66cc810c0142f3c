# SPDX-License-Identifier: Apache-2.0
"""A trial on a bench whose kernels have entries in files of their own (EL 8 and later, GRUB 2.14)."""

from pathlib import Path
from typing import Any

import pytest

from storqual_core.kit.errors import StorqualError, ToolError
from storqual_core.kit.lock import read_saved
from storqual_core.provision.boot import hang_words
from storqual_core.provision.restore import Tools, restore
from storqual_core.tools import grub
from tests.support.fake_bls import BlsBench
from tests.support.fake_boot import boot_step

OLD, NEW = "5.14.0-70.13.1.el9_0.x86_64", "5.14.0-162.6.1.el9_1.x86_64"
KEPT = "root=/dev/mapper/r-root ro quiet transparent_hugepages=never"
GUARDS = " ".join(hang_words(NEW, 120, hardware_watchdog=False))
DIGITS = "4d684a4a6166439a867e701ded4f7e10"


def made(tmp_path: Path, reader: str = "red hat", prefix: str = "token", **variables: str) -> BlsBench:
    """Two kernels; the older one is the default by its name, and runs."""
    kind = type("Bench", (BlsBench,), {"reader": reader, "prefix": prefix})
    known = {
        "saved_entry": f"{prefix}-{OLD}",
        "kernelopts": "root=/dev/mapper/r-root ro quiet panic=60 ",
        **variables,
    }
    return kind(tmp_path / "bench", [OLD, NEW], OLD, variables=known)


def step(bench: BlsBench, name: str, **words: Any) -> dict[str, Any]:
    return boot_step(bench.system, str(bench.folder / "state"), name, **words)


@pytest.mark.parametrize("reader", ["red hat", "upstream"])
def test_a_trial_is_made_from_its_kernels_own_entry_and_boots_once(tmp_path: Path, reader: str) -> None:
    bench = made(tmp_path, reader)
    before = bench.files()
    step(bench, "trial", kernel=NEW, arguments=["nosmt"], mark="abc")
    text = bench.system.loader.custom_text()
    assert text is not None
    assert text.splitlines() == [
        "menuentry 'storqual-trial' --unrestricted --id storqual-trial {",
        "    search --no-floppy --fs-uuid --set=root 2222",
        f"    linux /vmlinuz-{NEW} {KEPT} {GUARDS} storqual.trial=abc nosmt panic=10",
        f"    initrd /initramfs-{NEW}.img",
        "}",
    ]
    bench.reboot()
    assert bench.running == NEW
    assert step(bench, "verify", kernel=NEW, mark="abc")["facts"]["trial"] == "abc"
    bench.reboot()
    assert bench.running == OLD
    restore(str(bench.folder / "state"), Tools(bench, bench.system), check=False)
    assert read_saved(bench.folder / "state") is None
    assert bench.files() == before


@pytest.mark.parametrize("reader", ["red hat", "upstream"])
def test_a_kernel_becomes_the_default_by_its_own_name(tmp_path: Path, reader: str) -> None:
    bench = made(tmp_path, reader)
    step(bench, "default", kernel=NEW)
    assert bench.variables["saved_entry"] == f"token-{NEW}"
    bench.reboot()
    assert bench.running == NEW


def test_a_name_that_begins_with_a_digit_is_a_number_to_upstream_only(tmp_path: Path) -> None:
    """`4d684a...` is entry 4 there, and as there is none, index 0: the newest kernel."""
    for reader, expected in (("red hat", OLD), ("upstream", NEW)):
        bench = made(tmp_path / reader, reader, DIGITS)
        default, lost = bench.system.loader.resolved_default()
        assert default is not None
        assert (default.release, bool(lost)) == (expected, reader == "upstream")
        step(bench, "trial", kernel=NEW, mark="abc", fallback=OLD)
        bench.reboot()
        assert bench.running == NEW
        bench.reboot()
        assert bench.running == OLD


@pytest.mark.parametrize("wrong", ["gone", "", f"token-{OLD} two", "7"])
def test_a_default_that_names_no_entry_is_named_for_the_time_of_the_trial(tmp_path: Path, wrong: str) -> None:
    bench = made(tmp_path)
    bench.variables["saved_entry"] = wrong
    step(bench, "trial", kernel=NEW, mark="abc", fallback=OLD)
    bench.reboot()
    bench.reboot()
    assert bench.running == OLD
    restore(str(bench.folder / "state"), Tools(bench, bench.system), check=False)
    assert bench.variables.get("saved_entry", "") == wrong


def refusal(bench: BlsBench, release: str = NEW) -> str:
    """The sentence; nothing was changed before it."""
    before = bench.files(), dict(bench.variables)
    with pytest.raises(StorqualError) as caught:
        step(bench, "trial", kernel=release, mark="abc")
    assert (bench.files(), dict(bench.variables)) == before
    return str(caught.value)


@pytest.mark.parametrize(
    ("options", "lines", "words"),
    [
        ("$kernelopts $unknown", (), "`$unknown` is set neither in grubenv nor in grub.cfg"),
        ("root=/dev/sda $", (), "is no variable that is understood"),
        ("root=$kernelopts", (), "is not a variable alone"),
        ("ro", ("options quiet",), "`options` is there twice"),
        ("ro", ("", "devicetree /x"), "line 8: GRUB stops reading here"),
    ],
)
def test_an_entry_that_readers_take_differently_is_no_template(
    tmp_path: Path, options: str, lines: tuple[str, ...], words: str
) -> None:
    bench = made(tmp_path)
    bench.write_entry(f"token-{NEW}", NEW, lines, options)
    assert words in refusal(bench)
    assert f"token-{NEW}.conf" in refusal(bench)


def test_of_several_entries_the_one_named_as_the_default_is_taken(tmp_path: Path) -> None:
    bench = made(tmp_path)
    for name in (f"token-{NEW}~custom", f"{DIGITS}-{NEW}", f"token-{NEW}+3"):
        bench.write_entry(name, NEW, options="wrong")
    step(bench, "trial", kernel=NEW, mark="abc")
    assert "wrong" not in (bench.system.loader.custom_text() or "")
    (bench.folder / "boot" / "loader" / "entries" / f"token-{NEW}.conf").unlink()
    other = made(tmp_path / "other")
    (other.folder / "boot" / "loader" / "entries" / f"token-{NEW}.conf").unlink()
    for name in ("a", "b"):
        other.write_entry(f"{name}-{NEW}", NEW)
    assert "has several entries" in refusal(other)


def test_what_tuned_left_in_an_entry_is_nothing_and_a_panic_of_the_benchs_own_stays(tmp_path: Path) -> None:
    bench = made(tmp_path)
    config = bench.folder / "boot" / "grub2" / "grub.cfg"
    config.write_text("\n".join(line for line in config.read_text().split("\n") if "tuned" not in line))
    step(bench, "default", kernel=NEW, arguments=["nosmt"])
    (entry,) = [each for each in bench.system.loader.entries() if each.identifier == grub.KEPT_ENTRY]
    assert entry.arguments == ["root=/dev/mapper/r-root", "ro", "quiet", "panic=60", "storqual.kept=1", "nosmt"]


def test_the_rescue_entry_is_no_candidate(tmp_path: Path) -> None:
    bench = made(tmp_path)
    (bench.folder / "boot" / f"vmlinuz-0-rescue-{DIGITS}").write_text("")
    bench.write_entry(f"{DIGITS}-0-rescue", f"0-rescue-{DIGITS}")
    assert set(step(bench, "facts")["facts"]["installed"]) == {OLD, NEW}
    assert "is not installed" in refusal(bench, f"0-rescue-{DIGITS}")


def test_a_kernel_without_an_entry_or_with_one_that_has_no_kernel_is_refused(tmp_path: Path) -> None:
    bench = made(tmp_path)
    entry = bench.folder / "boot" / "loader" / "entries" / f"token-{NEW}.conf"
    entry.write_text("title no kernel\noptions ro\n")
    assert f"boots kernel {NEW}" in refusal(bench)


def test_a_kernel_of_a_bench_with_fips_needs_its_hmac(tmp_path: Path) -> None:
    bench = made(tmp_path, kernelopts="root=/dev/sda fips=1")
    assert f".vmlinuz-{NEW}.hmac is not there" in refusal(bench)
    (bench.folder / "boot" / f".vmlinuz-{NEW}.hmac").write_text("")
    step(bench, "trial", kernel=NEW, mark="abc")


def test_early_images_beside_the_initramfs_stay(tmp_path: Path) -> None:
    bench = made(tmp_path)
    entry = bench.folder / "boot" / "loader" / "entries" / f"token-{NEW}.conf"
    entry.write_text(entry.read_text().replace("initrd /initramfs", "initrd /ucode.img\ninitrd /initramfs"))
    step(bench, "trial", kernel=NEW, mark="abc")
    assert f"    initrd /ucode.img /initramfs-{NEW}.img\n" in (bench.system.loader.custom_text() or "")


def block(variables: str, size: int = 1024) -> bytes:
    return f"# GRUB Environment Block\n{variables}".encode().ljust(size, b"#")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (block("saved_entry=a\n", 1023), "1023 bytes, expected 1024"),
        (block("", 1025), "1025 bytes"),
        (b"", "0 bytes"),
        (b"# Grub environment\n".ljust(1024, b"#"), "line 1 is '# Grub environment'"),
        (block(f"a={'x' * 985}\n"), "bytes left"),
        (block("a=1\na=2\n"), "line 3: found 'a=2'"),
        (block("saved_entry"), "line 2: the last variable has no end"),
        (block("boot_counter=2\n"), "boot_counter=2: somebody else counts boots"),
    ],
)
def test_an_environment_that_grub_could_not_write_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    bench = made(tmp_path)
    (bench.folder / "boot" / "grub2" / "grubenv").write_bytes(content)
    assert words in refusal(bench)


def test_an_environment_with_holes_or_behind_a_broken_link_is_refused(tmp_path: Path) -> None:
    bench = made(tmp_path)
    environment = bench.folder / "boot" / "grub2" / "grubenv"
    environment.symlink_to("../efi/EFI/vendor/grubenv")
    assert "No such file" in refusal(bench)
    (bench.folder / "boot" / "efi" / "EFI" / "vendor").mkdir(parents=True)
    environment.write_bytes(block("saved_entry=a\n"))
    step(bench, "trial", kernel=NEW, mark="abc")
    other = made(tmp_path / "other")
    with (other.folder / "boot" / "grub2" / "grubenv").open("wb") as file:
        file.truncate(1024)
    assert "expected 1024 bytes that begin with" in refusal(other)


def test_values_of_the_environment_keep_what_was_escaped() -> None:
    read = grub.read_block(block("kernelopts=a=b \nodd=a\\\\b\\\nc\nempty=\n"))
    assert read.variables == {"kernelopts": "a=b ", "odd": "a\\b\nc", "empty": ""}
    assert read.free == 1024 - len("# GRUB Environment Block\nkernelopts=a=b \nodd=a\\\\b\\\nc\nempty=\n")


def test_a_one_shot_boot_that_the_system_forgets_is_refused(tmp_path: Path) -> None:
    bench = made(tmp_path)
    wants = tmp_path / "etc" / "systemd" / "system" / "multi-user.target.wants"
    wants.mkdir(parents=True)
    (wants / "grub2-once.service").symlink_to("/usr/lib/systemd/system/grub2-once.service")
    loader = grub.Grub(bench, bench.system.loader.folder, etc=str(tmp_path / "etc"))
    with pytest.raises(ToolError, match=r"grub2-once\.service: .* booted for ever"):
        loader.check_one_shot()


def test_a_boot_partition_that_is_not_mounted_is_refused(tmp_path: Path) -> None:
    """What lies in the folder below it no loader reads."""
    bench = made(tmp_path)
    for folder in ("etc", "proc/self"):
        (bench.folder / folder).mkdir(parents=True, exist_ok=True)
    table = bench.folder / "proc" / "self" / "mountinfo"
    (bench.folder / "etc" / "fstab").write_text(
        "# /boot was here\nUUID=1 / ext4\nUUID=2 /boot/ xfs ro 0 2\nUUID=3 /data xfs\n"
    )
    table.write_text("22 1 8:0 / / rw - ext4 /dev/sda rw\n")
    assert "mount /boot" in refusal(bench)
    table.write_text(f"{table.read_text()}23 22 8:1 / /boot rw - xfs /dev/sdb rw\n")
    step(bench, "trial", kernel=NEW, mark="abc")


def test_a_boot_partition_that_is_mounted_read_only_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class ReadOnly:
        f_flag = 1

    bench = made(tmp_path)
    (bench.folder / "boot" / "grub2" / "grubenv").write_bytes(block("saved_entry=a\n"))
    monkeypatch.setattr("storqual_core.tools.grub.os.statvfs", lambda _path: ReadOnly)
    assert "mounted read-only" in refusal(bench)


def test_the_next_entry_of_somebody_else_is_there_again_after_a_restore(tmp_path: Path) -> None:
    bench = made(tmp_path, next_entry=f"token-{NEW}")
    step(bench, "trial", kernel=NEW, mark="abc")
    bench.reboot()
    assert step(bench, "verify", kernel=NEW, mark="abc")["facts"]["trial"] == "abc"
    bench.reboot()
    restore(str(bench.folder / "state"), Tools(bench, bench.system), check=False)
    assert bench.variables["next_entry"] == f"token-{NEW}"


def test_quotes_in_boot_options_stay_as_the_loader_gets_them(tmp_path: Path) -> None:
    bench = made(tmp_path)
    bench.write_entry(f"token-{NEW}", NEW, options='dyndbg="file a +p; file b +p" root=/dev/sda')
    step(bench, "trial", kernel=NEW, mark="abc")
    assert ' dyndbg="file a +p; file b +p" root=/dev/sda ' in (bench.system.loader.custom_text() or "")


def test_an_entry_whose_lines_end_as_on_windows_is_read_as_grub_reads_it(tmp_path: Path) -> None:
    bench, other = made(tmp_path / "bench"), made(tmp_path / "other")
    entry = bench.folder / "boot" / "loader" / "entries" / f"token-{NEW}.conf"
    entry.write_bytes(entry.read_bytes().replace(b"\n", b"\r\n"))
    for each in (bench, other):
        step(each, "trial", kernel=NEW, mark="abc")
    assert bench.system.loader.custom_text() == other.system.loader.custom_text()


@pytest.mark.parametrize("left", [b"", b"\n", bytes(300)])
def test_what_a_power_cut_leaves_of_a_new_entry_hides_no_other(tmp_path: Path, left: bytes) -> None:
    bench = made(tmp_path, "upstream")
    menu = bench.system.loader.entries()
    (bench.folder / "boot" / "loader" / "entries" / "token-6.12.0-1.x86_64.conf").write_bytes(left)
    assert bench.system.loader.entries() == menu
    step(bench, "trial", kernel=NEW, mark="abc")
    bench.reboot()
    assert bench.running == NEW


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("blscfg", "says whether that is Red Hat's"),
        ("insmod blscfg\nblscfg /other/entries", "reads another folder"),
        ("insmod blscfg\nblscfg (hd0,1)/loader/entries", "reads another folder"),
        ("insmod blscfg\nblscfg default non-default", "reads another folder"),
    ],
)
def test_a_call_that_is_not_understood_is_refused(tmp_path: Path, call: str, words: str) -> None:
    bench = made(tmp_path)
    config = bench.folder / "boot" / "grub2" / "grub.cfg"
    config.write_text(config.read_text().replace("insmod blscfg\nblscfg", call))
    assert words in refusal(bench)


@pytest.mark.parametrize(("module", "reader"), [("blscfg", "red hat"), ("blsuki", "upstream")])
def test_the_module_says_which_reader_it_is(tmp_path: Path, module: str, reader: str) -> None:
    bench = made(tmp_path)
    config = bench.folder / "boot" / "grub2" / "grub.cfg"
    config.write_text(config.read_text().replace("insmod blscfg\n", ""))
    (config.parent / "i386-pc").mkdir()
    (config.parent / "i386-pc" / f"{module}.mod").write_text("")
    assert bench.system.loader.reads_files() == reader


def test_two_names_that_are_one_to_the_loader_are_refused(tmp_path: Path) -> None:
    bench = made(tmp_path)
    bench.write_entry(f"token-{NEW}".replace("-162", "-0162"), NEW)
    assert "have one name to GRUB" in refusal(bench)
