"""``perfdb record``, with the installed command and small scripts as benchmarks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.evidence import GIT_ENVIRONMENT, Evidence, Result, envelope

POINT = ("--operation", "gemm", "m=64", "n=64", "k=64", "dtype=fp32", "--device", "a100")
MAPPING = """
schema: perfdb/mapping/v1
name: bench
version: 1
description: Test benchmark.
kind: measured
format: csv
source: {tool: bench, license: MIT}
session: bench
environment: {device: a100_80g, device_count: null, form_factor: null, driver: null,
  firmware: null, runtimes: {}, kernel: null, operating_system: null, processor: null,
  clock_policy: null, power_policy: null, topology: null, notes: []}
protocol: {warmup: 2, repetitions: 1, synchronization: device events, timer_resolution: null,
  clock_state: null, power_state: null, measurement_error: null}
dimensions: {device: {value: a100_80g}, dtype: {value: float32}}
operations:
  - operation: gemm
    dimensions: {m: {column: m}, "n": {column: m}, k: {column: m}}
    metrics:
      - {column: us, metric: latency, statistic: STATISTIC, unit: us}
"""


@pytest.fixture
def bench(evidence: Evidence, tmp_path: Path) -> Evidence:
    """A clean repository; scripts of the test are on the path before the machine's programs."""
    (tmp_path / "bin").mkdir()
    path = evidence.environment().get("PATH", "")
    evidence.variables["PATH"] = f"{tmp_path / 'bin'}:{path}"
    return evidence


def script(evidence: Evidence, name: str, body: str) -> None:
    file = Path(evidence.variables["PATH"].partition(":")[0]) / name
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)


def recorded(evidence: Evidence, result: Result) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the envelope's data and the one record set as it was written."""
    assert result.status == 0, result.out + result.err
    data = envelope(result)["data"]
    (item,) = data["record_sets"]
    value: dict[str, Any] = json.loads((evidence.path / item["path"]).read_bytes())
    return data, value


def test_wall_times_are_stored_with_protocol_environment_and_every_sample(
    bench: Evidence, tmp_path: Path
) -> None:
    script(bench, "gemm-bench", f"echo run >> {tmp_path}/log")
    result = bench.perfdb(
        *("record", *POINT, "--warmup", "2", "--repetitions", "5", "--json", "--", "gemm-bench")
    )
    data, value = recorded(bench, result)
    assert (tmp_path / "log").read_text() == "run\n" * 7
    (row,) = value["rows"]
    assert row[:3] == [64, 64, 64]
    assert row[3] == data["seconds"]
    assert len(row[3]) == 5
    protocol = value["protocol"]
    assert (protocol["warmup"], protocol["repetitions"]) == (2, 5)
    assert "whole process, its start and its end included" in protocol["synchronization"]
    assert protocol["timer_resolution"]["value"] > 0
    assert value["context"]["implementation"] == "process gemm-bench"
    assert value["environment"] == data["manifest"]
    assert value["observed"]["captured_at"]
    assert (bench.path / f"evidence/manifests/{data['manifest']}.json").is_file()
    check = bench.perfdb("check", "--worktree")
    assert check.status == 0, check.out
    question = ("operation=gemm", "device=a100", "dtype=fp32", "m=64", "n=64", "k=64")
    answer = envelope(bench.perfdb("resolve", *question, "--worktree", "--json"))["data"]
    assert answer["estimate"]["method"] == "measured"


def test_secrets_of_the_command_line_are_not_stored(bench: Evidence) -> None:
    script(bench, "gemm-bench", "exit 0")
    command = ("gemm-bench", "--api-key", "k-1", "--token=t-2", "https://ada:pw3@h/x", "--size=4")
    result = bench.perfdb(
        *("record", *POINT, "--repetitions", "1", "--session", "of password=s-5"),
        *("--note", "secret: n-4", "--json", "--", *command),
    )
    _, value = recorded(bench, result)
    stored = result.out + "".join(
        path.read_text() for path in (bench.path / "evidence").rglob("*.json")
    )
    for secret in ("k-1", "t-2", "pw3", "n-4", "s-5"):
        assert secret not in stored, secret
    assert "--size=4" in value["source"]["keys"]["command"]


