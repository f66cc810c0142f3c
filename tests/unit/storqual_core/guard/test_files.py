# SPDX-License-Identifier: Apache-2.0
"""File targets are made by storqual, lie in one folder, and are known by their inode."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from storqual_core.guard import file_targets, hold
from storqual_core.guard.claims import Claim
from storqual_core.guard.file_targets import make_file
from storqual_core.kit.errors import GuardRefusalError, StorqualError
from storqual_core.kit.machine import Machine, Node

SIZE = 1 << 20


def claim(state: Path, name: str = "drive0", **changes: object) -> Claim:
    """The claim on a file of the targets folder."""
    path = str(state / "targets" / name)
    return Claim(
        **{"id": path, "wwn": "", "serial": "", "vendor": "", "model": "", "size": SIZE, "file": path, **changes}
    )  # type: ignore[arg-type]


def test_a_file_is_made_once_and_given_out(tmp_path: Path) -> None:
    mine = claim(tmp_path)
    assert make_file(mine, tmp_path)
    assert not make_file(mine, tmp_path)
    with hold.hold([mine], purpose="write", state_dir=tmp_path) as held:
        assert dict(held) == {mine.id: mine.file}
        assert (held.window(mine.id).offset, held.window(mine.id).size) == (0, SIZE)
        with (
            pytest.raises(GuardRefusalError, match="another program opened it"),
            hold.hold([mine], purpose="write", state_dir=tmp_path),
        ):
            pytest.fail("given out twice")
        with pytest.raises(StorqualError, match="cannot be stamped"):
            held.stamp(mine.id)
    assert not any(Path(mine.file).read_bytes())


def replace(path: Path) -> None:
    """Put another file in its place."""
    other = path.with_name("other")
    other.write_bytes(bytes(SIZE))
    other.replace(path)


def symlink(path: Path) -> None:
    """Put a link to precious data in its place."""
    precious = path.parent.parent / "precious"
    path.replace(precious)
    path.symlink_to(precious)


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: path.unlink(), "it does not exist; run the preflight of a run, which creates it"),
    "symbolic-link": (symlink, "it is a symbolic link; claim the file itself"),
    "replaced": (replace, "it is another file than the claimed one"),
    "other-size": (lambda path: os.truncate(path, SIZE - 1), "its size is 1048575 bytes, the claim says 1048576"),
    "hard-link": (lambda path: os.link(path, path.parent / "b"), "it has 2 names (hard links)"),
    "folder": (lambda path: (path.unlink(), path.mkdir()), "it is not a regular file"),
    "record-lost": (lambda path: (path.parent / ".claims.json").unlink(), "storqual did not make it"),
    "record-damaged": (lambda path: (path.parent / ".claims.json").write_text("{"), "cannot be read"),
}


@pytest.mark.parametrize("state", BAD)
def test_anything_else_in_its_place_is_refused(tmp_path: Path, state: str) -> None:
    mine = claim(tmp_path)
    make_file(mine, tmp_path)
    arrange, expected = BAD[state]
    arrange(Path(mine.file))
    said = [str(refusal) for refusal in hold.check([mine], purpose="write", state_dir=tmp_path)]
    assert any(expected in sentence for sentence in said), said
    with pytest.raises(GuardRefusalError), hold.hold([mine], purpose="write", state_dir=tmp_path):
        pytest.fail("given out")


@pytest.mark.parametrize("state", ["replaced", "symbolic-link", "hard-link", "folder", "missing"])
def test_a_file_that_is_replaced_after_the_check_is_not_opened(
    tmp_path: Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was examined is what is opened, or nothing."""
    mine = claim(tmp_path)
    make_file(mine, tmp_path)
    arrange, _ = BAD[state]
    opened = hold.open_file
    monkeypatch.setattr(hold, "open_file", lambda found: (arrange(Path(found.path)), opened(found))[1])
    with (
        pytest.raises(GuardRefusalError, match=r"it cannot be opened: (it is a different file now|No such file)"),
        hold.hold([mine], purpose="write", state_dir=tmp_path),
    ):
        pytest.fail("given out")


