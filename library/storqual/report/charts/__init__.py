# SPDX-License-Identifier: Apache-2.0
"""Charts as SVG text, drawn when the report is built: the same input gives the same bytes, every text is escaped."""
