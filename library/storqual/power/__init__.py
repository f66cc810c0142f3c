# SPDX-License-Identifier: Apache-2.0
"""Power: a bench switched by the backends of its inventory, and believed only with evidence."""
