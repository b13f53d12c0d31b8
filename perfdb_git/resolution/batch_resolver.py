"""The resolver's choice for many questions: the same tiers, limits and reasons, on columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perfdb_git.model.policy import Policy, Tier
from perfdb_git.operations.query_groups import QueryGroup
from perfdb_git.providers.batch.answers import BatchAnswers, BatchProvider, joined
from perfdb_git.providers.batch.context import BatchContext
from perfdb_git.providers.protocol import NOT_SELECTED
from perfdb_git.resolution.admission import SECONDS_A_DAY, Admission, least_bound
from perfdb_git.resolution.resolver import UNSELECTED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfdb_git.providers.batch.answers import Booleans, Codes, Floats

NOBODY = -1
"""Place of the tier that answers where none does."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchOutcome:
    """What was chosen for the questions of one group; arrays are ``(n,)``.

    Attributes
    ----------
    code : ndarray of int32
        As in `Outcome`.
    tier : ndarray of int8
        Place of the tier that answers among the policy's, `NOBODY` for none.
    answers : BatchAnswers
        The chosen answers.
    alternatives : Mapping[Tier, ndarray of int32]
        Why each other source lost; 0 where it is the chosen one.
    alternative_values : Mapping[Tier, ndarray of float64]
        What it would have answered, NaN for nothing; empty where nobody asked.
    """

    code: Codes
    tier: NDArray[np.int8]
    answers: BatchAnswers
    alternatives: Mapping[Tier, Codes]
    alternative_values: Mapping[Tier, Floats]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Verdicts:
    """One source's answers with the limit that each breaks, 0 for none."""

    answers: BatchAnswers
    fault: Codes

    @property
    def eligible(self) -> Booleans:
        return np.asarray(self.answers.answerable & (self.fault == 0))


