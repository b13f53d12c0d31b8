"""Features of attention of one new token a sequence: cache traffic, groups, split of the cache.

One block serves one key-value head of one sequence with its group of query heads. Where there are
too few blocks, kernels split the cache among several and combine their results; by which rule is
not known, so that the features state several.

Source: Dao, Haziza, Massa, Sizov, Flash-Decoding (2023), for the split; Ainslie et al., GQA
(2023), for groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfdb_git.operations.element_sizes import ELEMENT_BYTES
from perfdb_git.operations.features.columns import by_term, numbers
from perfdb_git.operations.features.feature_set import FeatureSet
from perfdb_git.operations.features.hardware import Hardware

if TYPE_CHECKING:
    import numpy as np

    from perfdb_git.operations.features.feature_set import (
        Columns,
        EstimateSeconds,
        Numbers,
        Seconds,
    )

_SHAPE = (
    *("batch_size", "query_heads", "kv_heads", "head_size"),
    *("kv_cache_length", "window_size"),
)
_GROUP_PADDINGS = (8, 16, 32, 64)
"""Rows of query heads that matrix instructions work on together."""

_STEP = 64
"""Keys that one step of a main loop covers."""

_FLOOR_WAVES = (1, 2, 4)
_SHORTEST = 128
"""Keys below which a further split does not pay."""

_CAPPED_WAVES = (1, 2, 4, 8)
_CEILING_WAVES = (1, 2)


def describe(columns: Columns, hardware: Hardware) -> dict[str, Numbers]:
    """Return the features of each row, float32, by name."""
    import numpy as np

    batch, heads, kv_heads, size, cached, window = numbers(columns, _SHAPE, np.float32)
    kv_element = by_term(columns, "kv_cache_dtype", ELEMENT_BYTES, np.float32)
    rate = by_term(columns, "dtype", hardware.operations_per_s, np.float32)
    keys = cached + np.float32(1)
    seen = np.where(window > 0, np.minimum(window, keys), keys)
    group, blocks, all_heads = heads / kv_heads, batch * kv_heads, batch * heads
    units = np.float32(hardware.multiprocessors)
    kv_bytes = np.float32(2) * blocks * seen * size * kv_element
    cache_bytes = np.float32(2) * blocks * keys * size * kv_element
    query_bytes = np.float32(4) * all_heads * size
    compute_s = np.float32(4) * all_heads * size * seen / rate
    moved: Numbers = kv_bytes + query_bytes
    memory_s = moved / np.float32(hardware.memory_bytes_per_s)
    return {
        "batch_size": batch,
        "query_heads": heads,
        "kv_heads": kv_heads,
        "group": group,
        "head_size": size,
        "keys": keys,
        "keys_seen": seen,
        "keys_beyond_window": keys - seen,
        "window": window,
        "step_left": np.fmod(seen, np.float32(_STEP)),
        "kv_element_bytes": kv_element,
        "all_heads": all_heads,
        "blocks": blocks,
        "kv_bytes": kv_bytes,
        "cache_bytes": cache_bytes,
        "query_bytes": query_bytes,
        "group_bytes": group * size,
        "head_bytes": seen * size * kv_element,
        "busiest_bytes": kv_bytes / np.minimum(blocks, units),
        "compute_s": compute_s,
        "memory_s": memory_s,
        "compute_to_memory": compute_s / memory_s,
        "kv_to_l2": kv_bytes / np.float32(hardware.l2_bytes),
        **_groups(group, blocks, size * seen),
        **_floor_splits(blocks, seen, size * kv_element, units),
        **_capped_splits(blocks, all_heads, seen, units),
    }


def _groups(group: Numbers, blocks: Numbers, work: Numbers) -> dict[str, Numbers]:
    """Return groups of query heads padded to what matrix instructions take."""
    import numpy as np

    found: dict[str, Numbers] = {}
    for rows in _GROUP_PADDINGS:
        padded = np.ceil(group / np.float32(rows)) * np.float32(rows)
        found[f"group_padding_{rows}"] = padded / group
        found[f"padded_work_{rows}"] = blocks * padded * work
    return found


def _floor_splits(
    blocks: Numbers, seen: Numbers, key_bytes: Numbers, units: np.float32
) -> dict[str, Numbers]:
    """Return a split that fills whole waves, in whole steps of keys."""
    import numpy as np

    step, one = np.float32(_STEP), np.float32(1)
    steps = np.ceil(seen / step)
    found: dict[str, Numbers] = {}
    for waves in _FLOOR_WAVES:
        places = units * np.float32(waves)
        split = np.minimum(np.maximum(np.floor(places / blocks), one), steps)
        length = np.ceil(steps / split) * step
        rounds = np.ceil(blocks * split / places)
        found[f"split_{waves}"] = split
        found[f"split_length_{waves}"] = length
        found[f"split_rounds_{waves}"] = rounds
        found[f"split_fill_{waves}"] = blocks * split / (rounds * places)
        found[f"split_bytes_{waves}"] = rounds * length * key_bytes
    return found


def _capped_splits(
    blocks: Numbers, all_heads: Numbers, seen: Numbers, units: np.float32
) -> dict[str, Numbers]:
    """Return splits by other rules: parts of a least length, rounded up, or of single heads."""
    import numpy as np

    shortest, one = np.float32(_SHORTEST), np.float32(1)
    rules = {
        **{
            f"capped_{waves}": (
                blocks,
                np.minimum(np.floor(units * np.float32(waves) / blocks), np.floor(seen / shortest)),
            )
            for waves in _CAPPED_WAVES
        },
        **{
            f"ceiling_{waves}": (
                blocks,
                np.minimum(
                    np.ceil(units * np.float32(waves) / blocks), np.ceil(seen / np.float32(_STEP))
                ),
            )
            for waves in _CEILING_WAVES
        },
        **{
            f"heads_{waves}": (
                all_heads,
                np.minimum(
                    np.ceil(units * np.float32(waves) / all_heads), np.ceil(seen / shortest)
                ),
            )
            for waves in _CEILING_WAVES
        },
    }
    found: dict[str, Numbers] = {}
    for rule, (parts, wanted) in rules.items():
        split = np.maximum(wanted, one)
        length = np.ceil(seen / split)
        found[f"{rule}_split"] = split
        found[f"{rule}_length"] = length
        found[f"{rule}_blocks"] = parts * split
        found[f"{rule}_keys"] = np.ceil(parts * split / units) * length
    return found


def _base(compute_share: float, memory_share: float, floors: float) -> EstimateSeconds:
    """Return launch floors + max(compute at a share of the peak, bytes at a share)."""

    def base(columns: Columns, hardware: Hardware) -> Seconds:
        import numpy as np

        batch, heads, kv_heads, size, cached, window = numbers(columns, _SHAPE, np.float64)
        kv_element = by_term(columns, "kv_cache_dtype", ELEMENT_BYTES, np.float64)
        rate = by_term(columns, "dtype", hardware.operations_per_s, np.float64)
        seen = np.where(window > 0, np.minimum(window, cached + 1), cached + 1)
        moved = batch * size * (4 * heads + 2 * kv_heads * seen * kv_element)
        seconds: Seconds = floors * hardware.launch_floor_s + np.maximum(
            4 * batch * heads * size * seen / (compute_share * rate),
            moved / (memory_share * hardware.memory_bytes_per_s),
        )
        return seconds

    return base


ATTENTION_DECODE_1 = FeatureSet(
    name="attention-decode/1",
    operation="attention_decode",
    inputs=(*_SHAPE, "dtype", "kv_cache_dtype"),
    describe=describe,
    bases={
        "roofline": _base(0.3, 0.7, 1.125),
        "roofline-fast": _base(0.6, 0.8, 1),
        "roofline-slow": _base(0.1, 0.7, 1.125),
    },
    example={
        **dict.fromkeys(_SHAPE, 1),
        "window_size": 0,
        "dtype": "bfloat16",
        "kv_cache_dtype": "bfloat16",
    },
)
