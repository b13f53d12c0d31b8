"""Features of collectives: octaves of the message and of the participants, wire time.

The scales are smooth and few, so that a form for small tables can use them, or some of them by
name: data types may share a curve over bytes, and collectives the shape of theirs.

Source: NVIDIA nccl-tests, doc/PERFORMANCE.md, for the bytes that pass each link.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from perfdb_git.errors import UsageError
from perfdb_git.operations.element_sizes import ELEMENT_BYTES
from perfdb_git.operations.features.columns import by_term, numbers
from perfdb_git.operations.features.feature_set import FeatureSet
from perfdb_git.operations.features.hardware import Hardware

if TYPE_CHECKING:
    from perfdb_git.operations.features.feature_set import (
        Columns,
        EstimateSeconds,
        Numbers,
        Seconds,
    )

_SHAPE = ("message_bytes", "participants")
_PASSES: Mapping[str, float] = {
    "all_reduce": 2,
    "all_gather": 1,
    "reduce_scatter": 1,
    "all_to_all": 1,
}
"""How often a byte that a rank does not hold itself passes its link."""


def describe(columns: Columns, hardware: Hardware) -> dict[str, Numbers]:
    """Return the features of each row, float32, by name."""
    import numpy as np

    message, ranks = numbers(columns, _SHAPE, np.float32)
    return {
        "message_octaves": np.log2(np.maximum(message, np.float32(1))),
        "participant_octaves": np.log2(ranks),
        "element_octaves": np.log2(by_term(columns, "dtype", ELEMENT_BYTES, np.float32)),
        **{name: by_term(columns, "operation", _only(name), np.float32) for name in _PASSES},
    }


def _only(name: str) -> dict[str, float]:
    """Return 1 for one collective and 0 for the others."""
    return {other: float(other == name) for other in _PASSES}


def _base(bandwidth_share: float, floors: float) -> EstimateSeconds:
    """Return launch floors + bytes over the busiest link at a share of its bandwidth."""

    def base(columns: Columns, hardware: Hardware) -> Seconds:
        import numpy as np

        message, ranks = numbers(columns, _SHAPE, np.float64)
        bandwidth = hardware.link_bytes_per_s
        if bandwidth is None:
            raise UsageError(
                f"no link bandwidth is stated for {hardware.device}",
                code="no-link-bandwidth",
                remedy="state link_bytes_per_s of the hardware",
            )
        wire = by_term(columns, "operation", _PASSES, np.float64) * (ranks - 1) / ranks * message
        seconds: Seconds = floors * hardware.launch_floor_s + wire / (bandwidth_share * bandwidth)
        return seconds

    return base


COLLECTIVE_1 = FeatureSet(
    name="collective/1",
    operation="all_reduce, all_gather, reduce_scatter or all_to_all",
    inputs=(*_SHAPE, "dtype", "operation"),
    describe=describe,
    bases={"wire": _base(0.75, 2), "wire-fast": _base(1, 1), "wire-slow": _base(0.5, 4)},
    example={"message_bytes": 1, "participants": 2, "dtype": "int8", "operation": "all_reduce"},
)
