# SPDX-License-Identifier: Apache-2.0
"""The reader of what went to a host, which shows on a bench that a load sends what it says."""

from tests.support.wire import Dispatched, read_wire, unseen

TRACE = """\
host_no=6 channel=0 id=0 lun=0 data_sgl=1 prot_sgl=0 prot_op=SCSI_PROT_NORMAL driver_tag=3 scheduler_tag=9 \
cmnd=(WRITE_10 lba=4096 txlen=8 protect=0 raw=2a 08 00 00 10 00 00 00 08 00)
host_no=6 channel=0 id=1 lun=0 data_sgl=9 prot_sgl=0 prot_op=SCSI_PROT_NORMAL \
cmnd=(WRITE_16 lba=4294967296 txlen=2560 protect=0 raw=8a 00 00 00 00 01 00 00 00 00 00 00 0a 00 00 00)
host_no=6 channel=0 id=0 lun=0 data_sgl=1 prot_sgl=0 prot_op=SCSI_PROT_NORMAL \
cmnd=(WRITE_6 lba=9 txlen=256 raw=0a 00 00 09 00 00)
host_no=6 channel=0 id=0 lun=0 data_sgl=0 prot_sgl=0 prot_op=SCSI_PROT_NORMAL \
cmnd=(SYNCHRONIZE_CACHE - raw=35 00 00 00 00 00 00 00 00 00)
"""


def test_a_trace_is_read_with_addresses_lengths_and_flags() -> None:
    commands = read_wire(TRACE)
    assert commands[0] == Dispatched("6:0:0:0", 0x2A, 4096, 8, fua=True, segments=1)
    assert commands[1] == Dispatched("6:0:1:0", 0x8A, 1 << 32, 2560, fua=False, segments=9)
    assert (commands[2].first, commands[2].blocks) == (9, 256)
    assert [one.code for one in commands] == [0x2A, 0x8A, 0x0A, 0x35]


def test_a_write_of_which_no_command_went_out_is_named() -> None:
    assert unseen([(4096, 8), (4096, 9)], read_wire(TRACE), (0x2A, 0x8A)) == [(4096, 9)]
