"""Runs in femtoseconds: the same schedules, finer services, a nearer horizon."""

from __future__ import annotations

import csv
import io
import itertools
import json
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.model.pipeline import Arrivals
from perfdb_git.model.simulation import TickName
from perfdb_git.reports.gantt_svg import gantt_svg
from perfdb_git.reports.timeline_trace import rounded_ns, timeline_trace
from perfdb_git.reports.visit_events import write_csv, write_parquet
from perfdb_git.simulation.arrivals import arrival_times
from perfdb_git.simulation.documents import read_pipeline, read_timing_profile
from perfdb_git.simulation.simulate import Simulation, simulate, with_jobs
from perfdb_git.simulation.statistics import collect
from perfdb_git.simulation.summary_values import summary_value
from perfdb_git.simulation.sweep import parse_sweep, sensitivities, sweep
from perfdb_git.simulation.ticks import FEMTOSECOND, PICOSECOND, tick_named
from tests.simulation.simulation_fixtures import SCHEMAS, pipeline_of, profile_of, simple, text

GOLDEN = sorted(Path(__file__).with_name("golden").glob("*.json"))


def core(
    tick: TickName, *, count: int = 1000, cycles: int = 1, interval: str | None = None
) -> Simulation:
    """Cycles of 3.3 GHz: 303.03 ps each."""
    profile = profile_of({"core": {"clock_mhz": 3300}})
    stage = {"name": "tick", "component": "core", "work": {"cycles": cycles}}
    pipeline = pipeline_of({"stages": [stage], "jobs": {"count": count}})
    if interval is not None:
        arrivals = Arrivals(kind="interval", interval_ns=Decimal(interval))
        pipeline = with_jobs(pipeline, arrivals=arrivals)
    return simulate(profile, pipeline, tick=tick)


def value_of(simulation: Simulation) -> dict[str, Any]:
    value = summary_value(simulation.summary)
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_whole_picoseconds_give_the_same_results(path: Path) -> None:
    example = json.loads(path.read_text(encoding="utf-8"))
    profile = read_timing_profile(text(example["profile"]), document="p.json", schemas=SCHEMAS)
    pipeline = read_pipeline(text(example["pipeline"]), document="q.json", schemas=SCHEMAS)
    coarse = simulate(profile, pipeline)
    fine = simulate(profile, pipeline, tick="fs")
    first, second = coarse.visits(), fine.visits()
    for name in ("job", "stage", "component", "lane"):
        assert (getattr(first, name) == getattr(second, name)).all()
    for name in ("ready", "start", "finish"):
        assert (getattr(first, name) * 1000 == getattr(second, name)).all()
    value = value_of(fine)
    assert value.pop("tick") == "fs"
    assert value == value_of(coarse)
    assert json.dumps(value) == json.dumps(value_of(coarse))


def test_a_cycle_is_rounded_to_a_whole_femtosecond() -> None:
    """10,000 / 33 ps: 1/33 ps above a whole one, and 10/33 fs above a whole one."""
    coarse, fine = core("ps").summary, core("fs").summary
    assert coarse.grid_error.worst_relative == pytest.approx(1e-4, rel=1e-6)
    assert fine.grid_error.worst_relative == pytest.approx(1e-6, rel=1e-6)
    assert fine.grid_error.bound_ps == pytest.approx(1000 * 10 / 33 / 1000)
    assert fine.stages[0].rounding_error_ps == pytest.approx(-10 / 33 / 1000)
    assert (coarse.makespan_ps, fine.makespan_ps) == (303_000, Decimal(303_030))
    assert (coarse.tick, fine.tick) == ("ps", "fs")
    assert fine.stages[0].service_ps == Decimal("303.03")


def test_a_rounding_error_is_half_a_tick_at_most() -> None:
    """The worst case of a service in ps, and the same service scaled down in fs."""
    ticks: tuple[tuple[TickName, int], ...] = (("ps", 2 * 10**6), ("fs", 2 * 10**9))
    for tick, mhz in ticks:
        profile = profile_of({"core": {"clock_mhz": mhz}})
        stage = {"name": "s", "component": "core", "work": {"cycles": 20_001}}
        summary = simulate(profile, pipeline_of({"stages": [stage]}), tick=tick).summary
        assert summary.grid_error.worst_relative == pytest.approx(1 / 20_001)
        assert summary.grid_error.bound_ps == (0.5 if tick == "ps" else 0.0005)


