"""Files of questions: what each format says, in chunks, and what is wrong with single lines."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.operations.query_files import QueryFormat, query_format, question_chunks


def read(text: bytes | str, form: QueryFormat, **options: Any) -> list[Any]:
    data = text.encode() if isinstance(text, str) else text
    return list(question_chunks(io.BytesIO(data), form, document="asked", **options))


def test_lines_of_json_become_columns_chunk_by_chunk() -> None:
    text = '{"operation": "gemm", "m": 1}\n\n{"m": 2.5, "id": "b"}\n{"operation": "gemm"}'
    first, second = read(text, "jsonl", kept=("id",), chunk_rows=2)
    assert (first.count, second.count) == (2, 1)
    assert first.columns == {"operation": ["gemm", None], "m": [1, 2.5]}
    assert first.kept == {"id": [None, "b"]}
    assert second.columns == {"operation": ["gemm"]}
    assert not first.faults


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("[1]", "not-an-object", "line 2: is no object"),
        ('{"m": 1', "json-syntax", "line 2: "),
        ('{"m": 1, "m": 2}', "duplicate-key", "line 2: "),
        ('{"m": NaN}', "number-not-finite", "line 2: "),
        ('{"m": [1, 2]}', "nested-cell", "'m' is neither text nor a number"),
        ('{"schema": "perfdb/plan/v1"}', "unknown-schema", "perfdb/plan/v1"),
        (
            '{"schema": "perfdb/query/v1", "evidence_policy": {"max_age_days": 3}}',
            "limits-in-table",
            "limits of its own",
        ),
    ],
)
def test_a_wrong_line_is_a_fault_of_its_own_question(line: str, code: str, words: str) -> None:
    (chunk,) = read(f'{{"m": 1}}\n{line}\n{{"m": 3}}\n', "jsonl")
    assert chunk.columns["m"] == [1, None, 3]
    assert list(chunk.faults) == [1]
    assert chunk.faults[1].code == code
    assert words in chunk.faults[1].message


def test_brackets_that_only_match_across_lines_are_wrong_lines() -> None:
    (chunk,) = read('{"a": [{"b": 1}\n{"c": 2}]}\n{}, {}\n', "jsonl")
    assert sorted(chunk.faults) == [0, 1, 2]


def test_a_query_document_is_a_line_too() -> None:
    document = (
        '{"schema": "perfdb/query/v1", "workload": {"operation": "gemm", "dtype": "float16", '
        '"shape": {"m": 1, "n": null}}, "deployment": {"device": "a100_80g"}, '
        '"evidence_policy": {"max_age_days": null}}'
    )
    (chunk,) = read(document, "jsonl")
    assert chunk.columns == {
        "operation": ["gemm"],
        "dtype": ["float16"],
        "m": [1],
        "n": [None],
        "device": ["a100_80g"],
    }


def test_csv_with_gaps_quotes_and_a_byte_order_mark() -> None:
    text = '\ufeffoperation,m,layout\r\ngemm,16,"a,b"\r\ngemm,,\r\ngemm,1\r\n'
    (chunk,) = read(text, "csv")
    assert chunk.columns == {
        "operation": ["gemm", "gemm", None],
        "m": ["16", None, None],
        "layout": ["a,b", None, None],
    }
    assert chunk.faults[2].code == "row-length"


@pytest.mark.parametrize("text", ["", "m,m\n1,2\n"])
def test_csv_without_a_header_that_can_be_used(text: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        read(text, "csv")
    assert raised.value.code == "bad-header"


def test_csv_that_is_none() -> None:
    with pytest.raises(InvalidInputError) as raised:
        read(b'm\n"1\n', "csv")
    assert raised.value.code == "bad-csv"
    with pytest.raises(InvalidInputError):
        read(b"m\n\xff\n", "csv")


def test_parquet_with_nulls_and_dictionaries() -> None:
    table = pyarrow.table(
        {
            "operation": pyarrow.array(["gemm", "gemm", None]).dictionary_encode(),
            "m": pyarrow.array([1, None, 3], pyarrow.int32()),
            "id": [7, 8, 9],
        }
    )
    stream = io.BytesIO()
    pyarrow.parquet.write_table(table, stream)
    first, second = read(stream.getvalue(), "parquet", kept=("id",), chunk_rows=2)
    assert first.columns["operation"] == ["gemm", "gemm"]
    assert np.array_equal(first.columns["m"], [1, np.nan], equal_nan=True)
    assert second.columns["operation"] == [None]
    assert second.kept["id"] == [9]


def test_parquet_that_is_none_or_nested() -> None:
    with pytest.raises(InvalidInputError) as raised:
        read(b"PAR1", "parquet")
    assert raised.value.code == "bad-parquet"
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"m": [[1], [2]]}), stream)
    with pytest.raises(InvalidInputError) as raised:
        read(stream.getvalue(), "parquet")
    assert raised.value.code == "unsupported-column"


def test_the_format_is_told_by_the_name() -> None:
    names = ("a.jsonl", "a.NDJSON", "a.csv", "b.parquet")
    assert [query_format(Path(name)) for name in names] == ["jsonl", "jsonl", "csv", "parquet"]
    with pytest.raises(UsageError) as raised:
        query_format(Path("a.txt"))
    assert raised.value.code == "unknown-format"
