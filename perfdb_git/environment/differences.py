"""Two manifests side by side: which facts are equal, which differ, which nobody knows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from perfdb_git.model.records import Manifest

Agreement: TypeAlias = Literal["equal", "different", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactComparison:
    """One fact of both manifests; None is an explicit unknown, or a fact that is not stated."""

    name: str
    first: str | None
    second: str | None

    @property
    def agreement(self) -> Agreement:
        """Whether both state it alike; a fact that one of them does not know differs."""
        if self.first != self.second:
            return "different"
        return "unknown" if self.first is None else "equal"


def compare_manifests(first: Manifest, second: Manifest) -> tuple[FactComparison, ...]:
    """Compare every fact of two manifests, in the order of the schema.

    Notes of the form ``name: value`` are compared by name, others as a whole.
    """
    one, two = dict(_facts(first)), dict(_facts(second))
    return tuple(
        FactComparison(name=name, first=one.get(name), second=two.get(name))
        for name in dict.fromkeys((*one, *two))
    )


def _facts(manifest: Manifest) -> Iterator[tuple[str, str | None]]:
    for item in dataclasses.fields(manifest):
        if item.name in ("schema", "runtimes", "notes"):
            continue
        value = getattr(manifest, item.name)
        yield item.name, None if value is None else str(value)
    for name in sorted(manifest.runtimes):
        yield f"runtimes.{name}", manifest.runtimes[name]
    for note in manifest.notes:
        name, separator, text = note.partition(": ")
        yield (f"notes.{name}", text) if separator else (f"note {note!r}", "stated")
