"""Record sets with raw samples, for comparisons."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from perfdb_git.formats.canonical import canonical_document, canonical_record_set
from perfdb_git.formats.strict_json import read_json
from tests.cli.evidence import MANIFEST, Evidence, gemm_header

BASE = [100.1, 100.4, 99.8, 100.0, 100.3, 99.9]
SLOWER = [103.0, 103.4, 102.6, 103.1, 102.9, 103.3]
SHAPE = (128, 1024, 4096)
LATENCY = ("latency", "ms", "sample")


def manifest(**facts: Any) -> bytes:
    """Return a manifest with other facts."""
    value = read_json(MANIFEST, document="manifest")
    assert isinstance(value, dict)
    return canonical_document({**value, **facts})


def add_records(
    evidence: Evidence,
    session: str,
    rows: Sequence[Sequence[Any]],
    *,
    metrics: Sequence[tuple[str, str, str]] = (LATENCY,),
    context: Mapping[str, Any] | None = None,
    protocol: Mapping[str, Any] | None = None,
    environment: bytes = MANIFEST,
    kind: str = "measured",
    measured_at: str | None = None,
) -> str:
    """Write a record set of (m, n, k, metric...) rows and return its id."""
    digest = hashlib.sha256(environment).hexdigest()
    evidence.write(f"evidence/manifests/{digest}.json", environment)
    header = gemm_header(session, digest, context or {}, measured_at, protocol or {})
    header["kind"] = kind
    header["columns"] = [
        *header["columns"][:3],
        *(
            {"name": name, "role": "metric", "unit": unit, "statistic": statistic}
            for name, unit, statistic in metrics
        ),
        header["columns"][-1],
    ]
    content = canonical_record_set(header, [[*row, number] for number, row in enumerate(rows)])
    sha256 = hashlib.sha256(content).hexdigest()
    device = header["context"]["device"]
    evidence.write(f"evidence/records/{device}/gemm/{session}-{sha256[:12]}.json", content)
    return sha256