class BatchResolver:
    """Chooses among the batch forms of providers by the tiers of one policy.

    Parameters
    ----------
    providers : Mapping[Tier, BatchProvider]
        The provider of each tier that this version implements.
    admission : Admission
        The limits of policy and questions.
    context : BatchContext
        Of the batch.
    wants_values : bool
        Whether the values of sources that lost are wanted too.
    """

    def __init__(
        self,
        providers: Mapping[Tier, BatchProvider],
        admission: Admission,
        context: BatchContext,
        *,
        wants_values: bool,
    ) -> None:
        _require_known_names(admission, providers)
        self._providers = providers
        self._admission = admission
        self.context = context
        self.wants_values = wants_values

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self.context.policy

    @property
    def revisions(self) -> dict[Tier, str]:
        """Revision of every provider that the policy asks, by tier."""
        return {tier: self._providers[tier].revision for tier in self._asked}

    @property
    def names(self) -> dict[Tier, tuple[str, str]]:
        """Name and method of every provider that the policy asks, by tier."""
        asked = ((tier, self._providers[tier]) for tier in self._asked)
        return {tier: (provider.name, provider.method) for tier, provider in asked}

    @property
    def _asked(self) -> list[Tier]:
        return [tier for tier in self.policy.tiers if tier in self._providers]

    def resolve(self, group: QueryGroup) -> BatchOutcome:
        """Ask all sources the questions of a group, and choose."""
        count = group.count
        tiers = self.policy.tiers
        winner = np.full(count, NOBODY, np.int8)
        blocker = np.full(count, NOBODY, np.int8)
        verdicts: dict[Tier, _Verdicts] = {}
        for tier in self._asked:
            open_rows = (winner == NOBODY) & (blocker == NOBODY)
            found = verdicts[tier] = self._verdicts(tier, group, open_rows)
            place, eligible = tiers.index(tier), found.eligible
            winner[open_rows & eligible] = place
            if self.policy.on_ambiguity == "stop":
                stops = found.answers.blocking & (found.fault == 0)
                blocker[open_rows & ~eligible & stops] = place
        return BatchOutcome(
            code=self._codes(winner, blocker, verdicts),
            tier=winner,
            answers=self._chosen(winner, verdicts),
            alternatives=self._losses(winner, verdicts),
            alternative_values=self._values(winner, verdicts) if self.wants_values else {},
        )

    def _verdicts(self, tier: Tier, group: QueryGroup, open_rows: Booleans) -> _Verdicts:
        provider = self._providers[tier]
        answers = self._answers(provider, group, open_rows)
        source = self._admission.source_fault(provider.name, provider.method)
        if source is not None:
            code = self.context.words.code(source.code)
            return _Verdicts(answers=answers, fault=np.full(group.count, code, np.int32))
        return _Verdicts(answers=answers, fault=self._faults(answers))

    def _answers(
        self, provider: BatchProvider, group: QueryGroup, open_rows: Booleans
    ) -> BatchAnswers:
        """Ask for the numbers where they may be the answer, or decide whether they are admitted."""
        is_limited = math.isfinite(self.context.largest_uncertainty)
        if self.wants_values or is_limited or open_rows.all():
            return provider.answers(group, values=True)
        if not open_rows.any():
            return provider.answers(group, values=False)
        parts = []
        for values in (True, False):
            rows = np.flatnonzero(open_rows == values)
            parts.append((rows, provider.answers(group.take(rows), values=values)))
        return joined(parts, group.count)

    def _faults(self, answers: BatchAnswers) -> Codes:
        """Return the first limit that each answer breaks, as `Admission.estimate_fault` does."""
        fault = np.zeros(len(answers.code), np.int32)
        self._judge_distance(answers, fault)
        self._judge_uncertainty(answers, fault)
        self._judge_age(answers, fault)
        fault[~answers.answerable] = 0
        return fault

    def _judge_age(self, answers: BatchAnswers, fault: Codes) -> None:
        limit, now = self._admission.tightest("max_age_days"), self._admission.reference_time
        if not math.isfinite(limit):
            return
        age = ((math.nan if now is None else now) - answers.measured_at) / SECONDS_A_DAY
        fault[age > limit] = self.context.words.code("too-old")
        fault[np.isnan(age)] = self.context.words.code("age-unknown")

    def _judge_uncertainty(self, answers: BatchAnswers, fault: Codes) -> None:
        limit = self.context.largest_uncertainty
        if not math.isfinite(limit):
            return
        fault[answers.relative > limit] = self.context.words.code("too-uncertain")
        fault[np.isnan(answers.relative)] = self.context.words.code("uncertainty-unknown")

    def _judge_distance(self, answers: BatchAnswers, fault: Codes) -> None:
        own = least_bound(self._admission.limits.max_extrapolation_octaves)
        is_beyond = answers.validity == self.context.words.code("extrapolated")
        limit = np.minimum(answers.farthest, own)
        fault[is_beyond & (answers.distance > limit)] = self.context.words.code("too-far")

    def _codes(
        self,
        winner: NDArray[np.int8],
        blocker: NDArray[np.int8],
        verdicts: Mapping[Tier, _Verdicts],
    ) -> Codes:
        words = self.context.words
        codes = np.full(len(winner), words.code("no-admissible-evidence"), np.int32)
        for tier, found in verdicts.items():
            rows = blocker == self.policy.tiers.index(tier)
            codes[rows] = found.answers.code[rows]
        codes[winner != NOBODY] = words.code("resolved")
        return codes

    def _chosen(self, winner: NDArray[np.int8], verdicts: Mapping[Tier, _Verdicts]) -> BatchAnswers:
        parts = []
        for tier, found in verdicts.items():
            rows = np.flatnonzero(winner == self.policy.tiers.index(tier))
            if len(rows) == len(winner):
                return found.answers
            if len(rows):
                parts.append((rows, found.answers.take(rows)))
        return joined(parts, len(winner))

    def _losses(
        self, winner: NDArray[np.int8], verdicts: Mapping[Tier, _Verdicts]
    ) -> dict[Tier, Codes]:
        words = self.context.words
        losses: dict[Tier, Codes] = {}
        beaten = np.where(winner == NOBODY, words.code("blocked"), words.code("lower-tier"))
        for place, tier in enumerate(self.policy.tiers):
            found = verdicts.get(tier)
            if found is None:
                losses[tier] = np.full(len(winner), words.code(NOT_SELECTED), np.int32)
                continue
            own = np.where(found.answers.answerable, beaten, found.answers.code)
            code = np.where(found.fault != 0, found.fault, own)
            losses[tier] = np.where(winner == place, 0, code).astype(np.int32)
        return losses

    def _values(
        self, winner: NDArray[np.int8], verdicts: Mapping[Tier, _Verdicts]
    ) -> dict[Tier, Floats]:
        return {
            tier: np.where(winner == self.policy.tiers.index(tier), np.nan, found.answers.value)
            for tier, found in verdicts.items()
        }


def _require_known_names(admission: Admission, providers: Mapping[Tier, BatchProvider]) -> None:
    admission.check_names([*(item.name for item in providers.values()), *UNSELECTED])
