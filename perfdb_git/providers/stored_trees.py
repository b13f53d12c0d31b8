"""Symmetric trees as arrays of a document, and back bit for bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from perfdb_git.analysis.error_scale import ErrorScale
from perfdb_git.analysis.quantile_bins import QuantileBins
from perfdb_git.analysis.symmetric_trees import SymmetricTrees
from perfdb_git.providers.stored_parameters import ParameterReader

Numbers = dict[str, float]
Arrays = dict[str, NDArray[np.generic]]


def bins_arrays(bins: QuantileBins) -> Arrays:
    """Return the arrays of bins."""
    return {"bins.edges": bins.edges, "bins.edge_counts": bins.edge_counts}


def same_bins(first: QuantileBins, second: QuantileBins) -> bool:
    """Return whether two models can share byte codes."""
    return np.array_equal(first.edges, second.edges) and np.array_equal(
        first.edge_counts, second.edge_counts
    )


def trees_parts(prefix: str, trees: SymmetricTrees) -> tuple[Numbers, Arrays]:
    """Return numbers and arrays of trees without their bins, under a prefix."""
    numbers = {f"{prefix}.scale": trees.scale, f"{prefix}.offset": trees.offset}
    return numbers, {
        f"{prefix}.features": trees.features,
        f"{prefix}.thresholds": trees.thresholds,
        f"{prefix}.leaves": trees.leaves,
    }


def scale_parts(prefix: str, scale: ErrorScale) -> tuple[Numbers, Arrays]:
    """Return numbers and arrays of an error scale without its bins, under a prefix."""
    numbers, arrays = trees_parts(prefix, scale.trees)
    bounds = {f"{prefix}.lowest": scale.lowest, f"{prefix}.highest": scale.highest}
    return numbers | bounds, arrays


def read_bins(reader: ParameterReader) -> QuantileBins:
    """Return bins; strict about counts and the order of edges."""
    edges = reader.array("bins.edges", "float32", 1)
    counts = reader.array("bins.edge_counts", "uint8", 1)
    if int(counts.sum(dtype=np.int64)) != len(edges) or not len(counts):
        raise reader.fault("bins.edge_counts does not add up to the edges")
    bins = QuantileBins(edges=edges, edge_counts=counts)
    if any(bool((np.diff(some) <= 0).any()) for some in bins.per_feature()):
        raise reader.fault("the edges of a feature do not ascend")
    return bins


def read_trees(reader: ParameterReader, prefix: str, bins: QuantileBins) -> SymmetricTrees:
    """Return trees over bins."""
    features = reader.array(f"{prefix}.features", "uint8", 2)
    thresholds = reader.array(f"{prefix}.thresholds", "uint8", 2)
    leaves = reader.array(f"{prefix}.leaves", "int16", 2)
    scale, offset = reader.number(f"{prefix}.scale"), reader.number(f"{prefix}.offset")
    return reader.build(
        lambda: SymmetricTrees(
            bins=bins,
            features=features,
            thresholds=thresholds,
            leaves=leaves,
            scale=scale,
            offset=offset,
        )
    )


def read_scale(reader: ParameterReader, prefix: str, bins: QuantileBins) -> ErrorScale:
    """Return an error scale over bins."""
    lowest = reader.number(f"{prefix}.lowest", least=0)
    highest = reader.number(f"{prefix}.highest", least=lowest)
    return ErrorScale(trees=read_trees(reader, prefix, bins), lowest=lowest, highest=highest)
