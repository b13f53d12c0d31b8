"""Times of single parts of a matrix product, to be weighted and added up.

A sum of these with learned weights follows a product to sizes that were never measured: work,
traffic and waves of tiles go on growing as they did, where trees know only what they saw.

Source: NVIDIA, Matrix multiplication background user's guide, sections "Tile quantization" and
"Wave quantization".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfdb_git.operations.element_sizes import ELEMENT_BYTES
from perfdb_git.operations.features.columns import by_term, numbers

if TYPE_CHECKING:
    from perfdb_git.operations.features.feature_set import Columns, Seconds
    from perfdb_git.operations.features.hardware import Hardware

_CACHE_TILES = ((128, 128), (128, 256))
_NOMINAL_S = 1e-10
"""Of one step of the inner size, and ten thousand times that of one wave: weights scale it."""


def parts(columns: Columns, hardware: Hardware) -> dict[str, Seconds]:
    """Return the seconds of each part at peak rates, float64 ``(n,)`` or ``(1,)``, by name.

    Parameters
    ----------
    columns : Mapping[str, ndarray]
        ``m``, ``n``, ``k`` and ``dtype``.
    hardware : Hardware
        Its rates, multiprocessors and matrix tiles.
    """
    import numpy as np

    m, n, k = numbers(columns, ("m", "n", "k"), np.float64)
    element = by_term(columns, "dtype", ELEMENT_BYTES, np.float64)
    pair_s = 2 * k / by_term(columns, "dtype", hardware.operations_per_s, np.float64)
    byte_s = 1 / hardware.memory_bytes_per_s
    return {
        "launch": np.full(1, hardware.launch_floor_s),
        "work": m * n * pair_s,
        "left_bytes": m * k * element * byte_s,
        "right_bytes": n * k * element * byte_s,
        "result_bytes": 2 * m * n * byte_s,
        "inner_size": k * _NOMINAL_S,
        **_waves(m, n, pair_s, hardware),
        **{
            f"cache_bytes_{rows}x{width}": np.ceil(m / rows)
            * np.ceil(n / width)
            * (k * (rows + width) * element * byte_s)
            for rows, width in _CACHE_TILES
        },
    }


def _waves(m: Seconds, n: Seconds, pair_s: Seconds, hardware: Hardware) -> dict[str, Seconds]:
    """Return for each tile the work of whole waves, and a nominal time for each wave."""
    import numpy as np

    found = {}
    for rows, width in hardware.matrix_tiles:
        waves = np.ceil(np.ceil(m / rows) * np.ceil(n / width) / hardware.multiprocessors)
        found[f"tiled_{rows}x{width}"] = waves * pair_s * (hardware.multiprocessors * rows * width)
        found[f"waves_{rows}x{width}"] = waves * (1e4 * _NOMINAL_S)
    return found
