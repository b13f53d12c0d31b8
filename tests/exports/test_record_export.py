"""`perfdb export --format`: other tools read exactly what the records say."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.database import PerformanceDatabase
from perfdb_git.exports import arrow_files, record_rows
from perfdb_git.exports.columns import UNIT_SUFFIXES
from perfdb_git.exports.export import ExportRequest, RecordExport
from perfdb_git.operations.units import UNITS
from tests.cli.evidence import SCHEMAS, Evidence, Result, envelope, make_evidence
from tests.exports.exported_evidence import FORMULA, TEXT, exported_evidence, stated_records

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
duckdb = pytest.importorskip("duckdb")

Tables = dict[str, Path]


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    return exported_evidence(tmp_path_factory.mktemp("exported"))


@pytest.fixture(scope="module")
def files(evidence: Evidence) -> Tables:
    """The whole repository in each format, retracted records too."""
    written = {}
    for form in ("parquet", "arrow", "csv"):
        path = evidence.path.parent / f"records.{form}"
        result = evidence.perfdb(
            "export", "--format", form, "--retracted", "--output", str(path),
            "--metadata", f"{path}.json",
        )  # fmt: skip
        assert (result.status, result.err) == (0, "")
        assert result.out.endswith("6 records, 41 columns\n")
        written[form] = path
    return written


def rows_of(query: str) -> dict[str, dict[str, Any]]:
    """Records by id, as DuckDB gives them."""
    answer = duckdb.sql(query)
    return {row[0]: dict(zip(answer.columns, row, strict=True)) for row in answer.fetchall()}


def exported(evidence: Evidence, *options: str) -> list[dict[str, str]]:
    result = evidence.perfdb("export", "--format", "csv", *options)
    assert (result.status, result.err) == (0, "")
    return list(csv.DictReader(io.StringIO(result.out, newline="")))


def refused(result: Result, status: int, words: str) -> None:
    assert (result.status, words in result.err) == (status, True), result


def test_duckdb_reads_from_parquet_what_the_records_say(evidence: Evidence, files: Tables) -> None:
    found = rows_of(f"from '{files['parquet']}'")
    stated = stated_records(evidence)
    assert found.keys() == stated.keys()
    for record, values in stated.items():
        row = found[record] | {"source_keys": json.loads(found[record]["source_keys"])}
        assert {name: row[name] for name in values} == values
        # Nothing else is claimed of its dimensions and metrics.
        others = {name for name in row if name.startswith("latency")} - values.keys()
        assert all(row[name] is None for name in others)
        assert isinstance(row["m"], int)
    retracted = [record for record, row in found.items() if row["retracted"]]
    assert [found[record]["m"] for record in retracted] == [256]


def test_what_is_unknown_differs_from_what_is_not_stated(files: Tables) -> None:
    found = rows_of(f"from '{files['parquet']}'").values()
    unknown = {(row["session"], row["m"]): row["unknown_dimensions"] for row in found}
    assert unknown[("one", 128)] == ["runtime"]
    assert unknown[("two", 512)] == ["k"]
    assert unknown[("three", 128)] == []
    assert all(row["runtime"] is None for row in found if row["session"] in ("one", "three"))


def test_the_metadata_name_the_snapshot_and_the_units(evidence: Evidence, files: Tables) -> None:
    commit = evidence.git("rev-parse", "HEAD")
    query = f"select decode(key), decode(value) from parquet_kv_metadata('{files['parquet']}')"
    keys = dict(duckdb.sql(query).fetchall())
    assert keys["perfdb.commit"] == commit
    metadata = json.loads(keys["perfdb"])
    assert metadata["schemas"] == ["perfdb/record-set/v1", "perfdb/vocabulary/v1"]
    units = {column["name"]: column["unit"] for column in metadata["columns"]}
    assert (units["latency_median_s"], units["cycles_mean"], units["session"]) == ("s", "1", None)
    (manifest,) = metadata["environments"].values()
    assert manifest["device"] == "a100_80g"
    with pyarrow.ipc.open_file(files["arrow"]) as reader:
        assert json.loads(reader.schema.metadata[b"perfdb"]) == metadata
        assert reader.schema.field("latency_samples_s").metadata[b"unit"] == b"s"
    for form, path in files.items():
        sidecar: Any = json.loads(Path(f"{path}.json").read_text())
        SCHEMAS.validate(sidecar, document="metadata", expected_kind="result")
        assert sidecar["data"] == {"format": form, "rows": 6, **metadata}


def test_arrow_and_parquet_hold_the_same_table(files: Tables) -> None:
    with pyarrow.ipc.open_file(files["arrow"]) as reader:
        assert reader.num_record_batches == 1
        assert reader.read_all().equals(parquet.read_table(files["parquet"]))


def test_csv_reads_back_to_the_same_bits_and_texts(files: Tables) -> None:
    with files["csv"].open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    table = parquet.read_table(files["parquet"])
    for row, expected in zip(rows, table.to_pylist(), strict=True):
        assert list(row) == table.column_names
        for name, cell in expected.items():
            assert _cell_of(row[name], cell) == cell, name
    assert any(cell.startswith("'=") for row in rows for cell in row.values())


def _cell_of(text: str, like: object) -> object:
    if like is None:
        return text or None
    if isinstance(like, bool):
        return {"true": True, "false": False}[text]
    if isinstance(like, int | float):
        return type(like)(text)
    if isinstance(like, list):
        return json.loads(text)
    return text.removeprefix("'")


def test_duckdb_reads_csv_as_it_reads_parquet(files: Tables) -> None:
    listed = "* exclude (latency_samples_s, unknown_dimensions, implementation)"
    typed = f"select {listed} from read_csv('{files['csv']}')"
    found = rows_of(typed)
    expected = rows_of(typed.replace("read_csv", "read_parquet").replace(".csv", ".parquet"))
    for record, row in expected.items():
        # Dates and times look like some to DuckDB; texts of JSON stay texts.
        assert {**found[record], "measured_at": None} == {**row, "measured_at": None}
    samples = "select record_id, latency_samples_s::double[] samples from"
    lists = rows_of(f"{samples} read_csv('{files['csv']}')")
    assert lists == rows_of(f"{samples} '{files['parquet']}'")


def test_parquet_has_only_types_that_every_reader_has(files: Tables) -> None:
    query = f"""select distinct type, converted_type, logical_type
        from parquet_schema('{files["parquet"]}') where num_children is null"""
    assert set(duckdb.sql(query).fetchall()) == {
        ("BYTE_ARRAY", "UTF8", "StringType()"),
        ("INT64", None, None),
        ("DOUBLE", None, None),
        ("BOOLEAN", None, None),
    }
    metadata = parquet.ParquetFile(files["parquet"]).metadata
    chunks = [metadata.row_group(0).column(place) for place in range(metadata.num_columns)]
    assert {chunk.compression for chunk in chunks} == {"SNAPPY"}
    assert {encoding for chunk in chunks for encoding in chunk.encodings} <= {
        "PLAIN", "RLE", "RLE_DICTIONARY",
    }  # fmt: skip


@pytest.mark.parametrize("reader", ["pandas", "polars"])
def test_data_frames_read_both_binary_formats(files: Tables, reader: str) -> None:
    library = pytest.importorskip(reader)
    from_arrow = library.read_feather if reader == "pandas" else library.read_ipc
    for frame in (library.read_parquet(files["parquet"]), from_arrow(files["arrow"])):
        assert frame.shape == (6, 41)
        assert math.isclose(frame["latency_median_s"].sum(), 0.002872 + 1 / 3000, rel_tol=1e-15)


def test_stated_units_keep_every_digit(evidence: Evidence) -> None:
    rows = exported(evidence, "--units", "stated")
    medians = [row["latency_median_ms"] for row in rows if row["latency_median_ms"]]
    samples = [row["latency_samples_us"] for row in rows if row["latency_samples_us"]]
    assert medians == ["2.872"]
    assert samples == ["[1.5, 1e-07, 3.0]", "[0.1]"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), ["one 128", "two 128", "two 256", "two 512", "three 128"]),
        (("--retracted",), ["one 128", "one 256", "two 128", "two 256", "two 512", "three 128"]),
        (("--series", "device=a100,m=128"), ["one 128", "two 128"]),
        (("--series", "kind=simulated", "--series", "session=one"), ["one 128", "three 128"]),
        (("--series", "m=512", "--series", "session=two"), ["two 128", "two 256", "two 512"]),
        (("--series", "runtime=null"), ["one 128", "three 128"]),
        (("--at", "first"), ["one 128", "one 256"]),
    ],
)
def test_a_selection_is_of_series_or_rows(
    evidence: Evidence, options: tuple[str, ...], expected: list[str]
) -> None:
    assert [f"{row['session']} {row['m']}" for row in exported(evidence, *options)] == expected


def test_records_are_chosen_by_id(evidence: Evidence) -> None:
    ids = list(stated_records(evidence))
    prefix, _, number = ids[-1].partition("#")
    chosen = exported(evidence, "--series", f"{prefix[:12]}#{number}")
    assert [row["record_id"] for row in chosen] == [ids[-1]]
    unknown = evidence.perfdb("export", "--format", "csv", "--series", "0000000#1")
    refused(unknown, 2, "no record set")


def test_without_records_the_table_is_empty(evidence: Evidence, tmp_path: Path) -> None:
    for form in ("csv", "parquet", "arrow"):
        result = evidence.perfdb(
            "export", "--format", form, "--series", "device=h200", "--output", str(tmp_path / form)
        )
        refused(result, 4, "no record of this commit fits")
    assert parquet.read_table(tmp_path / "parquet").num_rows == 0
    assert (tmp_path / "csv").read_text().startswith("record_id,kind,operation,device,retracted,")


def test_uncommitted_records_are_marked(evidence: Evidence, tmp_path: Path) -> None:
    result = evidence.perfdb(
        "export", "--format", "csv", "--worktree", "--output", str(tmp_path / "out"), "--json"
    )
    data = envelope(result)["data"]
    assert (data["commit"], data["uncommitted"], data["rows"]) == (None, True, 5)


def test_evidence_text_cannot_run_in_a_spreadsheet(evidence: Evidence) -> None:
    (row,) = exported(evidence, "--series", "session=one")
    assert row["implementation"] == f"'{FORMULA}"
    text = exported(evidence, "--series", "session=two")[0]["runtime"]
    assert text == TEXT


def test_row_groups_are_filled_from_many_record_sets(
    evidence: Evidence, files: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small record sets share a group, a large one is split: memory is that of a group."""
    monkeypatch.setattr(record_rows, "BLOCK_ROWS", 2)
    monkeypatch.setattr(arrow_files, "ROW_GROUP_ROWS", 4)
    stream = io.BytesIO()
    snapshot = PerformanceDatabase.open(evidence.path, cache_directory=evidence.cache).at("HEAD")
    export = RecordExport(snapshot, ExportRequest(retracted=True))
    encoder = arrow_files.ArrowEncoder(export.columns, export.metadata)
    writer = arrow_files.ArrowWriter(stream, encoder, parquet=True)
    export.write(encoder, writer)
    writer.close()
    groups = parquet.ParquetFile(io.BytesIO(stream.getvalue())).metadata
    sizes = [groups.row_group(place).num_rows for place in range(groups.num_row_groups)]
    assert sizes == [4, 2]
    assert parquet.read_table(io.BytesIO(stream.getvalue())).equals(
        parquet.read_table(files["parquet"])
    )


