"""Analytical answers and declared bounds for many questions: profiles applied to columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from perfdb_git.model.estimate import ValidityKind
from perfdb_git.model.system_profile import EfficiencyStep, SystemProfile, TableReading
from perfdb_git.operations.query_groups import QueryGroup
from perfdb_git.operations.work import Work
from perfdb_git.providers.analytical import AnalyticalProvider, arithmetic_rate, collective
from perfdb_git.providers.batch.answers import BatchAnswers, joined
from perfdb_git.providers.batch.context import BatchContext
from perfdb_git.providers.batch.row_by_row import distinct_rows
from perfdb_git.providers.batch.twin import ProviderTwin
from perfdb_git.providers.fallback import FallbackProvider, bound_parts, declared_bound
from perfdb_git.providers.profiled_work import ProfiledWork, ProfileSelection, Refusal
from perfdb_git.providers.roofline import MAIN_MEMORY, interpolated_efficiency

if TYPE_CHECKING:
    from perfdb_git.model.system_profile import ComputeRate
    from perfdb_git.providers.batch.answers import Booleans, Floats


class _ModelledBatch(ProviderTwin):
    """What both sources share: a profile selection and one way to write answers."""

    def __init__(
        self,
        provider: AnalyticalProvider | FallbackProvider,
        selection: ProfileSelection,
        context: BatchContext,
    ) -> None:
        super().__init__(provider, context)
        self._selection = selection

    def _work(self, group: QueryGroup) -> ProfiledWork | Refusal:
        return self._selection.work_at({**group.terms, **group.numbers})

    def _refused(self, why: Refusal, count: int) -> BatchAnswers:
        return BatchAnswers.refusals(count, self._context.words.code(why.code))

    def _answered(
        self, count: int, code: str, kinds: Sequence[ValidityKind], seconds: Floats, which: Booleans
    ) -> BatchAnswers:
        """Return answers whose kind is the first of ``kinds``, or the second where ``which``."""
        words = self._context.words
        answers = BatchAnswers.refusals(count, words.code(code))
        answers.answerable[:] = True
        answers.validity[:] = np.where(which, words.code(kinds[1]), words.code(kinds[0]))
        if self._context.wants_latency:
            answers.value[:] = seconds
        return answers


class AnalyticalBatch(_ModelledBatch):
    """`AnalyticalProvider` for many questions.

    Parameters
    ----------
    provider : AnalyticalProvider
        Whose answers are given.
    selection : ProfileSelection
        The profiles that the policy selects.
    context : BatchContext
        Of the batch.
    """

    def answers(self, group: QueryGroup, *, values: bool) -> BatchAnswers:
        """Answer the questions of a group; see `BatchProvider`."""
        found = self._work(group)
        if isinstance(found, Refusal):
            return self._refused(found, group.count)
        if found.operation.engine == "network":
            return self._collectives(found, group)
        rate = arithmetic_rate(found)
        if isinstance(rate, Refusal):
            return self._refused(rate, group.count)
        seconds, is_bound = task_times(found.profile, rate, found.work)
        return self._answered(group.count, "modelled", ("modelled", "bound"), seconds, is_bound)

    def _collectives(self, found: ProfiledWork, group: QueryGroup) -> BatchAnswers:
        """Answer each number of participants at once: it decides which network carries them."""
        names = ("participants", "participants_per_node")
        deciding = {name: group.numbers[name] for name in names if name in group.numbers}
        firsts, places = distinct_rows(
            QueryGroup(terms=group.terms, numbers=deciding, count=group.count)
        )
        parts = []
        for number, first in enumerate(firsts.tolist()):
            rows = np.flatnonzero(places == number)
            coordinates = {**found.coordinates, **{k: float(v[first]) for k, v in deciding.items()}}
            work = replace(found.work, message_bytes=_at(found.work.message_bytes, rows))
            time = collective(replace(found, coordinates=coordinates, work=work))
            if isinstance(time, Refusal):
                parts.append((rows, self._refused(time, len(rows))))
                continue
            which = np.full(len(rows), time.bound)
            seconds = np.broadcast_to(np.asarray(time.latency, np.float64), len(rows))
            kinds: tuple[ValidityKind, ...] = ("modelled", "bound")
            parts.append((rows, self._answered(len(rows), "modelled", kinds, seconds, which)))
        return joined(parts, group.count)


class FallbackBatch(_ModelledBatch):
    """`FallbackProvider` for many questions; parameters as `AnalyticalBatch`."""

    def answers(self, group: QueryGroup, *, values: bool) -> BatchAnswers:
        """Answer the questions of a group; see `BatchProvider`."""
        found = self._work(group)
        if isinstance(found, Refusal):
            return self._refused(found, group.count)
        # Whether a bound of the network is needed is the only thing that differs between them.
        has_message = np.broadcast_to(np.asarray(found.work.message_bytes) != 0, group.count)
        parts = []
        for wanted in np.unique(has_message).tolist():
            rows = np.flatnonzero(has_message == wanted)
            bound = declared_bound(found.profile, has_message=wanted)
            if isinstance(bound, Refusal):
                parts.append((rows, self._refused(bound, len(rows))))
                continue
            seconds = np.asarray(sum(bound_parts(bound, found.work).values()), np.float64)
            which = np.zeros(len(rows), np.bool_)
            some = _at(seconds, rows)
            answers = self._answered(len(rows), "declared-bound", ("bound", "bound"), some, which)
            parts.append((rows, answers))
        return joined(parts, group.count)


def _at(values: Floats | float, rows: np.ndarray) -> Floats:
    found = np.asarray(values, np.float64)
    return np.full(len(rows), float(found)) if not found.ndim else found[rows]


def task_times(
    profile: SystemProfile, rate: ComputeRate | None, work: Work
) -> tuple[Floats, Booleans]:
    """Return what `roofline.task_time` gives for columns of work.

    Parameters
    ----------
    profile : SystemProfile
        Device with a memory called ``mem1``.
    rate : ComputeRate or None
        Of engine and dtype; None leaves the arithmetic out, which makes the time a bound.
    work : Work
        Operations and bytes, floats or ``(n,)``.

    Returns
    -------
    ndarray of float64
        Latencies in seconds.
    ndarray of bool
        Whether each is a lower bound.
    """
    reading, memory = profile.table_reading, profile.memories[MAIN_MEMORY]
    moved, operations = (np.asarray(x, np.float64) for x in (work.bytes_moved, work.operations))
    factor, is_bound = _efficiencies(memory.efficiency_by_mb, moved / 1e6, reading)
    memory_s = moved / (memory.bandwidth_gbyte_per_s * 1e9 * factor)
    if rate is None:
        return _combined_times(profile, np.zeros(()), memory_s), np.ones_like(is_bound)
    factor, also_bound = _efficiencies(rate.efficiency_by_gops, operations / 1e9, reading)
    compute_s = operations / (rate.peak_tops * 1e12 * factor)
    return _combined_times(profile, compute_s, memory_s), is_bound | also_bound


def _combined_times(profile: SystemProfile, compute: Floats, memory: Floats) -> Floats:
    if profile.processing_mode == "roofline":
        return np.maximum(compute, memory)
    return compute + memory


def _efficiencies(
    steps: Sequence[EfficiencyStep] | None, sizes: Floats, reading: TableReading
) -> tuple[Floats, Booleans]:
    """Return the efficiency at each size, 1 where none is known, and where none is."""
    if steps is None:
        return np.ones_like(sizes), np.ones(sizes.shape, np.bool_)
    if reading == "interpolated":
        found = [interpolated_efficiency(steps, size) for size in np.ravel(sizes).tolist()]
        values = np.array([np.nan if x is None else x for x in found]).reshape(sizes.shape)
    else:
        ascending = steps[::-1]
        thresholds = np.array([step.threshold for step in ascending])
        table = np.array([np.nan, *(step.efficiency for step in ascending)])
        values = table[np.searchsorted(thresholds, sizes, side="right")]
    unknown = np.isnan(values)
    return np.where(unknown, 1.0, values), unknown
