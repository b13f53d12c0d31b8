"""Every feature set that a calibration may name, by name and version."""

from __future__ import annotations

from collections.abc import Mapping

from perfdb_git.operations.features.attention_decode import ATTENTION_DECODE_1
from perfdb_git.operations.features.attention_prefill import ATTENTION_PREFILL_1
from perfdb_git.operations.features.collectives import COLLECTIVE_1
from perfdb_git.operations.features.feature_set import FeatureSet
from perfdb_git.operations.features.gemm import GEMM_1

FEATURE_SETS: Mapping[str, FeatureSet] = {
    known.name: known for known in (GEMM_1, ATTENTION_PREFILL_1, ATTENTION_DECODE_1, COLLECTIVE_1)
}
"""By name and version."""
