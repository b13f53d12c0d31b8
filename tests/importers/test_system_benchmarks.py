"""fio, iperf3, OSU, perftest, STREAM and BabelStream: units that changed, sizes that differ."""

from __future__ import annotations

import json
from typing import Any

import pytest

from perfdb_git.errors import InvalidInputError, InvalidRowsError
from perfdb_git.operations.units import UNITS
from tests.importers.import_fixtures import RecordSet
from tests.importers.tool_evidence import FILES, ToolEvidence

CPU = "device=example_cpu"
A100 = "device=a100"


def si(item: RecordSet, name: str, statistic: str) -> list[float]:
    units = [
        column["unit"]
        for column in item.document["columns"]
        if (column["name"], column.get("statistic")) == (name, statistic)
    ]
    assert len(units) == 1
    return [UNITS[units[0]].to_si(value) for value in item.column(name, statistic)]


# --- fio ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fio2.json", "fio3.json"])
def test_both_versions_of_fio_give_one_record(tools: ToolEvidence, name: str) -> None:
    taken = tools.take(name, CPU)
    assert taken.report.records == 1
    item = taken.one(io_direction="read", access_pattern="random")
    assert si(item, "latency", "mean") == [pytest.approx(1e-4, rel=1e-12)]
    assert si(item, "completion_latency", "p99") == [pytest.approx(1.4e-4, rel=1e-12)]
    assert si(item, "bandwidth", "mean") == [41943040]
    assert si(item, "moved_bytes", "sample") == [838860800]
    assert si(item, "io_throughput", "mean") == [10240]
    assert item.context["block_bytes"] == 4096
    assert item.source["measured_at"] == "2026-03-02T09:15:00.123000Z"


def test_bytes_that_contradict_bandwidth_are_a_bad_row(tools: ToolEvidence) -> None:
    value = json.loads((FILES / "fio2.json").read_text())
    # A reader that takes KiB for bytes would make this of fio 2's count.
    value["jobs"][0]["read"]["io_kbytes"] = 800
    with pytest.raises(InvalidRowsError) as caught:
        tools.take(tools.put_json("a.json", value), CPU)
    assert "moved 819200 B, but bandwidth times run time is 8.38861e+08 B" in caught.value.rows[0]


def test_real_fio_after_a_warning(tools: ToolEvidence) -> None:
    text = "fio: this platform does not support process shared mutexes\n"
    path = tools.put("a.json", text + (FILES / "fio_3_33.json").read_text())
    taken = tools.take(path, CPU)
    item = taken.one(io_direction="read")
    assert item.column("completion_latency", "median") == [54016]
    assert item.column("latency", "count") == [1024]
    assert item.context["queue_depth"] == item.context["concurrency"] == 1
    assert "alice" not in taken.texts()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"rw": "randrw", "bs": "8k"}, ("random", 8192)),
        ({"rw": "write", "bs": "4k,1m"}, ("sequential", 2**20)),
        ({"rw": "write", "bsrange": "4k-64k"}, ("sequential", None)),
        ({"rw": "write", "bs": "4k", "kb_base": "1000"}, ("sequential", None)),
        ({"rw": "write"}, ("sequential", 4096)),
    ],
)
def test_job_options(
    tools: ToolEvidence, options: dict[str, str], expected: tuple[str, int | None]
) -> None:
    value = json.loads((FILES / "fio3.json").read_text())
    job = value["jobs"][0]
    job["write"] = job.pop("read")
    job["job options"] = options
    item = tools.take(tools.put_json("a.json", value), CPU).one(io_direction="write")
    assert (item.context["access_pattern"], item.context["block_bytes"]) == expected


def test_a_failed_job_and_missing_options(tools: ToolEvidence) -> None:
    value = json.loads((FILES / "fio3.json").read_text())
    value["jobs"].append({**value["jobs"][0], "error": 5})
    taken = tools.take(tools.put_json("a.json", value), CPU)
    assert taken.sets[0].source["skipped"] == ["/jobs/1: job rd4k failed with error 5"]
    del value["global options"], value["jobs"][0]["job options"]
    with pytest.raises(InvalidInputError, match="does not say block_bytes, access_pattern"):
        tools.take(tools.put_json("b.json", value), CPU)
    stated = ("block_bytes=4096", "access_pattern=rand")
    assert tools.take(tools.put_json("b.json", value), CPU, *stated).report.records == 1


