# SPDX-License-Identifier: Apache-2.0
"""Recompute what a published report states from its own figures: consistent, rounding, or not."""

from storqual.audit.assertion import AuditedAssertion, Status, audit_document
from storqual.audit.auditing import audit, audit_report, exit_code, read_report

__all__ = ["AuditedAssertion", "Status", "audit", "audit_document", "audit_report", "exit_code", "read_report"]
