"""The exact question: six groups of fields whose unknowns are explicit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields

from perfdb_git.model.estimate import Method
from perfdb_git.model.values import Scalar

QUERY_SCHEMA = "perfdb/query/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is asked about. ``task`` is a label for people and is never matched."""

    task: str | None = None
    implementation: str | None = None
    implementation_revision: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The work: the operation, its shape by flat dimension name, and its data.

    ``operations`` are arithmetic operations; sizes are bytes.
    """

    operation: str
    shape: Mapping[str, Scalar | None] = field(default_factory=dict)
    dtype: str | None = None
    layout: str | None = None
    operations: float | None = None
    bytes_read: float | None = None
    bytes_written: float | None = None
    message_bytes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """The hardware design that the work runs on."""

    blueprint: str | None = None
    component: str | None = None
    engine: str | None = None
    memory_space: str | None = None
    capability_revision: str | None = None
    architecture_revision: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The installed system: device, how many, how connected, with which runtime."""

    device: str | None = None
    form_factor: str | None = None
    topology: str | None = None
    link_class: str | None = None
    participants: int | None = None
    participants_per_node: int | None = None
    placement: str | None = None
    runtime: str | None = None
    runtime_revision: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """The state in which the work runs."""

    concurrency: int | None = None
    occupancy: float | None = None
    power_mode: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidencePolicy:
    """Limits that a query puts on its own answer; they may only tighten the policy in force."""

    providers: tuple[str, ...] | None = None
    methods: tuple[Method, ...] | None = None
    max_age_days: float | None = None
    max_relative_uncertainty: float | None = None
    max_extrapolation_octaves: float | None = None
    fallback_allowed: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CostQuery:
    """One exact question; ``None`` anywhere is an explicit unknown."""

    schema: str = QUERY_SCHEMA
    subject: Subject = field(default_factory=Subject)
    workload: Workload
    architecture: Architecture = field(default_factory=Architecture)
    deployment: Deployment = field(default_factory=Deployment)
    execution: Execution = field(default_factory=Execution)
    evidence_policy: EvidencePolicy = field(default_factory=EvidencePolicy)

    @property
    def operation(self) -> str:
        """The operation asked about."""
        return self.workload.operation

    def coordinates(self) -> dict[str, Scalar]:
        """Return every known dimension by flat name, ``operation`` included."""
        return dict(self._known())

    def _known(self) -> Iterator[tuple[str, Scalar]]:
        for group in QUERY_GROUPS:
            part = getattr(self, group)
            for name in GROUP_FIELDS[group]:
                value = getattr(part, name)
                if value is not None:
                    yield name, value
        for name, value in self.workload.shape.items():
            if value is not None:
                yield name, value


QUERY_GROUPS = ("subject", "workload", "architecture", "deployment", "execution")
"""The groups that hold dimensions; ``evidence_policy`` holds limits instead."""

GROUP_TYPES = {
    "subject": Subject,
    "workload": Workload,
    "architecture": Architecture,
    "deployment": Deployment,
    "execution": Execution,
}

GROUP_FIELDS: Mapping[str, tuple[str, ...]] = {
    group: tuple(item.name for item in fields(kind) if item.name != "shape")
    for group, kind in GROUP_TYPES.items()
}
"""Flat dimension names by group; names are unique over all groups."""
