"""Benchmark tools as they are installed: their output of today, imported by the command.

Every test runs a workload of well under two seconds, without a network beyond loopback, and is
skipped, by the tool's name, where the tool is not there. The workflow's job `tools` has them all.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.evidence import GIT_ENVIRONMENT, Evidence, make_evidence

DEVICE = "a100_80g"
"""A device of the vocabulary. No time is judged here, so which one does not matter."""

Import = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def imported(tmp_path: Path) -> Import:
    """Import one file by `perfdb import auto`; return its record sets as they were written."""

    def run(tool: str, path: Path, *stated: str) -> list[dict[str, Any]]:
        evidence: Evidence = make_evidence(tmp_path / "evidence", tmp_path / "cache")
        facts = [f"--set={fact}" for fact in (f"device={DEVICE}", *stated)]
        done = evidence.perfdb("import", "auto", *facts, str(path))
        assert done.status == 0, done.err
        assert f"{path.name}: taken for a file of {tool}" in done.out
        checked = evidence.perfdb("check", "--worktree")
        assert checked.status == 0, checked.out + checked.err
        files = sorted((evidence.path / "evidence/records").rglob("*.json"))
        return [json.loads(file.read_bytes()) for file in files]

    return run


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def module(name: str, package: str) -> str:
    """Return the interpreter of the tests, where it has the module."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{package} is not installed")
    return sys.executable


