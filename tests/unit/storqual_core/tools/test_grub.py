# SPDX-License-Identifier: Apache-2.0
"""GRUB: entries, the default, a trial entry, and never an entry that could not fall back."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.kit.errors import ToolError
from storqual_core.tools import grub
from tests.support.replay import Call, Replay
from tests.support.tool_fixtures import fixture_text

CONFIG = fixture_text("grub", "grub.cfg")


def boot(tmp_path: Path, *calls: Call, config: str = CONFIG) -> grub.Grub:
    """A boot loader in a folder of its own."""
    folder = tmp_path / "grub"
    folder.mkdir(exist_ok=True)
    (folder / "grub.cfg").write_text(config)
    return grub.Grub(Replay(list(calls)), str(folder))


def test_entries_are_found_with_the_path_through_their_submenu() -> None:
    entries = grub.parse_config(CONFIG)
    assert [(entry.index, entry.path, entry.release) for entry in entries] == [
        ("0", "gnulinux-simple-1111", "6.1.0-2-amd64"),
        ("1>0", "advanced-1111>linux-2-1111", "6.1.0-2-amd64"),
        ("1>1", "advanced-1111>linux-1-1111", "6.1.0-1-amd64"),
        ("2", "memtest", ""),
    ]
    assert entries[0].arguments == ["root=UUID=1111", "ro", "console=ttyS0", "panic=60"]


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        ("1>1", "1>1"),
        ("2", "2"),
        ("memtest", "2"),
        ("Memory test", "2"),
        ("advanced-1111>linux-1-1111", "1>1"),
        ("Advanced options for Debian GNU/Linux>Debian GNU/Linux, with Linux 6.1.0-1-amd64", "1>1"),
    ],
)
def test_an_entry_is_found_by_all_its_names(wanted: str, index: str) -> None:
    entry, named = grub.resolve_entry(grub.parse_config(CONFIG), wanted)
    assert entry is not None
    assert (entry.index, named) == (index, True)


def test_a_name_that_is_no_entry_is_not_found() -> None:
    """A removed kernel may still be the saved entry."""
    entry, named = grub.resolve_entry(grub.parse_config(CONFIG), "gone")
    assert entry is not None
    assert (entry.index, named) == ("0", False)


def test_a_trial_entry_boots_as_its_template_with_another_kernel() -> None:
    text = grub.build_entry(
        grub.parse_config(CONFIG)[0], "storqual-trial", "vmlinuz-7-new", "initrd.img-7-new", ["nosmt", "panic=5"]
    )
    assert text == (
        "menuentry 'storqual-trial' --unrestricted --id storqual-trial {\n"
        "    load_video\n"
        "    if [ x$grub_platform = xxen ]; then\n"
        "    insmod xzio\n"
        "    fi\n"
        "    search --no-floppy --fs-uuid --set=root 1111\n"
        "    linux /boot/vmlinuz-7-new root=UUID=1111 ro console=ttyS0 nosmt panic=5\n"
        "    initrd /boot/initrd.img-7-new\n"
        "}\n"
    )
    (entry,) = grub.parse_config(text)
    assert (entry.identifier, entry.release) == ("storqual-trial", "7-new")


def test_a_template_without_initramfs_gets_the_one_of_the_kernel() -> None:
    """Where the old kernel needed none, the new one may."""
    (template,) = grub.parse_config("menuentry 'a' {\nlinux /vmlinuz-1 root=/dev/sda\n}\n")
    assert "    initrd /initrd.img-2\n" in grub.build_entry(template, "t", "vmlinuz-2", "initrd.img-2", [])


@pytest.mark.parametrize("word", ["a b", "x;reboot", "$(x)", "a'b", "{", "#x\n"])
def test_arguments_that_grub_would_read_as_commands_are_refused(word: str) -> None:
    with pytest.raises(ToolError, match="cannot be written for the boot loader"):
        grub.build_entry(grub.parse_config(CONFIG)[0], "t", "vmlinuz-2", "", [word])


def test_the_default_is_the_saved_entry(tmp_path: Path) -> None:
    assert boot(tmp_path).default({"saved_entry": "1>1"}).release == "6.1.0-1-amd64"


def test_the_first_entry_is_the_default_when_none_is_saved(tmp_path: Path) -> None:
    assert boot(tmp_path).default({}).index == "0"
    assert boot(tmp_path).default({"saved_entry": "gone"}).index == "0"


MENU = (Path(__file__).with_name("single_case") / "grub_menu.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("wanted", "upstream", "red_hat"),
    json.loads(Path(__file__).with_name("default_entries.json").read_text(encoding="utf-8")),
)
def test_a_word_means_what_the_loader_takes_it_for(
    wanted: str, upstream: list[object], red_hat: list[object]
) -> None:
    entries = grub.parse_config(MENU)
    for numbers_first, expected in ((True, upstream), (False, red_hat)):
        entry, named = grub.resolve_entry(entries, wanted, numbers_first=numbers_first)
        assert entry is not None
        assert [entry.index, named] == expected


def test_own_entries_stand_where_the_configuration_reads_them(tmp_path: Path) -> None:
    config = "source ${config_directory}/custom.cfg\nmenuentry 'a' --id a { linux /vmlinuz-1 }\n"
    loader = boot(tmp_path, config=config)
    loader.write_custom("menuentry 't' --id storqual-trial { linux /vmlinuz-2 }\n")
    assert [(entry.index, entry.identifier) for entry in loader.entries()] == [("0", "storqual-trial"), ("1", "a")]


def test_a_fixed_default_is_read_from_the_configuration(tmp_path: Path) -> None:
    fixed = CONFIG.replace('set default="${saved_entry}"', 'set default="2"')
    assert boot(tmp_path, config=fixed).default({"saved_entry": "1>1"}).index == "2"
    with pytest.raises(ToolError, match="GRUB_DEFAULT=saved"):
        boot(tmp_path, config=fixed).set_default("0")


@pytest.mark.parametrize(("gone", "remedy"), [("next_entry", "update-grub"), ("custom.cfg", "41_custom")])
def test_a_loader_that_would_ignore_a_trial_is_refused(tmp_path: Path, gone: str, remedy: str) -> None:
    with pytest.raises(ToolError, match=remedy):
        boot(tmp_path, config=CONFIG.replace(gone, "x")).check_one_shot()


def test_own_entries_are_replaced_and_nothing_else(tmp_path: Path) -> None:
    loader = boot(tmp_path)
    loader.custom.write_text("menuentry 'mine' {\n  linux /vmlinuz-1\n}\n")
    entry = grub.build_entry(grub.parse_config(CONFIG)[0], "storqual-trial", "vmlinuz-7", "initrd.img-7", [])
    loader.put_entry(entry, "storqual-trial")
    loader.put_entry(entry.replace("-7", "-8"), "storqual-trial")
    text = loader.custom_text()
    assert text.count("menuentry") == 2
    assert "vmlinuz-8" in text
    assert "vmlinuz-7" not in text
    assert [entry.index for entry in loader.entries()][-2:] == ["3", "4"]


def test_a_missing_custom_file_is_put_back_as_missing(tmp_path: Path) -> None:
    loader = boot(tmp_path)
    loader.write_custom("x")
    loader.write_custom(None)
    assert loader.custom_text() is None
    loader.write_custom(None)


def test_one_shot_and_default_use_the_loaders_own_commands(tmp_path: Path) -> None:
    folder = tmp_path / "grub"
    loader = boot(
        tmp_path,
        Call(f"grub-reboot --boot-directory={tmp_path} storqual-trial"),
        Call(f"grub-set-default --boot-directory={tmp_path} '1>1'"),
        Call(f"grub-editenv {folder}/grubenv list", "saved_entry=1>1\nnext_entry=a=b\nnoise\n"),
        Call(f"grub-editenv {folder}/grubenv unset next_entry"),
        Call(f"grub-editenv {folder}/grubenv set saved_entry=0"),
    )
    loader.boot_once("storqual-trial")
    loader.set_default("1>1")
    assert loader.environment() == {"saved_entry": "1>1", "next_entry": "a=b"}
    loader.put_variable("next_entry", None)
    loader.put_variable("saved_entry", "0")
    loader.runner.done()


def test_a_machine_without_grub_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="is GRUB the loader here"):
        grub.Grub(Replay([]), str(tmp_path / "none")).config()


@given(st.text(alphabet="menutrysbli '\"{}\n\t-d$x>\\", max_size=200))
def test_no_configuration_gives_anything_but_entries_or_a_sentence(text: str) -> None:
    try:
        entries = grub.parse_config(text)
    except ToolError:
        return
    assert all(entry.index for entry in entries)


@pytest.mark.parametrize(("kind", "words"), [("dm", "LVM or device mapper"), ("md", "an md array")])
def test_a_loader_that_cannot_forget_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, words: str
) -> None:
    """GRUB writes no LVM, md or btrfs: the trial would be booted for ever."""
    loader = boot(tmp_path)
    monkeypatch.setattr("os.major", lambda _device: 253)
    monkeypatch.setattr("os.minor", lambda _device: 0)
    (tmp_path / "sys" / "dev" / "block" / "253:0" / kind).mkdir(parents=True)
    with pytest.raises(ToolError, match=words):
        grub.Grub(loader.runner, loader.folder, str(tmp_path / "sys")).check_one_shot()
    grub.Grub(loader.runner, loader.folder, str(tmp_path / "none")).check_one_shot()
    monkeypatch.setattr("os.major", lambda _device: 0)
    with pytest.raises(ToolError, match="btrfs or alike"):
        grub.Grub(loader.runner, loader.folder, str(tmp_path / "none")).check_one_shot()


@pytest.mark.parametrize(
    "text",
    [
        "menuentry 'One' --id=one {\n linux /vmlinuz-6.1.0 ro quiet\n initrd /initrd.img-6.1.0\n}\n",
        "menuentry 'One' --id=one\n{\n linux /vmlinuz-6.1.0 ro quiet\n initrd /initrd.img-6.1.0\n}\n",
        "menuentry 'One' --id=one { linux /vmlinuz-6.1.0 ro quiet; initrd /initrd.img-6.1.0 }\n",
        "menuentry 'One' --id=one { # the only one\n linux /vmlinuz-6.1.0 ro quiet\n initrd /initrd.img-6.1.0\n}\n",
        "menuentry 'One' --id=one\n\n{ linux /vmlinuz-6.1.0 ro quiet\n initrd /initrd.img-6.1.0 ; }\n",
    ],
    ids=["usual", "brace below", "one line", "remark", "brace below with a command"],
)
def test_an_entry_is_read_however_its_owner_wrote_it(text: str) -> None:
    rest = 'menuentry "Two { of } it; \'s" {\n linux ${path}/vmlinuz-6.2.0 a=1\n}\n'
    one, two = grub.parse_config(text + rest)
    assert (one.title, one.identifier, one.index, one.release) == ("One", "one", "0", "6.1.0")
    assert one.arguments == ["ro", "quiet"]
    assert (two.index, two.kernel, two.arguments) == ("1", "${path}/vmlinuz-6.2.0", ["a=1"])


def test_a_head_without_a_block_is_an_error() -> None:
    with pytest.raises(ToolError, match="an entry without a block: \"menuentry 'One'\""):
        grub.parse_config("menuentry 'One'\nlinux /vmlinuz-6.1.0\n")


def test_an_entry_that_does_not_end_is_an_error() -> None:
    with pytest.raises(ToolError, match="ends within the entry 'One'"):
        grub.parse_config("menuentry 'One' {\nlinux /vmlinuz-6.1.0\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("insmod blscfg\nblscfg\n", "from /boot/loader/entries"),
        ("default=0\ntitle CentOS (2.6.32)\n\troot (hd0,0)\n\tkernel /vmlinuz-2.6.32 ro\n", "GRUB 0.97"),
    ],
)
def test_entries_of_another_kind_are_an_error_and_not_none(text: str, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        grub.parse_config(text)


def test_files_in_quotes_are_taken_out_of_them() -> None:
    text = CONFIG.replace("/boot/vmlinuz-6.1.0-2-amd64 root", '"/@/boot/vmlinuz-6.1.0-2-amd64" root', 1)
    text = text.replace("/boot/initrd.img-6.1.0-2-amd64", "'/@/boot/initrd.img-6.1.0-2-amd64'", 1)
    template = grub.parse_config(text)[0]
    assert (template.kernel, template.release) == ("/@/boot/vmlinuz-6.1.0-2-amd64", "6.1.0-2-amd64")
    built = grub.build_entry(template, "t", "vmlinuz-2", "initrd.img-2", [])
    assert "    linux /@/boot/vmlinuz-2 root=UUID=1111 ro" in built
    assert "    initrd /@/boot/initrd.img-2\n" in built
    blank = grub.parse_config(text.replace('"/@/boot', '"/@ /boot'))[0]
    with pytest.raises(ToolError, match="in quotes that are not understood"):
        grub.build_entry(blank, "t", "vmlinuz-2", "initrd.img-2", [])
