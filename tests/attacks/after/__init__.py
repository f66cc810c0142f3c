# SPDX-License-Identifier: Apache-2.0
"""The written list: each kind of tampering with a run after it was signed, as a function of what an attacker has."""

from tests.attacks.after import content, signatures
from tests.attacks.after.tampering import KINDS, Attack

__all__ = ["KINDS", "Attack", "content", "signatures"]
