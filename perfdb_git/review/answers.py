"""Answers reduced to what a reviewer compares, and a snapshot that can be asked many of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias

from perfdb_git.database import DatabaseSnapshot
from perfdb_git.errors import InvalidInputError, RepositoryUnavailableError, UsageError
from perfdb_git.model.estimate import CostEstimate, Method, MetricEstimate, ValidityKind
from perfdb_git.model.policy import Policy
from perfdb_git.model.query import CostQuery, EvidencePolicy
from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.queries import build_query
from perfdb_git.resolution.composition import ResolverParts, compose_resolver
from perfdb_git.resolution.resolver import CostResolver, Outcome
from perfdb_git.storage.index import IndexRebuiltError

ChangedField: TypeAlias = Literal[
    "answer", "value", "interval", "method", "validity", "source", "refusal"
]

NO_VOCABULARY = "no-vocabulary"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredMetric:
    """One metric in SI units, with the bounds of its interval where it has one."""

    value: float
    unit: str
    lower: float | None
    upper: float | None
    level: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one snapshot says to a query; ``metrics`` is empty where it has no answer.

    Attributes
    ----------
    code, reason : str
        ``resolved`` and by what, or why there is no answer.
    method, provider : str or None
        How the answer was obtained, and by which source.
    validity : str or None
        Its relation to what was measured; ``distance_octaves`` how far it is.
    record_ids : tuple of str
        Records behind it.
    calibration : str or None
        Calibration revision behind it.
    sources : tuple of str
        Tools or profiles behind it, with their revisions.
    """

    code: str
    reason: str
    metrics: Mapping[str, AnsweredMetric] = field(default_factory=dict)
    method: Method | None = None
    provider: str | None = None
    validity: ValidityKind | None = None
    distance_octaves: float | None = None
    record_ids: tuple[str, ...] = ()
    calibration: str | None = None
    sources: tuple[str, ...] = ()

    @property
    def is_resolved(self) -> bool:
        """Whether there is an answer."""
        return bool(self.metrics)

    @property
    def main(self) -> AnsweredMetric | None:
        """The latency, else the first metric by name; ``None`` without an answer."""
        if not self.metrics:
            return None
        name = "latency" if "latency" in self.metrics else min(self.metrics)
        return self.metrics[name]


def refused(code: str, reason: str) -> Answer:
    """Return the answer of a snapshot that has none."""
    return Answer(code=code, reason=reason)


def answer_of(outcome: Outcome) -> Answer:
    """Reduce a resolver's outcome to what is compared."""
    estimate = outcome.estimate
    if estimate is None:
        return refused(outcome.code, outcome.reason)
    return _answered(estimate, outcome.code, outcome.reason)


def _answered(estimate: CostEstimate, code: str, reason: str) -> Answer:
    return Answer(
        code=code,
        reason=reason,
        metrics={name: _metric(metric) for name, metric in sorted(estimate.metrics.items())},
        method=estimate.method,
        provider=estimate.provenance.provider,
        validity=estimate.validity.kind,
        distance_octaves=estimate.validity.distance_octaves,
        record_ids=estimate.provenance.record_ids,
        calibration=estimate.provenance.calibration,
        sources=estimate.provenance.source_revisions,
    )


def _metric(metric: MetricEstimate) -> AnsweredMetric:
    bounds = metric.uncertainty
    return AnsweredMetric(
        value=metric.value,
        unit=metric.unit,
        lower=None if bounds is None else bounds.lower,
        upper=None if bounds is None else bounds.upper,
        level=None if bounds is None else bounds.level,
    )


def changed_fields(before: Answer, after: Answer) -> tuple[ChangedField, ...]:
    """Return in what two answers differ, none where a reader would see no difference.

    Which records stand behind an answer is no difference by itself: more records with the same
    values say the same.
    """
    if before.is_resolved != after.is_resolved:
        return ("answer",)
    if not before.is_resolved:
        return ("refusal",) if before.code != after.code else ()
    found: list[ChangedField] = []
    if _values(before) != _values(after):
        found.append("value")
    if _bounds(before) != _bounds(after):
        found.append("interval")
    if before.method != after.method:
        found.append("method")
    if (before.validity, before.distance_octaves) != (after.validity, after.distance_octaves):
        found.append("validity")
    if (before.provider, before.calibration) != (after.provider, after.calibration):
        found.append("source")
    return tuple(found)


