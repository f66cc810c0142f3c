# SPDX-License-Identifier: Apache-2.0
"""The written list: each kind of tampering with a run before it is signed, as a function of a run and a seed."""

from tests.attacks.before import files
from tests.attacks.before.tampering import KINDS

__all__ = ["KINDS", "files"]
