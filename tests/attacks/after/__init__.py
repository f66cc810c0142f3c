# SPDX-License-Identifier: Apache-2.0
"""The written list: each kind of tampering with a run after it was signed, as a function of what an attacker has."""

from tests.attacks.after import beside, content, links, signatures
from tests.attacks.after.tampering import KINDS, Attack

__all__ = ["KINDS", "Attack", "beside", "content", "links", "signatures"]
