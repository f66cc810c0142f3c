# SPDX-License-Identifier: Apache-2.0
"""One external program per file: its commands, the parsers of its output, and its capabilities.

A new tool gets one line here, so that it is shipped to the bench: Ansible ships what it finds imported by name in the
source, whether it is executed or not. Nothing is executed: a bench compiles only the tools that a step uses, which
matters where Python starts slowly.
"""

from __future__ import annotations

import pkgutil
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Callable, Mapping

__all__ = ["TOOLS"]


def _shipped() -> None:
    """Never called; what stands here is shipped."""
    from . import (  # noqa: F401, PLC0415 - see above
        arcconf,
        blkid,
        bls,
        boot_files,
        bootctl,
        dc390,
        depmod,
        dkms,
        dmidecode,
        dmsetup,
        dnf,
        dpkg,
        fwupd,
        grub,
        hbacmd,
        iscsiadm,
        kdumpctl,
        kmod,
        lsinitrd,
        lsiutil,
        lspci,
        lsscsi,
        makedumpfile,
        matchpathcon,
        mdadm,
        mokutil,
        multipath,
        mvcli,
        nvme,
        qaucli,
        redfish,
        rpm,
        sas3ircu,
        sasflash,
        sdparm,
        sestatus,
        sg3,
        sg_persist,
        sg_ses,
        sg_write_buffer,
        smartctl,
        ss,
        ssacli,
        storcli,
        storcli2,
        systool,
        targetcli,
        tc,
        util_linux,
        weak_modules,
        zypper,
    )


_SHARED = ("capabilities",)
"""What tools have in common, and no tool itself."""

TOOLS: Mapping[str, Callable[[], ModuleType]] = {
    module.name: partial(import_module, f"{__name__}.{module.name}")
    for module in pkgutil.iter_modules(__path__)
    if module.name not in _SHARED
}
"""Every tool of this folder by its name; calling the value imports it."""
