"""NVBench: JSON of version 1, older layouts, CSV, and states that ended without a sample."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from perfdb_git.errors import InvalidInputError, NoEvidenceError
from tests.importers.tool_evidence import FILES, ToolEvidence

DOCUMENT: dict[str, Any] = json.loads((FILES / "nvbench.json").read_text())
HEADER = (
    "Benchmark,Device,Device Name,T,N (pow2),N,Skipped,Samples,CPU Time (sec),Noise (%),"
    "GPU Time (sec),Noise (%),Elem/s (elem/sec),GlobalMem BW (bytes/sec),BWUtil (%),Samples,"
    "Batch GPU (sec)"
)
ROW = "copy,0,NVIDIA H200,F32,2^16,65536,No,486,1.2e-05,0.01,1e-05,0.01,6.5e9,5.2e10,0.26,500,9e-06"
SKIPPED = "copy,0,NVIDIA H200,F32,2^17,131072,Yes,,,,,,,,,,"


def edited(change: Any) -> dict[str, Any]:
    value = copy.deepcopy(DOCUMENT)
    change(value)
    return value


def state(value: dict[str, Any], place: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = value["benchmarks"][0]["states"][place]
    return found


def set_summary(value: dict[str, Any], tag: str, text: str) -> None:
    item = next(item for item in state(value)["summaries"] if item["tag"] == tag)
    item["data"][0]["value"] = text


def test_states_are_told_apart_by_their_axes(tools: ToolEvidence) -> None:
    taken = tools.take("nvbench.json")
    assert taken.file.importer == "nvbench/1"
    assert (taken.file.tool_version, taken.report.records) == ("0.1.0", 2)
    item = taken.one(benchmark="copy T=F32 N=65536")
    assert item.context["device"] == "h200_141g"
    stated = {name: item.column("latency", name) for name in ("mean", "std", "min", "max", "count")}
    assert stated == {
        "mean": [1e-05],
        "std": [1e-07],
        "min": [9.5e-06],
        "max": [1.1e-05],
        "count": [486],
    }
    assert item.column("cpu_time", "mean") == [1.2e-05]
    assert item.column("bandwidth", "mean") == [5.2e10]
    assert item.column("item_throughput", "mean") == [6.5e9]
    assert item.column("sm_clock", "mean") == [1.95e9]
    assert item.document["protocol"]["repetitions"] == 486
    assert item.document["observed"]["sm_default_clock_rate"] == {"unit": "Hz", "value": 1980000000}
    assert "summary-only" in taken.codes()
    assert "ada" not in taken.texts()


def test_a_relative_deviation_is_of_the_mean(tools: ToolEvidence) -> None:
    def drop(value: dict[str, Any]) -> None:
        kept = [i for i in state(value)["summaries"] if not i["tag"].endswith("stdev/absolute")]
        state(value)["summaries"] = kept

    item = tools.take(tools.put_json("a.json", edited(drop))).one(benchmark="copy T=F32 N=65536")
    assert item.column("latency", "std") == [pytest.approx(1e-07)]


@pytest.mark.parametrize("text", ["inf", "nan", "-nan"])
def test_few_samples_have_no_deviation(tools: ToolEvidence, text: str) -> None:
    def spoil(value: dict[str, Any]) -> None:
        for name in ("absolute", "relative"):
            set_summary(value, f"nv/cold/time/gpu/stdev/{name}", text)

    item = tools.take(tools.put_json("a.json", edited(spoil))).one(benchmark="copy T=F32 N=65536")
    assert item.column("latency", "mean") == [1e-05]
    with pytest.raises(KeyError):
        item.column("latency", "std")


def skip(value: dict[str, Any], **changes: Any) -> None:
    reason = "GPU throttled on every trial"
    state(value).update({"summaries": [], "is_skipped": True, "skip_reason": reason, **changes})


def without_samples(value: dict[str, Any]) -> None:
    set_summary(value, "nv/cold/sample_size", "0")
    set_summary(value, "nv/cold/time/gpu/mean", "-nan")
    set_summary(value, "nv/cold/time/gpu/min", "1.7976931348623157e+308")


def no_summaries(value: dict[str, Any]) -> None:
    state(value)["summaries"] = None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (skip, "was skipped: GPU throttled on every trial"),
        (lambda value: skip(value, summaries=None, skip_reason=None), "no reason stated"),
        (without_samples, "it ended without a sample"),
        (no_summaries, "it states no time"),
    ],
)
def test_a_state_without_samples_is_listed_and_no_time_of_zero(
    tools: ToolEvidence, change: Any, reason: str
) -> None:
    taken = tools.take(tools.put_json("a.json", edited(change)))
    assert taken.report.records == 1
    (line,) = taken.sets[0].source["skipped"]
    assert line.startswith("/benchmarks/0/states/0: copy T=F32 N=65536 was skipped")
    assert reason in line

    def alone(value: dict[str, Any]) -> None:
        change(value)
        del value["benchmarks"][0]["states"][1]

    with pytest.raises(NoEvidenceError) as caught:
        tools.take(tools.put_json("alone.json", edited(alone)))
    assert caught.value.code == "no-points"
    assert reason in str(caught.value)


def test_host_benchmarks_have_no_time_of_a_device(tools: ToolEvidence) -> None:
    def host(value: dict[str, Any]) -> None:
        for item in value["benchmarks"][0]["states"]:
            item["summaries"] = [
                {**summary, "tag": summary["tag"].replace("nv/cold", "nv/cpu_only")}
                for summary in item["summaries"]
                if "/gpu/" not in summary["tag"]
            ]

    item = tools.take(tools.put_json("a.json", edited(host))).one(benchmark="copy T=F32 N=65536")
    assert item.column("latency", "mean") == [1.2e-05]
    assert "host clock" in item.document["protocol"]["synchronization"]


def test_files_with_samples_are_said_not_to_be_read(tools: ToolEvidence) -> None:
    def add(value: dict[str, Any]) -> None:
        data = [
            {"name": "filename", "type": "string", "value": "out.json-bin/0.bin"},
            {"name": "size", "type": "int64", "value": "486"},
        ]
        tag = "nv/json/bin:nv/cold/sample_times"
        state(value)["summaries"].append({"tag": tag, "data": data})

    taken = tools.take(tools.put_json("a.json", edited(add)))
    assert "samples-elsewhere" in taken.codes()


def test_layouts_before_version_1(tools: ToolEvidence) -> None:
    names = {
        "Number of Samples (Cold)": ("int64", "486"),
        "Average GPU Time (Cold)": ("float64", "1e-05"),
        "GPU Relative Standard Deviation (Cold)": ("float64", "0.01"),
        "Average GPU Time (Batch)": ("float64", "9e-06"),
    }

    def old(value: dict[str, Any]) -> None:
        del value["meta"]
        found = {
            name: {"value": {"type": kind, "value": text}} for name, (kind, text) in names.items()
        }
        axes = {"N": {"type": "int64", "value": "65536"}}
        item = {"device": 0, "axis_values": axes, "summaries": found, "is_skipped": False}
        value["benchmarks"][0]["states"] = {"Device=0 N=2^16": item}

    def older(value: dict[str, Any]) -> None:
        del value["meta"]
        axes = [{"name": "N", "type": "int64", "value": 65536}]
        found = {
            name: {"values": [{"name": "value", "type": kind, "value": float(text)}]}
            for name, (kind, text) in names.items()
        }
        item = {"device": 0, "axis_values": axes, "summaries": found, "is_skipped": False}
        value["benchmarks"][0]["states"] = [item]

    for number, change in enumerate((old, older)):
        taken = tools.take(tools.put_json(f"{number}.json", edited(change)))
        item = taken.one(benchmark="copy N=65536")
        assert item.column("latency", "mean") == [1e-05]
        assert item.column("latency", "std") == [pytest.approx(1e-07)]
        assert item.column("latency", "count") == [486]


def test_another_major_version_is_refused(tools: ToolEvidence) -> None:
    def newer(value: dict[str, Any]) -> None:
        value["meta"]["version"]["json"] = {"major": 2, "minor": 0, "string": "2.0.0"}

    with pytest.raises(InvalidInputError, match=r"version 2\.0\.0 of NVBench's JSON"):
        tools.take(tools.put_json("a.json", edited(newer)))


def test_states_of_two_devices_are_refused(tools: ToolEvidence) -> None:
    def two(value: dict[str, Any]) -> None:
        value["devices"].append({"id": 1, "name": "NVIDIA A100-SXM4-80GB"})
        state(value, 1)["device"] = 1

    with pytest.raises(InvalidInputError, match="several devices"):
        tools.take(tools.put_json("a.json", edited(two)), "device=h200_141g")


def test_the_csv_has_no_noise_that_could_be_read(tools: ToolEvidence) -> None:
    text = "\r\n".join((HEADER, ROW, SKIPPED, ""))
    taken = tools.take(tools.put("a.csv", "\ufeff" + text))
    item = taken.one(benchmark="copy T=F32 N=65536")
    assert item.column("latency", "mean") == [1e-05]
    assert item.column("latency", "count") == [486]
    assert item.column("bandwidth", "mean") == [5.2e10]
    with pytest.raises(KeyError):
        item.column("latency", "std")
    assert item.source["skipped"] == [
        "line 3: copy T=F32 N=131072 was skipped: no reason in the CSV"
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (HEADER.replace("GPU Time (sec)", "GPU Time (ms)") + f"\n{ROW}", "unknown-units"),
        (HEADER.replace("GPU Time (sec)", "GPU Time") + f"\n{ROW}", "unknown-units"),
        (HEADER + "\n" + ROW.replace("1.2e-05", "1,2e-05"), "broken-table"),
        (HEADER.replace("Skipped", "Skip") + f"\n{ROW}", "unknown-layout"),
        (HEADER + f",M\n{ROW},\n{ROW.replace('copy', 'scan')},64", "ambiguous-layout"),
    ],
)
def test_csv_that_could_be_misread(tools: ToolEvidence, text: str, code: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        tools.take(tools.put("a.csv", text + "\n"))
    assert caught.value.code == code
