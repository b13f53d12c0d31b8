"""Features of a matrix product ``(m, k) x (k, n)``: sizes, padding, tiles, waves, cache.

A kernel cuts the result into tiles, and the multiprocessors take tiles in waves; a last wave that
is not full costs as much as a full one. Which tile a library takes is not known, so that the
features state for each likely tile how well it fits.

Source: NVIDIA, Matrix multiplication background user's guide, sections "Tile quantization" and
"Wave quantization"; split-k as in CUTLASS, "Efficient GEMM in CUDA", section "Parallelized
reductions".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfdb_git.operations.element_sizes import ELEMENT_BYTES
from perfdb_git.operations.features.columns import by_term, numbers
from perfdb_git.operations.features.feature_set import FeatureSet
from perfdb_git.operations.features.gemm_parts import parts
from perfdb_git.operations.features.hardware import Hardware

if TYPE_CHECKING:
    from perfdb_git.operations.features.feature_set import (
        Columns,
        EstimateSeconds,
        Numbers,
        Seconds,
    )

_PADDINGS = (8, 16, 64, 128, 256)
"""Rows that warps and tiles of usual kernels work on together."""

_SPLITS = (1, 2, 4, 8, 16)
_SPLIT_STEP = 64
"""Inner size that one step of a main loop covers."""

_SPLIT_TILE = 128
_SPLIT_OVERHEAD_S = 1e-6
_PARTIAL_SUM_SHARE = 1 / 3
"""Partial sums mostly stay in the cache: this share of them counts as memory traffic."""

_CACHE_TILE = (128, 256)


def describe(columns: Columns, hardware: Hardware) -> dict[str, Numbers]:
    """Return the features of each row, float32, by name."""
    import numpy as np

    m, n, k = numbers(columns, ("m", "n", "k"), np.float32)
    element = by_term(columns, "dtype", ELEMENT_BYTES, np.float32)
    # A whole tile of results with its inner size costs this much on all multiprocessors at once.
    pair_s = k * (np.float32(2) / by_term(columns, "dtype", hardware.operations_per_s, np.float32))
    mn, nk, mk = m * n, n * k, m * k
    result_bytes = mn * np.maximum(element, np.float32(2))
    working_set = (mk + nk) * element + result_bytes
    sizes = {"m": m, "n": n, "k": k, "mn": mn, "nk": nk, "mk": mk}
    compute_s, memory_s = mn * pair_s, working_set / np.float32(hardware.memory_bytes_per_s)
    rows, width = _CACHE_TILE
    cache_tiles = np.ceil(m / np.float32(rows)) * np.ceil(n / np.float32(width))
    tiles, best_s = _tiles(m, n, pair_s, hardware)
    return {
        **sizes,
        "compute_s": compute_s,
        "memory_s": memory_s,
        "compute_to_memory": compute_s / memory_s,
        **_padding(m),
        **tiles,
        "best_tile_s": best_s,
        **_split(m, n, k, pair_s, best_s, hardware),
        "cache_traffic_bytes": cache_tiles * k * (np.float32(rows + width) * element),
        "working_set_to_l2": working_set / np.float32(hardware.l2_bytes),
        "result_to_l2": result_bytes / np.float32(hardware.l2_bytes),
        "n_padding_256": np.ceil(n / np.float32(256)) * np.float32(256) / n,
        "m_modulo_128": np.fmod(m, np.float32(128)),
    }


def _padding(m: Numbers) -> dict[str, Numbers]:
    """Return the rows left to the next multiple, and the padded size relative to ``m``."""
    import numpy as np

    padded = {size: np.ceil(m / np.float32(size)) * np.float32(size) for size in _PADDINGS}
    return {f"m_left_{size}": value - m for size, value in padded.items()} | {
        f"m_padding_{size}": value / m for size, value in padded.items()
    }


def _tiles(
    m: Numbers, n: Numbers, pair_s: Numbers, hardware: Hardware
) -> tuple[dict[str, Numbers], Numbers]:
    """Return for each tile how many, how full their waves and seconds; and the least seconds."""
    import numpy as np

    units = np.float32(hardware.multiprocessors)
    shapes = hardware.matrix_tiles
    # Tiles share heights and widths, and each is rounded up once.
    high = {rows: np.ceil(m / np.float32(rows)) for rows, _ in shapes}
    wide = {width: np.ceil(n / np.float32(width)) for _, width in shapes}
    found: dict[str, Numbers] = {}
    seconds: list[Numbers] = []
    for rows, width in shapes:
        tiles = high[rows] * wide[width]
        full = tiles / units
        waves = np.ceil(full)
        seconds.append(waves * pair_s * (units * np.float32(rows * width)))
        found[f"tiles_{rows}x{width}"] = tiles
        found[f"wave_fill_{rows}x{width}"] = full / waves
        found[f"tiled_s_{rows}x{width}"] = seconds[-1]
    return found, np.minimum.reduce(seconds)


def _split(
    m: Numbers, n: Numbers, k: Numbers, pair_s: Numbers, best_s: Numbers, hardware: Hardware
) -> dict[str, Numbers]:
    """Return what is gained where multiprocessors share the inner size of one tile."""
    import numpy as np

    tile, units = np.float32(_SPLIT_TILE), np.float32(hardware.multiprocessors)
    tiles = np.ceil(m / tile) * np.ceil(n / tile)
    splits = np.array(_SPLITS, dtype=np.float32)[:, None]
    step = np.float32(_SPLIT_STEP)
    wave_s = pair_s / k * (step * tile * tile * units)
    seconds = np.ceil(tiles * splits / units) * np.ceil(k / (step * splits)) * wave_s
    partial_bytes = 2 * 4 * _SPLIT_TILE**2 * _PARTIAL_SUM_SHARE
    partial_s = np.float32(partial_bytes / hardware.memory_bytes_per_s)
    seconds[1:] += np.float32(_SPLIT_OVERHEAD_S) + tiles * splits[1:] * partial_s
    least = seconds.min(axis=0)
    return {
        "split_s": least,
        "split_gain": least / best_s,
        "k_per_split": k / np.maximum(np.floor(units / tiles), np.float32(1)),
        "tiles_modulo": np.fmod(tiles, units),
    }


def _base(
    compute_share: float, memory_share: float, *, tiled: bool = False, summed: bool = False
) -> EstimateSeconds:
    """Return launch floor + max (or sum) of compute and bytes, each at a share of its peak."""

    def base(columns: Columns, hardware: Hardware) -> Seconds:
        import numpy as np

        m, n, k = numbers(columns, ("m", "n", "k"), np.float64)
        element = by_term(columns, "dtype", ELEMENT_BYTES, np.float64)
        rate = by_term(columns, "dtype", hardware.operations_per_s, np.float64)
        worked = _least_tiled(m, n, hardware) if tiled else m * n
        moved = (m + n) * k * element + m * n * np.maximum(element, 2)
        compute_s = worked * k * (2 / compute_share / rate)
        memory_s = moved / (memory_share * hardware.memory_bytes_per_s)
        slower = compute_s + memory_s if summed else np.maximum(compute_s, memory_s)
        return np.asarray(hardware.launch_floor_s + slower)

    return base


def _least_tiled(m: Seconds, n: Seconds, hardware: Hardware) -> Seconds:
    """Return elements of the result as worked on: whole waves of whole tiles, the best tile's."""
    import numpy as np

    units = hardware.multiprocessors
    waves = [
        np.ceil(np.ceil(m / rows) * np.ceil(n / width) / units) * (units * rows * width)
        for rows, width in hardware.matrix_tiles
    ]
    least: Seconds = np.minimum.reduce(waves)
    return least


GEMM_1 = FeatureSet(
    name="gemm/1",
    operation="gemm",
    inputs=("m", "n", "k", "dtype"),
    describe=describe,
    bases={
        "tiled": _base(0.75, 0.75, tiled=True),
        "roofline": _base(0.75, 0.75),
        "roofline-memory": _base(0.9, 0.6),
        "sum": _base(0.75, 0.75, summed=True),
    },
    example={"m": 1, "n": 1, "k": 1, "dtype": "bfloat16"},
    parts=parts,
)
