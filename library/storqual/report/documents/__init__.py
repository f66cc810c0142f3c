# SPDX-License-Identifier: Apache-2.0
"""Documents of a release: test plan, requirements, customer summary, compatibility; one template for all."""

from __future__ import annotations

from storqual.report.documents.annex import annex_page
from storqual.report.documents.compatibility import compatibility
from storqual.report.documents.customer import customer_summary
from storqual.report.documents.document import Document, Section, write_document
from storqual.report.documents.requirements import traceability
from storqual.report.documents.test_plan import planned_tests

__all__ = [
    "Document",
    "Section",
    "annex_page",
    "compatibility",
    "customer_summary",
    "planned_tests",
    "traceability",
    "write_document",
]
