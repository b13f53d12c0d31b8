"""Exact answers from records to many questions: looked up by coordinates, pooled once a cell."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from perfdb_git.model.estimate import CostEstimate, CostSupport
from perfdb_git.model.instants import earliest_instant
from perfdb_git.model.records import record_id
from perfdb_git.operations.query_groups import QueryGroup, representative
from perfdb_git.providers.batch.answers import BatchAnswers, RecordLists, joined, spread
from perfdb_git.providers.batch.context import BatchContext
from perfdb_git.providers.batch.recorded_values import (
    RULE,
    has_summaries_only,
    recorded_values,
)
from perfdb_git.providers.batch.row_by_row import RowByRow, write_estimate
from perfdb_git.providers.batch.series_rows import row_blocks
from perfdb_git.providers.batch.twin import ProviderTwin
from perfdb_git.providers.evidence import EvidenceReader, RecordSetView
from perfdb_git.providers.held_clocks import states_clocks
from perfdb_git.providers.matching import Matcher
from perfdb_git.providers.recorded import RecordedProvider

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfdb_git.providers.batch.answers import Places

_MOST_ROWS = 2**20
"""Records whose look-up tables are kept, at about 250 bytes each; those last asked for stay."""


_FEW = 4
"""Questions of a kind that are asked sooner one by one."""


class RecordedBatch(ProviderTwin):
    """`RecordedProvider` for many questions.

    Parameters
    ----------
    provider : RecordedProvider
        Judges and pools what is no single record with a summary.
    evidence : EvidenceReader
        The provider's records.
    context : BatchContext
        Of the batch.
    """

    def __init__(
        self, provider: RecordedProvider, evidence: EvidenceReader, context: BatchContext
    ) -> None:
        super().__init__(provider, context)
        self._provider = provider
        self._evidence = evidence
        self._one_by_one = RowByRow(provider, context)
        self._kinds: OrderedDict[tuple[object, ...], _Cells] = OrderedDict()

    def answers(self, group: QueryGroup, *, values: bool) -> BatchAnswers:
        """Answer the questions of a group; see `BatchProvider`."""
        # Without a device, it is one of the open dimensions, over several series.
        if group.device is None or self._is_small(group):
            return self._one_by_one.answers(group, values=values)
        cells = self._cells(group)
        found = cells.find(group)
        if found.ndim == 1:
            return cells.answers(group, found)
        return self._from_blocks(cells, group, found)

    def _is_small(self, group: QueryGroup) -> bool:
        """Whether a look-up table would cost more than it saves, and there is none yet."""
        return group.count <= _FEW and group.key not in self._kinds

    def _from_blocks(
        self, cells: _Cells, group: QueryGroup, found: NDArray[np.int64]
    ) -> BatchAnswers:
        """Answer where records know different dimensions: a question may meet several cells."""
        hits = (found >= 0).sum(axis=0)
        several = np.flatnonzero(hits > 1)
        single = np.flatnonzero(hits <= 1)
        parts = [(single, cells.answers(group.take(single), found.max(axis=0)[single]))]
        if len(several):
            parts.append((several, self._one_by_one.answers(group.take(several), values=True)))
        return joined(parts, group.count)

    def _cells(self, group: QueryGroup) -> _Cells:
        keys = self._provider.series(group.operation, group.device)
        record_sets = [item for key in keys for item in self._evidence.record_sets(key)]
        known = self._kinds.get(group.key)
        # A rebuilt index hands out new record sets; what was read from the old ones is void.
        if known is None or not _are_same(known.record_sets, record_sets):
            known = _Cells(group, record_sets, self._provider, self._evidence, self._context)
            self._kinds[group.key] = known
        self._kinds.move_to_end(group.key)
        self._forget()
        return known

    def _forget(self) -> None:
        """Keep memory from growing with the kinds of questions."""
        total = sum(cells.n_rows for cells in self._kinds.values())
        while total > _MOST_ROWS and len(self._kinds) > 1:
            _, oldest = self._kinds.popitem(last=False)
            total -= oldest.n_rows


def _are_same(one: Sequence[RecordSetView], other: Sequence[RecordSetView]) -> bool:
    return len(one) == len(other) and all(map(lambda a, b: a is b, one, other))


class _Cells:
    """The distinct coordinates of one kind of question, each with its answer once it is known."""

    def __init__(
        self,
        group: QueryGroup,
        record_sets: list[RecordSetView],
        provider: RecordedProvider,
        evidence: EvidenceReader,
        context: BatchContext,
    ) -> None:
        self.record_sets = record_sets
        self._provider = provider
        self._evidence = evidence
        self._context = context
        self._matcher = Matcher(context.vocabulary, context.policy.matching)
        self._blocks = row_blocks(record_sets, group.terms, tuple(group.numbers), self._matcher)
        sizes = [block.join.n_cells for block in self._blocks]
        self._firsts = np.cumsum([0, *sizes])
        self._memo = BatchAnswers.refusals(int(self._firsts[-1]))
        self._known = np.zeros(int(self._firsts[-1]), np.bool_)
        self._counts = np.concatenate(
            [np.zeros(0, np.int64), *(np.diff(block.join.starts) for block in self._blocks)]
        )
        self._row_starts = np.cumsum(self._counts) - self._counts
        self._row_places = np.concatenate(
            [np.zeros(0, np.int64), *(block.places[block.join.order] for block in self._blocks)]
        )
        self._row_numbers = np.concatenate(
            [np.zeros(0, np.int64), *(block.rows[block.join.order] for block in self._blocks)]
        )
        self._is_used = np.ones(len(self._row_numbers), np.bool_)
        codes = [context.words.code(item.sha256) for item in record_sets]
        self._set_codes = np.array(codes, np.int32)

    @property
    def n_rows(self) -> int:
        """Records that agree with the terms of the questions."""
        return len(self._row_numbers)

    def find(self, group: QueryGroup) -> NDArray[np.int64]:
        """Return the cell of each question, -1 for none: ``(n,)``, or ``(n_blocks, n)``."""
        found = []
        for block, first in zip(self._blocks, self._firsts.tolist(), strict=False):
            asked = [group.numbers[name] for name in block.names]
            cells = block.join.cells(asked, group.count)
            found.append(cells if not first else np.where(cells < 0, cells, cells + first))
        if not found:
            return np.full(group.count, -1, np.int64)
        return found[0] if len(found) == 1 else np.stack(found)

    def answers(self, group: QueryGroup, cells: NDArray[np.int64]) -> BatchAnswers:
        """Return the answers of cells, -1 for a question without a record."""
        hits = cells >= 0
        if not hits.all():
            rows = np.flatnonzero(hits)
            missing = np.flatnonzero(~hits)
            none = BatchAnswers.refusals(len(missing), self._context.words.code("no-record"))
            parts = [(missing, none)]
            if len(rows):
                parts.append((rows, self.answers(group.take(rows), cells[rows])))
            return joined(parts, len(cells))
        self._learn(group, cells)
        return self._memo.values_at(cells, self._records(cells))

    def _records(self, cells: NDArray[np.int64]) -> RecordLists:
        """Return the records behind the answers of cells."""
        counts = np.where(self._memo.answerable[cells], self._counts[cells], 0)
        flat = spread(self._row_starts[cells], counts)
        if not self._is_used.all():
            owners, used = np.repeat(np.arange(len(cells)), counts), self._is_used[flat]
            flat, counts = flat[used], np.bincount(owners[used], minlength=len(cells))
        return RecordLists(
            counts=counts,
            sets=self._set_codes[self._row_places[flat]],
            rows=self._row_numbers[flat],
        )

    def _learn(self, group: QueryGroup, cells: NDArray[np.int64]) -> None:
        """Pool the records of cells that nobody has asked for yet."""
        new_rows = np.flatnonzero(~self._known[cells])
        if not len(new_rows):
            return
        new, firsts = np.unique(cells[new_rows], return_index=True)
        is_plain = (self._counts[new] == 1) & self._takes_summaries
        rest = np.ones(len(new), np.bool_)
        if is_plain.any():
            rest[is_plain] = ~self._learn_summaries(new[is_plain])
        for cell, row in zip(new[rest].tolist(), new_rows[firsts[rest]].tolist(), strict=True):
            self._learn_pooled(group, cell, row)
        self._known[new] = True

    @property
    def _takes_summaries(self) -> bool:
        """Whether single records with a summary need no further judgement."""
        policy = self._context.policy
        return (
            self._provider.method == "measured"
            and policy.matching.query_unknown != "refuse"
            and policy.protocol_unknown != "refuse"
        )

    def _learn_summaries(self, cells: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Answer from cells of one record each; return which ones could be."""
        places = self._row_places[self._row_starts[cells]]
        numbers = self._row_numbers[self._row_starts[cells]]
        done = np.zeros(len(cells), np.bool_)
        for place in np.unique(places).tolist():
            record_set = self.record_sets[place]
            header = record_set.header
            # What a clock says of records is judged one by one.
            if has_summaries_only(header, self._context.metric) and not states_clocks(header):
                some = np.flatnonzero(places == place)
                done[some] = self._write_summaries(record_set, cells[some], numbers[some])
        return done

    def _write_summaries(
        self, record_set: RecordSetView, cells: Places, numbers: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        header, context, memo = record_set.header, self._context, self._memo
        rows = self._evidence.verified_rows(record_set, numbers.tolist())
        found = recorded_values(
            header, [row.cells for row in rows], context.metric, context.policy.interval.level
        )
        has_value = ~np.isnan(found.value)
        cells = cells[has_value]
        value, lower, upper, count = (
            item[has_value] for item in (found.value, found.lower, found.upper, found.count)
        )
        known = ~np.isnan(lower)
        measured_at = header.source.measured_at
        memo.code[cells] = context.words.code("exact-match")
        memo.answerable[cells] = True
        memo.value[cells], memo.lower[cells], memo.upper[cells] = value, lower, upper
        memo.level[cells] = np.where(known, context.policy.interval.level, np.nan)
        memo.sample_count[cells] = count
        memo.rule[cells] = np.where(known, context.words.code(RULE), 0)
        memo.validity[cells] = context.words.code("exact")
        memo.distance[cells] = 0.0
        memo.measured_at[cells] = np.nan if measured_at is None else earliest_instant(measured_at)
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = (upper - lower) / 2 / value
        memo.relative[cells] = np.where(known & ~(value > 0), np.inf, relative)
        return has_value

    def _learn_pooled(self, group: QueryGroup, cell: int, row: int) -> None:
        """Answer from one cell as a question by itself would be."""
        places, numbers = self._cell_rows(cell)
        found = [
            (self.record_sets[place], numbers[places == place])
            for place in np.unique(places).tolist()
        ]
        match = self._matcher.match_of(group.coordinates(row), found)
        support: CostSupport = self._provider.support_of(match)
        estimate: CostEstimate | None = None
        if support.answerable:
            query = representative(group, self._context.vocabulary, row=row)
            estimate = self._provider.estimate_of(match, query)
            self._note_unused(cell, estimate.provenance.record_ids)
        write_estimate(self._memo, cell, support, estimate, self._context)

    def _note_unused(self, cell: int, record_ids: Sequence[str]) -> None:
        """Remember which records of a cell the answer leaves aside."""
        start, count = int(self._row_starts[cell]), int(self._counts[cell])
        if len(record_ids) == count:
            return
        used = frozenset(record_ids)
        for row in range(start, start + count):
            sha256 = self.record_sets[int(self._row_places[row])].sha256
            self._is_used[row] = record_id(sha256, int(self._row_numbers[row])) in used

    def _cell_rows(self, cell: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        start, count = int(self._row_starts[cell]), int(self._counts[cell])
        part = slice(start, start + count)
        return self._row_places[part], self._row_numbers[part]
