"""From a snapshot's parts to the resolver of many questions."""

from __future__ import annotations

from dataclasses import replace

from perfdb_git.model.policy import Tier
from perfdb_git.model.query import EvidencePolicy
from perfdb_git.providers.analytical import AnalyticalProvider
from perfdb_git.providers.batch.answers import BatchProvider, Words
from perfdb_git.providers.batch.context import BatchContext
from perfdb_git.providers.batch.modelled import AnalyticalBatch, FallbackBatch
from perfdb_git.providers.batch.recorded import RecordedBatch
from perfdb_git.providers.fallback import FallbackProvider
from perfdb_git.providers.profiled_work import ProfileSelection
from perfdb_git.resolution.admission import Admission
from perfdb_git.resolution.batch_resolver import BatchResolver
from perfdb_git.resolution.composition import (
    ResolverParts,
    calibration_selection,
    recorded_provider,
)


def compose_batch_resolver(
    parts: ResolverParts, *, limits: EvidencePolicy, metric: str, wants_values: bool
) -> BatchResolver:
    """Return the batch resolver that answers from these parts.

    Parameters
    ----------
    parts : ResolverParts
        Of the snapshot.
    limits : EvidencePolicy
        The questions' own limits.
    metric : str
        The metric whose values are wanted.
    wants_values : bool
        Whether the values of sources that lost are wanted too.
    """
    # What a batch tells of a miss is its code.
    parts = replace(parts, near_misses=False)
    policy, records = parts.policy, parts.remaining_records()
    admission = Admission(policy=policy, limits=limits, reference_time=parts.reference_time)
    context = BatchContext(
        vocabulary=parts.vocabulary,
        policy=policy,
        limits=limits,
        metric=metric,
        largest_uncertainty=admission.tightest("max_relative_uncertainty"),
        words=Words(),
    )
    selection = ProfileSelection(parts.profiles, parts.vocabulary, policy)
    recorded: tuple[Tier, ...] = ("recorded-measured", "recorded-simulated")
    providers: dict[Tier, BatchProvider] = {
        tier: RecordedBatch(recorded_provider(parts, records, tier), records, context)
        for tier in recorded
    }
    providers["analytical"] = AnalyticalBatch(AnalyticalProvider(selection), selection, context)
    providers["fallback"] = FallbackBatch(FallbackProvider(selection), selection, context)
    if policy.calibrations:
        from perfdb_git.providers.batch.calibrated import CalibratedBatch

        providers["calibrated"] = CalibratedBatch(calibration_selection(parts, records), context)
    return BatchResolver(providers, admission, context, wants_values=wants_values)