def run(*command: str, at: Path) -> None:
    done = subprocess.run(
        command, cwd=at, env=GIT_ENVIRONMENT, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0, done.stdout + done.stderr


def cell(item: dict[str, Any], name: str, statistic: str) -> Any:
    """Return one metric of the one row."""
    (row,) = item["rows"]
    (index,) = (
        number
        for number, column in enumerate(item["columns"])
        if (column["name"], column.get("statistic")) == (name, statistic)
    )
    return row[index]


def test_hyperfine(imported: Import, tmp_path: Path) -> None:
    tool = program("hyperfine")
    path = tmp_path / "a.json"
    run(tool, "--warmup", "1", "--runs", "5", "--export-json", str(path), "sleep 0.01", at=tmp_path)
    (item,) = imported("hyperfine", path, "warmup=1")
    assert cell(item, "latency", "sample") == json.loads(path.read_text())["results"][0]["times"]
    assert (item["context"]["benchmark"], item["protocol"]["repetitions"]) == ("sleep 0.01", 5)


def test_hyperfine_csv_of_two_runs(imported: Import, tmp_path: Path) -> None:
    tool = program("hyperfine")
    path = tmp_path / "a.csv"
    run(tool, "--runs", "2", "--export-csv", str(path), "sleep 0.01", at=tmp_path)
    (item,) = imported("hyperfine", path)
    mean, deviation = path.read_text().splitlines()[1].split(",")[1:3]
    assert cell(item, "latency", "mean") == float(mean)
    assert cell(item, "latency", "std") == float(deviation)


def test_fio(imported: Import, tmp_path: Path) -> None:
    tool = program("fio")
    path = tmp_path / "a.json"
    job = ("--name=rd", f"--filename={tmp_path / 'data'}", "--size=1M", "--bs=4k", "--rw=randread")
    output = ("--ioengine=psync", "--output-format=json", f"--output={path}")
    run(tool, *job, *output, at=tmp_path)
    (item,) = imported("fio", path)
    context = item["context"]
    assert (context["block_bytes"], context["access_pattern"]) == (4096, "random")
    assert context["io_direction"] == "read"
    assert cell(item, "latency", "count") == 256
    assert cell(item, "moved_bytes", "sample") in (2**20, [2**20])


def test_iperf3(imported: Import, tmp_path: Path) -> None:
    tool = program("iperf3")
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    server = subprocess.Popen(
        [tool, "--server", "--one-off", "--bind", "127.0.0.1", "--port", port],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    path = tmp_path / "a.json"
    try:
        # One-off: a probe of the port would use the server up, so the client tries again instead.
        for _ in range(20):
            command = [tool, "--client", "127.0.0.1", "--port", port, "--time", "1", "--json"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=30)
            # Some versions end with status 0 where the server is not up yet.
            if "error" not in json.loads(done.stdout):
                break
            time.sleep(0.05)
    finally:
        server.kill()
        server.wait()
    path.write_text(done.stdout)
    (item,) = imported("iperf3", path)
    assert item["context"]["transport"] == "tcp"
    end = json.loads(done.stdout)["end"]
    assert cell(item, "bandwidth", "mean") == end["sum_received"]["bits_per_second"]
    assert "127.0.0.1" not in json.dumps(item)


def test_pyperf(imported: Import, tmp_path: Path) -> None:
    python = module("pyperf", "pyperf")
    path = tmp_path / "a.json"
    sizes = ("--processes", "2", "--values", "2", "--warmups", "1", "--loops", "1000")
    code = ("--name", "sum", "--output", str(path), "sum(range(100))")
    run(python, "-m", "pyperf", "timeit", "--quiet", *sizes, *code, at=tmp_path)
    (item,) = imported("pyperf", path)
    names = [(column["name"], column.get("statistic")) for column in item["columns"]]
    samples = [row[names.index(("latency", "sample"))] for row in item["rows"]]
    # Each process is a row: its values are not independent.
    assert [len(values) for values in samples] == [2, 2]
    runs = json.loads(path.read_text())["benchmarks"][0]["runs"]
    assert samples == [entry["values"] for entry in runs if entry.get("values")]
    assert item["protocol"]["warmup"] == 1


PYTEST_BENCHMARK = """
def test_sum(benchmark):
    benchmark.pedantic(sum, args=(range(100),), rounds=5, iterations=10)
"""


def test_pytest_benchmark(imported: Import, tmp_path: Path) -> None:
    python = module("pytest_benchmark", "pytest-benchmark")
    (tmp_path / "test_b.py").write_text(PYTEST_BENCHMARK)
    path = tmp_path / "a.json"
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"--benchmark-json={path}")
    run(python, "-m", "pytest", *options, "test_b.py", at=tmp_path)
    (item,) = imported("pytest-benchmark", path)
    assert item["context"]["benchmark"] == "test_b.py::test_sum"
    stats = json.loads(path.read_text())["benchmarks"][0]["stats"]
    assert cell(item, "latency", "sample") == stats["data"]
    assert item["source"]["keys"]["iterations"] == 10


INCLUDES = ("/usr/include", "/usr/local/include")
GOOGLE_BENCHMARK = """
#include <benchmark/benchmark.h>
static void BM_sum(benchmark::State& state) {
  long total = 0;
  for (auto _ : state) benchmark::DoNotOptimize(total += state.range(0));
}
BENCHMARK(BM_sum)->Arg(64);
static void BM_none(benchmark::State& state) {
  state.SkipWithError("no device");
  for (auto _ : state) {}
}
BENCHMARK(BM_none);
BENCHMARK_MAIN();
"""


@pytest.mark.parametrize("form", ["json", "csv"])
def test_google_benchmark(imported: Import, tmp_path: Path, form: str) -> None:
    compiler = program("g++")
    if not any(Path(place, "benchmark/benchmark.h").exists() for place in INCLUDES):
        pytest.skip("Google Benchmark (libbenchmark-dev) is not installed")
    (tmp_path / "b.cpp").write_text(GOOGLE_BENCHMARK)
    libraries = ("-lbenchmark", "-lpthread")
    run(compiler, "-std=c++17", "-o", "bench", "b.cpp", *libraries, at=tmp_path)
    path = tmp_path / f"a.{form}"
    options = ("--benchmark_min_time=0.001", "--benchmark_repetitions=3")
    output = (f"--benchmark_out={path}", f"--benchmark_out_format={form}")
    run("./bench", *options, *output, at=tmp_path)
    (item,) = imported("google-benchmark", path)
    assert item["context"]["benchmark"] == "BM_sum/64"
    samples = cell(item, "latency", "sample")
    assert len(samples) == 3
    assert all(value > 0 for value in samples)
    # An error stands in every repetition of some versions and once in others.
    assert item["source"]["skipped"]
    assert all("BM_none" in text and "no device" in text for text in item["source"]["skipped"])
