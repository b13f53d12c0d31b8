"""Google Benchmark, hyperfine, pyperf and pytest-benchmark: samples, summaries and neither."""

from __future__ import annotations

import gzip
import json
import statistics
from typing import Any

import pytest

from perfdb_git.analysis.intervals import order_statistics_prediction
from perfdb_git.analysis.order_statistics import median_interval
from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.strict_json import read_json
from tests.importers.tool_evidence import FILES, ToolEvidence

CPU = "device=example_cpu"


def edited(name: str, change: Any) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((FILES / name).read_text())
    change(value)
    return value


# --- Google Benchmark ---------------------------------------------------------------------------


def test_counters_that_are_not_finite(tools: ToolEvidence) -> None:
    taken = tools.take("gbench_nonfinite.json", CPU)
    assert taken.report.records == 1
    item = taken.one(benchmark="BM_copy/4096")
    assert item.column("latency", "sample") == [[812.5]]
    reasons = item.document["null_reasons"]
    for name in ("hit_ratio", "speedup", "slack"):
        assert item.column(name, "sample") == [None]
        assert "not finite" in reasons[name]
    assert item.column("bandwidth", "sample") == [[5041200000]]
    assert item.source["skipped"] == ["/benchmarks/1: BM_gpu failed: no device"]
    for path in (tools.root / "evidence" / "records").rglob("*.json"):
        read_json(path.read_bytes(), document="strict")
    assert "node-a" not in taken.texts()


@pytest.mark.parametrize("token", ["nan", "-nan", "inf", "-inf", "Inf"])
def test_other_spellings_of_what_is_not_finite(tools: ToolEvidence, token: str) -> None:
    text = (FILES / "gbench_nonfinite.json").read_text()
    text = text.replace('"hit_ratio": NaN', f'"label": "a, nan, b", "hit_ratio": {token}')
    item = tools.take(tools.put("a.json", text), CPU).one(benchmark="BM_copy/4096")
    assert item.column("hit_ratio", "sample") == [None]
    assert item.source["keys"]["label"] == "a, nan, b"


def test_an_offset_makes_an_instant(tools: ToolEvidence) -> None:
    taken = tools.take("gbench_nonfinite.json", CPU)
    assert taken.sets[0].source["measured_at"] == "2026-03-02T08:15:00Z"


def test_aggregates_are_no_samples(tools: ToolEvidence) -> None:
    taken = tools.take("gbench_repetitions.json", CPU)
    assert taken.report.records == 1
    (samples,) = taken.sets[0].column("latency", "sample")
    assert samples == [1000, 1010, 1050]
    assert statistics.stdev(samples) / statistics.fmean(samples) == pytest.approx(0.025939, 1e-4)
    names = {column["name"] for column in taken.sets[0].document["columns"]}
    assert names == {"latency", "cpu_time"}


def test_aggregates_only_are_a_summary(tools: ToolEvidence) -> None:
    taken = tools.take("gbench_aggregates_only.json", CPU)
    item = taken.one(benchmark="BM_sort/1024")
    assert item.column("latency", "median") == [1010]
    assert item.column("latency", "count") == [5]
    assert item.column("latency", "std") == [pytest.approx(26.4575)]
    with pytest.raises(KeyError):
        item.column("latency", "sample")
    assert "summary-only" in taken.codes()


def test_the_csv_has_samples_and_a_wrong_cv(tools: ToolEvidence) -> None:
    taken = tools.take("gbench_old_csv_cv.csv", CPU)
    item = taken.one(benchmark="BM_sort/1024")
    assert item.column("latency", "sample") == [[1, 1.01, 1.05]]
    unit = next(c["unit"] for c in item.document["columns"] if c["name"] == "latency")
    assert unit == "us"
    assert item.source["skipped"] == ["line 9: BM_bad failed: no device"]
    assert "8646" not in taken.texts()


def test_the_csv_file_begins_with_the_context(tools: ToolEvidence) -> None:
    preamble = (
        "2026-03-02T09:15:00+01:00\nRunning ./bench\nRun on (2 X 2596.13 MHz CPU s)\n"
        "Load Average: 3.90, 3.68, 3.58\n"
        "***WARNING*** Library was built as DEBUG. Timings may be affected.\n"
    )
    text = preamble + (FILES / "gbench_old_csv_cv.csv").read_text()
    taken = tools.take(tools.put("a.csv", text.replace("\n", "\r\n")), CPU)
    item = taken.one(benchmark="BM_sort/1024")
    assert item.column("latency", "sample") == [[1, 1.01, 1.05]]
    assert item.source["measured_at"] == "2026-03-02T08:15:00Z"
    assert item.source["skipped"] == ["line 14: BM_bad failed: no device"]
    assert "debug-build" in taken.codes()


def test_two_benchmarks_of_one_name_are_refused(tools: ToolEvidence) -> None:
    with pytest.raises(InvalidInputError) as caught:
        tools.take("gbench_duplicate_names.json", CPU)
    assert caught.value.code == "duplicate-name"
    assert "'BM_x' stands at /benchmarks/0 and at /benchmarks/1" in str(caught.value)


