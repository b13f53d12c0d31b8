"""Service times: exact fractions from the decimals of profile and pipeline, then one rounding.

After this module only integers are added, compared and maximised, so that a schedule is the same
on every platform and the order of ties cannot depend on the last bit of a float.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from perfdb_git.errors import InvalidInputError
from perfdb_git.model.pipeline import Work
from perfdb_git.model.timing_profile import Component
from perfdb_git.simulation.ticks import PICOSECOND, PS_PER_NS, Tick


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dimension:
    """``ps`` is what one unit of work takes at a declared rate of 1."""

    rate_field: str
    unit: str
    ps: int


DIMENSIONS: Mapping[str, _Dimension] = {
    "instructions": _Dimension(rate_field="instruction_rate_mips", unit="mips", ps=10**6),
    "cycles": _Dimension(rate_field="clock_mhz", unit="mhz", ps=10**6),
    # A byte is eight bits, and 1 Gb/s passes one bit per ns.
    "bytes": _Dimension(rate_field="bandwidth_gbps", unit="gbps", ps=8 * PS_PER_NS),
    "packets": _Dimension(rate_field="packet_rate_mpps", unit="mpps", ps=10**6),
    "operations": _Dimension(rate_field="compute_tops", unit="tops", ps=1),
}
"""The dimensions of work, each with the component field that gives its rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceTime:
    """The service time of one visit.

    Parameters
    ----------
    exact_ps : Fraction
        In ps, at least 0.
    ticks : int
        The same on the grid, ties to even.
    error_ps : Fraction
        What rounding added, in ps.
    terms_ps : Mapping
        What each requested dimension takes at its declared rate, in ps, by dimension.
    fixed_ps : Fraction
        The share that does not depend on the work: scale * fixed + offset, in ps.
    """

    exact_ps: Fraction
    ticks: int
    error_ps: Fraction
    terms_ps: Mapping[str, Fraction]
    fixed_ps: Fraction

    @classmethod
    def rounded(
        cls, exact_ps: Fraction, tick: Tick, *, terms_ps: Mapping[str, Fraction], fixed_ps: Fraction
    ) -> ServiceTime:
        """Return an exact time with its place on a grid."""
        ticks = tick.on_grid(exact_ps)
        return cls(
            exact_ps=exact_ps,
            ticks=ticks,
            error_ps=Fraction(ticks, tick.per_ps) - exact_ps,
            terms_ps=terms_ps,
            fixed_ps=fixed_ps,
        )


def work_terms(component: Component, work: Work) -> Iterator[tuple[str, Fraction | None]]:
    """Yield each requested dimension and its time at the declared rate, ``None`` without one."""
    for dimension, amount in work.amounts():
        if amount == 0:
            continue
        kind = DIMENSIONS[dimension]
        rate = getattr(component, kind.rate_field)
        yield dimension, None if rate is None else Fraction(amount) * kind.ps / Fraction(rate)


def service_time(
    component: Component,
    work: Work,
    *,
    component_name: str,
    stage: str,
    document: str,
    tick: Tick = PICOSECOND,
) -> ServiceTime:
    """Time that one visit holds its lane.

    Parameters
    ----------
    component : Component
        Its rates, fixed latency and calibration.
    work : Work
        What the visit asks for.
    component_name, stage, document : str
        For messages.
    tick : Tick
        The grid.

    Raises
    ------
    InvalidInputError
        If the component has no rate for a requested dimension (``missing-rate``), or the time is
        negative (``negative-service-time``).

    Notes
    -----
    Source: scale * (fixed + dynamic) + offset, where dynamic is the maximum (``overlap``) or the
    sum (``serial``) of amount / rate; bytes count eight bits each.
    """
    where = f"stage {stage!r} on component {component_name!r}"
    terms: dict[str, Fraction] = {}
    for dimension, term in work_terms(component, work):
        if term is None:
            rate_field = DIMENSIONS[dimension].rate_field
            raise InvalidInputError(
                f"{where} asks for {dimension}, but the component has no {rate_field}",
                code="missing-rate",
                document=document,
                remedy=f"give the component a {rate_field}, or take {dimension} off the stage",
            )
        terms[dimension] = term
    scale = Fraction(component.calibration_scale)
    fixed = scale * Fraction(component.fixed_latency_ns) * PS_PER_NS
    fixed += Fraction(component.calibration_offset_ns) * PS_PER_NS
    exact = fixed + scale * _dynamic(component, terms)
    if exact < 0:
        raise InvalidInputError(
            f"{where} would take {float(exact / PS_PER_NS):g} ns: its calibration offset "
            "outweighs the rest",
            code="negative-service-time",
            document=document,
            remedy="the work lies outside the range in which the calibration holds",
        )
    return ServiceTime.rounded(exact, tick, terms_ps=terms, fixed_ps=fixed)


def _dynamic(component: Component, terms: Mapping[str, Fraction]) -> Fraction:
    if component.resource_mode == "serial":
        return sum(terms.values(), Fraction())
    return max(terms.values(), default=Fraction())


def given_service_time(
    service_ns: Fraction, *, stage: str, document: str, tick: Tick = PICOSECOND
) -> ServiceTime:
    """Time of a visit that was resolved from a query.

    Parameters
    ----------
    service_ns : Fraction
        In ns.
    stage, document : str
        For messages.
    tick : Tick
        The grid.

    Raises
    ------
    InvalidInputError
        If it is negative (``negative-service-time``).
    """
    exact = service_ns * PS_PER_NS
    if exact < 0:
        raise InvalidInputError(
            f"the query of stage {stage!r} was answered with {float(service_ns):g} ns",
            code="negative-service-time",
            document=document,
        )
    return ServiceTime.rounded(exact, tick, terms_ps={}, fixed_ps=exact)
