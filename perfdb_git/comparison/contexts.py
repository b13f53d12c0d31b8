"""What has to be equal for two groups of samples to be comparable."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

from perfdb_git.errors import UsageError
from perfdb_git.model.records import Manifest, RecordSetHeader
from perfdb_git.model.values import JsonValue, Scalar
from perfdb_git.model.vocabulary import Vocabulary

if TYPE_CHECKING:
    from perfdb_git.storage.snapshot import EvidenceSnapshot

ENVIRONMENT = "environment"
"""Stands for the manifest in ``--across``, beside the dimensions."""

_PSEUDO = frozenset({ENVIRONMENT, "kind"})
_ALL_FACTS = frozenset(
    field.name for field in fields(Manifest) if field.name not in ("schema", "notes")
)
_EXPLAINED: Mapping[str, frozenset[str]] = {
    ENVIRONMENT: _ALL_FACTS,
    # Another device is another machine, and a simulator runs on none.
    "device": _ALL_FACTS,
    "kind": _ALL_FACTS,
    "form_factor": frozenset({"form_factor"}),
    "topology": frozenset({"topology", "device_count"}),
    "participants": frozenset({"device_count"}),
    "runtime": frozenset({"runtimes"}),
    "runtime_revision": frozenset({"runtimes"}),
    "implementation": frozenset({"runtimes"}),
    "implementation_revision": frozenset({"runtimes"}),
    "power_mode": frozenset({"power_policy"}),
}
"""Facts of a manifest that differ because a dimension does."""


@dataclass(frozen=True, slots=True)
class ContextKey:
    """Everything that both sides must share: metric, values of all known dimensions, environment.

    An unknown dimension is left out, so that it equals only an unknown one.
    """

    metric: str
    unit: str
    values: tuple[tuple[str, Scalar], ...]
    environment: tuple[tuple[str, str], ...]

    def without(self, name: str) -> ContextKey:
        """Return the key with one dimension, or the environment, left open."""
        if name == ENVIRONMENT:
            return ContextKey(self.metric, self.unit, self.values, ())
        values = tuple(item for item in self.values if item[0] != name)
        explained = _EXPLAINED.get(name, frozenset())
        kept = tuple(item for item in self.environment if item[0].split(".")[0] not in explained)
        return ContextKey(self.metric, self.unit, values, kept)


class Environments:
    """The facts of the manifests of one snapshot that two groups must share.

    Parameters
    ----------
    evidence : EvidenceSnapshot
        Where the manifests stand.
    across : collection of str
        Dimensions in which the sides may differ; the facts that follow from them are left out.
    """

    def __init__(self, evidence: EvidenceSnapshot, across: Collection[str]) -> None:
        self._evidence = evidence
        self._across = across
        self._known: dict[str, tuple[tuple[str, str], ...]] = {}

    @cached_property
    def _facts(self) -> frozenset[str]:
        explained = [_EXPLAINED.get(name, frozenset()) for name in self._across]
        return _ALL_FACTS.difference(*explained)

    def facts(self, manifest: str) -> tuple[tuple[str, str], ...]:
        """Return the known facts of a manifest by its SHA-256.

        Raises
        ------
        InvalidInputError
            Where the snapshot has no such manifest.
        """
        if not self._facts:
            return ()
        if manifest not in self._known:
            self._known[manifest] = _flat(self._evidence.manifest(manifest), self._facts)
        return self._known[manifest]


def _flat(manifest: Manifest, names: Collection[str]) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for name in names:
        value = getattr(manifest, name)
        if isinstance(value, Mapping):
            found.update({f"{name}.{key}": str(item) for key, item in value.items() if item})
        elif value is not None:
            found[name] = str(value)
    return tuple(sorted(found.items()))


def checked_across(names: Collection[str], vocabulary: Vocabulary) -> frozenset[str]:
    """Return the dimensions that may differ, where the vocabulary has them.

    Raises
    ------
    UsageError
        'unknown-dimension' for one that it has not.
    """
    for name in names:
        if name not in vocabulary.dimensions and name not in _PSEUDO:
            raise UsageError(
                f"unknown dimension {name!r}",
                code="unknown-dimension",
                remedy="give a dimension of the vocabulary, kind, or environment",
            )
    return frozenset(names)


def known_context(header: RecordSetHeader) -> dict[str, Scalar]:
    """Return what a record set's header knows of the context of its rows, ``kind`` included."""
    known = {name: value for name, value in header.context.items() if value is not None}
    return {"kind": header.kind, **known}


def row_context(header: RecordSetHeader, cells: tuple[JsonValue, ...]) -> dict[str, Scalar]:
    """Return the known dimensions of a row that stand in columns."""
    return {
        column.name: cell
        for column, cell in zip(header.columns, cells, strict=True)
        if column.role == "dimension" and isinstance(cell, int | float)
    }
