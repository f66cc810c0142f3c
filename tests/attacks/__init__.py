# SPDX-License-Identifier: Apache-2.0
"""What somebody who can write to a run may try: kinds of tampering as a written list, drawn by a seed."""
