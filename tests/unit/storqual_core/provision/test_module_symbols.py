# SPDX-License-Identifier: Apache-2.0
"""Whether a kernel loads a module of another one: as the kernel decides, symbol by symbol."""

import gzip
import lzma
import random
from pathlib import Path

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.kit.machine import Machine
from storqual_core.provision.driver import ModuleFile, objections
from storqual_core.provision.module_symbols import compare_symbols, fit_of_file, module_symbols, parse_symvers
from storqual_core.tools.kmod import Build
from tests.support.module_file import module_bytes, symvers_text

CRCS = {"module_layout": 0x12345678, "scsi_host_alloc": 0xFFFFFFFF, "printk": 1}
BUILT, RUNS = "5.14.0-427.20.1.el9_4.x86_64", "5.14.0-427.31.1.el9_4.x86_64"
MAGIC = "SMP preempt mod_unload modversions"


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("extended", [False, True])
def test_symbols_are_read_from_modules_of_every_kind(wide: bool, order: str, extended: bool) -> None:
    content = module_bytes(CRCS, needed=["late"], weak=["perhaps"], wide=wide, order=order, extended=extended)
    found = module_symbols(content)
    assert dict(found.crcs) == CRCS
    assert (found.needed, found.weak) == ({*CRCS, "late"}, {"perhaps"})


def test_a_packed_module_is_unpacked() -> None:
    for pack in (gzip.compress, lzma.compress):
        assert module_symbols(pack(module_bytes(CRCS))).crcs == CRCS


@pytest.mark.parametrize(
    ("changes", "differing", "missing"),
    [
        ({}, (), ()),
        ({"scsi_host_alloc": 5}, ("scsi_host_alloc",), ()),
        # the structure of modules itself, which no module takes as a symbol
        ({"module_layout": 5}, ("module_layout",), ()),
        ({"scsi_host_alloc": None}, (), ("scsi_host_alloc",)),
        # a symbol that may be missing, and one that the module has no CRC of
        ({"perhaps": 7}, (), ()),
        ({"perhaps": None, "late": 9}, (), ()),
    ],
)
def test_a_kernel_fits_when_it_exports_each_symbol_with_its_digest(
    changes: dict[str, int | None], differing: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    exported = {**CRCS, "late": 1, "perhaps": 2, **changes}
    text = symvers_text({name: crc for name, crc in exported.items() if crc is not None})
    module = module_symbols(module_bytes(CRCS, needed=["late"], weak=["perhaps"]))
    fit = compare_symbols(module, parse_symvers(text))
    assert (fit.differing, fit.missing) == (differing, missing)
    assert fit.compatible == (not differing and not missing)
    assert bool(fit.words) == (not fit.compatible)


def test_a_weak_symbol_with_another_digest_does_not_fit() -> None:
    """The kernel resolves it when it is there, and checks it then."""
    module = module_symbols(module_bytes({"perhaps": 3}, weak=["perhaps"]))
    assert compare_symbols(module, {"perhaps": 4}).differing == ("perhaps",)


def test_a_module_without_versions_is_told() -> None:
    fit = compare_symbols(module_symbols(module_bytes({}, needed=["printk"])), {"printk": 1})
    assert not fit.compatible
    assert fit.words == "it was built without MODVERSIONS"


def put(root: Path, release: str, name: str, crcs: dict[str, int]) -> Machine:
    """A machine with the symvers of a kernel."""
    text = symvers_text(crcs).encode()
    pack = {".gz": gzip.compress, ".xz": lzma.compress}.get(name[-3:], bytes)
    for folder in (f"lib/modules/{release}/build", "boot"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / name.replace("REL", release)).write_bytes(pack(text))
    return Machine(str(root))


@pytest.mark.parametrize(
    "name",
    [
        *("lib/modules/REL/symvers.gz", "lib/modules/REL/symvers.xz", "boot/symvers-REL.gz"),
        "lib/modules/REL/build/Module.symvers",
    ],
)
def test_what_a_kernel_exports_is_found_where_its_distribution_puts_it(tmp_path: Path, name: str) -> None:
    machine = put(tmp_path, RUNS, name, CRCS)
    (tmp_path / "a.ko").write_bytes(module_bytes(CRCS))
    assert fit_of_file(str(tmp_path / "a.ko"), machine, RUNS).compatible
    with pytest.raises(ToolError, match=r"what kernel 6\.0 exports is not known: none of /lib/modules/6\.0/symvers"):
        fit_of_file(str(tmp_path / "a.ko"), machine, "6.0")


@pytest.mark.parametrize(
    ("exported", "magic", "native", "told"),
    [
        # a kABI module: built for one release, loaded by the next
        (CRCS, MAGIC, f"{RUNS} {MAGIC}", ""),
        (CRCS, MAGIC, "", ""),
        ({**CRCS, "printk": 2}, MAGIC, f"{RUNS} {MAGIC}", "the kernel differs in printk"),
        ({"module_layout": CRCS["module_layout"]}, MAGIC, "", "the kernel lacks printk, scsi_host_alloc"),
        (CRCS, MAGIC, f"{RUNS} SMP mod_unload modversions", "this kernel as 'SMP mod_unload modversions'"),
        # Fedora has no MODVERSIONS: the release alone decides
        (CRCS, "SMP mod_unload", f"{RUNS} SMP mod_unload", "has to load it"),
        (CRCS, MAGIC, f"{RUNS} SMP preempt mod_unload", "has to load it"),
    ],
)
def test_a_driver_of_another_release_is_taken_where_the_kernel_would_load_it(
    tmp_path: Path, exported: dict[str, int], magic: str, native: str, told: str
) -> None:
    machine = put(tmp_path, RUNS, "boot/symvers-REL.gz", exported)
    path = tmp_path / "hba.ko"
    path.write_bytes(module_bytes(CRCS))
    file = ModuleFile(str(path), "hba", "00", Build("AA", "1", f"{BUILT} {magic}", str(path)), "")
    found = objections(file, "", machine, RUNS, Build(vermagic=native) if native else None)
    assert len(found) == bool(told)
    assert told in "".join(found)


def test_a_driver_of_another_release_is_refused_where_nothing_tells_what_the_kernel_exports(tmp_path: Path) -> None:
    path = tmp_path / "hba.ko"
    path.write_bytes(module_bytes(CRCS))
    file = ModuleFile(str(path), "hba", "00", Build("AA", "1", f"{BUILT} {MAGIC}", str(path)), "")
    (sentence,) = objections(file, "", Machine(str(tmp_path)), RUNS, None)
    assert "has to load it: what kernel" in sentence


def test_a_broken_module_or_symvers_is_a_sentence() -> None:
    whole = module_bytes(CRCS, needed=["late"])
    for seed in range(2000):
        chance = random.Random(seed)
        data = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        content = bytes(data[: chance.randint(1, len(data))] if chance.random() < 0.3 else data)
        try:
            found = module_symbols(content)
        except ToolError:
            continue
        assert all(isinstance(crc, int) and 0 <= crc <= 0xFFFFFFFF for crc in found.crcs.values())
    for text in ("", "hello\n", "0x12 printk\n", f"{symvers_text(CRCS)}0x\n"):
        with pytest.raises(ToolError, match="symvers"):
            parse_symvers(text)
