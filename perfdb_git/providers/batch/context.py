"""What all sources of one batch share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from perfdb_git.model.estimate import MetricEstimate
from perfdb_git.model.policy import Policy
from perfdb_git.model.query import EvidencePolicy
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.providers.batch.answers import Words


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchContext:
    """Vocabulary, rules and texts of one batch.

    Attributes
    ----------
    vocabulary : Vocabulary
        Dimensions in force.
    policy : Policy
        Rules in force.
    limits : EvidencePolicy
        The questions' own limits.
    metric : str
        The metric whose values are wanted.
    largest_uncertainty : float
        The limit on half width over value in force, infinite without one.
    words : Words
        Texts of all columns.
    """

    vocabulary: Vocabulary
    policy: Policy
    limits: EvidencePolicy
    metric: str
    largest_uncertainty: float
    words: Words

    @property
    def wants_latency(self) -> bool:
        """Whether the values of models, which know latencies only, are wanted."""
        return self.metric == "latency"


def judged_uncertainty(metrics: Mapping[str, MetricEstimate], limit: float) -> float:
    """Return half width over value of the first metric that breaks a limit, else of the last one.

    NaN stands for an unknown one, which breaks every limit.
    """
    relative = math.nan
    for metric in metrics.values():
        known = metric.relative_uncertainty
        relative = math.nan if known is None else known
        if known is None or relative > limit:
            return relative
    return relative
