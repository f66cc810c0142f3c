# SPDX-License-Identifier: Apache-2.0
"""Both arms side by side: settings declared, found, read back and proven; drops; what each bench said of itself."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from storqual.base.figures import DASH, ShownNumber, count
from storqual.report.criterion import adapter_name
from storqual.report.material import ARMS, Material
from storqual.report.view import KeyValue
from storqual_core.host.identity import declared_address
from storqual_core.kit.results import NOT_SHOWN


@dataclass(frozen=True)
class TestedAdapter:
    """One adapter on the first screen: what it is, and its driver in both arms; `name` has its bench if needed."""

    name: str
    alias: str
    bench: str
    model: str
    address: str
    firmware: str
    driver: str
    baseline: str
    candidate: str
    same: bool


@dataclass(frozen=True)
class SettingRow:
    """One setting of some targets: declared, before and read back for each arm, and how it was proven."""

    targets: tuple[str, ...]
    count: ShownNumber
    name: str
    baseline: tuple[str, ...]
    candidate: tuple[str, ...]
    proof: tuple[str, ...]
    differs: bool
    wrong: bool


@dataclass(frozen=True)
class BenchChanges:
    """A bench before and after: what differs, and what is the same or has nothing to be compared with."""

    bench: str
    compared: bool
    differing: tuple[KeyValue, ...]
    same: tuple[KeyValue, ...]
    number: ShownNumber


@dataclass(frozen=True)
class Environment:
    """Both arms side by side, and each bench before and after."""

    arms: tuple[KeyValue, ...]
    drops: tuple[KeyValue, ...]
    benches: tuple[BenchChanges, ...]


@dataclass(frozen=True)
class ShownSettings:
    """How many declared settings were shown in effect, of all; and the names of the others with their number."""

    shown: ShownNumber
    declared: ShownNumber
    share: ShownNumber
    not_shown: tuple[tuple[str, ShownNumber, str], ...]


def shown_settings_of(material: Material) -> ShownSettings | None:
    """What the verdict says of settings; None where none was declared."""
    settings = material.verdict.get("settings") or {}
    if not settings.get("declared"):
        return None
    shown, declared = int(settings["shown"]), int(settings["declared"])
    not_shown = tuple(
        (str(entry["name"]), count(entry["count"], f"verdict:/settings/others/{at}/count"), str(entry["said"]))
        for at, entry in enumerate(settings.get("others") or ())
    )
    return ShownSettings(
        count(shown, "verdict:/settings/shown"),
        count(declared, "verdict:/settings/declared"),
        count(100 * shown // declared, "count:settings-shown-percent"),
        not_shown,
    )


_NOTHING = (DASH, DASH, DASH, DASH)


def settings_of(material: Material) -> tuple[SettingRow, ...]:
    """One row per setting; targets that agree in everything share it. What differs between the arms stands first."""
    by_setting: dict[tuple[str, str], dict[str, list[Mapping[str, Any]]]] = {}
    for arm, entry in material.provisioned():
        for setting in entry.get("settings") or ():
            target = str(setting.get("drive") or setting.get("adapter") or setting.get("target") or "bench")
            arms = by_setting.setdefault((str(setting.get("name")), target), {})
            arms.setdefault(arm, []).append(setting)
    # an arm that never got so far differs in nothing: the first screen says that it was not provisioned
    both = len({arm for arm, _ in material.provisioned()}) > 1
    groups: dict[tuple[str, tuple[str, ...], tuple[str, ...], bool], list[str]] = {}
    for (name, target), arms in by_setting.items():
        shown = [_shown(arms.get(arm, ())) for arm in ARMS]
        wrong = any(_wrong(setting) for settings in arms.values() for setting in settings)
        groups.setdefault((name, shown[0], shown[1], wrong), []).append(target)
    rows = [
        SettingRow(
            tuple(targets),
            count(len(targets), f"count:targets:{name}"),
            name,
            baseline[:3],
            candidate[:3],
            _proofs(baseline[3], candidate[3]),
            both and _differs(baseline, candidate),
            wrong,
        )
        for (name, baseline, candidate, wrong), targets in groups.items()
    ]
    return tuple(sorted(rows, key=lambda row: (not row.wrong, not row.differs, row.name)))


def _proofs(baseline: str, candidate: str) -> tuple[str, ...]:
    """One sentence where both arms were proven alike, or one of them not at all; else one for each."""
    proofs = [text for text in (baseline, candidate) if text != DASH]
    if len(set(proofs)) <= 1:
        return tuple(proofs[:1])
    return f"baseline {baseline}", f"candidate {candidate}"


def _differs(baseline: tuple[str, ...], candidate: tuple[str, ...]) -> bool:
    """What was declared or read back is not the same in both arms; what stood there before does not matter."""
    return (baseline[0], baseline[2]) != (candidate[0], candidate[2])


def _shown(settings: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Declared, before, read back, proven over all sessions of an arm; values that changed are all shown."""
    readings = list(settings)
    if not readings:
        return _NOTHING
    columns = [_several(setting.get(name) for setting in readings) for name in ("declared", "before", "read_back")]
    return (*columns, _several(_proof(setting) for setting in readings))


def _several(values: Iterable[Any]) -> str:
    return " then ".join(dict.fromkeys(_text(value) for value in values))


def _proof(setting: Mapping[str, Any]) -> str:
    words = {
        True: "in effect",
        False: "NOT in effect",
        None: NOT_SHOWN if setting.get("declared") is not None else "",
    }
    proven, proof = setting.get("proven"), str(setting.get("proof") or "")
    word = words.get(proven, str(proven)) if proven is None or isinstance(proven, bool) else str(proven)
    # a record says itself that nothing was shown, and why
    return proof if word and proof.startswith(word) else ": ".join(filter(None, (word, proof))) or DASH


