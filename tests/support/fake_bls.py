# SPDX-License-Identifier: Apache-2.0
"""A bench whose kernels have entries in files of their own, with either of GRUB's readers, made of files."""

from collections.abc import Sequence
from pathlib import Path

from tests.support.fake_boot import FakeBench

_CONFIG = Path(__file__).with_suffix(".cfg").read_text(encoding="utf-8")
CALLS = {"red hat": "insmod blscfg\nblscfg", "upstream": "insmod blsuki\nblscfg --path /boot/loader/entries"}


class BlsBench(FakeBench):
    """Kernels with one entry each; `reader` is GRUB's, `prefix` stands before each release in the file's name."""

    reader = "red hat"
    prefix = "token"
    options = "$kernelopts $tuned_params"

    def install_kernels(self) -> None:
        boot = self.folder / "boot"
        grub, entries = boot / "grub2", boot / "loader" / "entries"
        grub.mkdir(exist_ok=True)
        entries.mkdir(parents=True, exist_ok=True)
        (grub / "grub.cfg").write_text(_CONFIG.replace("@CALL@", CALLS[self.reader]))
        for kernel in self.kernels:
            (boot / f"vmlinuz-{kernel}").write_text("")
            (boot / f"initramfs-{kernel}.img").write_text("")
            self.write_entry(f"{self.prefix}-{kernel}", kernel)

    def write_entry(
        self, identifier: str, kernel: str, lines: Sequence[str] = (), options: str | None = None
    ) -> None:
        text = [
            f"title Linux ({kernel}) 9.1",
            f"version {kernel}",
            f"linux /vmlinuz-{kernel}",
            f"initrd /initramfs-{kernel}.img $tuned_initrd",
            f"options {options or self.options}",
            "grub_users $grub_users",
            "grub_arg --unrestricted",
            *lines,
        ]
        place = self.folder / "boot" / "loader" / "entries" / f"{identifier}.conf"
        place.write_text("".join(f"{line}\n" for line in text))
