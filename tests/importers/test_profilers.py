"""Nsight Systems, rocprof and Kineto: units by header, every launch kept, nothing personal."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from perfdb_git.errors import InvalidInputError, InvalidRowsError
from perfdb_git.importers import source_text
from perfdb_git.operations.units import UNITS
from tests.importers.tool_evidence import FILES, Taken, ToolEvidence

H100 = "device=h100"
GEMM = "void gemm<(int)128, (int)64>(float *, float *)"


def seconds(taken: Taken, kernel: str, statistic: str) -> float | None:
    item = taken.one(kernel=kernel)
    column = next(c for c in item.document["columns"] if c.get("statistic") == statistic)
    (value,) = item.column("latency", statistic)
    return None if value is None else UNITS[column["unit"]].to_si(value)


@pytest.mark.parametrize("name", ["old_2021", "new_2024", "timeunit_us"])
def test_three_headers_of_nsight_systems_give_the_same_kernels(
    tools: ToolEvidence, name: str
) -> None:
    taken = tools.take(f"nsys_{name}.csv", H100)
    assert taken.report.records == 2
    assert seconds(taken, GEMM, "mean") == pytest.approx(1e-4)
    assert seconds(taken, GEMM, "min") == pytest.approx(9.5e-5)
    assert seconds(taken, GEMM, "max") == pytest.approx(1.1e-4)
    assert taken.one(kernel=GEMM).column("latency", "count") == [40]
    assert seconds(taken, "reduce_kernel", "mean") == pytest.approx(2.5e-5)
    old = name == "old_2021"
    assert seconds(taken, GEMM, "median") == (None if old else pytest.approx(9.98e-5))
    assert (seconds(taken, GEMM, "std") is None) == old
    assert {"summary-only", "profiler-overhead"} <= taken.codes()
    document = taken.one(kernel=GEMM).document
    assert document["kind"] == "profiled"
    assert ("latency" in document.get("null_reasons", {})) == old
    assert "adds to the time" in document["protocol"]["notes"][0]


@pytest.mark.parametrize(
    ("old", "new"), [("Total Time (ns)", "Total Time (cycles)"), ("Avg (ns)", "Avg (us)")]
)
def test_units_that_differ_are_refused(tools: ToolEvidence, old: str, new: str) -> None:
    text = (FILES / "nsys_new_2024.csv").read_text()
    assert old in text
    with pytest.raises(InvalidInputError, match="columns or units of no known layout"):
        tools.take(tools.put("a.csv", text.replace(old, new)), H100)


def test_a_mean_that_contradicts_its_total_is_a_bad_row(tools: ToolEvidence) -> None:
    text = (FILES / "nsys_new_2024.csv").read_text().replace("100000.0", "100.0")
    with pytest.raises(InvalidRowsError) as caught:
        tools.take(tools.put("a.csv", text), H100)
    assert caught.value.rows == ("a.csv: line 4: mean times instances is 4000, the total is 4e+06",)


def test_grouped_numbers_and_launches(tools: ToolEvidence) -> None:
    text = (
        "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),"
        'GridXYZ,BlockXYZ,Name\n100.0,"4,000,000",1,"4,000,000.0",4000000,4000000,4000000,0.0,'
        " 128 1 1, 256 1 1,k\n"
    )
    item = tools.take(tools.put("a.csv", text), H100).one(kernel="k")
    assert (item.context["grid"], item.context["block"]) == ("128x1x1", "256x1x1")
    assert item.column("latency", "mean") == [4000000]
    assert item.column("latency", "std") == [None]


# --- Kineto -------------------------------------------------------------------------------------


def test_kernels_of_a_kineto_trace(tools: ToolEvidence) -> None:
    taken = tools.take("kineto_trace.json", H100)
    assert taken.report.records == 1
    item = taken.one(kernel="gemm_kernel")
    assert item.column("latency", "sample") == [[125.5, 130.5, 128]]
    assert item.document["columns"][0]["unit"] == "us"
    assert item.document["kind"] == "profiled"
    assert {"invalid-events", "text-times"} <= taken.codes()
    assert "left out 1 kernel events" in " ".join(r.text for r in taken.file.remarks)
    for name in ("alice", "secret-project", "aten::mm", "/home"):
        assert name not in taken.texts()


def test_a_compressed_trace_in_small_pieces(
    tools: ToolEvidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = json.loads((FILES / "kineto_trace.json").read_text())
    # A viewer's order: what follows the events is read too.
    value["deviceProperties"] = [{"name": "NVIDIA H100 80GB HBM3"}]
    events = value.pop("traceEvents")
    value["traceEvents"] = events
    value["after"] = "Grüße"
    text = json.dumps(value, ensure_ascii=False)
    assert text.index("traceEvents") < 1000
    monkeypatch.setattr(source_text, "_CHUNK", 1000)
    taken = tools.take(tools.put("a.json.gz", gzip.compress(text.encode())))
    item = taken.one(kernel="gemm_kernel")
    assert item.column("latency", "sample") == [[125.5, 130.5, 128]]
    assert item.context["device"] == "h100_80g"


@pytest.mark.parametrize("cut", [40, 700])
def test_a_trace_that_was_cut_off_is_refused(tools: ToolEvidence, cut: int) -> None:
    data = (FILES / "kineto_trace.json").read_bytes().rstrip()[:-cut]
    with pytest.raises(InvalidInputError, match="a trace that was cut off"):
        tools.take(tools.put("a.json", data), H100)


def test_a_trace_without_kernels_is_no_zero(tools: ToolEvidence) -> None:
    value = json.loads((FILES / "kineto_trace.json").read_text())
    value["traceEvents"] = [e for e in value["traceEvents"] if e.get("cat") != "kernel"]
    with pytest.raises(InvalidInputError, match="holds no usable measurement"):
        tools.take(tools.put_json("a.json", value), H100)


# --- rocprof ------------------------------------------------------------------------------------

TRACE = (
    '"Kind","Agent_Id","Queue_Id","Kernel_Name","Start_Timestamp","End_Timestamp",'
    '"Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y",'
    '"Grid_Size_Z"\n'
)


def launch(name: str, start: int, end: int, grid: int = 1024) -> str:
    return f'"KERNEL_DISPATCH","Agent 4",1,"{name}",{start},{end},64,1,1,{grid},1,1\n'


def test_every_launch_of_a_rocprof_trace_is_a_sample(tools: ToolEvidence) -> None:
    rows = (
        launch("add(float*, int)", 5000, 6100),
        launch("add(float*, int)", 1000, 2000),
        launch("add(float*, int)", 9000, 9500, grid=100),
    )
    taken = tools.take(tools.put("a.csv", TRACE + "".join(rows)), H100)
    item = taken.one(kernel="add(float*, int)", grid="16x1x1")
    assert item.column("latency", "sample") == [[1000, 1100]]
    assert item.document["columns"][0]["unit"] == "ns"
    # 100 work-items are no whole number of blocks of 64.
    assert taken.report.records == 2
    assert [s.context.get("grid") for s in taken.sets].count(None) == 1


def test_a_launch_that_ends_before_it_starts_is_a_bad_row(tools: ToolEvidence) -> None:
    path = tools.put("a.csv", TRACE + launch("k", 2000, 1000) + launch("k", 1, 2))
    with pytest.raises(InvalidRowsError) as caught:
        tools.take(path, H100)
    assert caught.value.rows == ("a.csv: line 2: ends at 1000, not after its start",)


FIRST_ROCPROF = """"Index","KernelName","gpu-id","queue-id","pid","grd","wgr","BeginNs","EndNs"
0,"copy(float*) [clone .kd]",4,0,100,65536,256,20000,31000
1,"copy(float*) [clone .kd]",4,0,100,65536,256,2000,12000
2,"copy(float*) [clone .kd]",4,0,100,131072,256,40000,60000
"""


def test_a_trace_of_the_first_rocprof(tools: ToolEvidence) -> None:
    taken = tools.take(tools.put("results.csv", FIRST_ROCPROF), H100)
    assert taken.report.records == 2
    item = taken.sets[0]
    assert item.column("latency", "sample") == [[10000, 11000], [20000]]
    assert item.column("work_items") == ["65536", "131072"]
    with pytest.raises(InvalidRowsError) as caught:
        tools.take(tools.put("a.csv", FIRST_ROCPROF.replace("31000", "")), H100)
    assert "not after its start" in caught.value.rows[0]


def test_two_statistics_of_one_kernel_are_refused(tools: ToolEvidence) -> None:
    text = statistics_csv("k<4, 2>")
    path = tools.put("a.csv", text + text.splitlines()[-1] + "\n")
    with pytest.raises(InvalidRowsError) as caught:
        tools.take(path, H100)
    assert "k<4, 2> stands at line 2 too" in caught.value.rows[0]


def statistics_csv(name: str, **changes: Any) -> str:
    row = {"Calls": 4, "TotalDurationNs": 4000, "AverageNs": 1000.0, "Percentage": 100.0}
    row |= {"MinNs": 900, "MaxNs": 1100, "StdDev": 70.7, **changes}
    return f'Name,{",".join(row)}\n"{name}",{",".join(map(str, row.values()))}\n'


def test_rocprof_statistics(tools: ToolEvidence) -> None:
    taken = tools.take(tools.put("a.csv", statistics_csv("k<4, 2>")), H100)
    item = taken.one(kernel="k<4, 2>")
    assert item.column("latency", "mean") == [1000]
    assert item.column("latency", "count") == [4]
    assert item.source["keys"]["StdDev"] == "70.7"
    assert "summary-only" in taken.codes()


def test_rocprof_statistics_of_the_host_or_of_another_unit(tools: ToolEvidence) -> None:
    with pytest.raises(InvalidInputError, match="calls of the host"):
        tools.take(tools.put("a.csv", statistics_csv("hipMemcpy")), H100)
    with pytest.raises(InvalidRowsError, match="1 bad row"):
        tools.take(tools.put("a.csv", statistics_csv("k", AverageNs=1.0)), H100)