def test_a_file_that_is_replaced_while_it_is_held_stays_the_one_that_is_written(tmp_path: Path) -> None:
    mine = claim(tmp_path)
    make_file(mine, tmp_path)
    with hold.hold([mine], purpose="write", state_dir=tmp_path) as held:
        symlink(Path(mine.file))
        precious = tmp_path / "precious"
        Path(mine.file).unlink()
        Path(mine.file).write_bytes(b"somebody's")
        Path(held.opened(mine.id)).write_bytes(b"measured")
    assert precious.read_bytes() == b"measured"
    assert Path(mine.file).read_bytes() == b"somebody's"


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "{state}/drive0", "{state}/targets/../drive0", "{state}/targets/.claims.json"]
)
def test_a_file_elsewhere_is_refused_and_not_made(tmp_path: Path, path: str) -> None:
    """Only the folder `targets` of the state directory."""
    (tmp_path / "targets").mkdir()
    mine = claim(tmp_path, file=path.format(state=tmp_path))
    assert "it is not in" in str(hold.check([mine], purpose="write", state_dir=tmp_path)[0])
    with pytest.raises(GuardRefusalError, match="it is not in"):
        make_file(mine, tmp_path)


def test_a_file_that_is_there_already_is_not_adopted(tmp_path: Path) -> None:
    (tmp_path / "targets").mkdir()
    (tmp_path / "targets" / "drive0").write_bytes(b"precious")
    with pytest.raises(GuardRefusalError, match="storqual did not make it"):
        make_file(claim(tmp_path), tmp_path)
    assert (tmp_path / "targets" / "drive0").read_bytes() == b"precious"


def test_what_takes_the_name_while_a_file_is_made_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = claim(tmp_path)
    real = file_targets.replace_json

    def meanwhile(*arguments: object) -> None:
        real(*arguments)  # type: ignore[arg-type]
        Path(mine.file).write_bytes(b"precious")

    monkeypatch.setattr(file_targets, "replace_json", meanwhile)
    with pytest.raises(StorqualError, match="could not be made"):
        make_file(mine, tmp_path)
    assert Path(mine.file).read_bytes() == b"precious"


LARGE = 20 << 20
HOLDERS = {
    "open": "import os; os.open(sys.argv[1], os.O_WRONLY)",
    "open read-only": "import os; os.open(sys.argv[1], os.O_RDONLY)",
    "mapped": "import mmap; f = open(sys.argv[1], 'r+b'); m = mmap.mmap(f.fileno(), 0); f.close()",
}


@contextmanager
def holder(path: str, how: str) -> Iterator[None]:
    """Another program that has the file."""
    code = f"import sys; {HOLDERS[how]}; print('ready', flush=True); sys.stdin.read()"
    words = [sys.executable, "-c", code, path]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"ready\n"
        yield
        program.communicate()


def refusals(mine: Claim, state: Path, purpose: str = "write", machine: Machine | None = None) -> list[str]:
    """What the guard says; its hold must agree, and must leave the file as it is."""
    before = Path(mine.file).read_bytes()
    found = [str(one) for one in hold.check([mine], purpose=purpose, state_dir=state, machine=machine)]
    if found:
        with pytest.raises(GuardRefusalError), hold.hold([mine], purpose=purpose, state_dir=state, machine=machine):
            pytest.fail("given out")
        assert Path(mine.file).read_bytes() == before
    return found


@pytest.mark.parametrize("purpose", ["write", "read"])
@pytest.mark.parametrize(("how", "told"), [("open", "it is open for writing in"), ("mapped", "it is mapped into")])
def test_a_file_that_another_program_can_write_is_refused(tmp_path: Path, how: str, told: str, purpose: str) -> None:
    mine = claim(tmp_path)
    make_file(mine, tmp_path)
    with holder(mine.file, how):
        (said,) = refusals(mine, tmp_path, purpose)
    assert told in said
    assert refusals(mine, tmp_path, purpose) == []


def test_a_file_that_another_program_reads_is_given_out(tmp_path: Path) -> None:
    mine = claim(tmp_path)
    make_file(mine, tmp_path)
    with holder(mine.file, "open read-only"):
        assert refusals(mine, tmp_path) == []


