# SPDX-License-Identifier: Apache-2.0
"""A machine that boots with GRUB, made of files: its commands change them as the real ones do."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from storqual_core.kit.command import Completed
from storqual_core.kit.errors import MissingToolError
from storqual_core.provision.boot import System, TrialBoot, boot_facts, keep_kernel, prepare_trial, verify_trial
from storqual_core.provision.engine import Call

_HEAD = """\
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
else
   set default="${saved_entry}"
fi
"""
_TAIL = "source ${config_directory}/custom.cfg\n"


def _menu(kernels: Sequence[str]) -> str:
    """grub.cfg as update-grub writes it: the newest kernel first."""
    entries = [
        f"menuentry 'Linux {kernel}' $menuentry_id_option 'linux-{kernel}' {{\n"
        f"\tlinux\t/boot/vmlinuz-{kernel} root=/dev/vda console=ttyS0\n\tinitrd\t/boot/initrd.img-{kernel}\n}}\n"
        for kernel in sorted(kernels, reverse=True)
    ]
    return _HEAD + "".join(entries) + _TAIL


@dataclass
class FakeBench:
    """Kernels in /boot, the loader's environment, dpkg's database, and what runs."""

    folder: Path
    kernels: list[str]
    running: str
    boot_id: str = "00000000-0000-0000-0000-000000000001"
    variables: dict[str, str] = field(default_factory=dict)
    packages: dict[str, tuple[str, str]] = field(default_factory=dict)
    modules: dict[str, dict[str, str]] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)
    broken: tuple[str, ...] = ()
    settled: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.folder / "boot" / "grub").mkdir(parents=True)
        (self.folder / "proc" / "sys" / "kernel" / "random").mkdir(parents=True)
        (self.folder / "sys").mkdir()
        self.install_kernels()
        self.boot_with(["root=/dev/vda"])

    def files(self) -> dict[str, bytes]:
        boot = self.folder / "boot"
        return {str(path.relative_to(boot)): path.read_bytes() for path in boot.rglob("*") if path.is_file()}

    def install_kernels(self) -> None:
        boot = self.folder / "boot"
        for kernel in self.kernels:
            (boot / f"vmlinuz-{kernel}").write_text("")
            (boot / f"initrd.img-{kernel}").write_text("")
        (boot / "grub" / "grub.cfg").write_text(_menu(self.kernels))

    def boot_with(self, arguments: Sequence[str]) -> None:
        proc = self.folder / "proc"
        (proc / "cmdline").write_text(" ".join(arguments) + "\n")
        (proc / "sys" / "kernel" / "random" / "boot_id").write_text(self.boot_id + "\n")
        for name, builds in self.modules.items():
            folder = self.folder / "sys" / "module" / name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "srcversion").write_text(builds[self.running] + "\n")
            (folder / "initstate").write_text("live\n")

    def reboot(self) -> None:
        """Boot what the loader would boot, as GRUB does: the one-shot entry is forgotten first."""
        loader = self.system.loader
        once = self.variables.get("next_entry", "")
        if once:
            # GRUB empties it, and leaves it there
            self.variables["next_entry"] = ""
        entries = loader.entries()
        chosen = next((entry for entry in entries if entry.path == once), None) or loader.default()
        assert chosen is not None
        self.boot_id = self.boot_id[:-1] + str(int(self.boot_id[-1]) + 1)
        if "rdinit=/storqual-panic" in chosen.arguments:
            self.reboot()
            return
        self.running = chosen.release
        self.boot_with(chosen.arguments)

    @property
    def system(self) -> System:
        return System(self, f"{self.folder}/boot", f"{self.folder}/proc", f"{self.folder}/sys", release=self.running)

    def __call__(self, argv: Sequence[str], **_options: Any) -> Completed:
        line = " ".join(argv)
        self.seen.append(line)
        if any(line.startswith(start) for start in self.broken):
            return Completed(tuple(argv), 1, "", "it broke\n", 0.0)
        stdout, rc, stderr = "", 0, ""
        tool, *words = argv
        if tool in ("grub-editenv", "grub2-editenv"):
            stdout = self._environment(words[1:])
        elif tool in ("grub-reboot", "grub-set-default"):
            self.variables["next_entry" if tool == "grub-reboot" else "saved_entry"] = words[-1]
        elif tool == "rpm":
            raise MissingToolError("`rpm` is not installed on this machine")
        elif tool == "sync":
            self.settled = self.files()
        elif tool == "modinfo":
            for name in words[2:]:
                build = self.modules.get(name, {}).get(words[1])
                stdout += f"filename: /lib/{name}.ko\nsrcversion: {build}\nname: {name}\n" if build else ""
                stderr += "" if build else f"modinfo: ERROR: Module {name} not found.\n"
            rc = 1 if stderr else 0
        elif tool == "dpkg-query":
            stdout, rc = self._query(words)
        elif tool == "dpkg":
            self._install(words)
        elif tool == "dpkg-deb":
            stdout = "\t".join(words[-1].rsplit("/", 1)[-1].split("_")[:2])
        else:
            raise AssertionError(line)
        return Completed(tuple(argv), rc, stdout, stderr, 0.0)

    def _environment(self, words: Sequence[str]) -> str:
        if words[0] == "set":
            name, _, value = words[1].partition("=")
            self.variables[name] = value
        elif words[0] == "unset":
            self.variables.pop(words[1], None)
        return "".join(f"{name}={value}\n" for name, value in self.variables.items())

    def _query(self, words: Sequence[str]) -> tuple[str, int]:
        name = words[-1]
        if name not in self.packages:
            return "", 1
        version, kernel = self.packages[name]
        if words[0] == "-L":
            return f"/boot/vmlinuz-{kernel}\n", 0
        return f"{name}\t{version}\tii \n", 0

    def _install(self, words: Sequence[str]) -> None:
        for file in words[words.index("--") + 1 :]:
            name, version, kernel = file.rsplit("/", 1)[-1].removesuffix(".deb").split("_")
            self.packages[name] = (version, kernel)
            self.kernels.append(kernel)
        self.install_kernels()


def boot_step(system: System, state_dir: str, step: str, *, check: bool = False, **words: Any) -> dict[str, Any]:
    """One step of what boots, for run r1: `facts`, a `trial`, to `verify` it, or `default`."""
    call = Call(state_dir, "r1", check)
    modules = words.pop("modules", ())
    if step == "facts":
        return {"facts": boot_facts(system, state_dir, modules)}
    if step == "default":
        return keep_kernel(call, system, **words)
    trial = TrialBoot(**words)
    return prepare_trial(trial, call, system) if step == "trial" else verify_trial(trial, modules, system)
