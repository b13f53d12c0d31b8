"""Nsight Compute, gem5 and Accel-Sim: locked clocks, phases and running totals."""

from __future__ import annotations

import pytest

from perfdb_git.errors import InvalidInputError, InvalidRowsError
from tests.importers.tool_evidence import ToolEvidence

H100 = "device=h100"
NCU_HEADER = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",'
    '"Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
)


def ncu(identifier: int, metric: str, unit: str, value: str) -> str:
    return (
        f'"{identifier}","77","/home/alice/app","node-a","gemm<128, 64>","1","7","(256, 1, 1)",'
        f'"(16, 8, 1)","0","9.0","GPU Speed Of Light","{metric}","{unit}","{value}"\n'
    )


NCU = (
    "==PROF== Connected to process 77 (/home/alice/app)\n"
    + NCU_HEADER
    + ncu(0, "Duration", "usecond", "1,250.50")
    + ncu(0, "SM Frequency", "cycle/nsecond", "1.59")
    + ncu(0, "Memory Throughput", "%", "81.2")
    + ncu(1, "Duration", "usecond", "1,260.25")
    + ncu(1, "SM Frequency", "cycle/nsecond", "1.59")
)


def test_launches_of_nsight_compute(tools: ToolEvidence) -> None:
    taken = tools.take(tools.put("a.csv", NCU), H100)
    item = taken.one(kernel="gemm<128, 64>", grid="16x8x1", block="256x1x1")
    assert item.column("latency", "sample") == [[1250500, 1260250]]
    assert item.column("sm_clock", "sample") == [[1.59e9, 1.59e9]]
    assert item.document["kind"] == "profiled"
    assert item.document["protocol"]["clock_state"] is None
    assert {"clock-control", "metrics-left-out"} <= taken.codes()
    assert "alice" not in taken.texts()
    assert "node-a" not in taken.texts()


def test_nsight_compute_in_unknown_units_and_pages(tools: ToolEvidence) -> None:
    with pytest.raises(InvalidInputError, match="states Duration in 'cycle'"):
        tools.take(tools.put("a.csv", NCU.replace("usecond", "cycle")), H100)
    raw = '"ID","Kernel Name","gpu__time_duration.sum"\n"","","usecond"\n"0","k","1.5"\n'
    with pytest.raises(InvalidInputError, match="no table of metrics"):
        tools.take(tools.put("b.csv", raw), H100, tool="nsight-compute")


GEM5 = """
---------- Begin Simulation Statistics ----------
simSeconds                                   0.000057                       # seconds (Second)
simTicks                                     57000000                       # ticks (Tick)
simInsts                                         5712                       # insts (Count)
system.cpu.ipc                                    nan                       # IPC

---------- End Simulation Statistics   ----------
"""


def test_gem5_needs_the_name_of_its_program(tools: ToolEvidence) -> None:
    path = tools.put("stats.txt", GEM5)
    with pytest.raises(InvalidInputError, match="does not say benchmark"):
        tools.take(path, "device=example_cpu")
    facts = ("device=example_cpu", "benchmark=hello", "tool_version=24.0")
    item = tools.take(path, *facts).one(benchmark="hello")
    assert item.document["kind"] == "simulated"
    assert item.column("latency", "sample") == [[0.000057]]
    assert item.column("instructions", "sample") == [[5712]]
    assert item.source["revision"] == "24.0"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GEM5 + GEM5, "holds 2 blocks"),
        (GEM5.replace("0.000057", "nan"), "no simulated seconds"),
        (GEM5[: GEM5.index("---------- End")], "cut off"),
    ],
)
def test_gem5_that_is_refused(tools: ToolEvidence, text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        tools.take(tools.put("stats.txt", text), "device=example_cpu", "benchmark=hello")


def accel(name: str, cycles: int, total: int) -> str:
    return (
        f"kernel_name = {name} \nkernel_launch_uid = 1 \ngpu_sim_cycle = {cycles}\n"
        f"gpu_sim_insn = 800\ngpu_ipc = 1.5\ngpu_tot_sim_cycle = {total}\n"
    )


CLOCK = "-gpgpu_clock_domains 1410.0:1410.0:1410.0:1215.0 # Clock Domain Frequencies in MhZ\n"


def test_accel_sim_counts_are_differences_of_totals(tools: ToolEvidence) -> None:
    log = accel("vecadd", 1410, 1410) + accel("vecadd", 2820, 4230)
    item = tools.take(tools.put("a.log", CLOCK + log), H100).one(kernel="vecadd")
    assert item.document["kind"] == "simulated"
    assert item.column("cycles", "sample") == [[1410, 2820]]
    assert item.column("latency", "sample") == [[1, 2]]
    item = tools.take(tools.put("b.log", log), H100).one(kernel="vecadd")
    assert item.column("latency", "sample") == [None]
    assert "does not state the clock" in item.document["null_reasons"]["latency"]


def test_accel_sim_totals_that_do_not_fit(tools: ToolEvidence) -> None:
    log = accel("vecadd", 1410, 1410) + accel("vecadd", 4230, 4230)
    with pytest.raises(InvalidRowsError) as caught:
        tools.take(tools.put("a.log", CLOCK + log), H100)
    assert "does not grow by the kernel's cycles" in caught.value.rows[0]