def test_a_dimension_never_takes_a_column_of_the_table(
    tmp_path: Path,
) -> None:
    made = make_evidence(tmp_path / "evidence", tmp_path / "cache")
    vocabulary = made.path / "evidence/vocabulary.yaml"
    marker = "  implementation:\n"
    added = "  session:\n    group: subject\n    type: label\n    description: Part of a day.\n"
    vocabulary.write_text(vocabulary.read_text().replace(marker, added + marker, 1))
    made.add_gemm("one", [(128, 10240, 8192, 1, 1, 20)], context={"session": "night"})
    made.commit("a dimension with a taken name")
    (row,) = exported(made)
    assert (row["session"], row["session_dimension"]) == ("one", "night")


def test_every_unit_has_a_suffix_of_its_own() -> None:
    assert UNIT_SUFFIXES.keys() == UNITS.keys()
    assert len({suffix.lower() for suffix in UNIT_SUFFIXES.values()}) == len(UNIT_SUFFIXES)


def test_without_pyarrow_only_csv_is_written(evidence: Evidence, tmp_path: Path) -> None:
    (tmp_path / "pyarrow.py").write_text("raise ImportError('not here')\n")
    path = evidence.environment()["PYTHONPATH"]
    hidden = {"PYTHONPATH": f"{tmp_path}:{path}"}
    for form in ("parquet", "arrow"):
        result = evidence.perfdb("export", "--format", form, "--output", "x", **hidden)
        refused(result, 2, "pip install 'perfdb-git[tables]'")
    result = evidence.perfdb("export", "--format", "csv", **hidden)
    assert (result.status, result.out.count("\n")) == (0, 9)


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        ((), 2, "Missing option '--format'"),
        (("--format", "csv", "--json"), 2, "--json"),
        (("--format", "csv", "calculon-system", "a100"), 2, "--format stands before"),
        (("--format", "csv", "--output", "x", "--metadata", "./x"), 2, "name the same file"),
        (("--format", "csv", "--series", "m=one"), 2, "is not a number"),
        (("--format", "csv", "--output", "no/where"), 2, "there is no folder"),
        (("--format", "csv", "--at", "nowhere"), 5, "nowhere"),
    ],
)
def test_wrong_usage_is_refused(
    evidence: Evidence, options: tuple[str, ...], status: int, words: str
) -> None:
    result = evidence.perfdb("export", *options)
    assert (result.status, words in result.out + result.err) == (status, True), result
