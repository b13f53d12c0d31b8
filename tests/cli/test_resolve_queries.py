"""`perfdb resolve --queries`: files of questions in, tables of answers out."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.cli.evidence import GEMM, Evidence, envelope

QUESTIONS = """\
id,operation,device,dtype,m,n,k
first,gemm,a100,fp16,128,10240,8192
typo,gemm,a100,fp61,128,10240,8192
negative,gemm,a100,fp16,-1,10240,8192
open,gemm,,fp16,128,10240,8192
modelled,gemm,a100,fp16,77,10240,8192
nothing,softmax,a100,,,,
short,gemm
"""
STATUSES = ["ok", "error", "error", "ok", "ok", "no-evidence", "error"]


def asked(evidence: Evidence, text: str = QUESTIONS, name: str = "asked.csv") -> Path:
    path = evidence.path.parent / name
    path.write_text(text)
    return path


def as_json(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_each_question_has_a_row_and_bad_ones_change_no_other(evidence: Evidence) -> None:
    result = evidence.perfdb("resolve", "--queries", str(asked(evidence)), "--keep", "id")
    assert result.status == 0
    rows = as_json(result.out)
    assert [row["query"] for row in rows] == list(range(7))
    assert [row["status"] for row in rows] == STATUSES
    assert rows[0]["id"] == "first"
    alone = envelope(evidence.perfdb("resolve", *GEMM, "--json"))["data"]
    metric = alone["estimate"]["metrics"]["latency"]
    assert rows[0]["value"] == metric["value"]
    assert (rows[0]["lower"], rows[0]["upper"]) == (
        metric["uncertainty"]["lower"],
        metric["uncertainty"]["upper"],
    )
    assert rows[0]["records"] == alone["estimate"]["provenance"]["record_ids"]
    assert rows[0]["commit"] == evidence.git("rev-parse", "HEAD")
    assert rows[0]["alternative_analytical"] == "lower-tier"
    assert "alternative_recorded_measured" not in rows[0]
    assert rows[1]["code"] == "unknown-term"
    assert "did you mean fp16" in rows[1]["reason"] or "float16" in rows[1]["reason"]
    assert rows[2]["reason"] == "m=-1: must be positive"
    assert rows[4]["alternative_recorded_measured"] == "no-record"
    assert rows[6]["code"] == "row-length"
    assert "1 x unknown-term, such as question 1:" in result.err
    assert "7 questions: 3 error, 1 no-evidence, 3 ok" in result.err


def test_standard_input_takes_lines_of_json(evidence: Evidence) -> None:
    question = dict(pair.split("=") for pair in GEMM)
    lines = [json.dumps(question), "{", json.dumps({**question, "m": 128.5})]
    result = evidence.perfdb("resolve", "--queries", "-", stdin="\n".join(lines))
    rows = as_json(result.out)
    assert [row["status"] for row in rows] == ["ok", "error", "error"]
    assert rows[1]["reason"].startswith("line 2: ")
    assert "whole number" in rows[2]["reason"]


def test_a_parquet_file_of_answers_is_read_by_duckdb(evidence: Evidence) -> None:
    out = evidence.path.parent / "answers.parquet"
    result = evidence.perfdb(
        "resolve",
        *("--queries", str(asked(evidence)), "--keep", "id", "--output", str(out)),
        *("--alternative-values", "--json"),
    )
    data = envelope(result)["data"]
    assert (result.status, data["questions"]) == (0, 7)
    assert data["statuses"] == {"ok": 3, "error": 3, "no-evidence": 1}
    found = duckdb.sql(
        "select id, status, value, len(records), alternative_value_analytical > 0 "
        f"from '{out}' order by query"
    ).fetchall()
    assert [row[1] for row in found] == STATUSES
    assert found[0] == ("first", "ok", 0.002872, 1, True)
    assert found[1][2:] == (None, 0, None)


def test_answers_as_csv_and_arrow(evidence: Evidence) -> None:
    import pyarrow

    path = asked(evidence)
    result = evidence.perfdb(
        "resolve", "--queries", str(path), "--keep", "id", "--output-format", "csv"
    )
    rows = list(csv.DictReader(io.StringIO(result.out)))
    assert [row["status"] for row in rows] == STATUSES
    assert float(rows[0]["value"]) == 0.002872
    out = evidence.path.parent / "answers.arrow"
    evidence.perfdb("resolve", "--queries", str(path), "--keep", "id", "--output", str(out))
    with pyarrow.ipc.open_file(out) as file:
        table = file.read_all()
    assert table.column("status").to_pylist() == STATUSES
    assert table.schema.metadata[b"perfdb.commit"].decode() == evidence.git("rev-parse", "HEAD")


def test_a_column_that_is_no_dimension_is_told_what_to_do_with(evidence: Evidence) -> None:
    result = evidence.perfdb("resolve", "--queries", str(asked(evidence)))
    assert {row["code"] for row in as_json(result.out)} >= {"unknown-dimension"}
    assert "passed on with --keep" in result.err


def test_a_column_to_keep_that_is_not_there_is_told(evidence: Evidence) -> None:
    path = asked(evidence)
    result = evidence.perfdb("resolve", "--queries", str(path), "--keep", "id", "--keep", "layer")
    assert "no question has a column 'layer' to keep" in result.err
    assert "'id'" not in result.err


def test_answers_from_elsewhere_are_marked(evidence: Evidence) -> None:
    path = asked(evidence)
    policy = evidence.path / "evidence/policies/default.yaml"
    outside = evidence.path.parent / "mine.yaml"
    outside.write_text(policy.read_text())
    command = ("resolve", "--queries", str(path), "--keep", "id", "--worktree")
    rows = as_json(evidence.perfdb(*command, "--policy-file", str(outside)).out)
    assert {tuple(row["marks"]) for row in rows} == {("uncommitted", "external-policy")}
    assert not any("commit" in row for row in rows)
    assert [row["marks"] for row in as_json(evidence.perfdb(*command[:-1]).out)] == [[]] * 7


def test_limits_hold_for_all_questions(evidence: Evidence) -> None:
    path = asked(evidence)
    result = evidence.perfdb(
        "resolve", "--queries", str(path), "--keep", "id", "--method", "analytical"
    )
    rows = as_json(result.out)
    assert rows[0]["method"] == "analytical"
    assert rows[0]["alternative_recorded_measured"] == "method-not-admitted"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--keep", "id"), "--keep is about --queries"),
        (("--output", "x.csv"), "--output is about --queries"),
        (("--queries", "{file}", "m=1"), "--queries excludes KEY=VALUE"),
        (("--queries", "{file}", "--explain"), "--explain is for one question"),
        (("--queries", "{file}", "--json"), "write the answers to a file"),
        (("--queries", "{file}", "--output", "x.txt"), "--output-format"),
        (("--queries", "{file}", "--metric", "speed"), "unknown metric 'speed'"),
        (("--queries", "missing.csv"), "missing.csv"),
    ],
)
def test_requests_that_cannot_be_met(
    evidence: Evidence, arguments: tuple[str, ...], words: str
) -> None:
    path = asked(evidence)
    result = evidence.perfdb("resolve", *(item.format(file=path) for item in arguments))
    assert result.status == 2
    assert words in result.err + result.out
