# SPDX-License-Identifier: Apache-2.0
"""Turns of a run on a bench: a batch file, the program that runs it, its spool; launches, trials and programs."""