def test_repetitions_of_one_name_are_legal(tools: ToolEvidence) -> None:
    def drop(value: dict[str, Any]) -> None:
        value["benchmarks"] = value["benchmarks"][2:]

    path = tools.put_json("a.json", edited("gbench_duplicate_names.json", drop))
    assert tools.take(path, CPU).sets[0].column("latency", "sample") == [[50, 51]]


def test_a_csv_name_that_comes_again_elsewhere_is_refused(tools: ToolEvidence) -> None:
    text = "name,iterations,real_time,cpu_time,time_unit\nA,1,1,1,ns\nB,1,2,2,ns\nA,1,9,9,ns\n"
    with pytest.raises(InvalidInputError, match="line 2 and at line 4"):
        tools.take(tools.put("a.csv", text), CPU)


def test_real_google_benchmark(tools: ToolEvidence) -> None:
    taken = tools.take("gbench_1_7.json", CPU)
    item = taken.one(benchmark="BM_copy/4096/repeats:3")
    assert len(item.column("latency", "sample")[0]) == 3
    assert item.document["protocol"]["repetitions"] == 3
    assert item.document["protocol"]["warmup"] is None
    assert "debug-build" in taken.codes()
    assert "bench-host" not in taken.texts()


def test_an_unknown_time_unit_is_refused(tools: ToolEvidence) -> None:
    def change(value: dict[str, Any]) -> None:
        value["benchmarks"][0]["time_unit"] = "cycles"

    path = tools.put_json("a.json", edited("gbench_repetitions.json", change))
    with pytest.raises(InvalidInputError, match="time unit 'cycles'"):
        tools.take(path, CPU)


# --- hyperfine ----------------------------------------------------------------------------------


def test_a_csv_from_before_the_median(tools: ToolEvidence) -> None:
    text = (
        "command,mean,stddev,user,system,min,max,parameter_n\n./app,0.2,0.01,0.1,0.1,0.19,0.22,4\n"
    )
    item = tools.take(tools.put("a.csv", text), CPU).sets[0]
    assert item.context["benchmark"] == "./app n=4"
    assert item.column("latency", "mean") == [0.2]
    with pytest.raises(KeyError):
        item.column("latency", "median")


def test_a_slow_first_run_is_flagged_and_kept(tools: ToolEvidence) -> None:
    taken = tools.take("hyperfine_first_run_slow.json", CPU)
    (samples,) = taken.sets[0].column("latency", "sample")
    assert len(samples) == 10
    assert statistics.median(samples) == pytest.approx(0.21015)
    interval = median_interval(samples, 0.95)
    assert interval is not None
    assert (interval.lower, interval.upper) == (0.2096, 0.2157)
    assert interval.level == pytest.approx(0.978516, abs=1e-6)
    assert taken.sets[0].document["protocol"]["warmup"] is None
    assert "cold-first" in taken.codes()


def test_warm_up_and_time_that_the_user_states(tools: ToolEvidence) -> None:
    facts = ("warmup=0", "measured_at=2026-03-29T10:00:00+02:00", "tool_version=1.18.0")
    item = tools.take("hyperfine_first_run_slow.json", CPU, *facts).sets[0]
    assert item.document["protocol"]["warmup"] == 0
    assert item.source["measured_at"] == "2026-03-29T08:00:00Z"
    assert item.source["revision"] == "1.18.0"


def test_a_single_run_has_no_spread_in_either_format(tools: ToolEvidence) -> None:
    item = tools.take("hyperfine_single_run.json", CPU).sets[0]
    assert item.column("latency", "sample") == [[0.008]]
    assert order_statistics_prediction([0.008], 0.95) is None
    item = tools.take("hyperfine_single_run.csv", CPU).sets[0]
    assert item.column("latency", "mean") == [0.008]
    assert item.column("latency", "std") == [None]


def test_a_device_must_be_stated(tools: ToolEvidence) -> None:
    with pytest.raises(InvalidInputError, match="does not say device") as caught:
        tools.take("hyperfine_single_run.json")
    assert "--set device=" in str(caught.value.remedy)


def test_failed_commands_and_secrets(tools: ToolEvidence) -> None:
    result = json.loads((FILES / "hyperfine_1_15.json").read_text())["results"][0]
    commands = [
        {**result, "command": "curl --token s3cr3t https://bob:pw@example.org/home"},
        {**result, "command": "false", "exit_codes": [0, 1, 1, 0, 1]},
    ]
    taken = tools.take(tools.put_json("a.json", {"results": commands}), CPU)
    assert taken.report.records == 1
    assert taken.sets[0].source["skipped"] == ["/results/1: false: 3 runs failed, as with 1"]
    for secret in ("s3cr3t", "bob", "pw@"):
        assert secret not in taken.texts()
    assert taken.file.redactions >= 2


