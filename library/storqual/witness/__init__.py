# SPDX-License-Identifier: Apache-2.0
"""The witness: a second place that receives the digest of each batch, and the comparison of a run with it.

Whoever can write a whole run can make its chain of events anew. A place that keeps what it was told once cannot be
made to forget it: a syslog server, a file on another machine, an authority that signs times, a public log.
"""

from storqual.witness.batches import witness_batches
from storqual.witness.check import check_witness

__all__ = ["check_witness", "witness_batches"]
