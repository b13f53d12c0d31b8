"""What changed inside documents that people write by hand: policies, vocabulary, profiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.strict_json import read_json
from perfdb_git.formats.strict_yaml import read_yaml
from perfdb_git.model.values import JsonValue
from perfdb_git.review.documents import DocumentChange, DocumentKind
from perfdb_git.storage.git import GitStore
from perfdb_git.storage.layout import YAML_SUFFIX

_KINDS: frozenset[DocumentKind] = frozenset(
    {"policy", "gates", "vocabulary", "system-profile", "timing-profile", "pipeline"}
)
_ABSENT = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingChange:
    """One value of a document that differs.

    Attributes
    ----------
    document : str
        Path of the document.
    place : str
        Names that lead to the value, joined by slashes.
    before, after : JSON value
        ``None`` where it is absent.
    """

    document: str
    place: str
    before: JsonValue
    after: JsonValue


def setting_changes(
    store: GitStore, documents: tuple[DocumentChange, ...]
) -> tuple[SettingChange, ...]:
    """Return the values that differ in documents which stand on both sides.

    A document that cannot be read on one side has no values to compare; `perfdb check` says why.

    Parameters
    ----------
    store : GitStore
        The repository.
    documents : tuple of DocumentChange
        What differs between the two commits.
    """
    found = []
    for change in documents:
        if change.kind not in _KINDS or change.old is None or change.new is None:
            continue
        try:
            before = _value(store, change.path, change.old)
            after = _value(store, change.path, change.new)
        except InvalidInputError:
            continue
        found += [
            SettingChange(document=change.path, place=place, before=old, after=new)
            for place, old, new in _differences(before, after, "")
        ]
    return tuple(found)


def _value(store: GitStore, path: str, blob: str) -> JsonValue:
    content = store.read_blob(blob, path=path)
    read = read_yaml if path.endswith(YAML_SUFFIX) else read_json
    return read(content, document=path)


def _differences(
    before: JsonValue, after: JsonValue, place: str
) -> Iterator[tuple[str, JsonValue, JsonValue]]:
    left, right = _members(before), _members(after)
    if left is None or right is None:
        if before != after:
            yield place, before, after
        return
    for name in sorted(left.keys() | right.keys(), key=str.encode):
        yield from _differences(
            left.get(name, _ABSENT), right.get(name, _ABSENT), f"{place}/{name}" if place else name
        )


def _members(value: JsonValue) -> Mapping[str, JsonValue] | None:
    """Return an object's members, or a list of named things by what names them."""
    if isinstance(value, Mapping):
        return value
    if not isinstance(value, list | tuple) or not value:
        return None
    named: dict[str, JsonValue] = {}
    for item in value:
        pair = _named(item)
        if pair is None or pair[0] in named:
            return None
        named[pair[0]] = pair[1]
    return named


def _named(item: JsonValue) -> tuple[str, JsonValue] | None:
    """Name an entry of a list: a selected calibration by what it answers, others by their name."""
    if not isinstance(item, Mapping):
        return None
    parts = [item.get(key) for key in ("response", "operation", "device")]
    if all(isinstance(part, str) for part in parts) and "revision" in item:
        return " ".join(str(part) for part in parts), item["revision"]
    name = item.get("name")
    return (name, item) if isinstance(name, str) else None
