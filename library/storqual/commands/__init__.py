# SPDX-License-Identifier: Apache-2.0
"""Commands without their command line: each returns data, and changes files only where its docstring says so."""
