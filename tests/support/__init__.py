# SPDX-License-Identifier: Apache-2.0
"""What several tests share: benches, runs and tools made of files, and the machines they stand for."""
