"""Results of commands: the resolution and the versioned envelope around every JSON output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from perfdb_git.model.estimate import Alternative, CostEstimate, Explanation
from perfdb_git.model.query import CostQuery
from perfdb_git.model.values import JsonValue

RESULT_SCHEMA = "perfdb/result/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotReference:
    """The evidence snapshot: its full commit id, or ``None`` for uncommitted files."""

    commit: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyReference:
    """The policy in force, by name and by the digest of its content."""

    name: str
    digest: str
    origin: Literal["snapshot", "external-policy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """One query's outcome: the winning estimate, or ``None`` with the reason code."""

    query: CostQuery
    query_digest: str
    cache_key: str
    snapshot: SnapshotReference
    policy: PolicyReference
    estimate: CostEstimate | None
    alternatives: tuple[Alternative, ...]
    code: str
    reason: str
    explanations: tuple[Explanation, ...] = ()
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A remark about a command's run."""

    level: Literal["note", "warning", "error"]
    code: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultEnvelope:
    """What ``--json`` prints, whatever the command."""

    schema: str
    command: str
    status: Literal["ok", "findings", "no-evidence", "error"]
    perfdb: str
    data: Mapping[str, JsonValue] | None
    messages: tuple[Message, ...]
