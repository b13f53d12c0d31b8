"""Answers from first principles: a roofline over a system profile, and collectives."""

from __future__ import annotations

from dataclasses import dataclass, replace

from perfdb_git.errors import NoEvidenceError
from perfdb_git.model.estimate import (
    CostEstimate,
    CostSupport,
    Diagnostics,
    Explanation,
    Method,
    MetricEstimate,
    Provenance,
    Validity,
)
from perfdb_git.model.query import CostQuery
from perfdb_git.model.system_profile import ComputeRate, SystemProfile
from perfdb_git.providers.profiled_work import ProfiledWork, ProfileSelection, Refusal
from perfdb_git.providers.roofline import (
    MAIN_MEMORY,
    TaskTime,
    can_fill,
    collective_time,
    network_tier,
    task_time,
)

REVISION = 2
"""Raised whenever the same profile and query give another answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Modelled:
    time: TaskTime
    profile: SystemProfile


class AnalyticalProvider:
    """Roofline and collective models over the system profiles that the policy selects.

    Parameters
    ----------
    selection : ProfileSelection
        The profiles that the policy selects.
    """

    def __init__(self, selection: ProfileSelection) -> None:
        self._selection = selection

    @property
    def name(self) -> str:
        """``analytical``."""
        return "analytical"

    @property
    def method(self) -> Method:
        """``analytical``."""
        return "analytical"

    @property
    def revision(self) -> str:
        """Provider revision, with the digest of the profiles that the policy selects."""
        return f"analytical/{REVISION}+{self._selection.digest}"

    def supports(self, query: CostQuery) -> CostSupport:
        """Say whether profile, work and rates are all known."""
        modelled = self._model(query)
        if isinstance(modelled, Refusal):
            return modelled.as_support(self.name, self.method)
        return CostSupport(
            provider=self.name,
            answerable=True,
            code="modelled",
            reason=f"system profile {modelled.profile.name} {modelled.profile.version}",
            method=self.method,
        )

    def estimate(self, query: CostQuery) -> CostEstimate:
        """Compute the time from the profile; parts are in ``diagnostics.breakdown`` (seconds)."""
        modelled = self._model(query)
        if isinstance(modelled, Refusal):
            raise NoEvidenceError(modelled.reason, code=modelled.code)
        time, profile = modelled.time, modelled.profile
        bound = ("efficiencies are unknown: a lower bound on latency, not an expectation",)
        return CostEstimate(
            metrics={"latency": MetricEstimate(value=time.latency, unit="s", uncertainty=None)},
            method=self.method,
            stochastic=None,
            validity=Validity(kind="bound" if time.bound else "modelled", distance_octaves=None),
            provenance=Provenance(
                provider=self.name,
                revision=self.revision,
                record_ids=(),
                source_revisions=(f"{profile.name}@{profile.version}",),
                calibration=None,
                commit=None,
            ),
            diagnostics=Diagnostics(
                assumptions=time.assumptions + (bound if time.bound else ()),
                breakdown=time.parts,
            ),
        )

    def explain(self, query: CostQuery) -> Explanation:
        """Show the work, the profile and the parts of the time."""
        found = self._selection.work(query)
        if isinstance(found, Refusal):
            steps = [f"{found.code}: {found.reason}"]
        else:
            work = found.work
            steps = [
                f"profile {found.profile.name} {found.profile.version}: "
                f"{found.profile.description}",
                f"work by {found.operation.work}: {work.operations:.6g} operations, "
                f"{work.bytes_read:.6g} B read, {work.bytes_written:.6g} B written, "
                f"{work.message_bytes:.6g} B message",
            ]
            modelled = self._time(found)
            if isinstance(modelled, Refusal):
                steps.append(f"{modelled.code}: {modelled.reason}")
            else:
                steps += [f"{name}: {value:.6g} s" for name, value in modelled.parts.items()]
                steps += modelled.assumptions
        return Explanation(provider=self.name, revision=self.revision, steps=tuple(steps))

    def _model(self, query: CostQuery) -> _Modelled | Refusal:
        found = self._selection.work(query)
        if isinstance(found, Refusal):
            return found
        time = self._time(found)
        return time if isinstance(time, Refusal) else _Modelled(time=time, profile=found.profile)

    def _time(self, found: ProfiledWork) -> TaskTime | Refusal:
        if found.operation.engine == "network":
            return collective(found)
        rate = arithmetic_rate(found)
        if isinstance(rate, Refusal):
            return rate
        time = task_time(found.profile, rate, found.work)
        if rate is not None or found.operation.engine == "memory":
            return time
        note = f"the profile states no {found.operation.engine} rates: memory traffic only"
        return replace(time, bound=True, assumptions=(*time.assumptions, note))


def arithmetic_rate(found: ProfiledWork) -> ComputeRate | Refusal | None:
    """Return the rate of an operation on one device.

    Returns
    -------
    ComputeRate or None or Refusal
        None where memory traffic alone counts, as far as the profile tells.
    """
    engine, profile = found.operation.engine, found.profile
    if MAIN_MEMORY not in profile.memories:
        return Refusal(code="no-rate", reason=f"profile {profile.name} has no {MAIN_MEMORY}")
    rates = None if engine == "memory" else profile.engines.get(engine)
    if rates is None:
        return None
    dtype = str(found.coordinates["dtype"])
    rate: ComputeRate | None = rates.get(dtype)
    if rate is None:
        return Refusal(
            code="no-rate",
            reason=f"profile {profile.name} has no {engine} rate for {dtype}, "
            f"only for {', '.join(sorted(rates))}",
        )
    return rate


def collective(found: ProfiledWork) -> TaskTime | Refusal:
    """Return the time of a collective, or of collectives that differ in their message only."""
    deployment = found.coordinates
    participants = int(deployment["participants"])
    per_node = deployment.get("participants_per_node")
    link_class = deployment.get("link_class")
    network = network_tier(
        found.profile.networks,
        participants=participants,
        participants_per_node=None if per_node is None else int(per_node),
        link_class=None if link_class is None else str(link_class),
    )
    if network is None:
        return Refusal(
            code="no-network",
            reason=f"no network of profile {found.profile.name} holds {participants} participants",
        )
    if not can_fill(network, participants):
        return Refusal(
            code="network-not-filled",
            reason=f"network {network.name} of profile {found.profile.name} must be filled: "
            f"{participants} participants do not divide its {network.size}",
        )
    operation = _operation_name(found)
    if operation not in network.operations:
        return Refusal(
            code="no-rate",
            reason=f"network {network.name} of profile {found.profile.name} has no {operation}, "
            f"only {', '.join(sorted(network.operations))}",
        )
    return collective_time(network, operation, found.work.message_bytes, participants)


def _operation_name(found: ProfiledWork) -> str:
    return str(found.coordinates["operation"])
