# SPDX-License-Identifier: Apache-2.0
"""Reaching benches from the control node: Ansible, SSH, following a batch, asking for facts."""
