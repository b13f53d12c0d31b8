"""Kinds of fault that any tool's file may have: each is refused or told, never read as a number."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from perfdb_git.errors import InvalidInputError, InvalidRowsError
from tests.importers.tool_evidence import FILES, ToolEvidence

CPU = "device=example_cpu"
GPU = "device=h100_80g"


def text_of(name: str) -> str:
    return (FILES / name).read_text()


def replaced(*pairs: tuple[str, str]) -> Callable[[str], str]:
    def change(text: str) -> str:
        for old, new in pairs:
            assert old in text, old
            text = text.replace(old, new)
        return text

    return change


def decimal_commas(text: str) -> str:
    return re.sub(r"(\d)\.(\d\d) ", r"\1,\2 ", text)


NCCL = "nccl_new_layout.txt"
NSYS = "nsys_new_2024.csv"
SINGLE = "hyperfine_single_run.csv"
GBENCH_CSV = "gbench_old_csv_cv.csv"
AGGREGATES = "gbench_aggregates_only.json"

REFUSED: dict[str, tuple[str, Callable[[str], str], str]] = {
    # fault: file, how it is made, what the refusal says
    "negative time in a table": (NCCL, replaced(("250.00", "-250.0")), "latency mean is -250 us"),
    "negative time in JSON": (
        "fio3.json",
        replaced(('"mean": 100000.0', '"mean": -100000.0')),
        "latency mean is -100000 ns: negative",
    ),
    "negative sample": (
        "hyperfine_single_run.json",
        replaced(("0.008", "-0.008")),
        "latency sample is -0.008 s: negative",
    ),
    "decimal commas in a table": (
        NCCL,
        decimal_commas,
        "'50,00' is no number, which may have a decimal comma",
    ),
    "decimal commas in a CSV": (
        SINGLE,
        replaced(("0.008", '"0,008"')),
        "'0,008' is no number, which may have a decimal comma",
    ),
    "decimal commas in samples": (
        GBENCH_CSV,
        replaced(("1.010,1.000", '"1,010","1,000"')),
        "'1,010' is no number",
    ),
    "minimum and maximum in each other's place": (
        NSYS,
        replaced(("Min (ns),Max (ns)", "Max (ns),Min (ns)")),
        "latency: the min 110000 is above the median 99800",
    ),
    "mean below the minimum": (
        "fio3.json",
        replaced(('"mean": 100000.0', '"mean": 0.0')),
        "latency: the min 61000 is above the mean 0",
    ),
    "two columns of one title": (NSYS, replaced(("Med (ns)", "Avg (ns)")), "two columns 'Avg'"),
    "a summary that stands twice": (
        NSYS,
        lambda text: text + text.splitlines()[-1] + "\n",
        "reduce_kernel stands at line 5 too",
    ),
    "a row cut off": (GBENCH_CSV, lambda text: text[:200], "has a row of another width"),
    "units that change between aggregates": (
        AGGREGATES,
        lambda text: text.replace('"time_unit": "ns"', '"time_unit": "us"', 1),
        "BM_sort/1024 changes its time unit",
    ),
    "a size with a suffix": (
        NCCL,
        replaced(("     1048576  ", "          1M  ")),
        "its size is '1M', no number of bytes",
    ),
    "a row behind a rank's message": (
        NCCL,
        replaced(("    16777216       4194304", "node-a:1 [0] NCCL INFO x 16777216 4194304")),
        "has a row behind something else",
    ),
    "a row behind another message": (
        "perftest_gbits.txt",
        replaced((" 65536      5000", "WARN: 65536 5000")),
        "has a row behind something else",
    ),
    "samples of another unit": (
        "pytest_benchmark_5_3.json",
        lambda text: re.sub(r'"mean": \S+e-06', '"mean": 4.72', text),
        "its samples have a mean of 4.72002e-06, and it states 4.72",
    ),
    "bandwidths of another collective": (
        NCCL,
        replaced(("all_reduce_perf", "all_gather_perf")),
        "busbw/algbw is 1.75, which all_gather of 8 ranks cannot have",
    ),
    "samples in another unit than their mean": (
        "hyperfine_first_run_slow.json",
        replaced(('"mean": 0.24864', '"mean": 248.64')),
        "its samples have a mean of 0.24864, and it states 248.64",
    ),
    "names that differ in case": (
        "gbench_duplicate_names.json",
        lambda text: text.replace('"BM_x"', '"bm_X"', 2),
        "'bm_X' stands at /benchmarks/0 and 'BM_x' at /benchmarks/1: names that differ in case",
    ),
    "names that differ in white space": (
        "gbench_duplicate_names.json",
        lambda text: text.replace('"BM_x"', '"BM_x "', 2),
        "names that differ in case or white space alone",
    ),
}


@pytest.mark.parametrize("fault", REFUSED)
@pytest.mark.parametrize("form", ["plain", "crlf and byte order mark", "gzip"])
def test_what_cannot_be_read_is_refused_with_its_place(
    tools: ToolEvidence, fault: str, form: str
) -> None:
    name, change, said = REFUSED[fault]
    data = change(text_of(name)).encode()
    if form == "gzip":
        data = gzip.compress(data)
    elif form != "plain":
        data = b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n")
    path = tools.put(name, "")
    path.write_bytes(data)
    with pytest.raises(InvalidInputError) as caught:
        tools.take(path, GPU if name.startswith(("nccl", "nsys", "perftest")) else CPU)
    rows = caught.value.rows if isinstance(caught.value, InvalidRowsError) else ()
    assert said in "\n".join([str(caught.value), *rows])


def test_good_rows_can_be_taken_without_the_impossible_ones(tools: ToolEvidence) -> None:
    path = tools.put("a.csv", text_of(NSYS).replace("99800.0", "-99800.0"))
    taken = tools.take(path, GPU, skip_bad_rows=True)
    assert taken.report.records == 1
    (line,) = taken.sets[0].source["skipped"]
    assert line == "line 4: latency median is -99800 ns: negative"


ZERO_TIMES = {
    "gbench_nonfinite.json": replaced(('"real_time": 812.5', '"real_time": 0.0')),
    "hyperfine_single_run.json": replaced(("0.008", "0.0")),
    "hyperfine_single_run.csv": replaced(("0.008", "0.0")),
}


@pytest.mark.parametrize("name", ZERO_TIMES)
def test_a_time_of_zero_is_no_measurement(tools: ToolEvidence, name: str) -> None:
    path = tools.put(name, ZERO_TIMES[name](text_of(name)))
    item = tools.take(path, CPU).sets[0]
    columns = [c for c in item.document["columns"] if c["name"] == "latency"]
    cells = [item.column("latency", column["statistic"]) for column in columns]
    assert cells == [[None]] * len(columns)
    assert "a time of zero" in item.document["null_reasons"]["latency"]


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-inf", "nan"])
def test_a_time_that_is_not_finite_is_unknown_with_its_reason(
    tools: ToolEvidence, token: str
) -> None:
    text = text_of("gbench_nonfinite.json").replace('"real_time": 812.5', f'"real_time": {token}')
    item = tools.take(tools.put("a.json", text), CPU).sets[0]
    assert item.column("latency", "sample") == [None]
    assert "not finite" in item.document["null_reasons"]["latency"]


@pytest.mark.parametrize("tag", ["[1,0]<stdout>:", "[node-a:123,1]<stdout>: ", "0: ", " 3: "])
def test_tags_of_ranks_before_every_line(tools: ToolEvidence, tag: str) -> None:
    lines = text_of(NCCL).splitlines()
    path = tools.put("a.txt", "".join(f"{tag}{line}\n" for line in lines))
    assert tools.take(path, GPU).report.records == 4


def old_layout(value: dict[str, Any]) -> dict[str, Any]:
    """Take away what Google Benchmark did not print before 1.5."""
    later = ("run_type", "run_name", "aggregate_name", "aggregate_unit", "family_index")
    later += ("per_family_instance_index", "repetition_index", "repetitions", "threads")
    for row in value["benchmarks"]:
        for key in later:
            row.pop(key, None)
    return value


def test_aggregates_of_old_versions_are_known_by_their_names(tools: ToolEvidence) -> None:
    value = old_layout(json.loads(text_of("gbench_repetitions.json")))
    taken = tools.take(tools.put_json("a.json", value), CPU)
    assert taken.report.records == 1
    assert taken.sets[0].column("latency", "sample") == [[1000, 1010, 1050]]


@pytest.mark.parametrize("form", ["json", "csv"])
def test_aggregates_alone_are_a_summary_in_every_layout(tools: ToolEvidence, form: str) -> None:
    if form == "json":
        path = tools.put_json("a.json", old_layout(json.loads(text_of(AGGREGATES))))
        scale = 1000
    else:
        lines = text_of(GBENCH_CSV).splitlines()
        path = tools.put("a.csv", "\n".join([lines[0], *lines[4:8]]) + "\n")
        scale = 1
    taken = tools.take(path, CPU)
    assert taken.report.records == 1
    item = taken.one(benchmark="BM_sort/1024")
    assert item.column("latency", "median") == [pytest.approx(1.01 * scale)]
    assert "summary-only" in taken.codes()
    with pytest.raises(KeyError):
        item.column("latency", "sample")


@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_name_that_stands_twice_without_aggregates_is_no_repetition(
    tools: ToolEvidence, form: str
) -> None:
    if form == "json":
        value = old_layout(json.loads(text_of("gbench_duplicate_names.json")))
        path = tools.put_json("a.json", value)
    else:
        header = text_of(GBENCH_CSV).splitlines()[0]
        path = tools.put("a.csv", f'{header}\n"A",1,1,1,us,,,,,\n"A",1,90,90,us,,,,,\n')
    with pytest.raises(InvalidInputError) as caught:
        tools.take(path, CPU)
    assert caught.value.code == "duplicate-name"


def test_a_kernel_that_was_never_launched_has_no_time(tools: ToolEvidence) -> None:
    old = "1000000,40,25000.0,24900.0,24000,30000,600.0"
    path = tools.put("a.csv", text_of(NSYS).replace(old, "0,0,0,0,0,0,0"))
    taken = tools.take(path, GPU)
    assert taken.report.records == 1
    assert taken.sets[0].source["skipped"] == ["line 5: reduce_kernel was never launched"]


def test_the_processor_load_of_perftest_is_no_bandwidth(tools: ToolEvidence) -> None:
    change = replaced(
        ("MsgRate[Mpps]", "MsgRate[Mpps]  CPU_Util[%]"), ("0.190735", "0.190735 12.3")
    )
    path = tools.put("a.txt", change(text_of("perftest_gbits.txt")))
    item = tools.take(path, GPU).sets[0]
    assert item.column("bandwidth", "mean") == [100]


OTHER_SHAPES = {
    "pyperf_2_11.json": (("benchmarks", 0, "runs", 0), []),
    "gbench_1_7.json": (("benchmarks", 0), "BM_x"),
    "fio_3_33.json": (("jobs", 0, "job options"), "x"),
    "hyperfine_1_15.json": (("results", 0, "times"), True),
    "iperf3_3_12.json": (("intervals", 0, "sum"), "x"),
    "nvbench.json": (("benchmarks", 0, "states", 0, "summaries", 0), []),
    "pytest_benchmark_5_3.json": (("benchmarks", 0), 1),
    "pyperf_two_modes.json": (("benchmarks", 0, "metadata", "cpu_model_name"), {}),
    "kineto_trace.json": (("traceEvents", 1, "args"), "x"),
}


@pytest.mark.parametrize("name", OTHER_SHAPES)
def test_members_of_another_type_are_no_internal_error(tools: ToolEvidence, name: str) -> None:
    (*parents, last), value = OTHER_SHAPES[name]
    document = json.loads(text_of(name))
    place = document
    for key in parents:
        place = place[key]
    place[last] = value
    with pytest.raises(InvalidInputError) as caught:
        tools.take(tools.put_json(name, document), CPU)
    assert caught.value.code == "unknown-layout"
    assert "has another layout than" in str(caught.value)


def test_a_number_that_is_none_is_refused(tools: ToolEvidence) -> None:
    document = json.loads(text_of("fio_3_33.json"))
    document["jobs"][0]["read"]["bw_bytes"] = "nan"
    with pytest.raises(InvalidRowsError) as caught:
        tools.take(tools.put_json("a.json", document), CPU)
    assert "bandwidth mean is nan" in caught.value.rows[0]
