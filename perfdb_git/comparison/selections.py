"""What the two sides of a comparison are: records by id, a selection, or what a branch adds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, get_args

from perfdb_git.errors import UsageError
from perfdb_git.model.records import RecordKind
from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.queries import parse_pairs

_ID = re.compile(r"([0-9a-fA-F]{4,64})(?:#(0|[1-9][0-9]{0,17}))?")
_RANGE = re.compile(r"(?P<base>\S*[^.\s])\.\.(?P<new>[^.\s]\S*)")

_REMEDY = (
    "a side is a record (3f2a91c0#17), a record set (3f2a91c0), several of them with commas, or "
    "KEY=VALUE pairs with commas (device=a100,session=NAME); main..branch is both sides at once"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordChoice:
    """Records named one by one: prefixes of record-set ids, each with a row or whole."""

    ids: tuple[tuple[str, int | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """All records with these values; ``None`` asks for records that do not know a dimension."""

    dimensions: Mapping[str, Scalar | None]
    session: str | None = None
    kind: str | None = None

    def stated(self) -> dict[str, Scalar | None]:
        """Return everything that identifies a context, ``kind`` included."""
        kind = {} if self.kind is None else {"kind": self.kind}
        return {**self.dimensions, **kind}


Choice: TypeAlias = RecordChoice | Selection

EVERYTHING = Selection(dimensions={})


def parse_range(text: str) -> tuple[str, str] | None:
    """Return the two revisions of ``main..branch``, or None where it is no range.

    Raises
    ------
    UsageError
        'bad-range' for three dots, or an end that is left out.
    """
    if ".." not in text:
        return None
    found = _RANGE.fullmatch(text)
    if found is None:
        raise UsageError(
            f"{text!r} is no range of commits",
            code="bad-range",
            remedy="write BASE..NEW, as in main..branch, with two dots and both ends",
        )
    return found["base"], found["new"]


def parse_choice(text: str, vocabulary: Vocabulary) -> Choice:
    """Read one side of a comparison.

    Raises
    ------
    UsageError
        'bad-side', 'repeated-dimension', or as `parse_pairs`.
    """
    parts = [part.strip() for part in text.split(",")]
    if all("=" in part for part in parts):
        return parse_selection(parts, vocabulary)
    matches = [_ID.fullmatch(part) for part in parts]
    ids = [
        (match[1].lower(), None if match[2] is None else int(match[2]))
        for match in matches
        if match is not None
    ]
    if len(ids) != len(parts):
        raise UsageError(f"{text!r} names no records", code="bad-side", remedy=_REMEDY)
    return RecordChoice(ids=tuple(ids))


def parse_selection(pairs: Sequence[str], vocabulary: Vocabulary) -> Selection:
    """Read KEY=VALUE pairs; ``session`` and ``kind`` stand beside the dimensions."""
    special: dict[str, str] = {}
    rest: list[str] = []
    for pair in pairs:
        key, _, value = pair.partition("=")
        if key.strip() not in ("session", "kind"):
            rest.append(pair)
        elif special.setdefault(key.strip(), value.strip()) != value.strip():
            raise UsageError(f"{key.strip()} is given twice", code="repeated-dimension")
    kind = special.get("kind")
    if kind is not None and kind not in get_args(RecordKind):
        raise UsageError(
            f"kind={kind} is no kind of record",
            code="unknown-kind",
            remedy=f"one of {', '.join(get_args(RecordKind))}",
        )
    return Selection(
        dimensions=parse_pairs(rest, vocabulary), session=special.get("session"), kind=kind
    )


def differing(base: Choice, new: Choice) -> tuple[str, ...]:
    """Return what two selections say differently: that is what is compared, and not matched."""
    if not (isinstance(base, Selection) and isinstance(new, Selection)):
        return ()
    stated = base.stated(), new.stated()
    names = sorted({*stated[0], *stated[1]})
    missing = object()
    return tuple(
        name for name in names if stated[0].get(name, missing) != stated[1].get(name, missing)
    )