# --- iperf3 -------------------------------------------------------------------------------------


def test_real_iperf3(tools: ToolEvidence) -> None:
    taken = tools.take("iperf3_3_12.json", CPU)
    item = taken.one(transport="tcp")
    assert si(item, "bandwidth", "mean") == [12168141454.583158 / 8]
    assert item.column("sent_bandwidth", "sample") == [[12174756288.928957]]
    assert si(item, "round_trip_latency", "mean") == [429e-6]
    assert item.source["measured_at"] == "2026-11-30T10:31:43Z"
    assert item.source["keys"]["retransmits"] == 2
    for name in ("bench-host", "127.0.0.1", "viwat4"):
        assert name not in taken.texts()


def test_udp_without_a_receivers_count_and_omitted_intervals(tools: ToolEvidence) -> None:
    value: dict[str, Any] = json.loads((FILES / "iperf3_3_12.json").read_text())
    value["start"]["test_start"] |= {"protocol": "UDP", "omit": 2}
    omitted = {"sum": {**value["intervals"][0]["sum"], "omitted": True, "bits_per_second": 1.0}}
    value["intervals"].insert(0, omitted)
    value["end"] = {"sum": {"bits_per_second": 1e9, "jitter_ms": 0.02, "lost_packets": 3}}
    item = tools.take(tools.put_json("a.json", value), CPU).one(transport="udp")
    assert item.column("bandwidth", "mean") == [None]
    assert "no count of the receiver" in item.document["null_reasons"]["bandwidth"]
    assert item.column("lost_packets", "sample") == [3]
    assert len(item.column("sent_bandwidth", "sample")[0]) == 1
    assert item.document["protocol"]["notes"] == ["the first 2 s were left out"]


def test_failed_and_two_way_runs_are_refused(tools: ToolEvidence) -> None:
    value: dict[str, Any] = json.loads((FILES / "iperf3_3_12.json").read_text())
    path = tools.put_json("a.json", {**value, "error": "unable to connect"})
    with pytest.raises(InvalidInputError, match="ended with an error: unable to connect"):
        tools.take(path, CPU)
    value["start"]["test_start"]["bidir"] = 1
    with pytest.raises(InvalidInputError, match="both directions at once"):
        tools.take(tools.put_json("b.json", value), CPU)


# --- OSU ----------------------------------------------------------------------------------------

ALLREDUCE = """
# OSU MPI Allreduce Latency Test v5.7.1
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
4                       3.21              2.90              3.60        1000
1048576               410.50            400.25            420.75        1000
"""


def test_osu_allreduce(tools: ToolEvidence) -> None:
    path = tools.put("a.txt", ALLREDUCE)
    with pytest.raises(InvalidInputError, match="does not say participants"):
        tools.take(path, CPU)
    taken = tools.take(path, CPU, "participants=4", "dtype=float")
    item = taken.one(operation="all_reduce")
    assert item.column("message_bytes") == [4, 1048576]
    assert item.column("latency", "mean") == [3.21, 410.5]
    # Over ranks, not over runs: no minimum of the latency.
    assert item.column("slowest_rank_latency", "mean") == [3.6, 420.75]
    assert item.document["protocol"]["repetitions"] == 1000
    assert item.document["protocol"]["warmup"] is None
    assert taken.file.tool_version == "5.7.1"
    unknown = tools.take(path, CPU, "participants=null").one(operation="all_reduce")
    assert unknown.context["participants"] is None


