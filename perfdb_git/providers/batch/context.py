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


def judged_uncertainty(metrics: Mapping[str, MetricEstimate], limit: float) -> float:
    """Return half width over value of the first metric that breaks a limit, else of the last one.

    NaN stands for an unknown one, which breaks every limit.
    """
    relative = math.nan
    for metric in metrics.values():
        relative = relative_uncertainty(metric)
        if math.isnan(relative) or relative > limit:
            return relative
    return relative


def relative_uncertainty(metric: MetricEstimate) -> float:
    """Return half width over value, NaN where the interval is unknown."""
    interval = metric.uncertainty
    if interval is None:
        return math.nan
    half = (interval.upper - interval.lower) / 2
    return half / metric.value if metric.value > 0 else math.inf
