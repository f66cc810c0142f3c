# SPDX-License-Identifier: Apache-2.0
"""What earlier campaigns show: an index of run directories, noise of points, control charts of benches."""
