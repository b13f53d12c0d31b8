"""Policies: what they promote exists, and one source answers at each tier."""

from __future__ import annotations

from collections.abc import Iterator

from perfdb_git.checks.checked_snapshot import CheckedDocument, CheckedSnapshot
from perfdb_git.checks.rules import Check, Rule
from perfdb_git.checks.terms import (
    UNKNOWN_DIMENSION,
    UNKNOWN_OPERATION,
    UNKNOWN_TERM,
    hint,
    pointer,
    term_fault,
)
from perfdb_git.database import DEFAULT_POLICY
from perfdb_git.model.findings import Finding
from perfdb_git.model.policy import CalibrationChoice, ExtrapolationLimit, Policy
from perfdb_git.model.system_profile import SystemProfile
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.storage import layout

NO_DEFAULT_POLICY = Rule(
    code="no-default-policy",
    documentation="There is a policy called default.",
    remedy="add it: commands without --policy use it",
)
POLICY_NAME = Rule(
    code="policy-name",
    documentation="A policy's file is called as the policy.",
    remedy="rename the file or the policy",
)
UNKNOWN_PROFILE = Rule(
    code="unknown-system-profile",
    documentation="System profiles that a policy names exist.",
    remedy="name a profile under profiles/systems/",
)
PROFILE_DEVICE = Rule(
    code="profile-device",
    documentation="A policy names for each device a profile of that device.",
    remedy="name a profile of the device itself",
)
UNKNOWN_CALIBRATION = Rule(
    code="unknown-calibration",
    documentation="Calibrations that a policy names exist.",
    remedy="name a revision under evidence/calibrations/ by its full SHA-256",
)
TWO_CALIBRATIONS = Rule(
    code="two-calibrations",
    documentation="One calibration answers for a response, operation and device.",
    remedy="keep the one that was reviewed last",
)
CONTRADICTION = Rule(
    code="material-and-immaterial",
    documentation="A dimension is material or immaterial to a policy, not both.",
    remedy="keep it in one of the two lists",
)


def judge_policies(snapshot: CheckedSnapshot) -> Iterator[Finding]:
    """Yield what is wrong with the policies."""
    default = layout.policy_path(DEFAULT_POLICY)
    if default not in snapshot.paths and snapshot.is_walked(layout.POLICIES):
        yield NO_DEFAULT_POLICY.broken(default, "there is no default policy")
    for document in snapshot.documents("policy"):
        policy = document.as_model(Policy)
        if policy is None:
            continue
        name = layout.document_name(document.path)
        if policy.name != name:
            yield POLICY_NAME.broken(
                document.path, f"the policy is called {policy.name!r}", pointer="/name"
            )
        yield from _profiles(snapshot, document, policy)
        yield from _calibrations(snapshot, document, policy)
        if snapshot.vocabulary is not None:
            yield from _names(document, policy, snapshot.vocabulary)


def _profiles(
    snapshot: CheckedSnapshot, document: CheckedDocument, policy: Policy
) -> Iterator[Finding]:
    for device, name in policy.system_profiles.items():
        where = pointer("system_profiles", device)
        paths = [p for p in layout.system_profile_paths(name) if p in snapshot.paths]
        if not paths and snapshot.is_walked(layout.SYSTEM_PROFILES):
            yield UNKNOWN_PROFILE.broken(
                document.path, f"there is no system profile {name!r}", pointer=where
            )
        for profile_document in snapshot.documents("system-profile"):
            profile = (
                profile_document.as_model(SystemProfile) if profile_document.path in paths else None
            )
            if profile is not None and profile.device != device:
                yield PROFILE_DEVICE.broken(
                    document.path, f"{name} describes {profile.device!r}", pointer=where
                )


def _calibrations(
    snapshot: CheckedSnapshot, document: CheckedDocument, policy: Policy
) -> Iterator[Finding]:
    known = {
        layout.document_name(path)
        for path in snapshot.paths
        if path.startswith(f"{layout.CALIBRATIONS}/")
    }
    first: dict[tuple[str, str, str], int] = {}
    for number, choice in enumerate(policy.calibrations):
        if choice.revision not in known and snapshot.is_walked(layout.CALIBRATIONS):
            yield UNKNOWN_CALIBRATION.broken(
                document.path,
                f"there is no calibration {choice.revision}",
                pointer=pointer("calibrations", number, "revision"),
            )
        key = (choice.response, choice.operation, choice.device)
        if key in first:
            yield TWO_CALIBRATIONS.broken(
                document.path,
                f"entry {first[key]} answers for {', '.join(key)} too",
                pointer=pointer("calibrations", number),
            )
        first.setdefault(key, number)


def _names(document: CheckedDocument, policy: Policy, vocabulary: Vocabulary) -> Iterator[Finding]:
    matching = policy.matching
    named: list[tuple[tuple[str | int, ...], tuple[str, ...]]] = [
        (("matching", "material"), matching.material),
        (("matching", "immaterial"), matching.immaterial),
        *(
            (("limits", "extrapolation", place, "dimensions"), item.dimensions)
            for place, item in enumerate(policy.limits.extrapolation)
        ),
    ]
    for place, names in named:
        for number, name in enumerate(names):
            where = pointer(*place, number)
            if name not in vocabulary.dimensions:
                yield UNKNOWN_DIMENSION.broken(
                    document.path,
                    f"unknown dimension {name!r}{hint(name, vocabulary.dimensions)}",
                    pointer=where,
                )
            elif place[-1] == "immaterial" and name in matching.material:
                yield CONTRADICTION.broken(document.path, f"{name} is in both lists", pointer=where)
    chosen: list[tuple[tuple[str | int, ...], CalibrationChoice | ExtrapolationLimit]] = [
        *((("calibrations", place), item) for place, item in enumerate(policy.calibrations)),
        *(
            (("limits", "extrapolation", place), item)
            for place, item in enumerate(policy.limits.extrapolation)
        ),
    ]
    for path, choice in chosen:
        if choice.operation not in vocabulary.operations:
            yield UNKNOWN_OPERATION.broken(
                document.path,
                f"unknown operation {choice.operation!r}",
                pointer=pointer(*path, "operation"),
            )
    devices = [
        *((name, pointer("system_profiles", name)) for name in policy.system_profiles),
        *((choice.device, pointer(*path, "device")) for path, choice in chosen),
    ]
    dimension = vocabulary.dimensions.get("device")
    for device, where in devices:
        fault = None if dimension is None else term_fault(dimension, device)
        if fault is not None:
            yield UNKNOWN_TERM.broken(document.path, f"device: {fault}", pointer=where)


POLICIES = Check(
    id="policies",
    documentation="Policies promote what exists, and only one source for each question.",
    rules=(
        NO_DEFAULT_POLICY,
        POLICY_NAME,
        UNKNOWN_PROFILE,
        PROFILE_DEVICE,
        UNKNOWN_CALIBRATION,
        TWO_CALIBRATIONS,
        CONTRADICTION,
        UNKNOWN_DIMENSION,
        UNKNOWN_OPERATION,
        UNKNOWN_TERM,
    ),
    judge_snapshot=judge_policies,
)
