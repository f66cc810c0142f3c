# SPDX-License-Identifier: Apache-2.0
"""Running a playbook, and what playbooks call: what is next, what happened, the end."""
