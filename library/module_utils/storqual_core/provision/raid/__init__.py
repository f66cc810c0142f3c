# SPDX-License-Identifier: Apache-2.0
"""Volumes: layouts declared, planned, made by md or by an adapter, and taken away again."""