def test_a_coarse_grid_names_the_finer_one() -> None:
    three = {"core": {"clock_mhz": 3_000_000}}
    stage = {"name": "tick", "component": "core", "work": {"cycles": 1}}
    pipeline = pipeline_of({"stages": [stage]})
    (warning,) = simulate(profile_of(three), pipeline).summary.warnings
    assert "whole picoseconds" in warning
    assert warning.endswith("; --tick fs rounds 1,000 times finer")
    (stays,) = simulate(
        profile_of({"core": {"clock_mhz": 3_000_000_000}}), pipeline, tick="fs"
    ).summary.warnings
    assert "whole femtoseconds" in stays
    assert "--tick" not in stays
    fine = simulate(profile_of({"core": {"clock_mhz": 2_997}}), pipeline, tick="fs")
    assert fine.summary.warnings == ()


def test_json_values_are_exact_picoseconds() -> None:
    value = value_of(core("fs", count=7, interval="0.1234565"))
    assert value["stages"][0]["service_ps"] == 303.03
    assert value["makespan_ps"] == 2121.21
    assert type(value["components"][0]["visits"]) is int
    assert "tick" not in value_of(core("ps"))
    for ps, shown in (
        ("303.03", 303.03),
        ("6720.000", 6720),
        ("0.001", 0.001),
        ("9007199254740991", 2**53 - 1),
        ("9007199254740993.000", "9007199254740993"),
        ("4503599627370497.123", "4503599627370497.123"),
        ("-9223372036854775.807", "-9223372036854775.807"),
    ):
        encoded = summary_value(Decimal(ps))
        assert (encoded, type(encoded)) == (shown, type(shown))
        assert json.loads(json.dumps(encoded), parse_float=Decimal) in (Decimal(ps), shown)


def test_decimals_of_ticks_are_exact() -> None:
    for ticks in (0, 1, -1, 999, 10**18 + 1, 2**63 - 1, 10**29 + 7):
        assert Fraction(FEMTOSECOND.ps(ticks)) == Fraction(ticks, 1000)
        assert PICOSECOND.ps(ticks) == ticks
    assert str(FEMTOSECOND.ps(10_000_000)) == "10000"
    assert [tick_named(name) for name in ("ps", "fs")] == [PICOSECOND, FEMTOSECOND]
    with pytest.raises(UsageError, match="unknown tick 'as'"):
        tick_named("as")


def test_the_horizon_of_femtoseconds() -> None:
    """2**63 fs are 9223.37 s."""
    second = 10**9
    profile, pipeline = simple([("A", second)], {"count": 9223})
    assert simulate(profile, pipeline, tick="fs").summary.makespan_ps == 9223 * 10**12
    beyond = with_jobs(pipeline, count=9224)
    assert simulate(profile, beyond).summary.makespan_ps == 9224 * 10**12
    late = Arrivals(kind="list", times_ns=(Decimal(9224 * second),))
    long_stage = simple([("A", 9224 * second)], {"count": 1})
    for documents in (
        (profile, beyond),
        (profile, with_jobs(pipeline, arrivals=late)),
        long_stage,
    ):
        with pytest.raises(InvalidInputError, match=r"2\*\*63 fs \(2\.56 h\)") as caught:
            simulate(*documents, tick="fs")
        assert caught.value.code == "time-overflow"
        assert "--tick ps" in str(caught.value.remedy)


def test_arrivals_keep_femtoseconds() -> None:
    interval = Arrivals(kind="interval", interval_ns=Decimal("0.0015555"))
    times, _ = arrival_times(interval, 4, document="d", tick=FEMTOSECOND)
    assert times.block(0, 4).tolist() == [0, 1556, 3111, 4666]
    listed = Arrivals(kind="list", times_ns=(Decimal("0.0000015"), Decimal("0.0000005")))
    times, order = arrival_times(listed, 2, document="d", tick=FEMTOSECOND)
    assert (times.block(0, 2).tolist(), order) == ([0, 2], [1, 0])


