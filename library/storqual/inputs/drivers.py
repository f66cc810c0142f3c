# SPDX-License-Identifier: Apache-2.0
"""Names of drivers: the storage drivers of Linux, and names that are slips of one of them."""

from __future__ import annotations

import difflib
import re

_LISTED = """
3w_9xxx 3w_sas 3w_xxxx BusLogic a100u2w aacraid advansys ahci aic79xx aic7xxx aic94xx am53c974 arcmsr ata_piix
atp870u be2iscsi bfa bnx2fc bnx2i csiostor cxgb3i cxgb4i dc395x dmx3191d efct esas2r esp_scsi fcoe fnic
hisi_sas_v3_hw hpsa hptiop hv_storvsc ib_iser initio ipr ips isci iscsi_tcp lpfc megaraid_mbox megaraid_mm
megaraid_sas mpi3mr mpt2sas mpt3sas mptctl mptfc mptsas mptspi mvsas mvumi myrb myrs nvme nvme_fc nvme_rdma
nvme_tcp nvmet pm80xx pmcraid ps3stor qedf qedi qla1280 qla2xxx qla4xxx qlogicfas408 sata_mv sata_nv sata_sil
sata_sil24 sata_sis sata_svw sata_uli sata_via sata_vsc scsi_debug smartpqi snic stex sym53c8xx ufshcd_pci
virtio_blk virtio_scsi vmw_pvscsi wd719x xen_blkfront xen_scsifront
"""
_DRIVERS = frozenset(_LISTED.split())
_CORE = frozenset({"dm_mod", "libata", "md_mod", "nvme_core", "scsi_mod", "scsi_transport_fc", "scsi_transport_sas"})
"""Modules that no adapter has as its driver, and that have options all the same."""

_ALIKE = 0.85


def slip_of(name: str) -> str:
    """The driver that was meant where `name` is none and looks like one; empty for any other name.

    A name that begins with a driver's and goes on is a vendor's own build, and one with other digits another
    generation: both may be real.
    """
    plain = name.replace("-", "_")
    if plain in _DRIVERS | _CORE or any(plain.startswith(f"{known}_") for known in _DRIVERS):
        return ""
    family = sorted(known for known in _DRIVERS if known.startswith(f"{plain}_"))
    alike = [known for known in sorted(_DRIVERS) if _digits(known) == _digits(plain)]
    near = difflib.get_close_matches(plain, alike, n=1, cutoff=_ALIKE)
    # of a family the last one drives what is sold today: megaraid_sas, not megaraid_mbox
    return near[0] if near else family[-1] if family else ""


def no_driver(slip: str) -> str:
    """What is wrong with such a name, and what to do."""
    return f"no driver is called {slip!r} (did you mean {slip_of(slip)!r}?); write the module that `lspci -k` shows"


def _digits(name: str) -> str:
    return re.sub(r"\D", "", name)
