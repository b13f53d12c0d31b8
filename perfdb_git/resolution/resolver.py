"""The resolver: asks every source, chooses one answer, and says why each other one lost.

It never combines answers: no factor of one source is applied to the number of another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from perfdb_git.model.estimate import (
    Alternative,
    AlternativeStatus,
    CostEstimate,
    CostSupport,
    Explanation,
)
from perfdb_git.model.policy import Policy, Tier
from perfdb_git.model.query import CostQuery
from perfdb_git.providers.protocol import NOT_SELECTED, CostProvider
from perfdb_git.resolution.admission import Admission, Fault

UNSELECTED = ("calibrated",)
"""Providers that exist even where the policy selects nothing for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The chosen estimate, or ``None`` with a code and a reason; and every other source."""

    estimate: CostEstimate | None
    alternatives: tuple[Alternative, ...]
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Verdict:
    """One source's answer before the choice."""

    provider: CostProvider
    support: CostSupport
    estimate: CostEstimate | None
    fault: Fault | None

    @property
    def eligible(self) -> bool:
        return self.estimate is not None and self.fault is None


class CostResolver:
    """Chooses among providers by the tiers of one policy.

    Parameters
    ----------
    providers : Mapping[Tier, CostProvider]
        The provider of each tier that this version implements.
    policy : Policy
        Tiers, limits and the rule for ambiguity.
    reference_time : int or None
        Committer time of the snapshot, for limits on age.

    Raises
    ------
    TypeError
        For an object that is no `CostProvider`, such as a lookup of measurements that answers are
        judged by.
    """

    def __init__(
        self,
        providers: Mapping[Tier, CostProvider],
        policy: Policy,
        *,
        reference_time: int | None,
    ) -> None:
        _require_providers(providers.values())
        self._providers = providers
        self._policy = policy
        self._reference_time = reference_time

    @property
    def revisions(self) -> dict[str, str]:
        """Revision of every provider that the policy asks, by tier."""
        return {tier: provider.revision for tier, provider in self._asked()}

    def admission(self, query: CostQuery) -> Admission:
        """Return the limits that hold for a query."""
        return Admission(
            policy=self._policy,
            limits=query.evidence_policy,
            reference_time=self._reference_time,
            query=query,
        )

    def resolve(self, query: CostQuery) -> Outcome:
        """Ask all providers and choose.

        Ambiguous or refused evidence at a tier stops the resolution there, unless the policy
        says ``on_ambiguity: next-tier``: bad evidence is not hidden behind a model.
        """
        admission = self.admission(query)
        names = [provider.name for provider in self._providers.values()]
        admission.check_names([*names, *UNSELECTED])
        verdicts = {
            tier: self._verdict(provider, query, admission) for tier, provider in self._asked()
        }
        winner, blocker = self._choose(list(verdicts.values()))
        alternatives = tuple(
            _lost(verdicts[tier], winner, blocker) if tier in verdicts else self._unselected(tier)
            for tier in self._policy.tiers
            if verdicts.get(tier) is not winner or winner is None
        )
        if winner is not None:
            return Outcome(
                estimate=winner.estimate,
                alternatives=alternatives,
                code="resolved",
                reason=winner.support.reason,
            )
        if blocker is not None:
            code, reason = blocker.support.code, blocker.support.reason
        else:
            code, reason = "no-admissible-evidence", "no source has an admissible answer"
        return Outcome(estimate=None, alternatives=alternatives, code=code, reason=reason)

    def explain(self, query: CostQuery) -> tuple[Explanation, ...]:
        """Return every asked provider's own account."""
        return tuple(provider.explain(query) for _, provider in self._asked())

    def _asked(self) -> list[tuple[Tier, CostProvider]]:
        return [
            (tier, self._providers[tier]) for tier in self._policy.tiers if tier in self._providers
        ]

    def _verdict(self, provider: CostProvider, query: CostQuery, admission: Admission) -> _Verdict:
        support = provider.supports(query)
        fault = admission.source_fault(provider.name, provider.method)
        estimate = provider.estimate(query) if support.answerable else None
        if estimate is not None and fault is None:
            fault = admission.estimate_fault(estimate)
        return _Verdict(provider, support, estimate, fault)

    def _choose(self, verdicts: Sequence[_Verdict]) -> tuple[_Verdict | None, _Verdict | None]:
        """Return the winner, or the verdict that stops the resolution."""
        for verdict in verdicts:
            if verdict.eligible:
                return verdict, None
            stops = self._policy.on_ambiguity == "stop" and verdict.support.blocking
            if stops and verdict.fault is None:
                return None, verdict
        return None, None

    def _unselected(self, tier: Tier) -> Alternative:
        """Name a tier for which the policy selects nothing."""
        return Alternative(
            provider=tier,
            status="not-selected",
            code=NOT_SELECTED,
            reason=f"policy {self._policy.name} selects no calibration revision",
            latency=None,
        )


_PROVIDER_MEMBERS = ("name", "method", "revision", "supports", "estimate", "explain")


def _require_providers(providers: Iterable[object]) -> None:
    for provider in providers:
        # Not asked for by value: a revision is a digest of all that its provider reads.
        missing = sorted(set(_PROVIDER_MEMBERS) - set(dir(provider)))
        if missing:
            kind = type(provider).__name__
            raise TypeError(f"{kind} is no CostProvider: it has no {', '.join(missing)}")


def _lost(verdict: _Verdict, winner: _Verdict | None, blocker: _Verdict | None) -> Alternative:
    support = verdict.support
    code, reason = support.code, support.reason
    if verdict.estimate is not None:
        code, reason = _loss(verdict, winner, blocker)
    elif verdict.fault is not None:
        code, reason = verdict.fault.code, verdict.fault.reason
    latency = None
    if verdict.estimate is not None and "latency" in verdict.estimate.metrics:
        latency = verdict.estimate.metrics["latency"].value
    answered = verdict.estimate is not None or support.blocking
    return Alternative(
        provider=verdict.provider.name,
        status=_status(support, answered=answered),
        code=code,
        reason=reason,
        latency=latency,
        near_misses=support.near_misses,
    )


def _status(support: CostSupport, *, answered: bool) -> AlternativeStatus:
    if answered:
        return "rejected"
    return "not-selected" if support.code == NOT_SELECTED else "unsupported"


def _loss(verdict: _Verdict, winner: _Verdict | None, blocker: _Verdict | None) -> tuple[str, str]:
    if verdict.fault is not None:
        return verdict.fault.code, verdict.fault.reason
    if winner is not None:
        return "lower-tier", f"{winner.provider.name} answers at a higher tier"
    assert blocker is not None
    return "blocked", f"{blocker.provider.name} evidence at a higher tier is {blocker.support.code}"
