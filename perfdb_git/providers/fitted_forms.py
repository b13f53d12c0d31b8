"""Evaluators of the forms: seconds and half-widths of many queries with numpy alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from perfdb_git.analysis.curves import AffineCurve, LogLogCurve, StepTable
from perfdb_git.analysis.gaussian_process import GaussianProcess
from perfdb_git.analysis.jumps import Jumps, jumps_around
from perfdb_git.analysis.scale_offset import ScaleOffset
from perfdb_git.analysis.sized_widths import SizedWidths
from perfdb_git.analysis.symmetric_trees import SymmetricTrees
from perfdb_git.providers.fitted_intervals import OneWidth, TwoRegimes
from perfdb_git.providers.model_reads import Columns, InputReader, ModelReads, Seconds
from perfdb_git.providers.stored_trees import same_bins

Curve: TypeAlias = AffineCurve | StepTable | LogLogCurve | ScaleOffset
"""Forms of one size; each has ``predict``."""


class Evaluator(Protocol):
    """One form with its parameters."""

    def seconds(self, columns: Columns) -> Seconds:
        """Return latencies, ``(n,)``."""

    def with_half_width(self, columns: Columns) -> tuple[Seconds, Seconds]:
        """Return latencies and half-widths, NaN where there is no interval."""

    def up_to_factor(self, columns: Columns) -> Seconds:
        """Return latencies up to a positive finite factor, as cheaply as the form allows, ``(n,)``.

        They tell where there is a positive latency, and nothing of how long it is.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class TreesEvaluator:
    """Boosted trees over roofline efficiency; several bases give a geometric mean."""

    reader: InputReader
    reads: ModelReads
    models: tuple[SymmetricTrees, ...]
    interval: OneWidth | TwoRegimes | None

    def seconds(self, columns: Columns) -> Seconds:
        """Return latencies, ``(n,)``."""
        return self._seconds(columns, self._codes(columns))

    def with_half_width(self, columns: Columns) -> tuple[Seconds, Seconds]:
        """Return latencies and half-widths; features and byte codes are computed once."""
        codes = self._codes(columns)
        return self._seconds(columns, codes), self._widths(columns, codes[0])

    def up_to_factor(self, columns: Columns) -> Seconds:
        """Return a base: the trees multiply it by the exponential of a bounded sum."""
        bases = [self.reader.base(name, columns, self.reads) for name in self.reads.bases]
        shape = np.broadcast_shapes(*(base.shape for base in bases))
        return np.broadcast_to(np.min(np.stack(np.broadcast_arrays(*bases)), axis=0), shape)

    def _codes(self, columns: Columns) -> list[NDArray[np.uint8]]:
        described = self.reader.described(columns)
        codes: list[NDArray[np.uint8]] = []
        for model in self.models:
            shared = codes and same_bins(model.bins, self.models[0].bins)
            # Codes compare float32, which features are already: widening them only costs time.
            codes.append(codes[0] if shared else model.bins.encode(described))  # type: ignore[arg-type]
        return codes

    def _seconds(self, columns: Columns, codes: list[NDArray[np.uint8]]) -> Seconds:
        bases = [self.reader.base(name, columns, self.reads) for name in self.reads.bases]
        logs = [model.predict_codes(code) for model, code in zip(self.models, codes, strict=True)]
        if len(bases) == 1:
            return np.asarray(bases[0] * np.exp(logs[0]))
        total = sum(np.log(base) + log for base, log in zip(bases, logs, strict=True))
        return np.asarray(np.exp(total / len(bases)))

    def _widths(self, columns: Columns, codes: NDArray[np.uint8]) -> Seconds:
        interval = self.interval
        if isinstance(interval, TwoRegimes):
            return interval.predict_codes(codes, columns)
        count = codes.shape[1]
        if interval is None:
            return np.full(count, np.nan)
        if interval.scale is None:
            return np.full(count, interval.width)
        return np.asarray(interval.width * interval.scale.predict_codes(codes))


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveEvaluator:
    """A form of one size, in seconds or as a multiple of a base."""

    reader: InputReader
    reads: ModelReads
    curve: Curve
    interval: OneWidth | SizedWidths | None

    def size(self, columns: Columns) -> Seconds:
        """Return the one number that the curve reads, ``(n,)``; a base where it reads no other."""
        if not self.reads.inputs and not self.reads.features:
            return self.reader.base(self.reads.bases[0], columns, self.reads)
        return self.reader.read(self.reads, columns)[0]

    def seconds(self, columns: Columns) -> Seconds:
        """Return latencies, ``(n,)``; NaN at sizes that the form cannot read."""
        size = self.size(columns)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = _values(self.curve, size)
        if self.reads.inputs or self.reads.features:
            values = self.reader.times_base(self.reads, columns, values)
        return np.where(np.isfinite(values) & (values > 0), values, np.nan)

    def with_half_width(self, columns: Columns) -> tuple[Seconds, Seconds]:
        """Return latencies and half-widths; widths by size cover both sides of a jump."""
        seconds, widths = self.seconds(columns), self.plain_widths(columns)
        jumps = self.jumps(columns) if isinstance(self.interval, SizedWidths) else None
        return seconds, widths if jumps is None else jumps.widen(widths)

    def up_to_factor(self, columns: Columns) -> Seconds:
        """Return latencies."""
        return self.seconds(columns)

    def plain_widths(self, columns: Columns) -> Seconds:
        """Return half-widths as if there were no jumps, ``(n,)``; NaN where none is known."""
        size = self.size(columns)
        if isinstance(self.interval, SizedWidths):
            return self.interval.predict(size)
        return np.full(len(size), np.nan if self.interval is None else self.interval.width)

    def jumps(self, columns: Columns) -> Jumps | None:
        """Return the jumps around the sizes; None for a form without measured neighbours."""
        if not isinstance(self.curve, LogLogCurve):
            return None
        return jumps_around(self.curve, self.size(columns), of_base=bool(self.reads.bases))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEvaluator:
    """A Gaussian process over log2 of the inputs and over features as they are.

    Its target is log(seconds), or log(seconds / base).
    """

    reader: InputReader
    reads: ModelReads
    process: GaussianProcess
    interval: OneWidth | None

    def seconds(self, columns: Columns) -> Seconds:
        """Return latencies, ``(n,)``; NaN where an input is 0."""
        table = self.table(columns)
        return self._seconds(columns, table, self.process.predict(table))

    def with_half_width(self, columns: Columns) -> tuple[Seconds, Seconds]:
        """Return latencies and half-widths."""
        if self.interval is None or not self.interval.by_deviation:
            seconds = self.seconds(columns)
            width = np.nan if self.interval is None else self.interval.width
            return seconds, np.full(len(seconds), width)
        table = self.table(columns)
        logs, deviation = self.process.predict_with_deviation(table)
        return self._seconds(columns, table, logs), np.asarray(self.interval.width * deviation)

    def up_to_factor(self, columns: Columns) -> Seconds:
        """Return latencies."""
        return self.seconds(columns)

    def table(self, columns: Columns) -> Seconds:
        """Return what the process reads, ``(n, n_inputs)``."""
        read = self.reader.read(self.reads, columns)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = [np.log2(column) for column in read[: len(self.reads.inputs)]]
        table = np.column_stack([*logs, *read[len(logs) :]])
        return np.where(np.isfinite(table), table, np.nan)

    def _seconds(self, columns: Columns, table: Seconds, logs: Seconds) -> Seconds:
        values = self.reader.times_base(self.reads, columns, np.exp(logs))
        return np.where(np.isnan(table).any(axis=1), np.nan, values)


def _values(curve: Curve, size: Seconds) -> Seconds:
    if isinstance(curve, ScaleOffset):
        # Its own predict refuses a batch for one negative time; here that row alone has no answer.
        return np.asarray(curve.alpha * size + curve.beta)
    return curve.predict(size)
