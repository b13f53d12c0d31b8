"""A profile keeps its meaning: other content gets another name or version.

Results name a profile by name and version, so under one of them there may be one content only,
at the snapshot and at every commit before it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from perfdb_git.checks.change import Change
from perfdb_git.checks.checked_snapshot import CheckedDocument, CheckedSnapshot
from perfdb_git.checks.rules import Check, Rule
from perfdb_git.checks.terms import pointer
from perfdb_git.errors import InvalidInputError, RepositoryUnavailableError
from perfdb_git.formats.codec import decode
from perfdb_git.formats.strict_json import read_json
from perfdb_git.formats.strict_yaml import read_yaml
from perfdb_git.model.findings import Finding
from perfdb_git.model.system_profile import SystemProfile
from perfdb_git.model.timing_profile import TimingProfile
from perfdb_git.storage import layout
from perfdb_git.storage.folders import place_of
from perfdb_git.storage.profile_history import EarlierProfile, ProfileHistory

CHANGED_PROFILE = Rule(
    code="changed-profile",
    documentation="A profile of one name and version has one content, now and before.",
    remedy="give the changed profile a new version or name",
)
HISTORY_INCOMPLETE = Rule(
    code="history-incomplete",
    severity="note",
    documentation="The history behind a snapshot is here, so that changed profiles are seen.",
    remedy="run 'git fetch --unshallow' (in CI: fetch-depth: 0)",
)

Profile: TypeAlias = TimingProfile | SystemProfile
_Key: TypeAlias = tuple[str, str, str]

_CLASSES: Mapping[str, type[Profile]] = {
    "timing-profile": TimingProfile,
    "system-profile": SystemProfile,
}
_LONGEST_VALUE = 60
_SHORT_COMMIT = 12


def judge_history(snapshot: CheckedSnapshot) -> Iterator[Finding]:
    """Yield profiles that say something else than one of the same name and version."""
    current: dict[_Key, tuple[str, Profile]] = {}
    for document in _documents(snapshot):
        profile = _parsed(document.path, document.content)
        if profile is None:
            continue
        first = current.setdefault(_key(document.path, profile), (document.path, profile))
        yield from _compared(document.path, profile, first[1], f"in {first[0]}")
    if snapshot.history is None or not current:
        return
    blobs = {(file.path, file.id) for file in snapshot.files}
    changed: set[_Key] = set()
    try:
        for earlier in snapshot.history.profiles():
            if (earlier.path, earlier.id) not in blobs:
                yield from _changed(snapshot.history, earlier, current, changed)
    except RepositoryUnavailableError as error:
        yield HISTORY_INCOMPLETE.broken(
            layout.PROFILES,
            f"earlier profiles cannot all be compared: {error.message}",
            remedy=error.remedy,
        )


def judge_changed_profiles(change: Change) -> Iterator[Finding]:
    """Yield what `judge_history` finds, where any profile changes at all."""
    if any(file.path.startswith(f"{layout.PROFILES}/") for file in change.files):
        yield from judge_history(change.head)


def _documents(snapshot: CheckedSnapshot) -> list[CheckedDocument]:
    found = [document for kind in _CLASSES for document in snapshot.documents(kind)]
    return [document for document in found if document.is_valid]


def _changed(
    history: ProfileHistory,
    earlier: EarlierProfile,
    current: Mapping[_Key, tuple[str, Profile]],
    changed: set[_Key],
) -> Iterator[Finding]:
    place = place_of(earlier.path)
    if place is None or place.kind not in _CLASSES:
        return
    try:
        content = history.read(earlier)
    except InvalidInputError:
        return
    before = _parsed(earlier.path, content)
    key = None if before is None else _key(earlier.path, before)
    if before is None or key is None or key not in current or key in changed:
        return
    path, profile = current[key]
    where = f"at commit {earlier.commit[:_SHORT_COMMIT]} in {earlier.path}"
    for finding in _compared(path, profile, before, where):
        # The newest commit that differs is enough.
        changed.add(key)
        yield finding


def _compared(path: str, profile: Profile, other: Profile, where: str) -> Iterator[Finding]:
    difference = _difference(_comparable(profile), _comparable(other), ())
    if difference is not None:
        place, now, before = difference
        yield CHANGED_PROFILE.broken(
            path,
            f"{profile.name!r} version {profile.version} is {_shown(now)} here and "
            f"{_shown(before)} {where}",
            pointer=pointer(*place),
        )


def _parsed(path: str, content: bytes | None) -> Profile | None:
    """Return a profile, or None for what was never one: there is nothing to keep then."""
    place = place_of(path)
    cls = None if place is None or place.kind is None else _CLASSES.get(place.kind)
    if cls is None or content is None:
        return None
    reader = read_yaml if path.endswith(layout.YAML_SUFFIX) else read_json
    try:
        value = reader(content, document=path, decimal=cls is TimingProfile)
        return decode(cls, value, document=path)
    except InvalidInputError:
        return None


def _key(path: str, profile: Profile) -> _Key:
    return type(profile).__name__, profile.name, str(profile.version)


def _comparable(profile: Profile) -> Profile:
    # Version 1 and version "1" are one in every message, so they are one here.
    return dataclasses.replace(profile, version=str(profile.version))


_Difference: TypeAlias = tuple[tuple[str | int, ...], object, object]
_ABSENT = object()


def _difference(now: object, before: object, place: tuple[str | int, ...]) -> _Difference | None:
    """Return the first place at which two values differ, with what stands there."""
    if now == before:
        return None
    left, right = _parts(now), _parts(before)
    if left is None or right is None or type(now) is not type(before):
        return place, now, before
    for key in dict.fromkeys((*left, *right)):
        found = _difference(left.get(key, _ABSENT), right.get(key, _ABSENT), (*place, key))
        if found is not None:
            return found
    return place, now, before


def _parts(value: object) -> dict[str | int, object] | None:
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return dict(enumerate(value))
    return None


def _shown(value: object) -> str:
    if value is _ABSENT:
        return "absent"
    if _parts(value) is not None:
        return "another one"
    text = "null" if value is None else f"{value!r}" if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."


PROFILE_HISTORY = Check(
    id="profile-history",
    documentation="A changed profile has a new name or version.",
    rules=(CHANGED_PROFILE, HISTORY_INCOMPLETE),
    judge_snapshot=judge_history,
    judge_change=judge_changed_profiles,
)
