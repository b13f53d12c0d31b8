"""The shipped H200 tables as columns, with the published held-out splits.

Rows are read through the library; the splits are worked out again from the upstream key columns
that the record sets keep verbatim (`KEY_COLUMNS`, `SEED`; see docs/shipped-evidence.md).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from perfdb_git.database import PerformanceDatabase
from perfdb_git.model.records import RecordSetHeader
from perfdb_git.storage.snapshot import EvidenceSnapshot

PROJECT = Path(__file__).parents[2]
DEVICE = "h200_141g"
SEED = "perfdb-2026-01"
HELD_OUT_PER_MILLE = 200
ATTENTION_KEYS = (
    "attn_dtype",
    "kv_cache_dtype",
    "num_heads",
    "num_key_value_heads",
    "head_dim",
    "window_size",
    "batch_size",
)
COLLECTIVE_KEYS = ("num_gpus", "message_size")
KEY_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "gemm": ("gemm_dtype", "m", "n", "k"),
    "context_attention": (*ATTENTION_KEYS, "isl"),
    "generation_attention": (*ATTENTION_KEYS, "step"),
    "nccl": ("op_name", "nccl_dtype", *COLLECTIVE_KEYS),
    "custom_allreduce": ("allreduce_dtype", *COLLECTIVE_KEYS),
}
"""Upstream table to the columns that its split hashes, in order."""

FILES: Mapping[str, str] = {
    "gemm": "gemm_perf.parquet",
    "context_attention": "context_attention_perf.parquet",
    "generation_attention": "generation_attention_perf.parquet",
    "nccl": "nccl_perf.parquet",
    "custom_allreduce": "custom_allreduce_perf.parquet",
}
TERMS = ("operation", "dtype", "kv_cache_dtype")
DIMENSIONS = (
    *("m", "n", "k", "batch_size", "query_heads", "kv_heads", "head_size", "query_length"),
    *("kv_cache_length", "window_size", "message_bytes", "participants"),
)


@dataclass(frozen=True, kw_only=True)
class PublishedTable:
    """One upstream table.

    Attributes
    ----------
    columns : Mapping[str, ndarray]
        Each ``(n_rows,)``, by flat dimension name; terms are strings.
    latency : ndarray
        Seconds, ``(n_rows,)``; only the first of several rows of one key is here.
    keys : tuple of str
        The split's key of each row.
    repeats : tuple of ndarray
        Seconds of all rows of each key, for training.
    """

    name: str
    columns: Mapping[str, NDArray[np.generic]]
    latency: NDArray[np.float64]
    keys: tuple[str, ...]
    repeats: tuple[NDArray[np.float64], ...]

    @cached_property
    def bucket(self) -> NDArray[np.int64]:
        """Bucket of each row from 0 to 999; under 200 is held out in ``rand20``."""
        return np.array([bucket(key) for key in self.keys], dtype=np.int64)

    @cached_property
    def held_out(self) -> NDArray[np.bool_]:
        """Which rows ``rand20`` holds out, ``(n_rows,)``."""
        return np.asarray(self.bucket < HELD_OUT_PER_MILLE)

    @cached_property
    def site_held_out(self) -> NDArray[np.bool_]:
        """Which rows ``site20`` holds out: whole (dtype, n, k), GEMM only."""
        sites = ["gemm-site|" + "|".join(part[1:2] + part[3:]) for part in self._parts()]
        known = {site: bucket(site) < HELD_OUT_PER_MILLE for site in set(sites)}
        return np.array([known[site] for site in sites], dtype=np.bool_)

    def held_out_digest(self) -> str:
        """Return the first 8 digits of the SHA-256 of the sorted held-out keys."""
        held = sorted(key for key, out in zip(self.keys, self.held_out, strict=True) if out)
        return hashlib.sha256("\n".join(held).encode()).hexdigest()[:8]

    def _parts(self) -> list[list[str]]:
        return [key.split("|") for key in self.keys]


def bucket(key: str) -> int:
    """Return the bucket of a key, from 0 to 999."""
    return int(hashlib.sha256(f"{SEED}|{key}".encode()).hexdigest()[:8], 16) % 1000


def read_table(name: str, *, project: Path = PROJECT, revision: str = "HEAD") -> PublishedTable:
    """Read one upstream table from the evidence of a checkout, sorted by key."""
    evidence = PerformanceDatabase.open(project).at(revision).evidence
    parts: dict[str, list[NDArray[np.generic]]] = {}
    keys: list[str] = []
    latency: list[NDArray[np.float64]] = []
    for series in evidence.series_keys():
        if series.device != DEVICE:
            continue
        for record_set in evidence.record_sets(series):
            if Path(record_set.header.source.file).name != FILES[name]:
                continue
            header, rows = evidence.read_record_set(record_set)
            keys += _keys(name, header, rows)
            found = record_set.metric("latency", "mean")
            assert found is not None
            latency.append(found / 1e3)
            for column, values in _columns(evidence, header, rows).items():
                parts.setdefault(column, []).append(values)
    return _sorted_table(
        name, {c: np.concatenate(p) for c, p in parts.items()}, np.concatenate(latency), keys
    )


def _sorted_table(
    name: str,
    columns: Mapping[str, NDArray[np.generic]],
    latency: NDArray[np.float64],
    keys: Sequence[str],
) -> PublishedTable:
    """Keep the first row of each key, as upstream does, and sort by key."""
    rows_of: dict[str, list[int]] = {}
    for row, key in enumerate(keys):
        rows_of.setdefault(key, []).append(row)
    ordered = sorted(rows_of)
    first = np.array([rows_of[key][0] for key in ordered], dtype=np.int64)
    return PublishedTable(
        name=name,
        columns={column: values[first] for column, values in columns.items()},
        latency=latency[first],
        keys=tuple(ordered),
        repeats=tuple(latency[rows_of[key]] for key in ordered),
    )


def _keys(name: str, header: RecordSetHeader, rows: Sequence[Sequence[object]]) -> list[str]:
    """Return the split's key of every row: source columns verbatim, else the dimension."""
    places = {column.name: i for i, column in enumerate(header.columns) if column.role != "metric"}
    fixed = header.source.keys
    chosen = [(fixed.get(column), places.get(column)) for column in KEY_COLUMNS[name]]
    return [
        "|".join([name, *(str(row[i]) if i is not None else str(value) for value, i in chosen)])
        for row in rows
    ]


def _columns(
    evidence: EvidenceSnapshot, header: RecordSetHeader, rows: Sequence[Sequence[object]]
) -> dict[str, NDArray[np.generic]]:
    """Return causal inputs of every row by flat dimension name."""
    places = {c.name: i for i, c in enumerate(header.columns) if c.role == "dimension"}
    found: dict[str, NDArray[np.generic]] = {}
    for term in TERMS:
        if term in header.context:
            found[term] = np.full(len(rows), str(header.context[term]), dtype="<U24")
    for dimension in DIMENSIONS:
        if dimension in places:
            place = places[dimension]
            found[dimension] = np.array([row[place] for row in rows], dtype=np.float64)
        elif dimension in header.context:
            found[dimension] = np.full(len(rows), header.context[dimension], dtype=np.float64)
    return found