class Elsewhere(Machine):
    """This machine with a loop device (`source` is what the kernel has of it), swap space or export besides."""

    def __init__(self, *, loop: str = "", source: Node | None = None, swap: str = "", served: str = "") -> None:
        super().__init__()
        self._loop, self._source, self._swap, self._served = loop, source, swap, served

    def names(self, path: str) -> list[str]:
        subsystems = "/sys/kernel/config/nvmet/subsystems"
        if self._served and path in (subsystems, f"{subsystems}/one/namespaces"):
            return ["one"]
        return ["loop77"] if self._loop and path == "/sys/block" else super().names(path)

    def exists(self, path: str) -> bool:
        return bool(self._served and path.endswith("/device_path") and "/one/" in path) or super().exists(path)

    def text(self, path: str) -> str:
        if path == "/sys/block/loop77/loop/backing_file":
            return self._loop
        if self._served and path.endswith("one/namespaces/one/device_path"):
            return self._served
        return super().text(path)

    def lines(self, path: str) -> list[str]:
        return (
            ["Filename", f"{self._swap} file 1 0 -2"] if self._swap and path == "/proc/swaps" else super().lines(path)
        )

    def loop_source(self, path: str) -> Node | None:
        return self._source if path == "/dev/loop77" else super().loop_source(path)


def node_of(path: str) -> Node:
    found = Machine().node(path)
    assert found is not None
    return found


SHARED: dict[str, tuple[Callable[[str, str], Machine], str]] = {
    "loop by its path": (lambda path, _: Elsewhere(loop=path), "it backs loop device loop77"),
    "loop by a path that was removed": (lambda path, _: Elsewhere(loop=f"{path} (deleted)"), "it backs loop device"),
    "loop by inode": (lambda path, _: Elsewhere(loop="/gone", source=node_of(path)), "it backs loop device loop77"),
    "loop by another path": (lambda _, link: Elsewhere(loop=link), "it backs loop device loop77"),
    "swap": (lambda path, _: Elsewhere(swap=path), "it is active swap space"),
    "served": (lambda path, _: Elsewhere(served=path), "it is served to other machines by an NVMe target"),
}


@pytest.mark.parametrize("how", SHARED)
@pytest.mark.parametrize("purpose", ["write", "read"])
def test_a_file_that_the_kernel_uses_is_refused(tmp_path: Path, how: str, purpose: str) -> None:
    mine = claim(tmp_path)
    make_file(mine, tmp_path)
    link = tmp_path / "another-name"
    link.symlink_to(mine.file)
    machine, told = SHARED[how]
    (said,) = refusals(mine, tmp_path, purpose, machine(mine.file, str(link)))
    assert told in said


def privileged(*words: str) -> str:
    """Run a command that needs root; skip where it cannot be had."""
    try:
        ended = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as problem:
        pytest.skip(f"{words[0]}: {problem.strerror}")
    if ended.returncode:
        pytest.skip(f"{' '.join(words)}: {ended.stderr.strip()}")
    return ended.stdout.strip()


def test_a_file_behind_a_real_loop_device_is_refused(tmp_path: Path) -> None:
    mine = claim(tmp_path)
    make_file(mine, tmp_path)
    loop = privileged("losetup", "--find", "--show", mine.file)
    try:
        assert any("backs loop device" in said for said in refusals(mine, tmp_path))
    finally:
        privileged("losetup", "--detach", loop)


def test_a_file_that_is_mounted_elsewhere_is_refused(tmp_path: Path) -> None:
    mine = claim(tmp_path)
    make_file(mine, tmp_path)
    point = tmp_path / "point"
    point.touch()
    privileged("mount", "--bind", mine.file, str(point))
    try:
        assert any(f"it is mounted on {point}" in said for said in refusals(mine, tmp_path))
    finally:
        privileged("umount", str(point))


def ext4() -> bytes:
    """What libblkid takes for the start of an ext4."""
    superblock = bytearray(2048)
    superblock[1024:1028] = (1024).to_bytes(4, "little")
    superblock[1028:1032] = (4096).to_bytes(4, "little")
    superblock[1024 + 0x38 : 1024 + 0x3A] = b"\x53\xef"
    superblock[1024 + 0x4C] = 1
    superblock[1024 + 0x58 : 1024 + 0x5A] = (256).to_bytes(2, "little")
    superblock[1024 + 0x5C], superblock[1024 + 0x60] = 4, 0x40
    return bytes(superblock)


