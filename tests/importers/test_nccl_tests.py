"""nccl-tests and rccl-tests: columns by their header, halves apart, nothing read as zero."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from perfdb_git.errors import InvalidInputError, InvalidRowsError
from tests.importers.tool_evidence import FILES, ToolEvidence

NEW = (FILES / "nccl_new_layout.txt").read_text()
OLD = (FILES / "nccl_old_layout.txt").read_text()
A100 = "device=a100_sxm4_80g"
HALVES = {
    "out_of_place": {1048576: 50.0, 16777216: 250.0},
    "in_place": {1048576: 52.0, 16777216: 245.0},
}


def times(taken: Any) -> dict[str, dict[int, float | None]]:
    return {
        half: dict(
            zip(
                taken.one(layout=half).column("message_bytes"),
                taken.one(layout=half).column("latency", "mean"),
                strict=True,
            )
        )
        for half in ("out_of_place", "in_place")
    }


def test_the_layout_without_a_root_column(tools: ToolEvidence) -> None:
    taken = tools.take("nccl_old_layout.txt", A100, "operation=all_reduce")
    assert taken.report.records == 4
    assert times(taken) == HALVES
    item = taken.one(layout="out_of_place")
    assert item.context["operation"] == "all_reduce"
    assert item.context["participants"] == item.context["participants_per_node"] == 8
    assert item.context["dtype"] == "float32"
    assert item.column("wrong_elements", "sample") == [None, None]
    assert item.document["null_reasons"]["wrong_elements"] == "results were not checked"
    assert item.document["protocol"]["warmup"] == 5
    assert item.document["protocol"]["repetitions"] == 20
    assert item.document["protocol"]["clock_state"] is None
    assert {"log-lines", "not-validated"} <= taken.codes()
    assert any("skipped 1 log lines" in remark.text for remark in taken.file.remarks)


def test_the_layout_with_a_root_column_and_a_failed_check(tools: ToolEvidence) -> None:
    taken = tools.take("nccl_new_layout.txt", A100)
    assert taken.report.records == 4
    expected = {**HALVES, "in_place": {1048576: 52.0, 16777216: None}}
    assert times(taken) == expected
    item = taken.one(layout="in_place")
    assert item.column("wrong_elements", "sample") == [0, 2]
    assert item.column("bus_bandwidth", "mean") == [35.29, None]
    assert "wrong results" in item.document["null_reasons"]["latency"]
    assert item.column("time_us_of_failed_run") == [None, 245]
    assert item.document["protocol"]["warmup"] == 1
    assert item.source["revision"] == "2.17.6"
    assert "failed-check" in taken.codes()
    manifest = tools.root / "evidence" / "manifests" / f"{item.document['environment']}.json"
    document = json.loads(manifest.read_bytes())
    assert document["runtimes"] == {"nccl": "2.27.3"}
    assert (document["device"], document["device_count"]) == ("a100_80g", 8)
    assert document["driver"] is None


def test_host_names_are_not_stored(tools: ToolEvidence) -> None:
    taken = tools.take("nccl_new_layout.txt", A100)
    assert "node-a" not in taken.texts()


def test_an_unnamed_collective_is_asked_for_with_what_the_ratio_fits(tools: ToolEvidence) -> None:
    with pytest.raises(InvalidInputError, match=r"busbw/algbw = 1\.75 fits all_reduce") as caught:
        tools.take("nccl_old_layout.txt", A100)
    assert caught.value.remedy == "--set operation=all_reduce"
    with pytest.raises(InvalidInputError, match="which broadcast of 8 ranks cannot have"):
        tools.take("nccl_old_layout.txt", A100, "operation=broadcast")


def test_an_unknown_product_needs_a_device(tools: ToolEvidence) -> None:
    with pytest.raises(InvalidInputError, match="names the device 'Example GPU 80GB'"):
        tools.take("nccl_new_layout.txt")


@pytest.mark.parametrize("vendor", ["NVIDIA ", ""])
def test_a_known_product_is_its_device(tools: ToolEvidence, vendor: str) -> None:
    path = tools.put("a.txt", NEW.replace("Example GPU 80GB", f"{vendor}A100-SXM4-80GB"))
    item = tools.take(path).one(layout="in_place")
    assert (item.context["device"], item.context["form_factor"]) == ("a100_80g", "sxm")


def test_ranks_on_two_hosts(tools: ToolEvidence) -> None:
    text = re.sub(r"(Rank  [4-7].*)node-a", r"\1node-b", NEW)
    item = tools.take(tools.put("a.txt", text), A100).one(layout="in_place")
    assert (item.context["participants"], item.context["participants_per_node"]) == (8, 4)


def test_a_cut_list_of_ranks_asks_for_their_number(tools: ToolEvidence) -> None:
    path = tools.put("a.txt", "".join(ln for ln in NEW.splitlines(True) if "Rank  3" not in ln))
    with pytest.raises(InvalidInputError, match="does not say participants"):
        tools.take(path, A100)
    assert tools.take(path, A100, "participants=8").report.records == 4


def test_only_in_place_of_rccl(tools: ToolEvidence) -> None:
    text = """# Collective test starting: all_gather_perf
