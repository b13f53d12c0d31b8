"""From a snapshot's parts to its resolver: one provider for each tier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfdb_git.model.exclusion import Exclusion
from perfdb_git.model.policy import Policy, Tier
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.providers.analytical import AnalyticalProvider
from perfdb_git.providers.evidence import EvidenceReader, ProfileReader
from perfdb_git.providers.fallback import FallbackProvider
from perfdb_git.providers.profiled_work import ProfileSelection
from perfdb_git.providers.protocol import CostProvider
from perfdb_git.providers.recorded import RecordedProvider
from perfdb_git.providers.validations import ValidationReader
from perfdb_git.resolution.excluded_evidence import RemainingRecords
from perfdb_git.resolution.resolver import CostResolver

if TYPE_CHECKING:
    from perfdb_git.providers.calibration_models import CalibrationModels
    from perfdb_git.providers.calibration_selection import CalibrationSelection


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolverParts:
    """Everything that answers depend on, each part by itself.

    Attributes
    ----------
    records : EvidenceReader
        Record sets, less what is retracted.
    profiles : ProfileReader
        System profiles.
    validations : ValidationReader
        What simulators were judged by.
    calibrations : callable
        Returns the calibration models; called only where the policy selects one.
    vocabulary : Vocabulary
        Dimensions and operations in force.
    policy : Policy
        Tiers, rules, limits and promotions in force.
    reference_time : int or None
        Committer time that ages are judged against.
    near_misses : bool
        Whether a source without an answer says which contexts have one. Finding them costs more
        than the answer, and changes none.
    exclusion : Exclusion or None
        Records and calibrations that may not answer.
    """

    records: EvidenceReader
    profiles: ProfileReader
    validations: ValidationReader
    calibrations: Callable[[], CalibrationModels]
    vocabulary: Vocabulary
    policy: Policy
    reference_time: int | None
    near_misses: bool = True
    exclusion: Exclusion | None = None

    def remaining_records(self) -> EvidenceReader:
        """Return the records that may answer."""
        return RemainingRecords(self.records, self.exclusion) if self.exclusion else self.records


def compose_resolver(parts: ResolverParts) -> CostResolver:
    """Return the resolver that answers from these parts."""
    policy, records = parts.policy, parts.remaining_records()
    selection = ProfileSelection(parts.profiles, parts.vocabulary, policy)
    providers: dict[Tier, CostProvider] = {
        "recorded-measured": recorded_provider(parts, records, "recorded-measured"),
        "recorded-simulated": recorded_provider(parts, records, "recorded-simulated"),
        "analytical": AnalyticalProvider(selection),
        "fallback": FallbackProvider(selection),
    }
    if policy.calibrations:
        # Its parts are imported here: most resolutions need none of them.
        from perfdb_git.providers.calibrated import CalibratedProvider

        providers["calibrated"] = CalibratedProvider(calibration_selection(parts, records))
    return CostResolver(providers, policy, reference_time=parts.reference_time)


def calibration_selection(parts: ResolverParts, records: EvidenceReader) -> CalibrationSelection:
    """Return the calibrations that the policy selects."""
    from perfdb_git.providers.calibration_selection import CalibrationSelection

    return CalibrationSelection(
        parts.calibrations(),
        parts.vocabulary,
        parts.policy,
        evidence=records,
        excluded=parts.exclusion.calibrations if parts.exclusion else (),
    )


def recorded_provider(
    parts: ResolverParts, records: EvidenceReader, tier: Tier
) -> RecordedProvider:
    """Return the provider of measured or of simulated records."""
    is_simulated = tier == "recorded-simulated"
    return RecordedProvider(
        records,
        parts.vocabulary,
        parts.policy,
        kinds=("simulated",) if is_simulated else ("measured", "profiled"),
        validations=parts.validations if is_simulated else None,
        reports_near_misses=parts.near_misses,
    )
