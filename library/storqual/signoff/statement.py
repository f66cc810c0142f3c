# SPDX-License-Identifier: Apache-2.0
"""The statement that people sign: in-toto Statement v1 with the test-result predicate.

The attestation specification (https://github.com/in-toto/attestation, folder `spec`) says what the fields mean; what
storqual adds (who signs as what, the waivers that were accepted) stands under one key of its own,
which readers of the predicate pass by.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from storqual.run import Run
from storqual.run.layout import MANIFEST, dump_json

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://in-toto.io/attestation/test-result/v0.1"
OWN = "storqual"
SCHEMA = "storqual.signoff/2"
"""Of storqual's own part."""

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_NAMES = ("file", "path", "package", "name")


@dataclass(frozen=True, slots=True)
class Signer:
    """Who signs: the person, the role, the fingerprint of the key, and when (UTC, ISO 8601)."""

    name: str
    role: str
    key: str
    signed_at: str


def make_statement(
    run: Run,
    verdict: Mapping[str, Any],
    signer: Signer,
    *,
    manifest: str,
    judgement: Mapping[str, str],
) -> dict[str, Any]:
    """The statement about `run`; `verdict` is the one that is accepted, `judgement` its file and digest.

    `manifest` is the SHA-256 of the manifest. Every criterion is in one of the lists of tests; a waived failure and
    a marginal pass are warnings, and so is whatever was only informative and did not pass. Raises KeyError, TypeError
    or AttributeError for a verdict that is none.
    """
    passed: list[str] = []
    warned: list[str] = []
    failed: list[str] = []
    for entry in verdict["criteria"]:
        tests = passed
        if entry["outcome"] == "FAIL" and entry["required"] and not entry["waiver"]:
            tests = failed
        elif entry["outcome"] != "PASS":
            tests = warned
        tests.append(_test(entry))
    waivers = [
        {**entry["waiver"], "criterion": _test(entry), "bench": entry["bench"]}
        for entry in verdict["criteria"]
        if entry["waiver"]
    ]
    result = "FAILED" if verdict["exit_code"] else "WARNED" if verdict["outcome"] != "PASS" or waivers else "PASSED"
    return {
        "_type": STATEMENT_TYPE,
        "subject": [
            {"name": MANIFEST, "digest": {"sha256": manifest}},
            *({"name": name, "digest": {"sha256": digest}} for name, digest in _artifacts(run)),
        ],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "result": result,
            "configuration": [
                {"name": name, "digest": {"sha256": digest}} for name, digest in sorted(verdict["inputs"].items())
            ],
            "passedTests": passed,
            "warnedTests": warned,
            "failedTests": failed,
            OWN: {
                "schema": SCHEMA,
                "benches": kinds_of(run),
                "run": run.name,
                "outcome": verdict["outcome"],
                "judged_as_of": verdict["as_of"],
                "judgement": dict(judgement),
                "signer": {"name": signer.name, "role": signer.role, "key": signer.key},
                "signed_at": signer.signed_at,
                "waivers": waivers,
            },
        },
    }


def kinds_of(run: Run) -> dict[str, str]:
    """What each bench is: hardware, virtual (emulated) or local (files)."""
    return {name: str(bench.get("kind") or "unknown") for name, bench in run.benches.items()}


def dump_statement(statement: Mapping[str, Any]) -> bytes:
    return dump_json(statement, ascii_only=True)


def parse_statement(data: bytes) -> dict[str, Any]:
    """A statement of ours: subjects by name, and storqual's own part. Raises ValueError for anything else."""
    try:
        document = json.loads(data)
        if dump_statement(document) != data:
            raise ValueError("it is not written as storqual writes it")
        if (document["_type"], document["predicateType"]) != (STATEMENT_TYPE, PREDICATE_TYPE):
            raise ValueError("it is not an in-toto statement about a test result")
        part = document["predicate"][OWN]
        signer = part["signer"]
        return {
            "document": document,
            "subjects": {entry["name"]: entry["digest"]["sha256"] for entry in document["subject"]},
            "signer": Signer(str(signer["name"]), str(signer["role"]), str(signer["key"]), str(part["signed_at"])),
            "run": str(part["run"]),
            "outcome": str(part["outcome"]),
            "judgement": {"path": str(part["judgement"]["path"]), "sha256": str(part["judgement"]["sha256"])},
            "waivers": [dict(entry) for entry in part["waivers"]],
        }
    except (KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise ValueError(f"it lacks a field ({problem!r})") from None


def statement_difference(statement: Mapping[str, Any], run: Run, verdict: Mapping[str, Any]) -> str:
    """The first field in which a statement says something else than the run that it is about; empty for none.

    `verdict` is the judgement that it names. Everything in a statement is a function of these files, of the signer
    and of the digests that are compared by themselves. Raises what `make_statement` raises.
    """
    document = statement["document"]
    expected = make_statement(
        run,
        verdict,
        statement["signer"],
        manifest=statement["subjects"].get(MANIFEST, ""),
        judgement=statement["judgement"],
    )
    for name, part, part_expected in (
        ("", document, {**expected, "predicate": None}),
        ("predicate.", document["predicate"], {**expected["predicate"], OWN: None}),
        (f"predicate.{OWN}.", document["predicate"][OWN], expected["predicate"][OWN]),
    ):
        if part.keys() != part_expected.keys():
            return f"{name}{min(part.keys() ^ part_expected.keys())}"
        for field, value in part_expected.items():
            if value is not None and part[field] != value:
                return f"{name}{field}"
    return ""


def _test(entry: Mapping[str, Any]) -> str:
    """A criterion by the name that it has in junit.xml."""
    return f"{entry['id']}@{'/'.join(str(entry[part]) for part in ('adapter', 'point') if entry[part])}"


def _artifacts(run: Run) -> Iterator[tuple[str, str]]:
    candidate = run.arms["candidate"]
    yield candidate.file, candidate.sha256
    provisioned = [
        entry for entry in run.document.get("provisioned") or () if entry.get("arm") in (None, candidate.name)
    ]
    yield from sorted(set(_named_digests([candidate.manifest, provisioned])))


def _named_digests(value: object) -> Iterator[tuple[str, str]]:
    """(name, SHA-256) of every mapping that holds both, at any depth."""
    if isinstance(value, Mapping):
        digest = value.get("sha256")
        name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
        if name is not None and isinstance(digest, str) and _SHA256.match(digest):
            yield name, digest
        for inner in value.values():
            yield from _named_digests(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _named_digests(inner)
