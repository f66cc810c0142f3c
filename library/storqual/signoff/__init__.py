# SPDX-License-Identifier: Apache-2.0
"""Sign-off: a signed statement about a run, and its verification years later without a network.

A signature is an in-toto statement (predicate test-result 0.1) in a DSSE envelope, or a detached `ssh-keygen -Y`
signature over the same statement. Its subjects are the digests of the manifest of the run directory and of what the
candidate is made of. `sign` and `verify` are the two ways in; `terms` is who must sign, by the verifier's own word.
"""
