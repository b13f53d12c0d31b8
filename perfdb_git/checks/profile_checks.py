"""System profiles: sound tables, the vocabulary's terms, and a source for every value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from perfdb_git.checks.checked_snapshot import CheckedDocument, CheckedSnapshot
from perfdb_git.checks.rules import Check, Rule
from perfdb_git.checks.terms import UNKNOWN_OPERATION, UNKNOWN_TERM, pointer, term_fault
from perfdb_git.model.findings import Finding
from perfdb_git.model.system_profile import EfficiencyStep, SystemProfile
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.storage import layout

PROFILE_NAME = Rule(
    code="profile-name",
    documentation="A system profile's file is called as the profile.",
    remedy="rename the file or the profile",
)
NAME_STANDS_TWICE = Rule(
    code="name-stands-twice",
    documentation="A profile or pipeline is JSON or YAML, not both.",
    remedy="remove one of the two files",
)
STEP_ORDER = Rule(
    code="step-order",
    documentation="Thresholds of an efficiency table descend strictly and end in 0.",
    remedy="sort the steps by falling threshold, the last one 0",
)
UNRESOLVED_SOURCE = Rule(
    code="unresolved-source",
    documentation="Source pointers name values of the profile.",
    remedy="write a JSON pointer into this document, such as /engines/matrix",
)
NO_SOURCE = Rule(
    code="no-source",
    documentation="Every number of engines, memories and networks has a source.",
    remedy="add an entry to sources whose pointer is this one or one above it",
)

_SOURCED = ("engines", "memories", "networks")


def judge_profile(snapshot: CheckedSnapshot, document: CheckedDocument) -> Iterator[Finding]:
    """Yield what is wrong with one system profile."""
    profile = document.as_model(SystemProfile) if document.kind == "system-profile" else None
    if profile is None:
        return
    if profile.name != layout.document_name(document.path):
        yield PROFILE_NAME.broken(
            document.path, f"the profile is called {profile.name!r}", pointer="/name"
        )
    first, *others = [p for p in _spellings(document.path) if p in snapshot.paths]
    if others and document.path != first:
        yield NAME_STANDS_TWICE.broken(document.path, f"stands beside {first}")
    for where, steps in _tables(profile):
        yield from _steps(document.path, where, steps)
    yield from _sources(document.path, document.value)
    if snapshot.vocabulary is not None:
        yield from _terms(document.path, profile, snapshot.vocabulary)


def _spellings(path: str) -> tuple[str, ...]:
    return layout.system_profile_paths(layout.document_name(path) or "")


def _tables(profile: SystemProfile) -> Iterator[tuple[str, tuple[EfficiencyStep, ...]]]:
    for engine, rates in profile.engines.items():
        for dtype, rate in rates.items():
            where = pointer("engines", engine, dtype, "efficiency_by_gops")
            yield where, rate.efficiency_by_gops or ()
    for name, memory in profile.memories.items():
        yield pointer("memories", name, "efficiency_by_mb"), memory.efficiency_by_mb or ()


def _steps(path: str, where: str, steps: Sequence[EfficiencyStep]) -> Iterator[Finding]:
    thresholds = [step.threshold for step in steps]
    for number in range(1, len(thresholds)):
        if thresholds[number] >= thresholds[number - 1]:
            yield STEP_ORDER.broken(
                path,
                f"threshold {thresholds[number]} follows {thresholds[number - 1]}",
                pointer=f"{where}/{number}/threshold",
            )
    if thresholds and thresholds[-1] != 0:
        yield STEP_ORDER.broken(
            path,
            f"the last threshold is {thresholds[-1]}, so smaller work has no efficiency",
            pointer=f"{where}/{len(thresholds) - 1}/threshold",
        )


def _sources(path: str, value: Any) -> Iterator[Finding]:
    stated = set()
    for number, source in enumerate(value["sources"]):
        if _resolves(value, source["pointer"]):
            stated.add(source["pointer"])
        else:
            yield UNRESOLVED_SOURCE.broken(
                path,
                f"{source['pointer']} names nothing in this document",
                pointer=pointer("sources", number, "pointer"),
            )
    if "" in stated:
        return
    for key in _SOURCED:
        for where in _without_source(value[key], pointer(key), stated):
            yield NO_SOURCE.broken(path, "no source is stated", pointer=where)


def _resolves(value: Any, text: str) -> bool:
    for raw in text.split("/")[1:]:
        part = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list) and part.isascii() and part.isdigit() and str(int(part)) == part:
            if int(part) >= len(value):
                return False
            value = value[int(part)]
        elif isinstance(value, dict) and part in value:
            value = value[part]
        else:
            return False
    return True


def _without_source(value: Any, where: str, stated: set[str]) -> list[str]:
    """Return the outermost pointers below which numbers have no source at all."""
    if where in stated:
        return []
    if not isinstance(value, (dict, list)):
        # Names, switches and unknowns are statements of the profile's author.
        return [where] if type(value) in (int, float) else []
    items = value.items() if isinstance(value, dict) else enumerate(value)
    parts = [(where + pointer(key), item) for key, item in items]
    found = [_without_source(item, inner, stated) for inner, item in parts]
    below = any(other.startswith(f"{where}/") for other in stated)
    if below:
        return [inner for part in found for inner in part]
    return [where] if any(found) else []


def _terms(path: str, profile: SystemProfile, vocabulary: Vocabulary) -> Iterator[Finding]:
    stated = [("device", profile.device, "/device")]
    stated += [
        ("dtype", dtype, pointer("engines", engine, dtype))
        for engine, rates in profile.engines.items()
        for dtype in rates
    ]
    stated += [
        ("link_class", network.link_class, pointer("networks", number, "link_class"))
        for number, network in enumerate(profile.networks)
        if network.link_class is not None
    ]
    for name, term, where in stated:
        dimension = vocabulary.dimensions.get(name)
        fault = None if dimension is None else term_fault(dimension, term)
        if fault is not None:
            yield UNKNOWN_TERM.broken(path, f"{name}: {fault}", pointer=where)
    for number, network in enumerate(profile.networks):
        for operation in network.operations:
            if operation not in vocabulary.operations:
                yield UNKNOWN_OPERATION.broken(
                    path,
                    f"unknown operation {operation!r}",
                    pointer=pointer("networks", number, "operations", operation),
                )


SYSTEM_PROFILES = Check(
    id="system-profiles",
    documentation="System profiles have sound tables, known terms and sources.",
    rules=(
        PROFILE_NAME,
        NAME_STANDS_TWICE,
        STEP_ORDER,
        UNRESOLVED_SOURCE,
        NO_SOURCE,
        UNKNOWN_TERM,
        UNKNOWN_OPERATION,
    ),
    judge_document=judge_profile,
)
