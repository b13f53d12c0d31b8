"""A provider asked for each distinct question, for what has no form in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from perfdb_git.model.estimate import CostEstimate, CostSupport
from perfdb_git.model.instants import earliest_instant
from perfdb_git.operations.query_groups import QueryGroup, representative
from perfdb_git.providers.batch.answers import BatchAnswers, RecordLists
from perfdb_git.providers.batch.context import BatchContext, judged_uncertainty
from perfdb_git.providers.batch.twin import ProviderTwin

if TYPE_CHECKING:
    from perfdb_git.providers.batch.answers import Places


class RowByRow(ProviderTwin):
    """Any provider behind the protocol of batches; parameters are those of `ProviderTwin`."""

    def answers(self, group: QueryGroup, *, values: bool) -> BatchAnswers:
        """Ask each distinct question once; see `BatchProvider`."""
        firsts, places = distinct_rows(group)
        found = BatchAnswers.refusals(len(firsts))
        ids: list[tuple[str, ...]] = []
        for number, row in enumerate(firsts.tolist()):
            query = representative(
                group, self._context.vocabulary, limits=self._context.limits, row=row
            )
            support = self._source.supports(query)
            estimate = self._source.estimate(query) if support.answerable else None
            write_estimate(found, number, support, estimate, self._context)
            ids.append(() if estimate is None else estimate.provenance.record_ids)
        return found.with_records(self._lists(ids)).take(places)

    def _lists(self, ids: list[tuple[str, ...]]) -> RecordLists:
        pairs = [name.rpartition("#") for names in ids for name in names]
        return RecordLists(
            counts=np.array([len(names) for names in ids], np.int64),
            sets=np.array([self._context.words.code(name) for name, _, _ in pairs], np.int32),
            rows=np.array([int(row) for _, _, row in pairs], np.int64),
        )


def distinct_rows(group: QueryGroup) -> tuple[Places, Places]:
    """Return the first row of each distinct question, and the place of each row among them."""
    key = np.zeros(group.count, np.int64)
    for values in group.numbers.values():
        distinct, codes = np.unique(values, return_inverse=True)
        _, key = np.unique(key * len(distinct) + codes, return_inverse=True)
    _, firsts, places = np.unique(key, return_index=True, return_inverse=True)
    return firsts, places


def write_estimate(
    answers: BatchAnswers,
    row: int,
    support: CostSupport,
    estimate: CostEstimate | None,
    context: BatchContext,
) -> None:
    """Write what a provider says of one question into the columns, all but its records."""
    words = context.words
    answers.code[row] = words.code(support.code)
    answers.answerable[row] = support.answerable
    answers.blocking[row] = support.blocking
    if estimate is None:
        return
    written: dict[str, Any] = {
        "validity": words.code(estimate.validity.kind),
        "distance": _number(estimate.validity.distance_octaves),
        "calibration": words.code(estimate.provenance.calibration),
        "relative": judged_uncertainty(estimate.metrics, context.largest_uncertainty),
    }
    if estimate.provenance.measured_at is not None:
        written["measured_at"] = earliest_instant(estimate.provenance.measured_at)
    metric = estimate.metrics.get(context.metric)
    if metric is not None:
        written["value"] = metric.value
        if metric.uncertainty is not None:
            interval = metric.uncertainty
            written |= {"lower": interval.lower, "upper": interval.upper, "level": interval.level}
            written["sample_count"] = _number(interval.sample_count)
            written["rule"] = words.code(interval.rule)
    for name, value in written.items():
        getattr(answers, name)[row] = value


def _number(value: float | None) -> float:
    return np.nan if value is None else value