def _wrong(setting: Mapping[str, Any]) -> bool:
    """Read back other than declared, or shown not to be in effect."""
    declared, read_back = setting.get("declared"), setting.get("read_back")
    return setting.get("proven") is False or (declared is not None and declared != read_back)


def _text(value: object) -> str:
    if value is None:
        return DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(_text(item) for item in value) or DASH
    return str(value) or DASH


def flatten(value: object, prefix: str = "") -> dict[str, str]:
    """Nested mappings as dotted names with texts; several mappings of a list are numbered, values are one text."""
    if isinstance(value, dict):
        items: list[tuple[object, object]] = list(value.items())
    elif isinstance(value, (list, tuple)) and any(isinstance(item, (dict, list)) for item in value):
        # a drop's section is a list of one nearly always: a number then tells nothing
        items = list(enumerate(value)) if len(value) > 1 else [("", value[0])]
    else:
        return {prefix: _text(value)} if prefix else {}
    texts: dict[str, str] = {}
    for key, inner in items:
        texts.update(flatten(inner, ".".join(filter(None, (prefix, str(key))))))
    return texts


def _compare(columns: Iterable[Mapping[str, str]]) -> tuple[KeyValue, ...]:
    """Names with a value per column, those that differ first; with an empty column there is nothing to compare."""
    filled = list(columns)
    comparable = all(filled)
    names = dict.fromkeys(name for column in filled for name in column)
    rows = [
        KeyValue(name, values, comparable and len(set(values)) > 1)
        for name in names
        for values in [tuple(c.get(name, DASH) for c in filled)]
    ]
    return tuple(sorted(rows, key=lambda row: not row.differs))


def environment_of(material: Material) -> Environment:
    """What the arms ran on, what the drops declare, and each bench before and after."""
    by_arm: dict[str, dict[str, str]] = {arm: {} for arm in material.arms}
    several = len(material.run.benches) > 1
    for arm, entry in material.provisioned():
        prefix = f"{entry.get('bench')}: " if several else ""
        facts = {name: value for name, value in entry.items() if name not in _PROVISIONING}
        for name, text in flatten(facts).items():
            before = by_arm.setdefault(arm, {}).get(prefix + name)
            by_arm[arm][prefix + name] = text if before in (None, text) else f"{before} then {text}"
    benches = [_drift(name, bench.get("environment") or {}) for name, bench in material.run.benches.items()]
    arms = material.arms
    manifests = [flatten(material.run.arms[arm].manifest) if arm in material.run.arms else {} for arm in arms]
    return Environment(_compare([by_arm[arm] for arm in arms]), _compare(manifests), tuple(benches))


def _drift(bench: str, environment: Mapping[str, Any]) -> BenchChanges:
    """What a bench said of itself before and after, parted into what moved and what stayed."""
    looks = [flatten(environment.get(when) or {}) for when in ("before", "after")]
    rows = _compare(looks)
    # one value stands for both; of a bench that was looked at once it is the one there is
    same = tuple(
        KeyValue(row.name, (next((value for value in row.values if value != DASH), DASH),))
        for row in rows
        if not row.differs
    )
    differing = tuple(row for row in rows if row.differs)
    return BenchChanges(bench, all(looks), differing, same, count(len(same), f"count:same:{bench}"))


_PROVISIONING = ("session", "bench", "arm", "boot_id", "settings", "time", "configuration")


def identities(material: Material) -> tuple[TestedAdapter, ...]:
    """Each adapter under test with its driver in both arms, as it was read back from the bench."""
    sessions_of = {(str(entry.get("bench")), arm): entry for arm, entry in material.provisioned()}
    adapters: list[TestedAdapter] = []
    tested = material.tested
    for bench_name, bench in material.run.benches.items():
        for alias, adapter in (bench.get("adapters") or {}).items():
            if (bench_name, alias) not in tested:
                continue
            driver = str(adapter.get("driver") or DASH)
            builds = [_build(sessions_of.get((bench_name, arm)), driver) for arm in ("baseline", "candidate")]
            adapters.append(
                TestedAdapter(
                    name=adapter_name(list(material.run.benches), bench_name, alias),
                    alias=alias,
                    bench=bench_name,
                    model=str(adapter.get("model") or DASH),
                    address=declared_address(adapter),
                    firmware=" then ".join(firmware_shown(bench, alias)),
                    driver=driver,
                    baseline=builds[0][0],
                    candidate=builds[1][0],
                    same=builds[0][1] is not None and builds[0][1] == builds[1][1],
                )
            )
    return tuple(adapters)


def firmware_shown(bench: Mapping[str, Any], alias: str) -> list[str]:
    """The firmware that the adapter showed before and after, as its driver tells it; none where it tells none."""
    environment = bench.get("environment") or {}
    looks = [((environment.get(when) or {}).get("adapters") or {}).get(alias) or {} for when in ("before", "after")]
    return list(dict.fromkeys(str(look["firmware"]) for look in looks if look.get("firmware")))


def _build(entry: Mapping[str, Any] | None, driver: str) -> tuple[str, str | None]:
    """A driver's build in words, and its srcversion (None when it was not read, or the driver has none)."""
    if entry is None:
        return "not provisioned", None
    details = (entry.get("drivers") or {}).get(driver) or {}
    parts = [f"kernel {entry['kernel']}"] if entry.get("kernel") else []
    if details.get("version"):
        parts.append(f"version {details['version']}")
    srcversion = details.get("srcversion")
    if srcversion:
        parts.append(f"srcversion {srcversion}")
    return ", ".join(parts) or DASH, str(srcversion) if srcversion else None