def put(path: str, place: int, data: bytes) -> None:
    """Write into the file in its place."""
    with Path(path).open("r+b") as stream:
        stream.seek(place)
        stream.write(data)


@pytest.mark.parametrize(
    ("place", "data", "told"),
    [
        (0, ext4(), "it holds a file system (ext"),
        (0, b"somebody's", "it holds data of an unknown kind in its first 8 MiB"),
        (LARGE - 4, b"data", "it holds data of an unknown kind in its last 8 MiB"),
        (LARGE // 2, b"data", "it holds data that storqual did not write"),
    ],
    ids=["file system", "start", "end", "middle"],
)
@pytest.mark.parametrize("used", [False, True], ids=["new", "used before"])
def test_a_file_with_somebodys_data_is_refused(
    tmp_path: Path, place: int, data: bytes, told: str, *, used: bool
) -> None:
    mine = claim(tmp_path, size=LARGE)
    make_file(mine, tmp_path)
    if used:
        with hold.hold([mine], purpose="write", state_dir=tmp_path):
            put(mine.file, 0, b"\xa5" * 4096)
            put(mine.file, 0, bytes(4096))
    put(mine.file, place, data)
    (said,) = refusals(mine, tmp_path)
    assert told in said
    assert "delete it, and run the preflight again" in said
    assert refusals(mine, tmp_path, "read") == []


def measured(mine: Claim, state: Path, data: bytes = b"\xa5" * 4096) -> None:
    """One hold in which a program writes."""
    with hold.hold([mine], purpose="write", state_dir=state) as held:
        put(held.opened(mine.id), 0, data)


def test_what_storqual_wrote_is_written_over_and_nothing_else(tmp_path: Path) -> None:
    mine = claim(tmp_path, size=LARGE)
    make_file(mine, tmp_path)
    for _ in range(3):
        measured(mine, tmp_path)
    with hold.hold([mine], purpose="read", state_dir=tmp_path):
        pass
    assert refusals(mine, tmp_path) == []
    put(mine.file, 100, b"somebody's")
    assert "data of an unknown kind" in refusals(mine, tmp_path)[0]


def test_what_a_killed_program_left_is_known_and_a_file_system_on_it_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = claim(tmp_path, size=LARGE)
    make_file(mine, tmp_path)
    with monkeypatch.context() as killed:
        killed.setattr(hold, "take_back_files", lambda *_: None)
        measured(mine, tmp_path)
    assert refusals(mine, tmp_path) == []
    put(mine.file, 0, ext4())
    assert "it holds a file system (ext" in refusals(mine, tmp_path)[0]


def test_a_file_of_a_former_version_counts_as_written_by_storqual(tmp_path: Path) -> None:
    """Its record has the inode alone."""
    mine = claim(tmp_path, size=LARGE)
    make_file(mine, tmp_path)
    record = tmp_path / "targets" / ".claims.json"
    record.write_text(json.dumps({"storqual.targets/1": {"drive0": Path(mine.file).stat().st_ino}}))
    put(mine.file, 0, b"\xa5" * 4096)
    assert refusals(mine, tmp_path) == []
    measured(mine, tmp_path)
    put(mine.file, 0, b"somebody's")
    assert refusals(mine, tmp_path) != []


def test_a_file_that_is_filled_between_the_looks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = claim(tmp_path, size=LARGE)
    make_file(mine, tmp_path)
    opened = hold.open_file
    monkeypatch.setattr(hold, "open_file", lambda state: (put(mine.file, 0, b"somebody's"), opened(state))[1])
    with (
        pytest.raises(GuardRefusalError, match="it holds data of an unknown kind"),
        hold.hold([mine], purpose="write", state_dir=tmp_path),
    ):
        pytest.fail("given out")


def test_what_has_the_name_of_an_unfinished_file_is_not_emptied(tmp_path: Path) -> None:
    """It may be a further name of somebody's file."""
    mine, other = claim(tmp_path), tmp_path / "other"
    other.write_bytes(b"data")
    file_targets.targets_folder(tmp_path).mkdir()
    os.link(other, Path(mine.file).with_name(".drive0.partial"))
    assert make_file(mine, tmp_path)
    assert other.read_bytes() == b"data"