def test_osu_lines_with_tags_of_ranks(tools: ToolEvidence) -> None:
    text = "".join(f"[1,0]<stdout>:{line}\n" for line in ALLREDUCE.splitlines())
    taken = tools.take(tools.put("a.txt", text), CPU, "participants=2", "dtype=float32")
    assert taken.report.records == 2


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("Min Latency(us)   Max", "Max Latency(us)   Min", "fastest rank is slower"),
        ("1048576    ", "node-a: WARN 1048576    ", "row behind something else"),
        ("410.50", "410,50", "'410,50' is not a number"),
    ],
)
def test_osu_rows_that_cannot_be_read(tools: ToolEvidence, old: str, new: str, fault: str) -> None:
    assert old in ALLREDUCE
    path = tools.put("a.txt", ALLREDUCE.replace(old, new))
    with pytest.raises(InvalidRowsError) as caught:
        tools.take(path, CPU, "participants=2", "dtype=float32")
    assert fault in caught.value.rows[0]


def test_osu_sizes_of_one_rank_become_the_vocabularys(tools: ToolEvidence) -> None:
    path = tools.put("a.txt", ALLREDUCE.replace("Allreduce", "Allgather"))
    with pytest.raises(InvalidInputError, match="one rank's share"):
        tools.take(path, CPU, "participants=null")
    item = tools.take(path, CPU, "participants=4").one(operation="all_gather")
    assert item.column("message_bytes") == [16, 4194304]
    assert item.column("share_bytes") == [4, 1048576]


def test_osu_bandwidth_is_decimal(tools: ToolEvidence) -> None:
    text = "# OSU MPI{} Bandwidth Test v7.2\n# Datatype: MPI_CHAR.\n"
    text += "# Size      Bandwidth (MB/s)\n1048576   12345.67\n"
    item = tools.take(tools.put("a.txt", text.format("")), CPU).one(operation="send_recv")
    assert si(item, "bandwidth", "mean") == [pytest.approx(12345.67e6)]
    assert item.context["participants"] == 2
    both = text.format(" Bi-Directional")
    item = tools.take(tools.put("b.txt", both), CPU).one(operation="send_recv")
    assert item.column("bidirectional_bandwidth", "mean") == [12345.67]


def test_osu_tests_that_are_no_operation_are_refused(tools: ToolEvidence) -> None:
    with pytest.raises(InvalidInputError, match="no operation of the vocabulary"):
        tools.take(tools.put("a.txt", ALLREDUCE.replace("Allreduce", "Multi")), CPU)
    with pytest.raises(InvalidInputError, match="columns of no known layout"):
        tools.take(tools.put("a.txt", ALLREDUCE.replace("(us)", "(ms)")), CPU)


# --- perftest -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["old_header", "new_header", "gbits"])
def test_three_headers_of_perftest_mean_one_bandwidth(tools: ToolEvidence, name: str) -> None:
    taken = tools.take(f"perftest_{name}.txt", A100)
    item = taken.one(rdma_verb="write")
    assert si(item, "bandwidth", "mean") == [pytest.approx(12.5e9, rel=1e-4)]
    assert si(item, "message_throughput", "mean") == [pytest.approx(190735)]
    assert item.context["message_bytes"] == 65536
    assert (item.context["queue_pairs"], item.context["link_class"]) == (1, "infiniband")
    assert ("mb-is-mib" in taken.codes()) == (name == "old_header")


def test_a_rate_that_contradicts_the_bandwidth_is_a_bad_row(tools: ToolEvidence) -> None:
    text = (FILES / "perftest_new_header.txt").read_text().replace("11920.93", "12500.00")
    with pytest.raises(InvalidRowsError) as caught:
        tools.take(tools.put("a.txt", text), A100)
    assert "rate times size is 1.25e+10 B/s, the table says 1.31072e+10 B/s" in caught.value.rows[0]


def test_perftest_latency(tools: ToolEvidence) -> None:
    text = """                    Send Latency Test
 Link type       : Ethernet
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]\
   99% percentile[usec]   99.9% percentile[usec]
 2       1000          1.54           4.98         1.60                1.61           0.08\
            1.85                    4.98
"""
    item = tools.take(tools.put("a.txt", text), A100).one(rdma_verb="send")
    assert si(item, "latency", "median") == [pytest.approx(1.6e-6)]
    assert item.column("latency", "p999") == [4.98]
    with pytest.raises(KeyError):
        item.column("latency", "std")
    assert item.document["protocol"]["repetitions"] == 1000
    with pytest.raises(InvalidInputError, match="columns of no known layout"):
        tools.take(tools.put("b.txt", text.replace("t_max[usec]", "t_max[nsec]")), A100)


