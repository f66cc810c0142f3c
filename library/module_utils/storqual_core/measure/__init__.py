# SPDX-License-Identifier: Apache-2.0
"""One batch of launches on a bench: its file, its run, fio, and the samples it leaves."""
