"""`perfdb resolve --queries` on Dask workers: the table of one process, whoever is lost."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.database import DatabaseSnapshot, PerformanceDatabase
from perfdb_git.operations.query_files import QuestionChunk
from perfdb_git.resolution.answer_table import AnswerTable
from tests.cli.evidence import Evidence, make_evidence
from tests.distribution.dask_processes import DaskProcesses, dask_processes

pytest.importorskip("distributed")

from perfdb_git.distribution.bulk_resolve import BatchRequest, answer_chunks
from perfdb_git.distribution.cluster import ClusterChoice, open_cluster
from perfdb_git.distribution.snapshot_addresses import SnapshotAddress

SIZES = range(1, 401)
HEADER = "operation,device,dtype,m,n,k,layer\n"


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    folder = tmp_path_factory.mktemp("bulk")
    made = make_evidence(folder / "evidence", folder / "cache")
    for session in range(3):
        made.add_gemm(
            f"night-{session}",
            [(m, 1024, 4096, 0.1 + m / 7 + session / 1000, 0.01, 20) for m in SIZES],
        )
    made.commit("three nights")
    lines = [f"gemm,a100,fp16,{m},1024,4096,layer {m}\n" for m in SIZES]
    lines += ["gemm,a100,fp16,none,1024,4096,wrong\n", "gemm,h100,,7,8,9,elsewhere\n"]
    (folder / "questions.csv").write_text(HEADER + "".join(lines))
    return made


def asked(evidence: Evidence, *options: str) -> str:
    """The table that the command prints; it is a fault if it says anything else."""
    questions = evidence.path.parent / "questions.csv"
    result = evidence.perfdb(
        "resolve", "--queries", str(questions), "--keep", "layer", "--output-format", "csv",
        *options,
    )  # fmt: skip
    assert result.status == 0, result.err
    lines = result.err.splitlines()
    assert [line for line in lines if "bad-number" not in line and "questions" not in line] == []
    return result.out


def test_workers_give_the_table_of_one_process(
    evidence: Evidence, processes: DaskProcesses, tmp_path: Path
) -> None:
    here = asked(evidence)
    assert here.count("\n") == len(SIZES) + 3
    shared = tmp_path / "shared"
    there = asked(
        evidence, "--dask", processes.address, "--segments", str(shared),
        "--worker-repo", evidence.path.as_uri(),
    )  # fmt: skip
    assert there == here
    # One chunk of questions: one worker cloned the repository and fetched all index files.
    cloned = list(processes.folder.glob("*/clones/*.git"))
    assert len(cloned) == 1
    index = cloned[0].parents[1] / "index"
    names = {file.relative_to(index) for file in index.rglob("*.*") if file.is_file()}
    assert names == {
        file.relative_to(shared / "index") for file in shared.rglob("*.*") if file.is_file()
    }


def chunks() -> Iterator[QuestionChunk]:
    for start in range(0, len(SIZES), 10):
        sizes = list(SIZES)[start : start + 10]
        columns = {
            "operation": ["gemm"] * 10, "device": ["a100"] * 10, "dtype": ["fp16"] * 10,
            "m": sizes, "n": [1024] * 10, "k": [4096] * 10,
        }  # fmt: skip
        yield QuestionChunk(count=10, columns=columns, kept={"m": sizes})


def answered_rows(chunk: QuestionChunk, table: AnswerTable) -> list[dict[str, Any]]:
    return [{**row, "m": size} for row, size in zip(table.rows(), chunk.kept["m"], strict=True)]


def request(snapshot: DatabaseSnapshot, path: Path) -> BatchRequest:
    assert snapshot.commit is not None
    return BatchRequest(
        address=SnapshotAddress(repository=str(path), commit=snapshot.commit),
        policy=snapshot.policy(),
    )


def test_a_worker_that_is_killed_changes_nothing(evidence: Evidence, tmp_path: Path) -> None:
    snapshot = PerformanceDatabase.open(evidence.path, cache_directory=evidence.cache).at()
    batch = request(snapshot, evidence.path)
    expected = list(answer_chunks(batch, chunks(), answered_rows, map))
    assert [row["query"] for rows in expected for row in rows] == list(range(400))
    with dask_processes(tmp_path, PERFDB_CACHE_DIR=str(evidence.cache)) as started:
        lost, kept = started.add_worker("lost"), started.add_worker("kept")
        with open_cluster(ClusterChoice(address=started.address)) as cluster:
            answers = answer_chunks(batch, chunks(), answered_rows, cluster.map)
            found = [next(answers) for _ in range(3)]
            lost.kill()
            found += answers
        assert kept.poll() is None
    assert found == expected


def test_a_worker_without_the_commit_says_so(
    evidence: Evidence, processes: DaskProcesses, tmp_path: Path
) -> None:
    shutil.copytree(evidence.path, tmp_path / "old")
    evidence.commit("only here")
    result = evidence.perfdb(
        "resolve", "--queries", str(evidence.path.parent / "questions.csv"), "--keep", "layer",
        "--dask", processes.address, "--worker-repo", str(tmp_path / "old"),
    )  # fmt: skip
    commit = evidence.git("rev-parse", "HEAD")
    assert result.status == 5
    assert f"a worker's clone does not have commit {commit}" in result.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--queries", "questions.csv", "--workers", "1", "--worktree"), "uncommitted files"),
        (("--queries", "questions.csv", "--segments", "x"), "--segments is about workers"),
        (("operation=gemm", "--workers", "1"), "about --queries"),
    ],
)
def test_wrong_usage_is_refused(evidence: Evidence, options: tuple[str, ...], words: str) -> None:
    shutil.copy(evidence.path.parent / "questions.csv", evidence.path)
    result = evidence.perfdb("resolve", *options)
    assert (result.status, words in result.err) == (2, True), result
