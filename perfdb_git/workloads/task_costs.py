"""The queries of a training estimate, and the one place where they are answered.

The composition sees answers only. They come from the functions that the analytical provider
uses (`perfdb_git.providers.roofline`), so that a task costs the same in a plan and alone.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from perfdb_git.errors import InvalidInputError, NoEvidenceError
from perfdb_git.model.system_profile import ComputeRate, Network, SystemProfile
from perfdb_git.operations.work import Work
from perfdb_git.providers.roofline import (
    MAIN_MEMORY,
    collective_time,
    combined_time,
    memory_time,
    task_time,
)

OFFLOAD_MEMORY = "mem2"
"""Name of the memory tier that offloaded state is kept in."""

Engine: TypeAlias = Literal["matrix", "vector"]


class ComputeQuery(NamedTuple):
    """How long does an engine take for this work? Sizes in bytes, in and out together."""

    engine: Engine
    operations: float
    bytes_moved: float

    @property
    def has_work(self) -> bool:
        """Whether there is anything to do; what has nothing to do is not asked for."""
        return self.operations > 0 or self.bytes_moved > 0


class CollectiveQuery(NamedTuple):
    """How long does a network tier take for this message among so many participants?"""

    tier: int
    operation: str
    message_bytes: float
    participants: int


class OffloadQuery(NamedTuple):
    """How long does a transfer between the two memories take?"""

    transfer_bytes: float


TaskQuery: TypeAlias = ComputeQuery | CollectiveQuery | OffloadQuery


class ComputeAnswer(NamedTuple):
    """Seconds of a task, with compute and memory traffic apart: overlap needs them both."""

    latency: float
    compute: float
    memory: float


_NO_WORK = ComputeAnswer(0.0, 0.0, 0.0)


class TaskCosts:
    """Answers to the queries of one estimate, each distinct one asked once.

    Parameters
    ----------
    profile : SystemProfile
        The device with its memories and networks.
    dtype : str
        Type of the operands.

    Raises
    ------
    NoEvidenceError
        'no-rate' when an engine of the profile has no table for the dtype, or the main memory
        is missing.
    """

    def __init__(self, profile: SystemProfile, dtype: str) -> None:
        self.profile = profile
        self.dtype = dtype
        self.bound = False
        self._rates = {engine: _rate(profile, engine, dtype) for engine in ("matrix", "vector")}
        if MAIN_MEMORY not in profile.memories:
            raise _no_rate(profile, f"has no memory {MAIN_MEMORY}")
        self._compute: dict[ComputeQuery, ComputeAnswer] = {}
        self._collectives: dict[CollectiveQuery, float] = {}
        self._offloads: dict[OffloadQuery, float] = {}

    @property
    def asked(self) -> tuple[TaskQuery, ...]:
        """Every distinct query so far."""
        return (*self._compute, *self._collectives, *self._offloads)

    @property
    def peak_operations_per_s(self) -> float:
        """Peak of the matrix engine."""
        return self._rates["matrix"].peak_tops * 1e12

    def compute(self, query: ComputeQuery) -> ComputeAnswer:
        """Answer a query for an engine by the roofline or the sum, as the profile says."""
        answer = self._compute.get(query)
        if answer is None:
            if not query.has_work:
                return _NO_WORK
            work = Work(operations=query.operations, bytes_read=query.bytes_moved)
            time = task_time(self.profile, self._rates[query.engine], work)
            self.bound = self.bound or time.bound
            answer = ComputeAnswer(time.latency, time.parts["compute"], time.parts["memory"])
            self._compute[query] = answer
        return answer

    def combined(self, compute: float, memory: float) -> float:
        """Return a task's time from its two parts, as the profile's processing mode says."""
        return combined_time(self.profile, compute, memory)

    def collective(self, query: CollectiveQuery) -> float:
        """Answer a query for a network tier, in seconds; an empty message pays the latency.

        Raises
        ------
        NoEvidenceError
            'no-rate' when the tier has no factor for the operation.
        """
        seconds = self._collectives.get(query)
        if seconds is None:
            network = self.network(query.tier)
            if query.operation not in network.operations:
                raise _no_rate(self.profile, f"has no {query.operation} on {network.name}")
            time = collective_time(
                network, query.operation, query.message_bytes, query.participants
            )
            self.bound = self.bound or time.bound
            seconds = self._collectives[query] = time.latency
        return seconds

    def offload(self, query: OffloadQuery) -> float:
        """Answer a query for a transfer between the memories, in seconds.

        Raises
        ------
        NoEvidenceError
            'no-rate' when there is something to transfer and no second memory.
        """
        seconds = self._offloads.get(query)
        if seconds is None:
            if query.transfer_bytes == 0:
                return 0.0
            if OFFLOAD_MEMORY not in self.profile.memories:
                raise _no_rate(self.profile, f"has no memory {OFFLOAD_MEMORY} to offload to")
            part = memory_time(
                self.profile.memories[OFFLOAD_MEMORY],
                query.transfer_bytes,
                self.profile.table_reading,
            )
            self.bound = self.bound or part.bound
            seconds = self._offloads[query] = part.seconds
        return seconds

    def network(self, tier: int) -> Network:
        """Return a network tier of the profile.

        Raises
        ------
        InvalidInputError
            'unknown-tier' when the profile has no such tier.
        """
        networks = self.profile.networks
        if tier >= len(networks):
            raise InvalidInputError(
                f"network tier {tier} does not exist: profile {self.profile.name} has "
                f"{len(networks)}, counted from 0",
                code="unknown-tier",
                document="execution",
            )
        return networks[tier]

    def processor_usage(self, tier: int) -> float:
        """Return the share of a processor that traffic of a tier holds, in [0, 1).

        Raises
        ------
        NoEvidenceError
            'no-rate' where the profile leaves it open, or traffic would hold all of it.
        """
        network = self.network(tier)
        usage = network.processor_usage
        if usage is None:
            raise _no_rate(self.profile, f"leaves the processor usage of {network.name} open")
        if usage >= 1:
            raise _no_rate(self.profile, f"has no processor left beside {network.name}")
        return usage


def _rate(profile: SystemProfile, engine: str, dtype: str) -> ComputeRate:
    rates = profile.engines.get(engine, {})
    if dtype not in rates:
        known = ", ".join(sorted(rates)) or "none"
        raise _no_rate(profile, f"has no {engine} rate for {dtype} (known: {known})")
    return rates[dtype]


def _no_rate(profile: SystemProfile, what: str) -> NoEvidenceError:
    return NoEvidenceError(f"system profile {profile.name} {what}", code="no-rate")
