# SPDX-License-Identifier: Apache-2.0
"""The serial console of a bench: ways to it, the recorder that keeps it, and typing at it."""
