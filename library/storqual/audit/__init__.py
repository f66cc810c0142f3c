# SPDX-License-Identifier: Apache-2.0
"""Recompute what a report states from its own figures: consistent, rounding, inconsistent, or not checkable."""

from __future__ import annotations

from storqual.audit.auditing import audit, audit_report, exit_code, read_report
from storqual.audit.claim import Claim, Status, audit_document

__all__ = ["Claim", "Status", "audit", "audit_document", "audit_report", "exit_code", "read_report"]
