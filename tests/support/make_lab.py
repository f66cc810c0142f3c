# SPDX-License-Identifier: Apache-2.0
"""An inventory, drops and a suite in a folder, as the loaders read them, without asking Ansible."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from storqual.plan import PlanRequest

# what two drops differ in: kernels cost a boot each, drive settings are switched by the bench in an instant
KERNEL = {"driver": {"kernel": {"package": "linux-image-6.1.0-47-amd64"}}}
OTHER = {"driver": {"kernel": {"package": "linux-image-6.12.0-1-amd64"}}}
INSTANT = ({"drive": {"WCE": 1, "queue_depth": 4}}, {"drive": {"WCE": 0, "queue_depth": 16}})

SMALL_SUITE = Path(__file__).with_suffix(".small_suite").read_text(encoding="utf-8")


def lab_hosts(adapters: Mapping[str, int], *, kind: str = "virtual", bench: str = "b1") -> dict[str, dict[str, Any]]:
    """Host variables of one bench: so many claimed drives on each adapter, two ports."""
    listed = {
        alias: {
            "model": f"{alias} adapter",
            "driver": f"{alias}_driver",
            "pci": f"0000:00:{number + 5:02x}.0",
            "drives": [
                {
                    "wwn": f"0x5000c500{sum((bench + alias).encode()):04x}{position:04x}",
                    "serial": f"{bench}{alias}{position:04d}".upper(),
                    "vendor": "SEAGATE",
                    "model": "ST336607LW",
                    "size": "1GiB",
                    "port": position % 2,
                    "claim": True,
                }
                for position in range(count)
            ],
        }
        for number, (alias, count) in enumerate(adapters.items())
    }
    return {bench: {"storqual_kind": kind, "storqual_adapters": listed}}


def make_lab(
    folder: Path,
    *,
    hosts: Mapping[str, Mapping[str, Any]] | None = None,
    baseline: Mapping[str, Any] | None = None,
    candidate: Mapping[str, Any] | None = None,
    suite: str = SMALL_SUITE,
    **request: Any,
) -> PlanRequest:
    """Write the files and return the request that plans with them; `request` are more of its fields."""
    hosts = hosts or lab_hosts({"sym": 4, "mpt": 4})
    (folder / "drops").mkdir(parents=True, exist_ok=True)
    listed = {"benches": {"hosts": list(hosts)}, "_meta": {"hostvars": dict(hosts)}}
    (folder / "hosts.json").write_text(json.dumps(listed), encoding="utf-8")
    (folder / "small.suite.yml").write_text(suite, encoding="utf-8")
    for name, drop in (("baseline", baseline), ("candidate", candidate)):
        (folder / "drops" / f"{name}.yml").write_text(json.dumps(drop or {}), encoding="utf-8")
    fields: dict[str, Any] = {
        "inventories": [folder / "hosts.json"],
        "baseline": "baseline",
        "candidate": "candidate",
        "suite": str(folder / "small.suite.yml"),
        "seed": 1,
        **request,
    }
    return PlanRequest(**fields)


REPOSITORY = Path(__file__).resolve().parents[2]

SUITE = Path(__file__).with_suffix(".suite").read_text(encoding="utf-8")
LOCAL = ["-i", "inventories/local", "--baseline", "baseline", "--candidate", "candidate", "--suite", "mine.suite.yml"]
VIRTUAL = ["-i", "inventories/virtual", "--baseline", "stable", "--candidate", "new", "--suite", "mine.suite.yml"]
STABLE_ALONE = ["-i", "inventories/virtual", "--candidate", "stable", "--suite", "mine.suite.yml"]
HOSTS = "inventories/virtual/hosts.yml"
NEW = "inventories/virtual/drops/new.yml"
ZEROS = "0" * 64
MEMBERS = "members: [SYM0000001, SYM0000002]"
TRIALS = """name: mine
loads: {mine: {time: 8s}}
trials:
  - {fault: host_reset, load: mine}
