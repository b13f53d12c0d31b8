"""What a feature set has to know about a device; stated by whoever asks, never looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """Facts of a device that explain its steps and rates.

    Attributes
    ----------
    device : str
        Canonical device term.
    multiprocessors : int
        How many units work on tiles side by side.
    l2_bytes : float
        Last-level cache.
    memory_bytes_per_s : float
        Peak bandwidth of device memory.
    operations_per_s : Mapping[str, float]
        Peak rate of matrix operations by dtype term; a multiply-add is two.
    link_bytes_per_s : float or None
        Peak bandwidth of a device's links inside a node, one direction.
    matrix_tiles : tuple of (int, int)
        Rows and columns of the result that one multiprocessor works on together, likely ones
        first; features are computed for each.
    query_tiles : tuple of int
        Query rows of an attention block, likely ones first.
    launch_floor_s : float
        Least time of a kernel, seen by whoever launches it.
    sources : Mapping[str, str]
        Field name to where its value comes from.
    """

    device: str
    multiprocessors: int
    l2_bytes: float
    memory_bytes_per_s: float
    operations_per_s: Mapping[str, float]
    link_bytes_per_s: float | None
    matrix_tiles: tuple[tuple[int, int], ...]
    query_tiles: tuple[int, ...]
    launch_floor_s: float
    sources: Mapping[str, str] = field(default_factory=dict)