@pytest.mark.parametrize(
    ("body", "options", "status", "text"),
    [
        ("echo no memory >&2; exit 7", (), 3, "failed with status 7; nothing is recorded; it said"),
        ("kill -SEGV $$", (), 3, "was ended by SIGSEGV"),
        ("sleep 30", ("--timeout", "0.2"), 3, "did not end within 0.2 s"),
        ("sleep 30 & wait", ("--timeout", "0.2"), 3, "did not end within 0.2 s"),
    ],
)
def test_a_command_that_does_not_succeed_leaves_nothing(
    bench: Evidence, body: str, options: tuple[str, ...], status: int, text: str
) -> None:
    script(bench, "gemm-bench", body)
    result = bench.perfdb("record", *POINT, *options, "--", "gemm-bench")
    assert (result.status, result.out) == (status, "")
    assert text in result.err
    assert bench.git("status", "--porcelain") == ""


def test_one_failing_repetition_is_enough(bench: Evidence, tmp_path: Path) -> None:
    script(bench, "gemm-bench", f"echo >> {tmp_path}/log; [ $(wc -l < {tmp_path}/log) -lt 4 ]")
    result = bench.perfdb("record", *POINT, "--", "gemm-bench")
    assert result.status == 3
    assert bench.git("status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--", "no-such-program"), "no-such-program' is no program"),
        ((), "there is no command to run"),
        (("--tool", "no-such-tool", "--", "true"), "no importer is named 'no-such-tool'"),
        (("--tool", "table", "--", "true"), "--tool table needs a mapping"),
        (("--device", "a100", "--", "true"), "operation that the command runs is not stated"),
        (("--operation", "gemm", "m=4", "--device", "a100", "--", "true"), "has no n, k"),
        ((*POINT, "window_size=3", "--", "true"), "no dimension 'window_size'"),
        ((*POINT, "device=h100", "--", "true"), "device=h100_80g is stated"),
    ],
)
def test_a_wrong_request_is_refused_before_anything_runs(
    bench: Evidence, arguments: tuple[str, ...], text: str
) -> None:
    result = bench.perfdb("record", *arguments)
    assert result.status == 2
    assert text in result.err
    assert bench.git("status", "--porcelain") == ""


def tool(bench: Evidence, tmp_path: Path, statistic: str, *options: str) -> Result:
    mapping = tmp_path / "bench.yaml"
    mapping.write_text(MAPPING.replace("STATISTIC", statistic))
    return bench.perfdb(
        *("record", "--tool", "table", "--mapping", str(mapping), "--device", "a100", "--json"),
        *("--repetitions", "3", *options, "--", "table-bench"),
    )


COUNTED = "echo >> {log}; n=$(wc -l < {log})\nprintf 'm,us\\n64,%s.5\\n128,2%s.5\\n' $n $n"


def test_samples_of_a_tool_become_arrays_over_the_repetitions(
    bench: Evidence, tmp_path: Path
) -> None:
    script(bench, "table-bench", COUNTED.format(log=tmp_path / "log"))
    data, value = recorded(bench, tool(bench, tmp_path, "sample"))
    rows = [row[:4] for row in value["rows"]]
    assert rows == [[64, 64, 64, [2.5, 3.5, 4.5]], [128, 128, 128, [22.5, 23.5, 24.5]]]
    assert (value["protocol"]["warmup"], value["protocol"]["repetitions"]) == (2, 3)
    assert "1 unrecorded, then 3 recorded" in " ".join(value["protocol"]["notes"])
    assert value["environment"] == data["manifest"]
    assert value["source"]["keys"]["command"] == "table-bench"
    assert bench.perfdb("check", "--worktree").status == 0


def test_summaries_of_a_tool_stay_one_row_a_repetition(bench: Evidence, tmp_path: Path) -> None:
    script(bench, "table-bench", COUNTED.format(log=tmp_path / "log"))
    _, value = recorded(bench, tool(bench, tmp_path, "median", "--warmup", "0"))
    assert [row[3] for row in value["rows"]] == [1.5, 2.5, 3.5, 21.5, 22.5, 23.5]
    assert [row[-1] for row in value["rows"]] == [1, 2, 3, 1, 2, 3]


def test_equal_results_of_two_runs_are_two_samples(bench: Evidence, tmp_path: Path) -> None:
    script(bench, "table-bench", "printf 'm,us\\n64,1.5\\n'")
    _, value = recorded(bench, tool(bench, tmp_path, "sample"))
    assert value["rows"][0][3] == [1.5, 1.5, 1.5]


