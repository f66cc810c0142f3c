# SPDX-License-Identifier: Apache-2.0
"""Pages as a browser shows them: needs Debian's Chromium, and axe-core where accessibility is asked."""