# nThread 1 nGpus 2 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 2 \
validation: 1 graph: 0
#
rccl-tests: Version develop:448c4c7
# Using devices
#  Rank  0 Group  0 Pid   11 on     node-a device  0 [0000:0c:00] Example GPU
#  Rank  1 Group  0 Pid   11 on     node-a device  1 [0000:22:00] Example GPU
#
#                                                                 in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)
     1048576        131072  bfloat16    none      -1    50.00   20.97   10.49       0
"""
    taken = tools.take(tools.put("rccl.txt", text), A100)
    assert taken.file.importer == "rccl-tests/1"
    assert taken.file.tool_version == "develop:448c4c7"
    item = taken.one(layout="in_place")
    assert item.column("latency", "mean") == [50]
    assert item.context["operation"] == "all_gather"
    assert item.document["protocol"]["notes"] == ["2 operations in each iteration"]


def test_cpu_times_are_no_latency(tools: ToolEvidence) -> None:
    path = tools.put("a.txt", NEW.replace("   time ", "cputime "))
    item = tools.take(path, A100).one(layout="out_of_place")
    assert item.column("cpu_time", "mean") == [50, 250]
    metrics = [c["name"] for c in item.document["columns"] if c["role"] == "metric"]
    assert metrics == ["cpu_time", "wrong_elements"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("(us)", "(ms)", "states the units"),
        ("root     time", "root  minimum", "columns of no known layout"),
        ("out-of-place", "somewhere", "which half"),
        ("all_reduce_perf", "hypercube_perf", "measures no operation"),
    ],
)
def test_another_layout_is_refused(tools: ToolEvidence, old: str, new: str, message: str) -> None:
    assert old in NEW
    with pytest.raises(InvalidInputError, match=message):
        tools.take(tools.put("a.txt", NEW.replace(old, new)), A100)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  250.00   67.11", "  250.00   33.11", "size over time is 67.11 GB/s"),
        ("float     sum      -1   250", "float    prod      -1   250", "reduces by 'prod'"),
        ("     float     sum      -1   250", "  float128     sum      -1   250", "element type"),
        ("  245.00   68.48  119.84       2", "  245.00", "has 10 words, the header has 13"),
    ],
)
def test_bad_rows(tools: ToolEvidence, old: str, new: str, message: str) -> None:
    assert old in NEW
    path = tools.put("a.txt", NEW.replace(old, new))
    with pytest.raises(InvalidRowsError) as caught:
        tools.take(path, A100)
    assert message in "\n".join(caught.value.rows)
    taken = tools.take(path, A100, skip_bad_rows=True)
    assert taken.report.records in (2, 3)
    assert message in "\n".join(taken.sets[0].source["skipped"])


def test_two_runs_in_one_file_are_refused(tools: ToolEvidence) -> None:
    with pytest.raises(InvalidInputError, match="holds 2 tables, at lines 16, 40"):
        tools.take(tools.put("a.txt", NEW + NEW), A100)


def test_tagged_lines_of_mpirun(tools: ToolEvidence) -> None:
    text = "".join(f"[1,0]<stdout>:{line}" for line in NEW.splitlines(True))
    assert tools.take(tools.put("a.txt", text), A100).report.records == 4


def nccl_json(**changes: Any) -> dict[str, Any]:
    """Make a file as ``-J`` of nccl-tests 2.17 writes it, from the writer's source."""
    half = {"time": 50.0, "alg_bw": 20.97152, "bus_bw": 36.70016, "nwrong": 0.0}
    value: dict[str, Any] = {
        "version": 3,
        "start_time": "2026-03-29 02:30:00",
        "args": ["/home/alice/nccl-tests/build/all_reduce_perf", "-J", "out.json"],
        "env": ["HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz", "USER=alice"],
        "nccl_version": 22703,
        "config": {
            "nthreads": 1,
            "ngpus": 8,
            "warmup_iters": 1,
            "iterations": 20,
            "aggregated_iterations": 1,
            "validation": 1,
            "graph": 0,
            "blocking_collectives": "false",
            "parallel_init": "false",
            "devices": [
                {
                    "rank": 0,
                    "group": 0,
                    "hostname": "node-a",
                    "device_info": "NVIDIA H100 80GB HBM3",
                }
            ],
        },
        "results": [
            {
                "size": 1048576,
                "count": 262144,
                "type": "float",
                "redop": "sum",
                "root": "    -1",
                "out_of_place": half,
                "in_place": {**half, "nwrong": None},
                "actual_iterations": 20,
            }
        ],
    }
    return {**value, **changes}


