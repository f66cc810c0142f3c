# SPDX-License-Identifier: Apache-2.0
"""The witness: a second place that receives the digests of a run while it is made, and the comparison with it.

Whoever can write a whole run can make its chain of events anew. A place that keeps what it was told once cannot be
made to forget it: a syslog server, a file on another machine, an authority that signs times.
"""

from storqual.witness.milestones import check_witness, notify_witness, witness_addresses

__all__ = ["check_witness", "notify_witness", "witness_addresses"]
