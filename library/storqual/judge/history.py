# SPDX-License-Identifier: Apache-2.0
"""The extract of earlier campaigns that a run was planned with: the noise of its points."""

from __future__ import annotations

import json
from pathlib import Path

from storqual.judge.against_baseline import Histories
from storqual.judge.decision import History
from storqual_core.errors import BadInputError

__all__ = ["read_histories"]

SCHEMA = "storqual.history/1"


def read_histories(path: Path | None) -> Histories:
    """Noise by bench, adapter, point and metric from `{"schema", "noise": [{...}]}`; nothing without a file.

    An entry has the four that name it, and `sd_pair`, `df_pair`, `sd_session`, `df_session` of log-ratios as far as
    they are known. Raises BadInputError for a file of another shape.
    """
    if path is None:
        return {}
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA:
            raise BadInputError([f"{path}:1: found schema {document['schema']!r}, expected {SCHEMA!r}"])
        return {
            (entry["bench"], entry["adapter"], entry["point"], entry["metric"]): History(
                sd_pair=entry.get("sd_pair"),
                df_pair=float(entry.get("df_pair") or 0.0),
                sd_session=entry.get("sd_session"),
                df_session=float(entry.get("df_session") or 0.0),
            )
            for entry in document["noise"]
        }
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise BadInputError([f"{path}: found no history ({problem}), expected {SCHEMA}"]) from None
