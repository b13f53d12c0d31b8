"""Features of causal attention of new tokens: pairs, padded tiles, blocks over multiprocessors.

A block works on one tile of queries of one head, and on all keys that these may see; under a
causal mask the last tile of a sequence is the longest.

Source: Dao, FlashAttention-2 (2023), section 3.3, for blocks and their order; Shah et al.,
FlashAttention-3 (2024), for the tiles of Hopper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfdb_git.operations.element_sizes import ELEMENT_BYTES
from perfdb_git.operations.features.columns import by_term, numbers
from perfdb_git.operations.features.feature_set import FeatureSet
from perfdb_git.operations.features.hardware import Hardware

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfdb_git.operations.features.feature_set import (
        Columns,
        EstimateSeconds,
        Numbers,
        Seconds,
    )

_SHAPE = (
    *("batch_size", "query_heads", "kv_heads", "head_size"),
    *("query_length", "kv_cache_length", "window_size"),
)


def describe(columns: Columns, hardware: Hardware) -> dict[str, Numbers]:
    """Return the features of each row, float32, by name."""
    import numpy as np

    batch, heads, kv_heads, size, new, cached, window = numbers(columns, _SHAPE, np.float32)
    element = by_term(columns, "dtype", ELEMENT_BYTES, np.float32)
    kv_element = by_term(columns, "kv_cache_dtype", ELEMENT_BYTES, np.float32)
    rate = by_term(columns, "dtype", hardware.operations_per_s, np.float32)
    keys = cached + new
    seen = np.where(window > 0, np.minimum(window, keys), keys)
    pairs = _pairs(new, cached, seen)
    all_heads, all_kv_heads = batch * heads, batch * kv_heads
    query_bytes = all_heads * new * size * np.float32(2)
    kv_bytes = np.float32(2) * all_kv_heads * keys * size * kv_element
    compute_s = np.float32(4) * all_heads * size * pairs / rate
    moved = all_heads * new * size * (element + np.float32(2)) + kv_bytes
    memory_s = moved / np.float32(hardware.memory_bytes_per_s)
    units = np.float32(hardware.multiprocessors)
    waves_of_heads = np.ceil(all_heads / units)
    return {
        "batch_size": batch,
        "query_heads": heads,
        "kv_heads": kv_heads,
        "group": heads / kv_heads,
        "head_size": size,
        "query_length": new,
        "kv_cache_length": cached,
        "window": window,
        "keys_seen": seen,
        "element_bytes": element,
        "kv_element_bytes": kv_element,
        "all_heads": all_heads,
        "all_kv_heads": all_kv_heads,
        "tokens": batch * new,
        "pairs": pairs,
        "mean_keys": pairs / new,
        "keys_beyond_window": keys - seen,
        "grouped_length": new * heads / kv_heads,
        "length_times_size": new * size,
        "query_bytes": query_bytes,
        "kv_bytes": kv_bytes,
        "kv_row_bytes": kv_heads * size * kv_element,
        "compute_s": compute_s,
        "memory_s": memory_s,
        "compute_to_memory": compute_s / memory_s,
        "kv_to_l2": kv_bytes / np.float32(hardware.l2_bytes),
        "waves_of_heads": waves_of_heads,
        "wave_fill_of_heads": all_heads / (waves_of_heads * units),
        "heads_modulo": np.fmod(all_heads, units),
        **_tiles(new, cached, seen, all_heads, size, hardware),
    }


def _tiles(
    new: Numbers,
    cached: Numbers,
    seen: Numbers,
    all_heads: Numbers,
    size: Numbers,
    hardware: Hardware,
) -> dict[str, Numbers]:
    """Return for each query tile: blocks, waves, their fill, the longest block, padded work."""
    import numpy as np

    units = np.float32(hardware.multiprocessors)
    found: dict[str, Numbers] = {}
    for rows in hardware.query_tiles:
        tile = np.float32(rows)
        tiles = np.ceil(new / tile)
        blocks = tiles * all_heads
        waves = np.ceil(blocks / units)
        longest = np.minimum(tiles * tile + cached, seen + tile)
        growing = tile * (tiles * (tiles + np.float32(1)) / np.float32(2)) + cached * tiles
        found[f"blocks_{rows}"] = blocks
        found[f"waves_{rows}"] = waves
        found[f"wave_fill_{rows}"] = blocks / (waves * units)
        found[f"longest_waves_{rows}"] = waves * tile * longest * size
        found[f"padded_work_{rows}"] = (
            all_heads * size * tile * np.minimum(growing, tiles * (seen + tile))
        )
    return found


def _pairs(new: NDArray[Any], cached: NDArray[Any], seen: NDArray[Any]) -> NDArray[Any]:
    """Count query-key pairs of one head: token i of ``new`` sees ``cached + i``, at most ``seen``.

    The same count as ``attention-prefill/1`` of `perfdb_git.operations.work`.
    """
    import numpy as np

    growing = np.clip(seen - cached, 0, new)
    ramp = growing * cached + growing * (growing + 1) / 2
    return np.asarray(ramp + (new - growing) * seen)


def _base(compute_share: float, memory_share: float, floors: float) -> EstimateSeconds:
    """Return launch floors + max(compute at a share of the peak, bytes at a share)."""

    def base(columns: Columns, hardware: Hardware) -> Seconds:
        import numpy as np

        batch, heads, kv_heads, size, new, cached, window = numbers(columns, _SHAPE, np.float64)
        element = by_term(columns, "dtype", ELEMENT_BYTES, np.float64)
        kv_element = by_term(columns, "kv_cache_dtype", ELEMENT_BYTES, np.float64)
        rate = by_term(columns, "dtype", hardware.operations_per_s, np.float64)
        keys = cached + new
        seen = np.where(window > 0, np.minimum(window, keys), keys)
        pairs = _pairs(new, cached, seen)
        moved = batch * size * (heads * new * (element + 2) + 2 * kv_heads * keys * kv_element)
        seconds: Seconds = floors * hardware.launch_floor_s + np.maximum(
            4 * batch * heads * size * pairs / (compute_share * rate),
            moved / (memory_share * hardware.memory_bytes_per_s),
        )
        return seconds

    return base


ATTENTION_PREFILL_1 = FeatureSet(
    name="attention-prefill/1",
    operation="attention_prefill",
    inputs=(*_SHAPE, "dtype", "kv_cache_dtype"),
    describe=describe,
    bases={
        "roofline": _base(0.6, 0.7, 1.125),
        "roofline-slow": _base(0.3, 0.7, 1.125),
        "roofline-floors": _base(0.6, 0.7, 3),
    },
    example={
        **dict.fromkeys(_SHAPE, 1),
        "window_size": 0,
        "dtype": "bfloat16",
        "kv_cache_dtype": "bfloat16",
    },
)
