"""Foreign tables: what is read, and what is refused."""

from __future__ import annotations

import builtins
import gzip
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdb_git.errors import InvalidInputError, MissingExtraError
from perfdb_git.importers.cells import Fault, numbers_of, verbatim
from perfdb_git.importers.tables import RawTable, read_table


def read(data: str | bytes, form: Any = "csv", **options: Any) -> RawTable:
    raw = data.encode() if isinstance(data, str) else data
    return read_table(raw, form, document="t", **options)


def test_csv_cells_lines_and_quotes() -> None:
    table = read('a,b\n1,"x\ny"\n2,\n')
    assert table.columns == {"a": ["1", "2"], "b": ["x\ny", None]}
    assert list(table.positions) == [3, 4]
    assert list(table.row_numbers) == [0, 1]


def test_tsv_and_windows_line_ends() -> None:
    assert read("a\tb\r\n1\t2\r\n", "tsv").columns == {"a": ["1"], "b": ["2"]}


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_byte_order_mark_and_gzip_are_read_over(form: str) -> None:
    text = b"a\n1\n" if form == "csv" else b'{"a": "1"}\n'
    marked = b"\xef\xbb\xbf" + text
    for data in (text, marked, gzip.compress(text), gzip.compress(marked)):
        assert read(data, form).columns == {"a": ["1"]}


def test_rows_of_another_width_are_broken() -> None:
    table = read("a,b\n1\n\n1,2\n1,2,3\n")
    assert [(b.position, b.reason[:11]) for b in table.broken] == [
        (2, "has 1 cells"),
        (3, "has 0 cells"),
        (5, "has 3 cells"),
    ]
    assert list(table.row_numbers) == [2]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty-table"),
        (b"a,b\n", "empty-table"),
        (b"a,a\n1,2\n", "repeated-column"),
        (b'a\n"x\n', "broken-table"),
        (b'a\n"x"y\n', "broken-table"),
        (b"a\n\xff\n", "not-utf8"),
        (gzip.compress(b"a\n1\n")[:-12], "broken-gzip"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git-lfs-pointer"),
    ],
)
def test_refused_tables(data: bytes, code: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read(data)
    assert caught.value.code == code


def test_ignored_columns_are_left_out() -> None:
    assert list(read(",a\n0,1\n", ignored=("",)).columns) == ["a"]


def test_json_lines() -> None:
    table = read('{"a": 1, "b": "x"}\n{"b": null, "a": 2.5}\n{"a": true, "b": "z"}\n', "jsonl")
    assert table.columns == {"a": [1, 2.5, "true"], "b": ["x", None, "z"]}
    assert not table.is_text


def test_json_lines_that_are_broken() -> None:
    lines = ['{"a": 1}', "[1]", '{"b": 1}', '{"a": [1]}', '{"a": NaN}', '{"a": 1, "a": 2}', "{"]
    table = read("\n".join(lines), "jsonl")
    assert [b.position for b in table.broken] == [2, 3, 4, 5, 6, 7]
    assert table.columns == {"a": [1]}


def parquet_bytes(**columns: Any) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), buffer)
    return buffer.getvalue()


def test_parquet() -> None:
    data = parquet_bytes(a=[1, 2], b=["x", None], c=[0.5, float("nan")], d=[True, False])
    table = read(data, "parquet")
    assert table.columns["a"] == [1, 2]
    assert table.columns["b"] == ["x", None]
    assert table.columns["d"] == ["true", "false"]
    assert list(table.positions) == [1, 2]
    values = numbers_of("c", table.columns["c"], is_text=False)
    assert values[0] == 0.5
    assert isinstance(values[1], Fault)


def test_parquet_types_without_a_value() -> None:
    data = parquet_bytes(a=[1], b=[[1, 2]])
    with pytest.raises(InvalidInputError, match="column 'b' has the type list"):
        read(data, "parquet")
    assert list(read(data, "parquet", ignored=("b",)).columns) == ["a"]


def test_parquet_that_is_none() -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(InvalidInputError, match="not a readable Parquet file"):
        read(b"PAR1 and then nothing", "parquet")


def test_parquet_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError, match="'tables'"):
        read(b"PAR1", "parquet")


@pytest.mark.parametrize(
    ("text", "value"), [("12", 12), ("-1", -1), ("1.5", 1.5), ("1e-05", 1e-5), ("0.0", 0.0)]
)
def test_numbers(text: str, value: float) -> None:
    (found,) = numbers_of("a", [text], is_text=True)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "text", ["nan", "inf", "1_000", "+1", ".5", "1.", "0x10", " 1", "1e999", "01", "--1", "1e-999"]
)
def test_texts_that_are_no_numbers(text: str) -> None:
    assert isinstance(numbers_of("a", [text], is_text=True)[0], Fault)


def test_text_is_no_number_where_the_format_has_numbers() -> None:
    assert isinstance(numbers_of("a", ["12"], is_text=False)[0], Fault)


@pytest.mark.parametrize(
    ("cells", "kept"),
    [
        (["4096", "1"], [4096, 1]),
        (["007", "1"], ["007", "1"]),
        (["1.5", "2.0"], [1.5, 2.0]),
        (["1.0", "2.0"], ["1.0", "2.0"]),
        (["1.50"], ["1.50"]),
        (["1", "1.5"], ["1", "1.5"]),
        (["True", None], ["True", None]),
        (["1", None], [1, None]),
        (["123456789012345678"], ["123456789012345678"]),
    ],
)
def test_source_columns_keep_their_texts(cells: list[str | None], kept: list[object]) -> None:
    found = verbatim(cells, is_text=True)
    assert found == kept
    assert [type(cell) for cell in found] == [type(cell) for cell in kept]


@given(st.lists(st.one_of(st.integers().map(str), st.floats().map(repr), st.text(max_size=5))))
def test_source_texts_can_be_recovered(texts: list[str]) -> None:
    found = verbatim(texts, is_text=True)
    assert [cell if isinstance(cell, str) else str(cell) for cell in found] == texts
