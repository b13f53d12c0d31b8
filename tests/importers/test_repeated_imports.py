"""Importing again adds what is new, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.importers.import_fixtures import (
    BENCH_HEADER,
    MLP_PATH,
    Evidence,
    attention_row,
    csv_text,
    mlp_row,
)

Mapping = Callable[..., Path]
FIRST = "r1,half,8,16,32,1.5,\nr1,half,4,16,32,1.25,\n"


def bench(evidence: Evidence, body: str, name: str = "a100/gemm.csv") -> Path:
    return evidence.put(name, BENCH_HEADER + body)


def test_same_file_adds_nothing(evidence: Evidence, bench_mapping: Mapping) -> None:
    evidence.run(bench_mapping(), bench(evidence, FIRST))
    before = evidence.files()
    report = evidence.run(bench_mapping(), bench(evidence, FIRST), source_revision="later")
    assert (report.records, report.known) == (0, 2)
    assert evidence.files() == before


def test_every_timed_operation_is_recognised(evidence: Evidence) -> None:
    path = evidence.put(MLP_PATH, csv_text([mlp_row(8, 1), mlp_row(8, 2), mlp_row(8, 1)]))
    assert evidence.run("vidur-mlp", path).records == 30
    report = evidence.run("vidur-mlp", path)
    assert (report.records, report.known) == (0, 30)


def test_decimal_source_columns_survive_canonical_json(evidence: Evidence) -> None:
    rows = [attention_row(False, 1, 0, 32), attention_row(False, 2, 0, 32)]
    rows[1]["time_stats.attn_output_reshape.std"] = 0.5  # beside 0.0, which is written as 0
    path = evidence.put("compute/a100/meta-llama/Llama-2-7b-hf/attention.csv", csv_text(rows))
    assert evidence.run("vidur-attention", path).records == 2
    assert evidence.run("vidur-attention", path).records == 0


def test_longer_file_adds_its_new_rows(evidence: Evidence, bench_mapping: Mapping) -> None:
    evidence.run(bench_mapping(), bench(evidence, FIRST))
    # In front of the known rows, so that row numbers shift; another run, so that a constant
    # upstream key becomes a column.
    longer = "r2,half,2,16,32,1,\n" + FIRST + "r1,half,8,16,32,1.75,\n"
    report = evidence.run(bench_mapping(), bench(evidence, longer))
    assert (report.records, report.known) == (2, 2)
    found = [s for s in evidence.record_sets() if 1.75 in s.column("latency", "median")]
    assert len(found) == 1
    assert found[0].column("latency", "median") == [1, 1.75]
    assert found[0].column("run") == ["r2", "r1"]
    assert evidence.run(bench_mapping(), bench(evidence, longer)).records == 0


def test_real_repeats_stay(evidence: Evidence, bench_mapping: Mapping) -> None:
    row = "r1,half,8,16,32,1.5,\n"
    assert evidence.run(bench_mapping(), bench(evidence, row * 2)).records == 2
    report = evidence.run(bench_mapping(), bench(evidence, row * 3))
    assert (report.records, report.known) == (1, 2)


def test_files_of_one_name_in_one_import(evidence: Evidence, bench_mapping: Mapping) -> None:
    same = [bench(evidence, FIRST), bench(evidence, FIRST, "copy/a100/gemm.csv")]
    report = evidence.run(bench_mapping(), *same, source_root=None)
    assert [file.records for file in report.files] == [2, 0]


def test_equal_rows_of_different_files_are_different_records(
    evidence: Evidence, bench_mapping: Mapping
) -> None:
    files = [bench(evidence, FIRST), bench(evidence, FIRST, "h100/gemm.csv")]
    assert evidence.run(bench_mapping(), *files).records == 4


def test_corrected_value_is_a_new_record(evidence: Evidence, bench_mapping: Mapping) -> None:
    evidence.run(bench_mapping(), bench(evidence, FIRST))
    report = evidence.run(bench_mapping(), bench(evidence, FIRST.replace("1.25", "1.26")))
    assert (report.records, report.known) == (1, 1)
