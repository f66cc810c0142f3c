# SPDX-License-Identifier: Apache-2.0
"""Volumes: layouts that are declared, planned, created by md or by an adapter, and removed again."""
