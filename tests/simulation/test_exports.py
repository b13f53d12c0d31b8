"""Traces, charts and tables of visits."""

from __future__ import annotations

import csv
import io
import itertools
import json
import random
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfdb_git.errors import MissingExtraError, UsageError
from perfdb_git.model.pipeline import Arrivals
from perfdb_git.reports.gantt_svg import MAX_BARS, gantt_jobs, gantt_svg
from perfdb_git.reports.timeline_trace import rounded_ns, timeline_trace
from perfdb_git.reports.visit_events import columns_of, write_csv, write_parquet
from perfdb_git.simulation.simulate import Simulation, simulate, with_jobs
from perfdb_git.simulation.ticks import PICOSECOND
from tests.simulation.simulation_fixtures import pipeline_of, profile_of, simple

SVG = "{http://www.w3.org/2000/svg}"


def odd_times(n_jobs: int = 300) -> Simulation:
    """Services of half nanoseconds and other times that the ns grid cannot hold."""
    stages = [("A", 3.7), ("B", 0.5), ("A", 1.4995), ("C", 0)]
    profile, pipeline = simple(stages, {}, {"A": 3, "B": 2})
    interval = Arrivals(kind="interval", interval_ns=Decimal("1.7335"))
    return simulate(profile, with_jobs(pipeline, count=n_jobs, arrivals=interval))


def trace_of(simulation: Simulation) -> list[dict[str, Any]]:
    text = "".join(timeline_trace(simulation, simulation.visits()))
    events: list[dict[str, Any]] = json.loads(text, parse_float=Decimal)["traceEvents"]
    return events


def test_slices_of_a_lane_never_overlap() -> None:
    by_lane: dict[tuple[int, int], list[tuple[Decimal, Decimal]]] = defaultdict(list)
    simulation = odd_times()
    for event in trace_of(simulation):
        if event["ph"] == "X":
            assert event["dur"] >= 0
            lane = (event["pid"], event["tid"])
            by_lane[lane].append((event["ts"], event["ts"] + event["dur"]))
    assert sum(map(len, by_lane.values())) == simulation.summary.visits
    assert len(by_lane) == 6
    for spans in by_lane.values():
        spans.sort()
        for first, second in itertools.pairwise(spans):
            assert first[1] <= second[0]


