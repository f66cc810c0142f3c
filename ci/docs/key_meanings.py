# SPDX-License-Identifier: Apache-2.0
"""What keys of suites and drops mean whose models do not say it: the page of keys has a meaning for each."""

from __future__ import annotations

from collections.abc import Mapping

_SUITE = {
    "trials": "faults under load, each in both arms; what each must show",
    "programs": "external test programs that run on the bench against a claimed drive",
    "name": "the name of the suite in plans, reports and verdicts; by default the name of its file",
    "description": "what the suite measures, in one sentence; the report shows it",
    "defaults": "parameters of all workloads, unless a workload sets its own",
    "workloads": "the workloads by name",
    "criteria": "the rules by which the run is judged",
    "profiles": "how much is measured, by name, such as `quick` and `full`",
    "default_profile": "the profile that is used without `--profile`; by default `quick`, or else the first one",
    "vary": "settings of drives, drivers or volumes with the values to measure, such as `drive.WCE: [0, 1]`",
}
_WORKLOAD = {
    "adapters": "the drives of this many adapters with one driver are used at the same time",
    "bs": "block size of each I/O, such as `4k`",
    "direct": "whether I/O bypasses the page cache",
    "drives": "how many drives of the adapter are used: the first claimed ones of the inventory",
    "drives_per_port": "how many drives of every port are used, instead of `drives`",
    "engine": "the I/O engine of fio",
    "iodepth": "I/Os outstanding per drive and job",
    "numjobs": "fio jobs per drive",
    "ports": "how many ports of the adapter are used",
    "rate_iops": "the I/O rate that each job is limited to",
    "rwmixread": "percentage of reads in a mixed workload",
    "target": "what fio runs on: single drives (`raw`), a RAID volume, or a file system on one of them",
    "zones": "whether each of the jobs reads or writes its own part of the drive",
    "description": "what the workload stands for; the report shows it",
    "source": "where the workload comes from, such as a page of a data sheet; the report shows it",
    "factors": "factors with the levels to measure: each combination of levels is one point",
}
_CRITERION = {
    "metric": "the metric that is judged",
    "id": "the name of the criterion in verdict, report and waivers; by default that of the metric",
    "description": "what the criterion is for; the report shows it",
    "workloads": "judged at these workloads only (default: all)",
    "at": "judged at these levels of factors only",
    "adapters": "judged on these adapters only (default: all)",
    "against": "what the candidate is compared with: the baseline drop, a fixed limit, the other adapters, a"
    " published figure, a spec sheet, or growth over a factor",
    "margin": "the unacceptable loss: a pass excludes a loss of this size (default: that of the profile)",
    "indifference": "the acceptable loss: a candidate fails when a larger one is shown",
    "marginal": "a pass this close to its limit is reported as MARGINAL",
    "alpha": "the risk of a wrong pass",
    "min": "the smallest acceptable value, with its unit",
    "max": "the largest acceptable value, with its unit",
    "unit": "the unit of `min` and `max`, if they are written without one",
    "required": "whether a failure fails the run; `hardware` means on hardware benches only",
    "source": "where the limit comes from, such as a page of a data sheet; report and verdict show it",
}
_PROFILE = {
    "description": "when to use the profile",
    "cells": "`all`, or at most this many points, in which every level is measured",
    "runtime": "seconds that are measured in each launch",
    "ramp": "seconds before the measured time of each launch that are discarded",
    "idle": "seconds without load before each batch",
    "sessions": "the sessions of both arms together, if changing arms costs a boot or a reload",
    "margin": "the unacceptable loss: a pass excludes a loss of this size; for criteria without their own",
    "indifference": "the acceptable loss: a candidate fails when a larger one is shown",
    "marginal": "a pass this close to its limit is reported as MARGINAL",
    "alpha": "the risk of a wrong pass at one point",
    "budget": "the bench time above which the plan warns",
    "costs": "the seconds of a boot, a reload and a launch, for the plan's estimate",
}
_IMAGE = {
    "file": "the image, relative to the drop's own file",
    "sha256": "the digest of the image; any other file is refused",
    "signature": "who must have signed the image",
}
_FIRMWARE = {
    **_IMAGE,
    "on": "which adapters or drives the image is for",
    "tool": "the vendor tool that installs the image, such as `storcli`",
    "activation": "what it takes until the new version runs",
}

KEY_MEANINGS: Mapping[str, Mapping[str, str]] = {
    "Suite": _SUITE,
    "Workload": _WORKLOAD,
    "Criterion": _CRITERION,
    "Profile": _PROFILE,
    "Firmware": _FIRMWARE,
    "Rollback": {**_IMAGE, "version": "the version that this image installs"},
    "DropSignature": {
        "file": "the detached signature of the image",
        "key": "the public key (PEM) or keyring (OpenPGP) that the signature must be by",
    },
}
"""By the name of a model and the key as it is written."""