def test_json_reads_only_what_it_needs(tools: ToolEvidence) -> None:
    taken = tools.take(tools.put_json("a.json", nccl_json()))
    item = taken.one(layout="out_of_place")
    assert item.context["device"] == "h100_80g"
    # One entry a process: the other seven devices of it are not listed.
    assert item.context["participants"] == 8
    assert item.column("latency", "mean") == [50]
    assert taken.one(layout="in_place").column("wrong_elements", "sample") == [None]
    assert item.source["measured_at"] is None
    assert item.document["observed"] == {"time_as_stated": "2026-03-29 02:30:00"}
    assert "zone-unknown" in taken.codes()
    for secret in ("hf_", "alice", "node-a"):
        assert secret not in taken.texts()


def test_json_with_samples_nan_and_an_absent_half(tools: ToolEvidence) -> None:
    result = nccl_json()["results"][0]
    half = {"time": "nan", "alg_bw": "nan", "bus_bw": "nan", "nwrong": None}
    result |= {"out_of_place": None, "in_place": half}
    result |= {"in_place_per_iter": {"times_us": [50.0, 51.0], "p50_us": 50.5}}
    taken = tools.take(tools.put_json("a.json", nccl_json(results=[result])))
    item = taken.one(layout="in_place")
    assert item.column("latency", "mean") == [None]
    assert item.column("latency", "sample") == [[50, 51]]
    assert "absent-half" in taken.codes()


def test_a_stated_zone_in_which_the_time_does_not_exist(tools: ToolEvidence) -> None:
    path = tools.put_json("a.json", nccl_json())
    with pytest.raises(InvalidInputError, match="does not exist in Europe/Berlin"):
        tools.take(path, "zone=Europe/Berlin")
    taken = tools.take(path, "zone=Asia/Tokyo")
    assert taken.sets[0].source["measured_at"] == "2026-03-28T17:30:00Z"


def test_importing_again_adds_nothing(tools: ToolEvidence) -> None:
    tools.take("nccl_new_layout.txt", A100)
    again = tools.take("nccl_new_layout.txt", A100)
    assert (again.report.records, again.report.known) == (0, 4)
