"""Service times: exact, rounded once, never clamped."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from perfdb_git.errors import InvalidInputError
from perfdb_git.model.pipeline import Work
from perfdb_git.simulation.service_time import service_time
from perfdb_git.simulation.simulate import simulate
from perfdb_git.simulation.ticks import PICOSECOND
from tests.simulation.simulation_fixtures import component, pipeline_of, profile_of


def time_of(one: object, work: Work) -> int:
    assert isinstance(one, type(component()))
    return service_time(one, work, component_name="c", stage="s", document="d").ticks


@pytest.mark.parametrize(
    ("rates", "work", "ps"),
    [
        ({"instruction_rate_mips": "1000"}, {"instructions": 2500}, 2_500_000),
        ({"compute_tops": "1"}, {"operations": 1_048_576}, 1_048_576),
        ({"packet_rate_mpps": "148.8"}, {"packets": 1}, 6_720),
        ({"clock_mhz": "3300"}, {"cycles": 1}, 303),
        ({"bandwidth_gbps": "8"}, {"bytes": 100}, 100_000),
        ({"bandwidth_gbps": "504.123"}, {"bytes": 4096}, 65_000),
        ({"bandwidth_gbps": "0.00001536"}, {"bytes": 1}, 520_833_333),
        (
            {"bandwidth_gbps": "100", "packet_rate_mpps": "148.8"},
            {"bytes": 64, "packets": 1},
            6_720,
        ),
    ],
)
def test_one_visit(rates: dict[str, str], work: dict[str, int], ps: int) -> None:
    one = component(**{name: Decimal(rate) for name, rate in rates.items()})
    assert time_of(one, Work(**{name: Decimal(n) for name, n in work.items()})) == ps


def test_the_example_link_delivers_an_eighth_of_its_packet_rate() -> None:
    """50 ns, 100 Gb/s and 148.8 Mpps on one lane: 56.72 ns for each 64-byte packet."""
    profile = profile_of(
        {"link": {"fixed_latency_ns": 50, "bandwidth_gbps": 100, "packet_rate_mpps": 148.8}}
    )
    pipeline = pipeline_of(
        {"stages": [{"name": "send", "component": "link", "work": {"bytes": 64, "packets": 1}}]}
    )
    summary = simulate(profile, pipeline).summary
    (stage,) = summary.stages
    assert stage.service_ps == 56_720
    rates = {rate.unit: rate for rate in stage.rates}
    assert rates["mpps"].effective == pytest.approx(17.63, abs=0.005)
    assert rates["mpps"].ratio == pytest.approx(0.12, abs=0.002)
    assert rates["gbps"].effective == pytest.approx(9.03, abs=0.005)
    (warning,) = summary.warnings
    assert "'send'" in warning
    assert "'link'" in warning
    assert "17.63 of the declared 148.8 mpps (12%)" in warning


def test_rounding_is_half_even_and_happens_once() -> None:
    assert [PICOSECOND.on_grid(Fraction(n, 2)) for n in (1, 3, 5, 7)] == [0, 2, 2, 4]
    # Each term is half a ps and alone would round to 0; their sum is 1.
    one = component(
        instruction_rate_mips=Decimal(2 * 10**6),
        clock_mhz=Decimal(2 * 10**6),
        resource_mode="serial",
    )
    assert time_of(one, Work(instructions=Decimal(1), cycles=Decimal(1))) == 1


def test_decimals_are_not_read_as_float() -> None:
    """0.1 + 0.1 + 0.1 ns and 0.3 ns reach the next component at one tick."""
    profile = profile_of({n: {"instruction_rate_mips": 1000} for n in ("a", "b")})
    for amounts in ([0.1, 0.1, 0.1], [0.3]):
        stages = [
            {"name": f"s{i}", "component": "a", "work": {"instructions": amount}}
            for i, amount in enumerate(amounts)
        ]
        run = simulate(profile, pipeline_of({"stages": stages}))
        assert run.summary.makespan_ps == 300


def test_nothing_asked_for_needs_no_rate() -> None:
    one = component(instruction_rate_mips=None, fixed_latency_ns=Decimal("2.5"))
    assert time_of(one, Work()) == 2_500
    assert time_of(one, Work(bytes=Decimal(0), instructions=Decimal(0))) == 2_500


def test_a_missing_rate_names_stage_component_and_dimension() -> None:
    one = component()
    with pytest.raises(InvalidInputError) as caught:
        service_time(
            one, Work(packets=Decimal(1)), component_name="cpu", stage="submit", document="d"
        )
    assert caught.value.code == "missing-rate"
    for word in ("'submit'", "'cpu'", "packets", "packet_rate_mpps"):
        assert word in str(caught.value)


def test_a_negative_time_is_an_error_and_never_clamped() -> None:
    one = component(calibration_offset_ns=Decimal(-200))
    assert time_of(one, Work(instructions=Decimal(200))) == 0
    with pytest.raises(InvalidInputError) as caught:
        time_of(one, Work(instructions=Decimal(100)))
    assert caught.value.code == "negative-service-time"
    assert "-100 ns" in str(caught.value)


def test_scale_and_offset_go_around_the_whole_service() -> None:
    one = component(
        fixed_latency_ns=Decimal(50),
        calibration_scale=Decimal("1.5"),
        calibration_offset_ns=Decimal("0.25"),
    )
    assert time_of(one, Work(instructions=Decimal(10))) == 90_250


def test_the_grid_error_is_stated() -> None:
    profile = profile_of({"core": {"clock_mhz": 3300}})
    pipeline = pipeline_of(
        {
            "stages": [{"name": "tick", "component": "core", "work": {"cycles": 1}}],
            "jobs": {"count": 1000},
        }
    )
    summary = simulate(profile, pipeline).summary
    assert summary.grid_error.worst_relative == pytest.approx(1e-4, rel=1e-6)
    assert summary.grid_error.worst_stage == "tick"
    assert summary.grid_error.bound_ps == pytest.approx(1000 / 33)
    assert summary.stages[0].rounding_error_ps == pytest.approx(-1 / 33)
