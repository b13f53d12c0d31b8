"""The last resort: an explicit conservative bound that a profile declares with its source."""

from __future__ import annotations

from typing import Any

from perfdb_git.errors import NoEvidenceError
from perfdb_git.model.estimate import (
    CostEstimate,
    CostSupport,
    Diagnostics,
    Explanation,
    Method,
    MetricEstimate,
    Provenance,
    Validity,
)
from perfdb_git.model.query import CostQuery
from perfdb_git.model.system_profile import FallbackBound, SystemProfile
from perfdb_git.operations.work import Work
from perfdb_git.providers.profiled_work import ProfiledWork, ProfileSelection, Refusal

REVISION = 1
"""Raised whenever the same profile and query give another answer."""


class FallbackProvider:
    """Upper bounds on latency from the declared bounds of the selected profiles."""

    def __init__(self, selection: ProfileSelection) -> None:
        self._selection = selection

    @property
    def name(self) -> str:
        """``fallback``."""
        return "fallback"

    @property
    def method(self) -> Method:
        """``fallback``."""
        return "fallback"

    @property
    def revision(self) -> str:
        """Provider revision, with the digest of the profiles that the policy selects."""
        return f"fallback/{REVISION}+{self._selection.digest}"

    def supports(self, query: CostQuery) -> CostSupport:
        """Say whether the device's profile declares a bound for this kind of work."""
        found = self._bounded(query)
        if isinstance(found, Refusal):
            return found.as_support(self.name, self.method)
        return CostSupport(
            provider=self.name,
            answerable=True,
            code="declared-bound",
            reason=f"bound declared by profile {found[0].profile.name}",
            method=self.method,
        )

    def estimate(self, query: CostQuery) -> CostEstimate:
        """Return the declared bound on latency."""
        found = self._bounded(query)
        if isinstance(found, Refusal):
            raise NoEvidenceError(found.reason, code=found.code)
        work, bound = found
        parts = bound_parts(bound, work.work)
        return CostEstimate(
            metrics={
                "latency": MetricEstimate(value=sum(parts.values()), unit="s", uncertainty=None)
            },
            method=self.method,
            stochastic=None,
            validity=Validity(kind="bound", distance_octaves=None),
            provenance=Provenance(
                provider=self.name,
                revision=self.revision,
                record_ids=(),
                source_revisions=(f"{work.profile.name}@{work.profile.version}",),
                calibration=None,
                commit=None,
            ),
            diagnostics=Diagnostics(
                assumptions=("a declared upper bound on latency", f"source: {bound.source}"),
                breakdown=parts,
            ),
        )

    def explain(self, query: CostQuery) -> Explanation:
        """Show the bound and its source."""
        found = self._bounded(query)
        if isinstance(found, Refusal):
            steps: tuple[str, ...] = (f"{found.code}: {found.reason}",)
        else:
            parts = bound_parts(found[1], found[0].work)
            steps = (f"source: {found[1].source}", *(f"{k}: {v:.6g} s" for k, v in parts.items()))
        return Explanation(provider=self.name, revision=self.revision, steps=steps)

    def _bounded(self, query: CostQuery) -> tuple[ProfiledWork, FallbackBound] | Refusal:
        found = self._selection.work(query)
        if isinstance(found, Refusal):
            return found
        bound = declared_bound(found.profile, has_message=bool(found.work.message_bytes))
        return bound if isinstance(bound, Refusal) else (found, bound)


def declared_bound(profile: SystemProfile, *, has_message: bool) -> FallbackBound | Refusal:
    """Return the bound of a profile for work with or without a message."""
    bound = profile.fallback
    if bound is None:
        return Refusal(code="no-bound", reason=f"profile {profile.name} declares no fallback bound")
    if has_message and bound.network_gbyte_per_s is None:
        return Refusal(
            code="no-bound", reason=f"profile {profile.name} declares no network fallback bound"
        )
    return bound


def bound_parts(bound: FallbackBound, work: Work) -> dict[str, Any]:
    """Return the bound's terms in seconds, floats or ``(n,)``; their sum is the bound."""
    parts = {
        "latency": bound.latency_s,
        "compute": work.operations / (bound.tops * 1e12),
        "memory": work.bytes_moved / (bound.memory_gbyte_per_s * 1e9),
    }
    if bound.network_gbyte_per_s is not None:
        parts["transfer"] = work.message_bytes / (bound.network_gbyte_per_s * 1e9)
    return parts
