"""Small, valid evidence: record sets, retractions, a vocabulary, a policy and a system profile."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perfdb_git.formats.canonical import canonical_document, canonical_record_set
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.storage.git import GitStore
from perfdb_git.storage.layout import record_set_path
from perfdb_git.storage.snapshot import EvidenceSnapshot
from perfdb_git.storage.sources import GitSource
from tests.record_headers import retraction_document, table_source, timed_protocol

METRICS = (
    {"name": "latency", "role": "metric", "statistic": "median", "unit": "ms"},
    {"name": "latency", "role": "metric", "statistic": "std", "unit": "ms"},
)

VOCABULARY = b"""\
schema: perfdb/vocabulary/v1
name: small
dimensions:
  operation: {group: workload, type: label, description: The operation.}
  device: {group: deployment, type: label, description: The device.}
  m: {group: shape, type: integer, unit: "1", description: Rows.}
  k: {group: shape, type: integer, unit: "1", description: Depth.}
operations:
  gemm: {description: Product., shape: [m, k], work: gemm, engine: matrix}
"""

POLICY = b"""\
schema: perfdb/policy/v1
name: default
description: A policy.
tiers: [recorded-measured]
matching: {query_unknown: unanimous}
conflict: {threshold: 0.1, action: show}
interval: {level: 0.9}
on_ambiguity: stop
protocol_unknown: accept
fallback_allowed: true
"""

PROFILE = b"""\
schema: perfdb/system-profile/v1
name: a100
version: "1"
device: a100
description: A device.
processing_mode: roofline
engines: {matrix: {float16: {peak_tops: 312, efficiency_by_gops: null}}}
memories: {device: {capacity_gib: 80, bandwidth_gbyte_per_s: 2039, efficiency_by_mb: null}}
networks: []
sources: [{pointer: "", source: data sheet}]
"""


def header(
    *,
    kind: str = "measured",
    device: str = "a100",
    operation: str = "gemm",
    session: str = "session-1",
    dimensions: Sequence[str] = ("m", "k"),
    metrics: Sequence[Mapping[str, Any]] = METRICS,
    source_columns: Sequence[str] = ("row",),
    context: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the header of a record set, without its rows."""
    return {
        "schema": "perfdb/record-set/v1",
        "kind": kind,
        "session": session,
        "source": table_source(file="table [1].csv"),
        "environment": "1" * 64,
        "protocol": timed_protocol(),
        "context": {"operation": operation, "device": device, **(context or {})},
        "columns": [
            *({"name": name, "role": "dimension", "unit": "1"} for name in dimensions),
            *metrics,
            *({"name": name, "role": "source"} for name in source_columns),
        ],
    }


def rows(count: int, *, seed: int = 0) -> list[list[Any]]:
    """Return rows for the columns of `header`'s defaults."""
    draw = random.Random(seed)
    return [
        [number + 1, draw.randrange(1, 9000), draw.random(), draw.random() / 10, number]
        for number in range(count)
    ]


def record_set(head: Mapping[str, Any], cells: Sequence[Sequence[Any]]) -> tuple[str, bytes]:
    """Return the path and the canonical bytes of a record set."""
    content = canonical_record_set(head, cells)
    context = head["context"]
    path = record_set_path(
        context["device"], context["operation"], head["session"], sha256_hex(content)
    )
    return path, content


def retraction(target: str) -> tuple[str, bytes]:
    """Return the path and the bytes of a retraction."""
    content = canonical_document(retraction_document(target, "the clock was wrong"))
    return f"evidence/retractions/{sha256_hex(content)}.json", content


def evidence_files(*, sets: int = 4, rows_each: int = 20) -> dict[str, bytes]:
    """Return a whole small evidence repository: `sets` record sets in two series."""
    files = {
        "evidence/vocabulary.yaml": VOCABULARY,
        "evidence/policies/default.yaml": POLICY,
        "profiles/systems/a100.yaml": PROFILE,
    }
    for number in range(sets):
        device = ("a100", "h100")[number % 2]
        head = header(device=device, session=f"session-{number}")
        path, content = record_set(head, rows(rows_each, seed=number))
        files[path] = content
    return files


def snapshot_of(
    repository: Path, cache: Path | None, revision: str = "HEAD", **options: Any
) -> EvidenceSnapshot:
    """Open the snapshot of a revision."""
    store = GitStore.open(repository)
    source = GitSource(store, store.resolve_revision(revision).commit)
    return EvidenceSnapshot(source, cache_directory=cache, **options)


def everything(snapshot: EvidenceSnapshot) -> dict[str, Any]:
    """Return all that a snapshot says of its records, as plain values."""
    result: dict[str, Any] = {"digest": snapshot.records_digest}
    for key in snapshot.series_keys():
        for view in snapshot.record_sets(key):
            live = view.live()
            verified = snapshot.verified_rows(view, range(0, view.row_count, 7))
            result[view.path] = (
                key,
                view.sha256,
                view.row_count,
                view.header,
                {name: _listed(view.dimension(name)) for name in ("m", "k")},
                {name: _listed(view.metric("latency", name)) for name in ("median", "std")},
                None if live is None else live.tolist(),
                [row.cells for row in verified],
            )
    return result


def _listed(column: Any) -> Any:
    return None if column is None else column.tolist()
