# SPDX-License-Identifier: Apache-2.0
"""Which of the long live tests a run of `make test` takes: by what changed since each last passed, and in turn."""
