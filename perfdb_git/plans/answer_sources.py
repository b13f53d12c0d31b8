"""Where each answer of a plan comes from, and what it would be if one source said more."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from perfdb_git.database import DatabaseSnapshot
from perfdb_git.model.estimate import CostEstimate
from perfdb_git.plans.composing import SECONDS, AnsweredQuery
from perfdb_git.providers.observations import Observation, observe, pool
from perfdb_git.resolution.stage_answers import SERVICE_METRIC

Grouping: TypeAlias = Literal["record-set", "session"]
SourceKind: TypeAlias = Literal["record-set", "session", "calibration", "profile", "component"]

_RECORDED = ("measured", "simulated")
_ANY_LEVEL = 0.9
"""Coverage of an interval that is thrown away: only the pooled value is of interest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Something that an answer rests on; see `Dependence`."""

    kind: SourceKind
    name: str
    label: str


class AnswerSources:
    """Finds and changes the sources of answers of one snapshot.

    Parameters
    ----------
    snapshot : DatabaseSnapshot
        The evidence that answered.
    by : str
        Whether records are grouped by ``record-set`` or by ``session``.
    """

    def __init__(self, snapshot: DatabaseSnapshot, by: Grouping) -> None:
        self._evidence = snapshot.evidence
        self._by = by
        self._observed: dict[str, list[tuple[Source, Observation]]] = {}

    def of(self, item: AnsweredQuery) -> tuple[Source, ...]:
        """Return the sources of an answered query, each once."""
        estimate = _estimate(item)
        if estimate.method in _RECORDED:
            return tuple(dict.fromkeys(source for source, _ in self._observations(item)))
        provenance = estimate.provenance
        if provenance.calibration is not None:
            coordinates = item.resolution.query.coordinates()
            label = f"{coordinates['operation']} on {coordinates.get('device', 'any device')}"
            return (Source(kind="calibration", name=provenance.calibration, label=label),)
        name = ", ".join(provenance.source_revisions) or provenance.provider
        return (Source(kind="profile", name=name, label=provenance.provider),)

    def changed(self, item: AnsweredQuery, source: Source, factor: float) -> float:
        """Return the latency in seconds with all that ``source`` says multiplied.

        Parameters
        ----------
        item : AnsweredQuery
            With a latency.
        source : Source
            One of its sources.
        factor : float
            Applied to the records, or to the model's answer.
        """
        assert item.latency is not None
        if _estimate(item).method not in _RECORDED:
            return item.latency.value * factor
        scaled = [
            _scaled(observation, factor) if one == source else observation
            for one, observation in self._observations(item)
        ]
        return pool(scaled, SECONDS, _ANY_LEVEL).estimate.value

    def _observations(self, item: AnsweredQuery) -> list[tuple[Source, Observation]]:
        """Return what each record behind an answer says, re-read from Git."""
        digest = item.resolution.query_digest
        if digest not in self._observed:
            rows: dict[str, list[int]] = {}
            for record in _estimate(item).provenance.record_ids:
                record_set, _, row = record.partition("#")
                rows.setdefault(record_set, []).append(int(row))
            self._observed[digest] = [
                pair for sha256, places in rows.items() for pair in self._read(sha256, places)
            ]
        return self._observed[digest]

    def _read(self, sha256: str, rows: list[int]) -> list[tuple[Source, Observation]]:
        view = self._evidence.find_record_set(sha256)
        session = view.header.session
        source = Source(kind="record-set", name=sha256, label=session)
        if self._by == "session":
            source = Source(kind="session", name=session, label=view.header.source.tool)
        observed = (
            observe(view.header, row.cells, SERVICE_METRIC)
            for row in self._evidence.verified_rows(view, rows)
        )
        return [(source, observation) for observation in observed if observation is not None]


def _estimate(item: AnsweredQuery) -> CostEstimate:
    assert item.resolution.estimate is not None
    return item.resolution.estimate


def _scaled(observation: Observation, factor: float) -> Observation:
    return replace(
        observation,
        center=observation.center * factor,
        samples=tuple(sample * factor for sample in observation.samples),
    )