@pytest.mark.parametrize(
    ("second", "text"),
    [
        ("m,us\\n64,2.5\\n", "repetition 2 printed other points"),
        ("m,us\\n64,2.5\\n256,1\\n", "repetition 2 printed other points"),
        ("m,us\\n64,2.5\\n128,broken\\n", "1 bad row"),
        ("nothing\\n", ""),
    ],
)
def test_output_whose_shape_changes_is_refused(
    bench: Evidence, tmp_path: Path, second: str, text: str
) -> None:
    log = tmp_path / "log"
    script(
        bench,
        "table-bench",
        f"echo >> {log}; if [ $(wc -l < {log}) -lt 3 ]; then printf 'm,us\\n64,1\\n128,2\\n'; "
        f"else printf '{second}'; fi",
    )
    result = tool(bench, tmp_path, "sample")
    assert result.status == 3
    assert text in result.out
    assert bench.git("status", "--porcelain") == ""


def test_output_of_another_device_is_refused(bench: Evidence, tmp_path: Path) -> None:
    script(bench, "table-bench", "printf 'm,us\\n64,1.5\\n'")
    result = tool(bench, tmp_path, "sample", "--device", "h100")
    assert result.status == 2
    assert "the output is of device a100_80g, the environment has h100_80g" in result.out
    assert bench.git("status", "--porcelain") == ""


def test_a_dry_run_runs_and_writes_nothing(bench: Evidence) -> None:
    script(bench, "gemm-bench", "exit 0")
    result = bench.perfdb("record", *POINT, "--repetitions", "2", "--dry-run", "--", "gemm-bench")
    assert result.status == 0
    assert "not written" in result.out
    assert bench.git("status", "--porcelain") == ""


def test_the_command_gets_the_callers_threads_and_all_its_own_options(
    bench: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(bench, "gemm-bench", f'echo "${{MKL_NUM_THREADS-unset}} $*" > {tmp_path}/seen')
    monkeypatch.delitem(GIT_ENVIRONMENT, "MKL_NUM_THREADS", raising=False)
    result = bench.perfdb(
        *("record", *POINT, "--repetitions", "1", "--", "gemm-bench", "--json", "--", "--tool=x")
    )
    assert result.status == 0, result.err
    assert result.out.startswith("session gemm-bench-")
    assert (tmp_path / "seen").read_text() == "unset --json -- --tool=x\n"


HYPERFINE = (
    '{"results": [{"command": "sort --token=abc words", "mean": 0.%s, "stddev": null, '
    '"median": 0.2, "user": 0.1, "system": 0.05, "min": 0.2, "max": 0.2, "times": [0.%s], '
    '"exit_codes": [0]}]}'
)


def test_the_output_of_a_known_tool_is_read_by_its_importer(
    bench: Evidence, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    output = HYPERFINE % ("2N", "2N")
    script(
        bench,
        "hyper",
        f"echo >> {log}; n=$(wc -l < {log}); printf '%s' '{output}' | sed s/2N/2$n/g",
    )
    result = bench.perfdb(
        *("record", "--tool", "hyperfine", "--device", "a100", "--repetitions", "3", "--json"),
        *("--", "hyper"),
    )
    data, value = recorded(bench, result)
    assert value["source"]["importer"].startswith("hyperfine/")
    assert value["context"]["device"] == "a100_80g"
    assert value["environment"] == data["manifest"]
    # User and system times are means, so that each repetition keeps its row.
    samples = [cell for row in value["rows"] for cell in row if isinstance(cell, list)]
    assert samples == [[0.22], [0.23], [0.24]]
    assert bench.perfdb("check", "--worktree").status == 0
    assert "abc" not in json.dumps(value)


PYPERF = {
    "version": "1.0",
    "benchmarks": [
        {
            "metadata": {"name": "sort", "unit": "second"},
            "runs": [
                {"metadata": {}, "values": [0.2, 0.21, 0.22], "warmups": [[1, 0.3]]},
                {"metadata": {}, "values": [0.3, 0.31, 0.32], "warmups": [[1, 0.3]]},
            ],
        }
    ],
}


def test_values_of_one_process_stay_together(bench: Evidence, tmp_path: Path) -> None:
    (tmp_path / "out.json").write_text(json.dumps(PYPERF))
    script(bench, "processes", f"cat {tmp_path}/out.json")
    result = bench.perfdb(
        *("record", "--tool", "pyperf", "--device", "a100", "--repetitions", "2", "--json"),
        *("--", "processes"),
    )
    _, value = recorded(bench, result)
    samples = [cell for row in value["rows"] for cell in row if isinstance(cell, list)]
    assert sorted(samples) == [[0.2, 0.21, 0.22]] * 2 + [[0.3, 0.31, 0.32]] * 2
    assert "repetition" in [column["name"] for column in value["columns"]]
    assert bench.perfdb("check", "--worktree").status == 0
