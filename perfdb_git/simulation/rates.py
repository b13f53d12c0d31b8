"""What a run delivers against what its profile declares, and where the two differ too much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from perfdb_git.model.simulation import EffectiveRate, GridError
from perfdb_git.simulation.service_time import DIMENSIONS
from perfdb_git.simulation.stage_plans import StagePlan
from perfdb_git.simulation.ticks import PICOSECOND, Tick

GRID_TOLERANCE = Fraction(1, 10_000)
"""Relative rounding error of a service above which a run warns."""

_HALF = Fraction(1, 2)


def effective_rates(plan: StagePlan) -> tuple[EffectiveRate, ...]:
    """Rates that one lane delivers while it serves a stage.

    Parameters
    ----------
    plan : StagePlan
        The stage.

    Returns
    -------
    tuple of EffectiveRate
        For each requested dimension amount / service time, over all jobs.
    """
    service = plan.total([service.exact_ps for service in plan.services])
    if not service:
        return ()
    rates = []
    for dimension, kind in DIMENSIONS.items():
        terms = [one.terms_ps.get(dimension, Fraction()) for one in plan.services]
        ratio = plan.total(terms) / service
        if ratio:
            declared = Fraction(getattr(plan.component, kind.rate_field))
            rates.append(
                EffectiveRate(
                    dimension=dimension,
                    unit=kind.unit,
                    declared=float(declared),
                    effective=float(declared * ratio),
                    ratio=float(ratio),
                )
            )
    return tuple(rates)


def grid_error(plans: Sequence[StagePlan]) -> GridError:
    """What rounding to whole ticks changed, see `GridError`."""
    worst, worst_stage, bound = Fraction(), None, Fraction()
    for plan in plans:
        errors = [abs(service.error_ps) for service in plan.services]
        bound += plan.total(errors)
        for service, error in zip(plan.services, errors, strict=True):
            if error and error / service.exact_ps > worst:
                worst, worst_stage = error / service.exact_ps, plan.stage.name
    return GridError(worst_relative=float(worst), worst_stage=worst_stage, bound_ps=float(bound))


def mean_rounding_error(plan: StagePlan) -> float:
    """What the grid adds to one visit of a stage in ps, the mean over all jobs."""
    errors = [service.error_ps for service in plan.services]
    return float(plan.total(errors) / sum(plan.counts))


def rate_warnings(
    plans: Sequence[StagePlan], grid: GridError, tick: Tick = PICOSECOND
) -> Iterator[str]:
    """Yield a sentence for each stage whose fixed latency hides its rate, and for a coarse grid.

    Fixed latency holds a lane, so that a component described as a wire passes far fewer packets
    than it declares; more lanes would multiply its bandwidth too.
    """
    for plan in plans:
        rates = effective_rates(plan)
        service = plan.total([service.exact_ps for service in plan.services])
        fixed = plan.total([service.fixed_ps for service in plan.services])
        if rates and fixed > service * _HALF:
            best = max(rates, key=lambda rate: rate.ratio)
            yield (
                f"stage {plan.stage.name!r} on component {plan.stage.component!r}: fixed latency "
                f"holds the lane for {float(fixed / service):.0%} of the service, so that it "
                f"delivers {best.effective:.4g} of the declared {best.declared:.4g} {best.unit} "
                f"({best.ratio:.0%}); describe a pipelined component as two stages, a one-lane "
                "serialiser and a many-lane delay"
            )
    if grid.worst_relative > GRID_TOLERANCE:
        finer = "; --tick fs rounds 1,000 times finer" if tick == PICOSECOND else ""
        yield (
            f"rounding to whole {tick.unit} changes the service of stage {grid.worst_stage!r} by "
            f"{grid.worst_relative:.1e} of itself, on every visit{finer}"
        )