# --- STREAM -------------------------------------------------------------------------------------

STREAM = """-------------------------------------------------------------
STREAM version $Revision: 5.10 $
-------------------------------------------------------------
This system uses 8 bytes per array element.
-------------------------------------------------------------
Array size = 80000000 (elements), Offset = 0 (elements)
Each kernel will be executed 10 times.
 The *best* time for each kernel (excluding the first iteration)
 will be used to compute the reported bandwidth.
-------------------------------------------------------------
Number of Threads counted = 64
-------------------------------------------------------------
Function    Best Rate MB/s  Avg time     Min time     Max time
Copy:          128000.0     0.011000     0.010000     0.012000
Triad:         192000.0     0.011000     0.010000     0.012000
-------------------------------------------------------------
Solution Validates: avg error less than 1.000000e-13 on all three arrays
"""


def test_stream(tools: ToolEvidence) -> None:
    taken = tools.take(tools.put("a.txt", STREAM), CPU)
    item = taken.one(stream_kind="triad")
    assert si(item, "bandwidth", "max") == [192e9]
    assert item.column("latency", "min") == [0.01]
    context = item.context
    assert (context["elements"], context["dtype"]) == (80000000, "float64")
    assert context["concurrency"] == 64
    protocol = item.document["protocol"]
    assert (protocol["warmup"], protocol["repetitions"]) == (1, 9)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Solution Validates", "Failed Validation", "failed its own validation"),
        ("Best Rate MB/s  Avg time", "Best Rate MB/s  RMS time", "no file of a known tool"),
    ],
)
def test_stream_that_is_refused(tools: ToolEvidence, old: str, new: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        tools.take(tools.put("a.txt", STREAM.replace(old, new)), CPU)


def test_stream_of_other_bytes_than_its_rate(tools: ToolEvidence) -> None:
    text = STREAM.replace("uses 8 bytes", "uses 4 bytes")
    with pytest.raises(InvalidRowsError) as caught:
        tools.take(tools.put("a.txt", text), CPU)
    assert "do not belong to arrays of 80000000 elements" in caught.value.rows[0]


BABEL = """BabelStream
Version: 5.0
Using CUDA device NVIDIA H100 80GB HBM3
function,num_times,n_elements,sizeof,max_{}_per_sec,min_runtime,max_runtime,avg_runtime
Copy,100,33554432,8,{},0.000400,0.000500,0.000450
Nstream,100,33554432,8,{},0.000400,0.000500,0.000450
"""


@pytest.mark.parametrize(
    ("unit", "rate"), [("mbytes", "1342177.28"), ("mibytes", "1280000"), ("gbytes", "1342.177")]
)
def test_babelstream_in_its_headers_unit(tools: ToolEvidence, unit: str, rate: str) -> None:
    taken = tools.take(tools.put("a.txt", BABEL.format(unit, rate, rate)))
    item = taken.one(stream_kind="copy")
    assert si(item, "bandwidth", "max") == [pytest.approx(1.34217728e12, rel=1e-6)]
    assert item.context["device"] == "h100_80g"
    assert item.document["protocol"]["repetitions"] == 99
    assert "Nstream" in item.source["skipped"][0]


def test_babelstream_text_needs_the_elements(tools: ToolEvidence) -> None:
    text = """BabelStream
Version: 3.4
Running kernels 100 times
Precision: double
Array size: 268.4 MB (=0.3 GB)
Function    MBytes/sec  Min (sec)   Max         Average
Mul         1342177.280 0.00040     0.00050     0.00045
"""
    path = tools.put("a.txt", text)
    with pytest.raises(InvalidInputError, match="does not say elements"):
        tools.take(path, A100)
    item = tools.take(path, A100, "elements=33554432").one(stream_kind="scale")
    assert item.context["dtype"] == "float64"
    assert item.document["protocol"]["repetitions"] == 99
