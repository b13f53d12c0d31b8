"""What an import refuses, what it reports, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pygit2
import pytest

from perfdb_git.errors import (
    InvalidInputError,
    InvalidRowsError,
    PerfdbError,
    RepositoryUnavailableError,
    UsageError,
)
from perfdb_git.importers import table as table_module
from tests.importers.import_fixtures import BENCH_HEADER, Evidence

Mapping = Callable[..., Path]
GOOD = "r1,half,8,16,32,1.5,\nr1,half,4,16,32,1.25,x\n"


def bench(evidence: Evidence, body: str, name: str = "a100/gemm.csv") -> Path:
    return evidence.put(name, BENCH_HEADER + body)


def test_rows_sort_by_dimensions_and_keep_their_numbers(
    evidence: Evidence, bench_mapping: Mapping
) -> None:
    report = evidence.run(bench_mapping(), bench(evidence, GOOD))
    item = evidence.one(operation="gemm")
    assert item.column("m") == [4, 8]
    assert item.column("row") == [1, 0]
    assert item.source["keys"] == {"run": "r1"}
    assert report.written == tuple(evidence.files())
    assert report.commit is None


def test_string_dimensions_split_record_sets(evidence: Evidence, bench_mapping: Mapping) -> None:
    report = evidence.run(bench_mapping(), bench(evidence, GOOD + "r1,single,8,16,32,2,\n"))
    assert sorted(item.rows for item in report.record_sets) == [1, 2]
    assert evidence.one(dtype="float32").column("latency", "median") == [2]


def test_numeric_constant_stands_in_the_context(evidence: Evidence, bench_mapping: Mapping) -> None:
    mapping = bench_mapping("k: {column: k}", "k: {value: 32}")
    text = mapping.read_text().replace("[note]", "[note, k]")
    mapping.write_text(text)
    evidence.run(mapping, bench(evidence, GOOD))
    assert evidence.one(operation="gemm").context["k"] == 32


@pytest.mark.parametrize(
    ("row", "column", "reason"),
    [
        ("r1,half,8,16,32,0,", "latency", "not positive"),
        ("r1,half,8,16,32,-1,", "latency", "not positive"),
        ("r1,half,8,16,32,nan,", "latency", "not a number"),
        ("r1,half,8,16,32,inf,", "latency", "not a number"),
        ("r1,half,8,16,32,1e999,", "latency", "overflows"),
        ("r1,half,8,16,32,1_000,", "latency", "not a number"),
        ("r1,half,8,16,32,,", "latency", "is empty"),
        ("r1,half,8,16,,1,", "k", "is empty"),
        ("r1,half,0,16,32,1,", "m", "must be positive"),
        ("r1,half,8.5,16,32,1,", "m", "whole number"),
        ("r1,half,9007199254740993,16,32,1,", "m", "beyond"),
        ("r1,half,eight,16,32,1,", "m", "not a number"),
        ("r1,double,8,16,32,1,", "kind", "not listed"),
        ("r1,,8,16,32,1,", "kind", "is empty"),
    ],
)
def test_bad_cell(
    evidence: Evidence, bench_mapping: Mapping, row: str, column: str, reason: str
) -> None:
    with pytest.raises(InvalidRowsError) as caught:
        evidence.run(bench_mapping(), bench(evidence, GOOD + row + "\n"))
    assert len(caught.value.rows) == 1
    assert caught.value.rows[0].startswith(f"a100/gemm.csv: line 4: column {column!r}:")
    assert reason in caught.value.rows[0]
    assert evidence.files() == []


BAD = (
    "r1,half,8,16,32,1,\n"
    "r1,half,0,16,32,0,\n"  # line 3: two faults
    "r1,half,8,16,32\n"  # line 4: too short
    "r1,half,8,16,x,1,\n"  # line 5
)


def test_every_bad_row_of_every_file_is_reported(
    evidence: Evidence, bench_mapping: Mapping
) -> None:
    files = [bench(evidence, BAD), bench(evidence, BAD, "h100/gemm.csv")]
    with pytest.raises(InvalidRowsError) as caught:
        evidence.run(bench_mapping(), *files)
    assert "6 bad rows" in str(caught.value)
    assert len(caught.value.rows) == 8
    text = "\n".join(caught.value.rows)
    for name in ("a100", "h100"):
        assert f"{name}/gemm.csv: line 4: has 5 cells, the header has 7" in text
    assert evidence.files() == []


def test_skipping_lists_bad_rows_in_the_record_set(
    evidence: Evidence, bench_mapping: Mapping
) -> None:
    report = evidence.run(bench_mapping(), bench(evidence, BAD), skip_bad_rows=True)
    assert report.records == 1
    assert len(report.bad_rows) == 4
    skipped = evidence.one(operation="gemm").source["skipped"]
    assert sorted(skipped) == sorted(str(row) for row in report.bad_rows)


def test_skipping_when_no_row_is_good(evidence: Evidence, bench_mapping: Mapping) -> None:
    path = bench(evidence, "r1,half,0,16,32,1,\n")
    report = evidence.run(bench_mapping(), path, skip_bad_rows=True)
    assert report.records == 0
    assert len(report.bad_rows) == 1
    assert evidence.files() == []


def test_row_of_no_operation_is_bad(evidence: Evidence, bench_mapping: Mapping) -> None:
    mapping = bench_mapping("  - operation: gemm\n", "  - operation: gemm\n    when: {run: r1}\n")
    with pytest.raises(InvalidRowsError, match="1 bad row;") as caught:
        evidence.run(mapping, bench(evidence, GOOD + "r2,half,1,1,1,1,\n"))
    assert "no operation of the mapping" in caught.value.rows[0]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("run,kind,m,n,k,latency,note,extra\n", "'extra'.*does not mention"),
        ("run,kind,m,n,latency,note\n", "lacks the columns 'k'"),
        ("run,kind,m,n,k,k,note\n", "two columns called 'k'"),
        (",kind,m,n,k,latency,run\n", "''.*does not mention"),
    ],
)
def test_columns_must_be_those_of_the_mapping(
    evidence: Evidence, bench_mapping: Mapping, header: str, message: str
) -> None:
    row = ",".join("1" for _ in header.split(",")) + "\n"
    path = evidence.put("a100/gemm.csv", header + row)
    with pytest.raises(InvalidInputError, match=message):
        evidence.run(bench_mapping(), path)


def test_path_that_does_not_fit(evidence: Evidence, bench_mapping: Mapping) -> None:
    with pytest.raises(InvalidInputError, match="does not end like"):
        evidence.run(bench_mapping(), bench(evidence, GOOD, "a100/other.csv"))


def test_path_variable_without_translation(evidence: Evidence, bench_mapping: Mapping) -> None:
    with pytest.raises(InvalidInputError, match="system = 'b200'"):
        evidence.run(bench_mapping(), bench(evidence, GOOD, "b200/gemm.csv"))


def test_lfs_pointer_is_recognised(evidence: Evidence, bench_mapping: Mapping) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 10730392\n"
    path = evidence.put("a100/gemm.csv", pointer)
    with pytest.raises(InvalidInputError, match="Git LFS pointer") as caught:
        evidence.run(bench_mapping(), path)
    assert caught.value.code == "git-lfs-pointer"


def test_base_name_without_a_source_root(evidence: Evidence, bench_mapping: Mapping) -> None:
    evidence.run(bench_mapping(), bench(evidence, GOOD), source_root=None, source_revision=None)
    item = evidence.one(operation="gemm")
    assert item.source["file"] == "gemm.csv"
    assert item.source["revision"] is None
    written = "".join((evidence.root / name).read_text() for name in evidence.files())
    assert str(evidence.upstream) not in written


def test_file_outside_the_source_root(evidence: Evidence, bench_mapping: Mapping) -> None:
    with pytest.raises(UsageError, match="not below the source root"):
        evidence.run(bench_mapping(), bench(evidence, GOOD), source_root=evidence.root)


def test_same_file_named_twice(evidence: Evidence, bench_mapping: Mapping) -> None:
    path = bench(evidence, GOOD)
    with pytest.raises(UsageError, match="given twice"):
        evidence.run(bench_mapping(), path, path.parent / ".." / "a100" / "gemm.csv")


def test_missing_file_and_no_file(evidence: Evidence, bench_mapping: Mapping) -> None:
    mapping = bench_mapping()
    with pytest.raises(UsageError, match="cannot be read"):
        evidence.run(mapping, evidence.upstream / "a100" / "gemm.csv")
    with pytest.raises(UsageError, match="no file"):
        evidence.run(mapping)


def test_dry_run_writes_nothing(evidence: Evidence, bench_mapping: Mapping) -> None:
    report = evidence.run(bench_mapping(), bench(evidence, GOOD), dry_run=True)
    assert report.dry_run
    assert report.records == 2
    assert len(report.written) == 2
    assert evidence.files() == []


def test_one_unreadable_file_stops_all(evidence: Evidence, bench_mapping: Mapping) -> None:
    good = bench(evidence, GOOD)
    broken = evidence.put("h100/gemm.csv", b"\xff\xfe")
    with pytest.raises(InvalidInputError, match="UTF-8"):
        evidence.run(bench_mapping(), good, broken)
    assert evidence.files() == []


def test_failed_write_leaves_nothing(
    evidence: Evidence, bench_mapping: Mapping, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [bench(evidence, GOOD), bench(evidence, GOOD, "h100/gemm.csv")]
    planned = evidence.run(bench_mapping(), *files, dry_run=True).written
    blocked = evidence.root / planned[-1]
    blocked.parent.mkdir(parents=True)
    blocked.write_text("something else")
    with pytest.raises(PerfdbError):
        evidence.run(bench_mapping(), *files)
    assert evidence.files() == [planned[-1]]


def repository(evidence: Evidence, *, identity: bool = True) -> pygit2.Repository:
    git = pygit2.init_repository(str(evidence.root), initial_head="main")
    if identity:
        git.config["user.name"] = "Tester"
        git.config["user.email"] = "tester@example.org"
    author = pygit2.Signature("Tester", "tester@example.org", 1_700_000_000, 0)
    git.index.add("evidence/vocabulary.yaml")
    tree = git.index.write_tree()
    git.index.write()
    git.create_commit("HEAD", author, author, "start", tree, [])
    return git


def test_git_is_touched_only_on_request(evidence: Evidence, bench_mapping: Mapping) -> None:
    git = repository(evidence)
    start = str(git.head.target)
    path = bench(evidence, GOOD)
    evidence.run(bench_mapping(), path)
    assert str(git.head.target) == start
    assert all(flag == pygit2.GIT_STATUS_WT_NEW for flag in git.status().values())


def test_commit(evidence: Evidence, bench_mapping: Mapping) -> None:
    git = repository(evidence)
    report = evidence.run(bench_mapping(), bench(evidence, GOOD), commit=True)
    assert report.commit == str(git.head.target)
    assert git.status() == {}
    assert "Import 2 records of bench" in git[git.head.target].message
    again = evidence.run(bench_mapping(), bench(evidence, GOOD), commit=True)
    assert again.commit is None


def test_failed_commit_takes_the_files_back(evidence: Evidence, bench_mapping: Mapping) -> None:
    path = bench(evidence, GOOD)
    with pytest.raises(RepositoryUnavailableError):
        evidence.run(bench_mapping(), path, commit=True)
    assert evidence.files() == []


def test_vocabulary_of_the_work_tree_judges(evidence: Evidence, bench_mapping: Mapping) -> None:
    vocabulary = evidence.root / "evidence" / "vocabulary.yaml"
    vocabulary.write_text(vocabulary.read_text().replace("a100_80g: [a100]", "other: []"))
    with pytest.raises(InvalidInputError, match="a100_80g"):
        evidence.run(bench_mapping(), bench(evidence, GOOD))


def test_progress_names_each_file(evidence: Evidence, bench_mapping: Mapping) -> None:
    seen: list[tuple[int, int, str]] = []
    request = table_module.ImportRequest(
        repository=evidence.root,
        mapping=str(bench_mapping()),
        files=(bench(evidence, GOOD), bench(evidence, GOOD, "h100/gemm.csv")),
        source_root=evidence.upstream,
    )
    table_module.import_table(request, progress=lambda *event: seen.append(event))
    assert seen == [(1, 2, "a100/gemm.csv"), (2, 2, "h100/gemm.csv")]


def test_commit_into_a_subfolder(evidence: Evidence, bench_mapping: Mapping) -> None:
    git = pygit2.init_repository(str(evidence.root.parent), initial_head="main")
    git.config["user.name"] = "Tester"
    git.config["user.email"] = "tester@example.org"
    author = pygit2.Signature("Tester", "tester@example.org", 1_700_000_000, 0)
    git.create_commit("HEAD", author, author, "start", git.index.write_tree(), [])
    report = evidence.run(bench_mapping(), bench(evidence, GOOD), commit=True)
    assert report.commit == str(git.head.target)
    names = [f"{evidence.root.name}/{path}" for path in evidence.files()]
    assert all(git.status_file(name) == pygit2.GIT_STATUS_CURRENT for name in names)