def test_counted_latencies_are_those_of_kept_ones() -> None:
    run = core("fs", count=500, interval="0.2000005")
    model = run.plan.model
    assert collect(model, run.engine) == collect(model, run.engine, kept_latencies=0)
    assert run.summary.latency_ps.max == Decimal(303_030 * 500 - 99_800_250) / 1000


def test_sweeps_and_sensitivities_take_the_tick() -> None:
    profile, pipeline = simple([("A", 0.1111)], {"count": 3})
    axis = parse_sweep("A.instruction_rate_mips=1000,3000")
    points = [point.summary for point in sweep(profile, pipeline, axis, tick="fs")]
    assert [point.makespan_ps for point in points] == [Decimal("333.3"), Decimal("111.099")]
    (row,) = sensitivities(profile, pipeline, tick="fs")
    assert (row.slower_ps, row.faster_ps) == (Decimal("3.333"), Decimal("-3.333"))
    assert row.slower_pct == pytest.approx(1)
    (row,) = sensitivities(profile, pipeline)
    assert (row.slower_ps, row.faster_ps) == (3, -3)


# Files


def odd_times() -> Simulation:
    """Services and arrivals that neither the ns nor the ps grid can hold."""
    stages = [("A", 3.7), ("B", 0.5000005), ("A", 1.499503), ("C", 0)]
    profile, pipeline = simple(stages, {}, {"A": 3, "B": 2})
    interval = Arrivals(kind="interval", interval_ns=Decimal("1.7335005"))
    return simulate(profile, with_jobs(pipeline, count=300, arrivals=interval), tick="fs")


def test_slices_of_a_lane_never_overlap() -> None:
    run = odd_times()
    pieces = "".join(timeline_trace(run, run.visits()))
    by_lane: dict[tuple[int, int], list[tuple[Decimal, Decimal]]] = defaultdict(list)
    for event in json.loads(pieces, parse_float=Decimal)["traceEvents"]:
        if event["ph"] == "X":
            lane = (event["pid"], event["tid"])
            by_lane[lane].append((event["ts"], event["ts"] + event["dur"]))
            start = Fraction(event["args"]["start_ps"])
            assert event["ts"] == Decimal(round(start / 1000)) / 1000
    assert sum(map(len, by_lane.values())) == run.summary.visits
    for spans in by_lane.values():
        spans.sort()
        assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans))


def test_nanoseconds_are_rounded_half_even() -> None:
    times = np.array([499_999, 500_000, 500_001, 1_500_000, 2_500_000], dtype=np.int64)
    assert rounded_ns(times, FEMTOSECOND).tolist() == [0, 0, 1, 2, 2]


def test_tables_have_integer_femtoseconds(tmp_path: Path) -> None:
    run = core("fs", count=2)
    stream = io.StringIO(newline="")
    write_csv(run, run.visits(), stream)
    rows = list(csv.reader(io.StringIO(stream.getvalue())))
    assert rows == [
        ["job", "stage", "component", "lane", "ready_fs", "start_fs", "finish_fs", "wait_fs"],
        ["0", "tick", "core", "0", "0", "0", "303030", "0"],
        ["1", "tick", "core", "0", "0", "303030", "606060", "303030"],
    ]
    parquet = pytest.importorskip("pyarrow.parquet")
    write_parquet(run, run.visits(), tmp_path / "visits.parquet")
    table = parquet.read_table(tmp_path / "visits.parquet")
    assert table.column_names == rows[0]
    assert table["finish_fs"].to_pylist() == [303_030, 606_060]


def test_the_chart_shows_picoseconds() -> None:
    run = core("fs", count=4)
    svg = gantt_svg(run, run.visits(), title="t")
    ElementTree.fromstring(svg)
    assert "job 1, tick: 303.03 ps to 606.06 ps (303.03 ps)" in svg
    assert "makespan 1.21212 ns" in svg
    assert "time in ps" in svg
    assert ">200</text>" in svg
    tiny = simulate(*simple([("A", 0.000003)], {"count": 1}), tick="fs")
    assert ">0.001</text>" in gantt_svg(tiny, tiny.visits(), title="t")
    # Whole picoseconds give the chart that they always gave.
    documents = simple([("A", 4), ("B", 1)], {"count": 3})
    both = (simulate(*documents), simulate(*documents, tick="fs"))
    first, second = (gantt_svg(one, one.visits(), title="t") for one in both)
    assert first == second
