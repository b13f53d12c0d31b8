"""The outcome of a comparison, as values that renderers and programs read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from perfdb_git.analysis.mean_intervals import TwoLevelMean
from perfdb_git.model.estimate import Uncertainty
from perfdb_git.model.values import Scalar

Verdict: TypeAlias = Literal["worse", "better", "same", "cannot-tell"]
SampleUnit: TypeAlias = Literal["session", "record", "sample", "summary"]
Side: TypeAlias = Literal["A", "B"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SideReference:
    """What one side of a comparison was asked to be, where it was read, and its records."""

    text: str
    commit: str | None
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedGroup:
    """One side of one comparison.

    ``value`` is the median of session medians in the SI unit. ``interval`` is the confidence
    interval of the median over the units of comparison, where there are enough of them.
    ``samples`` are raw ones; 0 where only summaries were recorded. ``across`` holds the values of
    the dimensions that the sides may differ in. ``levels`` is the mean over units of repetitions,
    with the variance on either level; None without two such levels, and where the units fall into
    two modes. ``bootstrap`` bounds the median of all samples, whole units resampled; None unless
    asked for, and of too few units.
    """

    value: float
    interval: Uncertainty | None
    statistic: str
    sessions: int
    records: int
    samples: int
    across: Mapping[str, tuple[Scalar, ...]]
    flags: tuple[str, ...]
    record_ids: tuple[str, ...]
    levels: TwoLevelMean | None = None
    bootstrap: Uncertainty | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A ratio with its confidence interval; no bounds where too few samples reach the level."""

    value: float
    lower: float | None
    upper: float | None
    level: float | None

    def inverted(self) -> Ratio:
        """Return the same seen from the other side."""
        return Ratio(
            value=1 / self.value,
            lower=None if self.upper is None else 1 / self.upper,
            upper=None if self.lower is None else 1 / self.lower,
            level=self.level,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPair:
    """Both sides of one context and metric, and the verdict on B.

    ``ratio`` is B over A. ``cost_ratio`` is above 1 where B is worse, whichever way the metric
    is better; None where its direction is unknown. ``adjusted_p_value`` counts in all other tests
    of the comparison. ``code`` says why the verdict is what it is, ``reason`` the same for people.
    """

    context: Mapping[str, Scalar]
    metric: str
    unit: str
    direction: Literal["lower", "higher"] | None
    verdict: Verdict
    code: str
    reason: str
    base: ComparedGroup
    new: ComparedGroup
    sample_unit: SampleUnit
    method: str | None
    ratio: Ratio | None
    cost_ratio: Ratio | None
    p_value: float | None
    adjusted_p_value: float | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmatchedContext:
    """A context and metric that only one side has."""

    side: Side
    context: Mapping[str, Scalar]
    metric: str
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchHint:
    """How many more contexts would match if a dimension, or the environment, might differ."""

    across: str
    contexts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What makes the command end in status 1, and in how many pairs that happened."""

    verdict: Literal["worse"]
    threshold: float
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The answer of ``perfdb compare``; pairs with the worst verdict come first."""

    base: SideReference
    new: SideReference
    across: tuple[str, ...]
    alpha: float
    level: float
    threshold: float
    verdicts: Mapping[Verdict, int]
    pairs: tuple[ComparedPair, ...]
    unmatched: tuple[UnmatchedContext, ...]
    hints: tuple[MatchHint, ...]
    gate: Gate | None
    bootstrap_seed: int | None = None