def log_ratio(before: Answer, after: Answer) -> float | None:
    """Return ln(after / before) of the main metric, ``None`` where one has no positive value."""
    old, new = before.main, after.main
    if old is None or new is None or old.value <= 0 or new.value <= 0 or old.unit != new.unit:
        return None
    return math.log(new.value / old.value)


def _values(answer: Answer) -> dict[str, tuple[float, str]]:
    return {name: (metric.value, metric.unit) for name, metric in answer.metrics.items()}


def _bounds(answer: Answer) -> dict[str, tuple[float | None, ...]]:
    return {name: (item.lower, item.upper, item.level) for name, item in answer.metrics.items()}


class AskedSnapshot:
    """One snapshot, asked many queries under policies of its own.

    Parameters
    ----------
    snapshot : DatabaseSnapshot
        The evidence.
    external : mapping of str to Policy or None
        Policies from outside the snapshot, by the names that they are asked for under.
    """

    def __init__(
        self, snapshot: DatabaseSnapshot, *, external: Mapping[str, Policy] | None = None
    ) -> None:
        self.snapshot = snapshot
        self._policies: dict[str, Policy | Answer] = dict(external or {})
        self._resolvers: dict[str, CostResolver] = {}

    @cached_property
    def vocabulary(self) -> Vocabulary | None:
        """The vocabulary, ``None`` where the commit holds no evidence repository yet."""
        try:
            return self.snapshot.vocabulary
        except RepositoryUnavailableError as error:
            if error.code != NO_VOCABULARY:
                raise
            return None

    def policy(self, name: str) -> Policy | Answer:
        """Return a policy, or the refusal of every query where there is none of that name."""
        if name not in self._policies:
            try:
                self._policies[name] = self.snapshot.policy(name).policy
            except InvalidInputError as error:
                if error.code != "unknown-policy":
                    raise
                self._policies[name] = refused(error.code, error.message)
        return self._policies[name]

    def parts(self, policy: Policy) -> ResolverParts:
        """Return what answers depend on, without the search for near misses."""
        return replace(self.snapshot.parts(policy), near_misses=False)

    def answer(self, values: Mapping[str, Scalar], limits: EvidencePolicy, policy: str) -> Answer:
        """Answer a query in the terms of this snapshot's own vocabulary.

        Parameters
        ----------
        values : mapping of str to Scalar
            Canonical values by flat dimension name.
        limits : EvidencePolicy
            The query's own limits.
        policy : str
            Name of the policy.
        """
        vocabulary = self.vocabulary
        if vocabulary is None:
            return refused(NO_VOCABULARY, "the commit holds no evidence repository")
        in_force = self.policy(policy)
        if isinstance(in_force, Answer):
            return in_force
        query = asked_query(values, limits, vocabulary)
        if isinstance(query, Answer):
            return query
        try:
            return answer_of(self._resolver(policy, in_force).resolve(query))
        except IndexRebuiltError:
            # The index said something else than Git and has been made anew; Git's word stands.
            self._resolvers.clear()
            return answer_of(self._resolver(policy, in_force).resolve(query))

    def _resolver(self, name: str, policy: Policy) -> CostResolver:
        if name not in self._resolvers:
            self._resolvers[name] = compose_resolver(self.parts(policy))
        return self._resolvers[name]


def asked_query(
    values: Mapping[str, Scalar], limits: EvidencePolicy, vocabulary: Vocabulary
) -> CostQuery | Answer:
    """Build a query, or return the refusal of a vocabulary that lacks one of its terms."""
    try:
        return build_query(values, vocabulary, limits=limits)
    except UsageError as error:
        return refused(error.code, error.message)
