"""Which answers the policy and the query's own limits admit.

A query may tighten the policy in force and never loosen it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from perfdb_git.errors import UsageError
from perfdb_git.model.estimate import CostEstimate
from perfdb_git.model.instants import earliest_instant
from perfdb_git.model.policy import Policy
from perfdb_git.model.query import CostQuery, EvidencePolicy
from perfdb_git.model.values import JsonValue, Scalar

SECONDS_A_DAY = 86400


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One reason why an answer is not admitted."""

    code: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The limits of policy and query together.

    ``reference_time`` is the snapshot's committer time in seconds since 1970; ages are judged
    against it and never against the wall clock. ``query`` is ``None`` where no answer is judged.
    """

    policy: Policy
    limits: EvidencePolicy
    reference_time: int | None
    query: CostQuery | None = None

    def check_names(self, known: Iterable[str]) -> None:
        """Refuse a query that admits providers which do not exist."""
        names = sorted(known)
        for name in self.limits.providers or ():
            if name not in names:
                raise UsageError(
                    f"unknown provider {name!r}",
                    code="unknown-provider",
                    remedy=f"one of {', '.join(names)}",
                )

    def source_fault(self, provider: str, method: str) -> Fault | None:
        """Say why a source may not answer at all, whatever it says."""
        if self.limits.providers is not None and provider not in self.limits.providers:
            return Fault(code="provider-not-admitted", reason="the query does not admit it")
        for methods, owner in ((self.policy.methods, "policy"), (self.limits.methods, "query")):
            if methods is not None and method not in methods:
                return Fault(
                    code="method-not-admitted",
                    reason=f"the {owner} admits only {', '.join(methods)}",
                )
        if method == "fallback" and not self._fallback_allowed():
            return Fault(code="fallback-not-allowed", reason="fallback answers are not allowed")
        return None

    def estimate_fault(self, estimate: CostEstimate) -> Fault | None:
        """Say which limit an answer breaks, or ``None``."""
        return (
            self._age_fault(estimate)
            or self._uncertainty_fault(estimate)
            or self._distance_fault(estimate)
        )

    @property
    def freshness_limited(self) -> bool:
        """Whether any limit on age is in force."""
        return math.isfinite(self.tightest("max_age_days"))

    def tightest(self, name: str) -> float:
        """Return the tighter of the policy's and the query's bound, infinite without any."""
        return least_bound(getattr(self.policy.limits, name), getattr(self.limits, name))

    def _fallback_allowed(self) -> bool:
        return self.policy.fallback_allowed and self.limits.fallback_allowed is not False

    def _age_fault(self, estimate: CostEstimate) -> Fault | None:
        limit = self.tightest("max_age_days")
        if not math.isfinite(limit):
            return None
        age = self._age_days(estimate.provenance.measured_at)
        if age is None:
            return Fault(code="age-unknown", reason="its age is unknown and the age is limited")
        if age > limit:
            return Fault(code="too-old", reason=f"it is {age:.1f} days old, more than {limit:g}")
        return None

    def _age_days(self, measured_at: str | None) -> float | None:
        if measured_at is None or self.reference_time is None:
            return None
        return (self.reference_time - earliest_instant(measured_at)) / SECONDS_A_DAY

    def _uncertainty_fault(self, estimate: CostEstimate) -> Fault | None:
        limit = self.tightest("max_relative_uncertainty")
        if not math.isfinite(limit):
            return None
        for name, metric in estimate.metrics.items():
            relative = metric.relative_uncertainty
            if relative is None:
                return Fault(
                    code="uncertainty-unknown",
                    reason=f"the uncertainty of its {name} is unknown and uncertainty is limited",
                )
            if relative > limit:
                return Fault(
                    code="too-uncertain",
                    reason=f"its {name} is known to ±{relative:.1%}, worse than ±{limit:.1%}",
                )
        return None

    def _distance_fault(self, estimate: CostEstimate) -> Fault | None:
        distance = estimate.validity.distance_octaves
        if estimate.validity.kind != "extrapolated" or distance is None:
            return None
        limit = self._extrapolation_limit(estimate.validity.domain)
        if distance <= limit:
            return None
        return Fault(
            code="too-far",
            reason=f"it lies {distance:.2f} octaves outside the evidence, more than {limit:g}",
        )

    def _extrapolation_limit(self, domain: Mapping[str, JsonValue]) -> float:
        stated = self.policy.limits.max_extrapolation_octaves
        if self.query is not None:
            device = self.query.deployment.device
            outside = _outside(self.query.coordinates(), domain)
            stated = self.policy.extrapolation_limit(self.query.operation, device, outside)
        return least_bound(stated, self.limits.max_extrapolation_octaves)


def least_bound(*bounds: float | None) -> float:
    """Return the tightest of some bounds, infinite where none is stated."""
    return min((bound for bound in bounds if bound is not None), default=math.inf)


def _outside(values: Mapping[str, Scalar], domain: Mapping[str, JsonValue]) -> list[str]:
    """Return the dimensions outside their range; one that the query leaves open counts as such."""
    return [name for name, limits in domain.items() if not _within(values.get(name), limits)]


def _within(value: Scalar | None, limits: JsonValue) -> bool:
    if not isinstance(limits, Mapping) or not isinstance(value, int | float):
        return False
    least, most = limits.get("minimum"), limits.get("maximum")
    if not isinstance(least, int | float) or not isinstance(most, int | float):
        return False
    return least <= value <= most