def test_every_track_has_a_name() -> None:
    events = trace_of(odd_times(5))
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert named == {(e["pid"], e["tid"]) for e in events if e["ph"] == "X"}
    processes = {e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert processes == {"A", "B", "C"}


def test_the_counter_of_waiting_jobs_ends_at_none() -> None:
    simulation = simulate(*simple([("A", 5), ("B", 1)], {"count": 4}))
    events = [event for event in trace_of(simulation) if event["ph"] == "C"]
    found = [(int(event["ts"] * 1000), event["args"]["jobs"]) for event in events]
    assert found == [(0, 3), (5, 2), (10, 1), (15, 0)]


def test_rounding_keeps_the_order() -> None:
    generator = random.Random(1)
    times = sorted(generator.randrange(5000) for _ in range(500))
    rounded = rounded_ns(np.array(times, dtype=np.int64)).tolist()
    assert rounded == [round(Decimal(time) / 1000) for time in times]
    assert rounded == sorted(rounded)


def chart(simulation: Simulation) -> ElementTree.Element:
    text = gantt_svg(simulation, simulation.visits(), title="A & B <c>")
    return ElementTree.fromstring(text)


def test_the_chart_has_a_bar_for_each_visit_and_a_row_for_each_lane() -> None:
    root = chart(odd_times(20))
    assert root.findtext(f"{SVG}title") == "A & B <c>"
    bars = [group.find(f"{SVG}rect") for group in root.iter(f"{SVG}g")]
    assert len(bars) == 80
    labels = [text.text for text in root.iter(f"{SVG}text") if text.get("class") == "row"]
    assert labels == ["A [0]", "A [1]", "A [2]", "B [0]", "B [1]", "C"]
    assert "time in ns" in [text.text for text in root.iter(f"{SVG}text")]


def test_bars_stand_where_their_times_are() -> None:
    root = chart(simulate(*simple([("A", 4), ("B", 1)], {"count": 2})))
    rects = [group.find(f"{SVG}rect") for group in root.iter(f"{SVG}g")]
    spans = sorted(
        (float(rect.get("x", 0)), float(rect.get("width", 0))) for rect in rects if rect is not None
    )
    pixels = sum(spans[-1]) - spans[0][0]
    assert [round((x - spans[0][0]) / pixels * 9) for x, _ in spans] == [0, 4, 4, 8]
    outlined = [rect for rect in rects if rect is not None and rect.get("class") == "path"]
    assert len(outlined) == 3


def test_names_cannot_leave_their_place() -> None:
    name = "</text><script>alert(1)</script>\x1b[2J\u202e&\"'"
    profile = profile_of({name: {"fixed_latency_ns": 5}})
    pipeline = pipeline_of({"stages": [{"name": name, "component": name, "work": {}}]})
    simulation = simulate(profile, pipeline)
    text = gantt_svg(simulation, simulation.visits(), title=name)
    root = ElementTree.fromstring(text)
    assert not list(root.iter(f"{SVG}script"))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert [event["name"] for event in trace_of(simulation) if event["ph"] == "X"] == [f"{name} #0"]


def test_a_chart_that_nobody_can_read_is_refused() -> None:
    simulation = simulate(*simple([("A", 1)], {"count": MAX_BARS + 1}))
    with pytest.raises(UsageError) as caught:
        gantt_svg(simulation, simulation.visits(), title="t")
    assert caught.value.code == "chart-too-large"
    shown = simulation.visits(0, gantt_jobs(simulation))
    assert gantt_svg(simulation, shown, title="t").startswith("<svg")


def test_jobs_outside_the_run_are_refused() -> None:
    simulation = simulate(*simple([("A", 1)], {"count": 3}))
    for first, last in ((0, 4), (2, 2), (-1, 2)):
        with pytest.raises(UsageError):
            simulation.visits(first, last)


@pytest.mark.skipif(shutil.which("rsvg-convert") is None, reason="no rasteriser installed")
def test_the_chart_can_be_drawn(tmp_path: Path) -> None:
    simulation = odd_times(20)
    path = tmp_path / "chart.svg"
    path.write_text(gantt_svg(simulation, simulation.visits(), title="t"), encoding="utf-8")
    command = ["rsvg-convert", "-o", str(tmp_path / "chart.png"), str(path)]
    subprocess.run(command, check=True, timeout=60)
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


def test_csv() -> None:
    simulation = simulate(*simple([("=A", 4), ("B", 1)], {"count": 2}))
    stream = io.StringIO(newline="")
    write_csv(simulation, simulation.visits(1, 2), stream)
    rows = list(csv.reader(io.StringIO(stream.getvalue())))
    assert tuple(rows[0]) == columns_of(PICOSECOND)
    assert rows[1:] == [
        ["1", "s0", "'=A", "0", "0", "4000", "8000", "4000"],
        ["1", "s1", "B", "0", "8000", "8000", "9000", "0"],
    ]


def test_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    simulation = odd_times(5)
    path = tmp_path / "visits.parquet"
    write_parquet(simulation, simulation.visits(), path)
    table = parquet.read_table(path)
    assert tuple(table.column_names) == columns_of(PICOSECOND)
    assert table["finish_ps"].to_pylist() == simulation.visits().finish.tolist()
    assert table["stage"].to_pylist()[:5] == ["s0", "s1", "s2", "s3", "s0"]


def test_parquet_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    simulation = odd_times(5)
    with pytest.raises(MissingExtraError, match=r"perfdb-git\[tables\]"):
        write_parquet(simulation, simulation.visits(), tmp_path / "x")
