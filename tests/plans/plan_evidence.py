"""Plans and locks in small evidence repositories."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perfdb_git.database import DatabaseSnapshot, PerformanceDatabase
from perfdb_git.formats.canonical import canonical_document
from perfdb_git.formats.digests import canonical_digest
from perfdb_git.model.plan_lock import PlanLock
from perfdb_git.plans.lock import lock_bytes, lock_plan
from perfdb_git.plans.resolving import resolve_plan
from perfdb_git.plans.verify import Verification, verify_lock
from perfdb_git.storage.plan_documents import lock_digest, read_plan_lock
from tests.cli.evidence import Evidence

PLAN = "pipelines/plans/step.yaml"
LOCK = "pipelines/plans/step.lock.json"

GEMM = {"operation": "gemm", "device": "a100_80g", "dtype": "float16", "n": 10240, "k": 8192}
SMALL = {**GEMM, "m": 128}
LARGE = {**GEMM, "m": 256}
UNMEASURED = {**GEMM, "m": 3000}
"""The roofline answers it."""
UNKNOWN = {**GEMM, "m": 64, "dtype": "int4"}
"""Nothing answers it."""


def query(name: str, values: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "query": values, **more}


def plan(*queries: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "schema": "perfdb/plan/v1",
        "name": "step",
        "description": "One step.",
        "queries": list(queries),
        "composition": {"kind": "sum"},
        **more,
    }


MEASURED = plan(query("small", SMALL, multiplicity=3), query("large", LARGE))
MIXED = plan(
    query("small", SMALL, multiplicity=3),
    query("large", LARGE),
    query("unmeasured", UNMEASURED, multiplicity=2),
)


def put_plan(evidence: Evidence, value: dict[str, Any], path: str = PLAN) -> None:
    """Write a plan; JSON is YAML."""
    evidence.write(path, json.dumps(value).encode())


def commit_plan(evidence: Evidence, value: dict[str, Any] = MIXED) -> str:
    put_plan(evidence, value)
    return evidence.commit("a plan")


def edit(evidence: Evidence, path: str, old: str, new: str) -> None:
    text = (evidence.path / path).read_text(encoding="utf-8")
    assert old in text
    evidence.write(path, text.replace(old, new).encode())


def database(evidence: Evidence, path: Path | None = None) -> PerformanceDatabase:
    return PerformanceDatabase.open(path or evidence.path, cache_directory=evidence.cache)


def snapshot(evidence: Evidence, revision: str = "HEAD") -> DatabaseSnapshot:
    return database(evidence).at(revision)


def lock_of(evidence: Evidence, revision: str = "HEAD") -> PlanLock:
    return lock_plan(resolve_plan(snapshot(evidence, revision), "step"))


def verification(evidence: Evidence, lock: PlanLock, path: Path | None = None) -> Verification:
    return verify_lock(database(evidence, path), lock)


def forged(lock: PlanLock, change: Callable[[dict[str, Any]], object]) -> PlanLock:
    """Change a lock and let it state the digests that it then has."""
    return read_plan_lock(forged_bytes(lock_bytes(lock), change), document="forged").value


def forged_bytes(content: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    value = json.loads(content)
    change(value)
    value["source"]["digest"] = canonical_digest(value["plan"])
    value["digest"] = lock_digest(value)
    return canonical_document(value)
