"""Whether a vocabulary still means what it meant: the same question typed at two commits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from perfdb_git.formats.json_value import pointer_of
from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Dimension, Operation, Vocabulary

Meaning: TypeAlias = Mapping[str, Scalar]
"""What a typed text stands for: values by dimension."""

_DIMENSION_FLAGS: tuple[tuple[str, str], ...] = (
    ("group", "queries have it elsewhere"),
    ("type", "its values are read in another way"),
    ("unit", "a typed number means another quantity"),
    ("zero", "distances are measured in another way"),
    ("material", "other records are admitted to an answer"),
    ("matched", "other records are admitted to an answer"),
)
_OPERATION_FACTS: tuple[tuple[str, str], ...] = (
    ("work", "its work is counted in another way"),
    ("engine", "its time is modelled in another way"),
    ("shape", "its work needs other dimensions"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeaningChange:
    """One thing that the old vocabulary understood, and the new one understands differently.

    ``pointer`` names the place in the old vocabulary; ``lost`` tells that the new one does not
    know it at all any more.
    """

    pointer: str
    message: str
    lost: bool


def meaning_changes(old: Vocabulary, new: Vocabulary) -> tuple[MeaningChange, ...]:
    """Return what the new vocabulary understands otherwise; additions change nothing.

    Parameters
    ----------
    old, new : Vocabulary
        Of the merge base and of the head.
    """
    found: list[MeaningChange] = []
    for name, dimension in old.dimensions.items():
        now = new.dimensions.get(name)
        if now is None:
            found.append(_lost(("dimensions", name), f"dimension {name} is removed"))
            continue
        found += _flags(("dimensions", name), f"dimension {name}", dimension, now)
        found += _texts(name, dimension, now)
    for name, operation in old.operations.items():
        other = new.operations.get(name)
        if other is None:
            found.append(_lost(("operations", name), f"operation {name} is removed"))
            continue
        found += _flags(("operations", name), f"operation {name}", operation, other)
        found += [
            _lost(("operations", name, "optional"), f"operation {name} takes no {item} any more")
            for item in operation.optional
            if item not in (*other.optional, *other.shape)
        ]
    return tuple(found)


def _flags(
    path: tuple[str, ...],
    what: str,
    old: Dimension | Operation,
    new: Dimension | Operation,
) -> Iterator[MeaningChange]:
    facts = _DIMENSION_FLAGS if isinstance(old, Dimension) else _OPERATION_FACTS
    for name, reason in facts:
        before, after = getattr(old, name), getattr(new, name)
        if before != after:
            yield MeaningChange(
                pointer=pointer_of((*path, name)),
                message=f"{what}: {name} was {_shown(before)} and becomes {_shown(after)}, "
                f"so {reason}",
                lost=False,
            )


def _texts(name: str, old: Dimension, new: Dimension) -> Iterator[MeaningChange]:
    after: dict[str, list[Meaning]] = {}
    for text, meant, _ in _meanings(name, new):
        after.setdefault(text, []).append(meant)
    for text, meant, path in _meanings(name, old):
        where = pointer_of(("dimensions", name, *path))
        if text not in after:
            kind = "term" if text in old.terms else "typed text"
            yield MeaningChange(
                pointer=where,
                message=f"{name}: {kind} {text!r}, which meant {_said(meant)}, is removed",
                lost=True,
            )
        # A text that gained a second meaning has lost its own.
        for other in [item for item in after.get(text, ()) if item != meant][:1]:
            yield MeaningChange(
                pointer=where,
                message=f"{name}: {text!r} meant {_said(meant)} and would mean {_said(other)}, "
                "so old queries get other answers",
                lost=False,
            )


def _meanings(
    name: str, dimension: Dimension
) -> Iterator[tuple[str, Meaning, tuple[str | int, ...]]]:
    """Yield what each typed text stands for, and where that is written."""
    for term, aliases in dimension.terms.items():
        yield term, {name: term}, ("terms", term)
        for number, alias in enumerate(aliases):
            yield alias, {name: term}, ("terms", term, number)
    for text, values in dimension.shorthands.items():
        yield text, values, ("shorthands", text)


def _said(meaning: Meaning) -> str:
    return ", ".join(f"{name}={value}" for name, value in meaning.items())


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "empty"
    return "none" if value is None else str(value).lower()


def _lost(path: tuple[str, ...], message: str) -> MeaningChange:
    return MeaningChange(pointer=pointer_of(path), message=message, lost=True)
