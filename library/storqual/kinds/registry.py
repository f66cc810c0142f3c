# SPDX-License-Identifier: Apache-2.0
"""All kinds of turn: whatever comes after the bench goes through this table, and knows none of them by name."""

from collections.abc import Mapping

from storqual.kinds.kind import Kind
from storqual.kinds.launch import LAUNCH
from storqual.kinds.program import PROGRAM
from storqual.kinds.trial import TRIAL

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (LAUNCH, TRIAL, PROGRAM)}
