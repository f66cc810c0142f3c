# SPDX-License-Identifier: Apache-2.0
"""Commands that playbooks call during a campaign: what is next, what happened, what was measured, the end."""