def test_parameters_that_the_command_does_not_show_tell_runs_apart(tools: ToolEvidence) -> None:
    result = json.loads((FILES / "hyperfine_1_15.json").read_text())["results"][0]
    runs = [{**result, "parameters": {"commit": name}} for name in ("a1", "b2")]
    taken = tools.take(tools.put_json("a.json", {"results": runs}), CPU)
    assert {item.context["benchmark"] for item in taken.sets} == {
        "sleep 0.01 commit=a1",
        "sleep 0.01 commit=b2",
    }
    with pytest.raises(InvalidInputError, match="two benchmarks of one name"):
        tools.take(tools.put_json("a.json", {"results": [result, result]}), CPU)


# --- pyperf -------------------------------------------------------------------------------------


def test_two_modes_of_eight_processes(tools: ToolEvidence) -> None:
    taken = tools.take("pyperf_two_modes.json", CPU)
    item = taken.one(benchmark="delete")
    values = item.column("latency", "sample")
    assert [len(row) for row in values] == [3] * 8
    assert item.column("process") == list(range(8))
    medians = [statistics.median(row) for row in values]
    interval = median_interval(medians, 0.95)
    assert interval is not None
    assert (interval.lower, interval.upper) == (0.039773, 0.084947)
    assert interval.level == pytest.approx(0.9921875)
    (text,) = [r.text for r in taken.file.remarks if r.code == "two-modes"]
    assert "5 records around 0.04" in text
    assert "3 around 0.08" in text
    assert item.document["protocol"]["warmup"] == 1
    assert item.source["measured_at"] is None
    assert "node-a" not in taken.texts()


def test_real_pyperf_with_calibration_in_gzip(tools: ToolEvidence) -> None:
    path = tools.put("a.json.gz", gzip.compress((FILES / "pyperf_2_11.json").read_bytes()))
    taken = tools.take(path, CPU, "zone=UTC")
    item = taken.one(benchmark="sum")
    assert [len(row) for row in item.column("latency", "sample")] == [2, 2, 2]
    assert item.column("process") == [1, 2, 3]
    assert taken.file.tool_version == "2.11.0"
    assert item.source["measured_at"] == "2026-11-30T10:31:44.922739Z"


def test_pyperf_of_memory(tools: ToolEvidence) -> None:
    def change(value: dict[str, Any]) -> None:
        value["metadata"]["unit"] = "byte"
        value["benchmarks"][0]["runs"] = [{"values": [1024, 2048]}]

    path = tools.put_json("a.json", edited("pyperf_two_modes.json", change))
    item = tools.take(path, CPU).sets[0]
    assert item.column("memory", "sample") == [[1024, 2048]]
    assert item.document["protocol"]["warmup"] is None


def test_cut_off_gzip_is_refused(tools: ToolEvidence) -> None:
    data = gzip.compress((FILES / "pyperf_2_11.json").read_bytes())
    with pytest.raises(InvalidInputError, match="gzip that was cut off"):
        tools.take(tools.put("a.json.gz", data[:-20]), CPU, tool="pyperf")


# --- pytest-benchmark ---------------------------------------------------------------------------


def test_real_pytest_benchmark(tools: ToolEvidence) -> None:
    taken = tools.take("pytest_benchmark_5_3.json", CPU)
    item = taken.one(benchmark="test_b.py::test_sum")
    (samples,) = item.column("latency", "sample")
    assert len(samples) == 5
    assert samples[0] == 4.726100087282248e-06
    assert item.source["keys"]["iterations"] == 10
    assert item.source["measured_at"] == "2026-11-30T10:31:48.228975Z"
    assert item.source["revision"] == "5.3.1"
    assert "bench-host" not in taken.texts()


def test_pytest_benchmark_without_data(tools: ToolEvidence) -> None:
    def change(value: dict[str, Any]) -> None:
        stats = value["benchmarks"][0]["stats"]
        del stats["data"]
        stats |= {"rounds": 1, "stddev": 0}

    path = tools.put_json("a.json", edited("pytest_benchmark_5_3.json", change))
    taken = tools.take(path, CPU)
    item = taken.sets[0]
    assert item.column("latency", "mean") == [4.72002004244132e-06]
    assert item.column("latency", "std") == [None]
    assert item.column("latency", "count") == [1]
    assert "summary-only" in taken.codes()


def test_a_file_of_no_known_tool(tools: ToolEvidence) -> None:
    with pytest.raises(InvalidInputError, match="is no file of a known tool"):
        tools.take("unknown_bench.csv", CPU)


def test_a_file_of_another_tool_is_refused(tools: ToolEvidence) -> None:
    with pytest.raises(InvalidInputError, match="is no JSON of pyperf"):
        tools.take("gbench_1_7.json", CPU, tool="pyperf")


def test_json_that_was_cut_off_is_called_so(tools: ToolEvidence) -> None:
    path = tools.put("a.json", (FILES / "pyperf_2_11.json").read_bytes()[:-40])
    for tool in ("auto", "pyperf"):
        with pytest.raises(InvalidInputError, match="is not JSON"):
            tools.take(path, CPU, tool=tool)
