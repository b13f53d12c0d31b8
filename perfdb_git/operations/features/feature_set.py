"""A named, versioned set of features: what a learned form sees of a query, and its physical base.

A changed computation gets a new name (``gemm/2``), so that stored parameters keep their meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from perfdb_git.model.values import Scalar
from perfdb_git.operations.features.hardware import Hardware

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Columns: TypeAlias = Mapping[str, NDArray[Any]]
    Numbers: TypeAlias = NDArray[np.float32]
    Seconds: TypeAlias = NDArray[np.float64]
    DescribeRows: TypeAlias = Callable[[Columns, Hardware], Mapping[str, Numbers]]
    EstimateSeconds: TypeAlias = Callable[[Columns, Hardware], Seconds]
    TimeParts: TypeAlias = Callable[[Columns, Hardware], Mapping[str, Seconds]]

SUM_OF_PARTS = "sum-of-parts"
"""Name of the base that is a learned sum of the set's parts."""

_BLOCK = 4096
"""Rows at a time, so that intermediate results stay in the processor's cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureSet:
    """Features of one operation, and its physical bases.

    A table of queries is a mapping of flat dimension names to columns: numbers as float arrays
    ``(n,)``, terms as string arrays ``(n,)``, or ``(1,)`` where all rows share one term.

    Attributes
    ----------
    name : str
        With its version, such as ``gemm/1``.
    operation : str
        What it describes, in words: an operation of the vocabulary, or a group of them.
    inputs : tuple of str
        The dimensions that are read, and nothing else is.
    describe : Callable[[Columns, Hardware], Mapping[str, ndarray]]
        Features of a few thousand rows by name, each ``(n,)`` or ``(1,)``, in a fixed order.
    bases : Mapping[str, Callable[[Columns, Hardware], ndarray]]
        Physical estimates in seconds, float64 ``(n,)``; the first is the one to learn against,
        the others serve a mean beyond the range of the evidence.
    example : Mapping[str, Scalar]
        Some query; it gives the names of the features.
    parts : Callable[[Columns, Hardware], Mapping[str, ndarray]] or None
        Seconds of single parts of the work at peak rates by name, float64 ``(n,)`` or ``(1,)``.
    """

    name: str
    operation: str
    inputs: tuple[str, ...]
    describe: DescribeRows
    bases: Mapping[str, EstimateSeconds]
    example: Mapping[str, Scalar]
    parts: TimeParts | None = None

    def names(self, hardware: Hardware) -> tuple[str, ...]:
        """Return the names of the features in order; the hardware's tiles are among them."""
        import numpy as np

        row = {name: np.array([value]) for name, value in self.example.items()}
        return tuple(self.describe(row, hardware))

    def compute(self, columns: Columns, hardware: Hardware) -> Numbers:
        """Return the features of a table of queries.

        Returns
        -------
        ndarray of float32
            Shape ``(n, n_features)``, contiguous by feature, with the columns of `names`.
        """
        import numpy as np

        count = max(len(columns[name]) for name in self.inputs)
        table = np.empty((0, count), dtype=np.float32)
        for start in range(0, count, _BLOCK):
            rows = slice(start, start + _BLOCK)
            block = {
                name: columns[name] if len(columns[name]) == 1 else columns[name][rows]
                for name in self.inputs
            }
            described = self.describe(block, hardware)
            if not len(table):
                table = np.empty((len(described), count), dtype=np.float32)
            for feature, values in zip(table, described.values(), strict=True):
                feature[rows] = values
        return table.T

    def base(self, columns: Columns, hardware: Hardware) -> Seconds:
        """Return the first base, in seconds, ``(n,)``."""
        return next(iter(self.bases.values()))(columns, hardware)

    def named_base(
        self,
        name: str,
        columns: Columns,
        hardware: Hardware,
        part_weights: Mapping[str, float],
    ) -> Seconds:
        """Return a base by name, in seconds, ``(n,)``; ``part_weights`` are of `SUM_OF_PARTS`."""
        if name == SUM_OF_PARTS:
            return self.sum_of_parts(part_weights, columns, hardware)
        return self.bases[name](columns, hardware)

    def sum_of_parts(
        self, weights: Mapping[str, float], columns: Columns, hardware: Hardware
    ) -> Seconds:
        """Return weighted parts added up, at least the launch floor, in seconds, ``(n,)``."""
        import numpy as np

        assert self.parts is not None
        times = self.parts(columns, hardware)
        total = np.zeros(max(len(columns[name]) for name in self.inputs))
        # Sums by row, and not a matrix product: a batch and its rows one by one give the same bits.
        for name in sorted(weights):
            total += weights[name] * times[name]
        return np.maximum(total, hardware.launch_floor_s)