"""


def suite(old: str, new: str) -> Callable[[], list[str]]:
    """The suite with `old` replaced, on local files."""

    def make() -> list[str]:
        assert old in SUITE
        Path("mine.suite.yml").write_text(SUITE.replace(old, new), encoding="utf-8")
        return LOCAL

    return make


def suites(*changes: tuple[str, str]) -> Callable[[], list[str]]:
    def make() -> list[str]:
        text = SUITE
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        Path("mine.suite.yml").write_text(text, encoding="utf-8")
        return LOCAL

    return make


def file(name: str, text: str | bytes, arguments: list[str]) -> Callable[[], list[str]]:
    """A file that holds `text`."""

    def make() -> list[str]:
        Path(name).write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        return arguments

    return make


def drop(text: str) -> Callable[[], list[str]]:
    """A candidate for the virtual bench that holds `text`."""

    def make() -> list[str]:
        Path(NEW).write_text(f"name: new\n{text}\n", encoding="utf-8")
        return VIRTUAL

    return make


def hosts(old: str, new: str) -> Callable[[], list[str]]:
    """The virtual lab with the first `old` replaced."""

    def make() -> list[str]:
        text = Path(HOSTS).read_text(encoding="utf-8")
        assert old in text
        Path(HOSTS).write_text(text.replace(old, new, 1), encoding="utf-8")
        return [*VIRTUAL[:5], "backport", *VIRTUAL[6:]]

    return make


def unclaimed() -> list[str]:
    """The virtual lab without a claim."""
    text = Path(HOSTS).read_text(encoding="utf-8")
    Path(HOSTS).write_text(text.replace("claim: true", "claim: false"), encoding="utf-8")
    return [*VIRTUAL[:5], "backport", *VIRTUAL[6:]]


def two_benches() -> list[str]:
    with Path(HOSTS).open("a", encoding="utf-8") as file:
        file.write("\n" + Path(__file__).with_suffix(".second_bench").read_text(encoding="utf-8"))
    return drop("raid: {level: 1, on: {adapter: fusion}, members: [FUS0000001, SEC0000001]}")()


def volumes() -> list[str]:
    chosen = drop("raid: {level: 1, on: {adapter: sym}}")()
    Path("mine.suite.yml").write_text(SUITE.replace("drives: [1]", "drives: [1, 2]"), encoding="utf-8")
    return [*chosen, "--adapters", "sym"]


def instead(name: str, put: Callable[[Path], object], *more: str) -> Callable[[], list[str]]:
    """The local lab in which something else is in place of the file `name`."""

    def make() -> list[str]:
        Path(name).unlink(missing_ok=True)
        put(Path(name))
        return [*LOCAL, *more]

    return make


def words(*more: str) -> Callable[[], list[str]]:
    """The right files with other options; a later option wins."""
    return lambda: [*LOCAL, *more]


FORMS = {"suite": suite, "drop": drop, "hosts": hosts, "words": words}
"""What the rows of `make_lab.json` begin with: which of these makes the mistake."""
_ROWS = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
MISTAKES: dict[str, Callable[[], list[str]]] = {
    **{name: FORMS[form](*texts) for name, (form, *texts) in _ROWS.items()},
    "missing firmware file": drop(
        f"firmware: {{file: gone.bin, sha256: '{ZEROS}', version: '2', tool: sas2flash, on: {{adapter: fusion}}}}"
    ),
    "missing module file": drop(f"driver:\n  module: {{file: gone.ko, sha256: '{ZEROS}'}}"),
    "bad digest of a module": drop(f"driver:\n  module: {{file: new.ko, sha256: '{ZEROS}'}}"),
    "bad digest of an image": drop(
        f"firmware: {{file: new.ko, sha256: '{ZEROS}', version: '2', tool: sas2flash, on: {{adapter: fusion}}}}"
    ),
    "RAID members on two benches": two_benches,
    "RAID with a suite for single drives": volumes,
    "nothing claimed": unclaimed,
    "limits that exclude each other": suites(
        ("metric: iops\n    against: baseline", "metric: iops\n    against: absolute\n    min: 300\n    max: 200")
    ),
    "negative limit": suites(
        ("metric: iops\n    against: baseline", "metric: iops\n    against: absolute\n    min: -100")
    ),
    "limit on a percentile of one merged value": suites(
        ("metric: iops\n    against: baseline", "metric: latency_p99_us\n    against: absolute\n    max: 5ms")
    ),
    "limit on one launch": suites(("against: baseline", "against: absolute\n    min: 100"), ("pairs: 3", "pairs: 1")),
    "no profile": suite(SUITE[SUITE.index("profiles:") :], "profiles: {}\n"),
    "empty suite": file("mine.suite.yml", "", LOCAL),
    "suite of comments only": file("mine.suite.yml", "# later\n", LOCAL),
    "list for a suite": file("mine.suite.yml", "- workloads\n", LOCAL),
    "suite in UTF-16": file("mine.suite.yml", SUITE.encode("utf-16"), LOCAL),
    "byte order mark, line ends of Windows and a typo": file(NEW, "\ufeffname: new\r\ndrvie: {WCE: 1}\r\n", VIRTUAL),
    "empty inventory": file("inventories/local/hosts.yml", "", LOCAL),
    "emulation on a bench of files": file(
        "inventories/local/drops/candidate.yml", "virtual: {iops_limit: {all: 5}}\n", LOCAL
    ),
    "baseline missing": lambda: [*LOCAL[:2], *LOCAL[4:]],
    "waiver without its last day": file(
        "inventories/local/waivers.yml",
        "waivers:\n  - {criterion: iops, owner: me, reason: known, reference: X-1, expires: 2020-01-01}\n",
        LOCAL,
    ),
    "typo in a gate": file("inventories/local/gate.yml", "reqiured: [iops]\n", LOCAL),
    "facts that are none": file("facts.json", "{}", [*LOCAL, "--facts", "facts.json"]),
    "facts of another bench": file("facts.json", '{"bench9": {"drives": []}}', [*LOCAL, "--facts", "facts.json"]),
    "strip that is no power of two": drop(f"raid: {{level: 1, strip: 65k, {MEMBERS}}}"),
    "strip beyond those of the tool": drop(f"raid: {{level: 1, strip: 4k, tool: storcli, {MEMBERS}}}"),
    "RAID without a level": drop(f"raid: {{{MEMBERS}}}"),
    "cache policy that md does not have": drop(f"raid: {{level: 1, write_policy: wb, {MEMBERS}}}"),
    "unknown RAID tool": drop(f"raid: {{level: 1, tool: storcly, {MEMBERS}}}"),
    "drop with the name of the other": file(
        "inventories/local/drops/candidate.yml", "name: baseline\ndrive: {queue_depth: 4}\n", LOCAL
    ),
    "folder with the name of a drop": instead("inventories/local/drops/candidate.yml", Path.mkdir),
    "folder beside the drops": instead("inventories/local/drops/other.yml", Path.mkdir, "--candidate", "otter"),
    "inventory without hosts": instead("inventories/local/hosts.yml", lambda _: None),
    "suite with a kind": file("mine.suite.yml", f"kind: robustness\n{TRIALS}", LOCAL),
    "trials on files": file("mine.suite.yml", TRIALS, LOCAL),
    "adapter of a trial that no bench has": file(
        "mine.suite.yml", TRIALS.replace("load: mine", "load: mine, adapters: vscs"), STABLE_ALONE
    ),
    "criteria without workloads": file("mine.suite.yml", f"{TRIALS}criteria: [{{metric: iops}}]\n", LOCAL),
    "profile of trials with launches": file("mine.suite.yml", f"{TRIALS}profiles: {{quick: {{pairs: 3}}}}\n", LOCAL),
    "suite with nothing to run": file("mine.suite.yml", "name: mine\n", LOCAL),
    "trials that last no time": file("mine.suite.yml", TRIALS.replace("8s", "0s"), LOCAL),
    "hosts in another group": file("inventories/local/hosts.yml", "all: {hosts: {desk: {}}}\n", LOCAL),
    "inventory in INI form": file("inventories/local/hosts.yml", "[benches]\ndesk ansible_host=192.0.2.1\n", LOCAL),
    "file outside of the folder of targets": instead(
        "inventories/local/hosts.yml",
        lambda path: path.write_text(
            "benches: {hosts: {desk: {storqual_kind: local, storqual_state_dir: /srv/state, storqual_adapters: "
            "{files: {model: files, drives: [{file: /srv/disk0, size: 64MiB, claim: true}]}}}}}\n"
        ),
    ),
    "limit without its unit": suites(
        ("metric: iops\n    against: baseline", "metric: latency_mean_us\n    against: absolute\n    max: 5")
    ),
    "least latency": suites(
        ("metric: iops\n    against: baseline", "metric: latency_mean_us\n    against: absolute\n    min: 1 s")
    ),
    "strip that the tool of the controller does not have": lambda: [
        *hosts("driver: megaraid_sas", "driver: megaraid_sas\n          tool: storcli")(),
        *drop("raid: {level: 5, strip: 4k, on: {adapter: mraid}}")()[4:6],
        "--adapters",
        "mraid",
    ],
}

OTHERS: dict[str, list[str]] = {
    "facts of an inventory that is not there": ["facts", "-i", "inventories/nowhere"],
    "bench sheet of an inventory that is not there": ["sheet", "-i", "inventories/nowhere"],
    "report of a folder that is no run": ["report", "inventories"],
    "judgement of a folder that is no run": ["judge", "inventories"],
    "waivers of a folder that is no run": ["waive", "inventories"],
    "audit of a folder that is no run": ["audit", "inventories"],
    "comparison of folders that are no runs": ["compare", "inventories", "inventories"],
    "verification of a folder that is no run": ["verify", "inventories", "--keys", "mine.suite.yml"],
    "verification of a run that is not there": ["verify", "runs/gone", "--keys", "mine.suite.yml"],
    "signature without a key": ["signoff", "inventories"],
    "signature with a key that is not there": ["signoff", "inventories", "--key", "gone", "--role", "lead"],
    "resumption of a folder that is no run": ["qualify", "--resume", "inventories"],
    "unknown command": ["qualfy"],
    "suite with a name that cannot be used": ["new", "suite", "My Suite"],
    "day as a word": ["judge", "inventories", "--as-of", "tomorrow"],
    "PDF into a folder that is not there": ["report", "inventories", "--pdf", "nowhere/report.pdf"],
}
"""Mistakes with other commands than `plan`."""
