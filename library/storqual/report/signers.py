# SPDX-License-Identifier: Apache-2.0
"""Who may sign this run, in words: what the gate's policy asks for, and what the outcome rules out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storqual.signoff.roles import required_roles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storqual.report.material import Material
    from storqual.report.rows import Row

__all__ = ["signers_for"]


def signers_for(material: Material, rows: Sequence[Row]) -> tuple[tuple[str, ...], bool]:
    """Sentences for the first screen, and whether anybody may sign at all."""
    roles = " and ".join(role.replace("-", " ") for role in required_roles(material.run))
    code = material.verdict.get("exit_code")
    if code == 0:
        waived = any(row.waived for row in rows)
        lines = [f"May be signed by: {roles}" + (", with the waivers below." if waived else ".")]
        kinds = {str(bench.get("kind")) for bench in material.run.benches.values()}
        if "hardware" not in kinds:
            lines.append("A signature under this run says that the method works; it releases no hardware.")
        return tuple(lines), True
    if code == 1:
        return (f"Nobody, until waivers cover every failure; then: {roles}.",), False
    return ("Nobody: what was not judged cannot be signed or waived. Repeat or resume the run.",), False
