"""What a question reads of the index, and what of Git: only its own series, and no record set."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.formats.digests import sha256_hex
from perfdb_git.model.records import SeriesKey
from perfdb_git.storage.cache_directory import CacheDirectory
from perfdb_git.storage.catalogue_entries import facts_of, summary_of
from perfdb_git.storage.segment_store import directory_name, segment_name
from perfdb_git.storage.snapshot import EvidenceSnapshot
from perfdb_git.storage.sources import GitSource, SourceFile
from tests.storage.evidence_fixtures import (
    evidence_files,
    header,
    record_set,
    retraction,
    rows,
    snapshot_of,
)

A100, H100 = (
    SeriesKey(kind="measured", device=device, operation="gemm") for device in ("a100", "h100")
)


@pytest.fixture
def evidence(new_repository: Callable[..., Any]) -> Any:
    made = new_repository()
    made.commit("evidence", evidence_files(sets=8))
    return made


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


class Reads:
    """What is read of the cache directory and of Git from here on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.index: list[str] = []
        self.files: list[str] = []
        self.folders: list[str] = []
        load, read = CacheDirectory.load, GitSource.read
        files, entries = GitSource.files, GitSource.entries

        def note_load(cache: CacheDirectory, name: str) -> Any:
            self.index.append(name)
            return load(cache, name)

        def note_read(source: GitSource, file: SourceFile) -> bytes:
            self.files.append(file.path)
            return read(source, file)

        def note_files(source: GitSource, path: str) -> Any:
            self.folders.append(path)
            return files(source, path)

        def note_entries(source: GitSource, path: str) -> Any:
            self.folders.append(path)
            return entries(source, path)

        monkeypatch.setattr(CacheDirectory, "load", note_load)
        monkeypatch.setattr(GitSource, "read", note_read)
        monkeypatch.setattr(GitSource, "files", note_files)
        monkeypatch.setattr(GitSource, "entries", note_entries)


def test_opening_reads_one_index_file_and_nothing_of_git(
    evidence: Any, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot_of(evidence.path, cache).index.build()
    reads = Reads(monkeypatch)
    snapshot = snapshot_of(evidence.path, cache)
    assert [(item.key, item.record_sets, item.rows) for item in snapshot.series()] == [
        (A100, 4, 80),
        (H100, 4, 80),
    ]
    assert [name.rpartition(".")[2] for name in reads.index] == ["catalogue"]
    assert (reads.files, reads.folders) == ([], [])


def test_a_question_reads_its_own_series_only(
    evidence: Any, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot_of(evidence.path, cache).index.build()
    reads = Reads(monkeypatch)
    snapshot = snapshot_of(evidence.path, cache)
    first, *others = snapshot.record_sets(A100)
    assert first.dimension("m") is not None
    assert first.metric("latency", "median") is not None
    tree = evidence.git("rev-parse", "HEAD:evidence/records/a100/gemm")
    assert reads.index[1:] == [directory_name(tree), segment_name(first.entry.blob)]
    assert (reads.files, reads.folders) == ([], [])
    snapshot.verified_rows(first, [2])
    assert reads.files == [first.path]
    assert len(others) == 3


def test_a_new_record_set_is_all_that_is_read(
    evidence: Any, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot_of(evidence.path, cache).index.build()
    path, content = record_set(header(session="new"), rows(5, seed=99))
    evidence.commit("more", {path: content})
    reads = Reads(monkeypatch)
    snapshot = snapshot_of(evidence.path, cache)
    assert [item.rows for item in snapshot.series()] == [85, 80]
    assert reads.files == [path]
    # Segments of the folder that changed, and the catalogues of all.
    segments = [name for name in reads.index if name.endswith(".segment")]
    assert len(segments) == 5
    assert sum(name.endswith(".directory") for name in reads.index) == 2


def repeated_evidence() -> dict[str, bytes]:
    """Return files that stand at several paths, in their folder and in others, and loose ones."""
    files = evidence_files(sets=4)
    records = {path: text for path, text in files.items() if path.startswith("evidence/records")}
    first, second, third, fourth = sorted(records)
    _, content = record_set(header(session="loose", device="b200"), rows(3, seed=7))
    return {
        **files,
        "evidence/records/a100/gemm/again.json": records[first],
        "evidence/records/h100/gemm/elsewhere.json": records[second],
        "evidence/records/loose.json": content,
        "evidence/records/h100/loose.json": records[third],
        "evidence/records/h100/deep/er/still.json": records[fourth],
        "evidence/records/zz/gemm/last.json": content,
    }


def test_a_record_counts_once_wherever_its_file_stands(
    new_repository: Callable[..., Any], cache: Path
) -> None:
    made = new_repository()
    files = repeated_evidence()
    made.commit("evidence", files)
    snapshot = snapshot_of(made.path, cache)
    wanted: dict[str, str] = {}
    for path in sorted(path for path in files if path.startswith("evidence/records")):
        wanted.setdefault(sha256_hex(files[path]), path)
    found = {
        view.sha256: view.path
        for key in snapshot.series_keys()
        for view in snapshot.record_sets(key)
    }
    assert found == wanted
    assert [item.record_sets for item in snapshot.series()] == [2, 1, 2]
    for sha256, path in wanted.items():
        assert snapshot.find_record_set(sha256[:9]).path == path


def test_what_is_added_up_is_what_the_record_sets_say(
    new_repository: Callable[..., Any], cache: Path
) -> None:
    made = new_repository()
    files = repeated_evidence()
    dated = header(session="dated", device="h100")
    dated["source"] = {**dated["source"], "measured_at": "2024-05-01T00:00:00Z"}
    path, content = record_set(dated, rows(6, seed=3))
    made.commit("evidence", {**files, path: content})
    made.commit("wrong", dict([retraction(f"{sha256_hex(content)}#1"), retraction("e" * 64)]))
    other = snapshot_of(made.path, cache).record_sets(A100)[0]
    made.commit("wrong too", dict([retraction(other.sha256)]))
    snapshot: EvidenceSnapshot = snapshot_of(made.path, cache)
    facts = snapshot.index.facts()
    for summary in snapshot.series():
        entries = snapshot.index.entries(summary.key)
        assert summary == summary_of(summary.key, entries)
        assert facts[summary.key] == facts_of(entries)
    assert facts[H100].retracted == 1
    assert facts[H100].measured_from == "2024-05-01T00:00:00Z"
    assert facts[A100].retracted == other.row_count


@pytest.mark.parametrize("digits", [0, 1, 2, 5, 63, 64])
def test_every_prefix_finds_what_begins_so(evidence: Any, cache: Path, digits: int) -> None:
    snapshot = snapshot_of(evidence.path, cache)
    addresses = sorted(
        view.sha256 for key in snapshot.series_keys() for view in snapshot.record_sets(key)
    )
    for address in (*addresses, "0" * 64, "f" * 64):
        prefix = address[:digits]
        found = [sha256 for sha256, _ in snapshot.index.find(prefix)]
        assert found == [item for item in addresses if item.startswith(prefix)]


class Shelf:
    """A store in a dictionary, as an object store behind the index would be."""

    local_root = None

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def has(self, name: str) -> bool:
        return name in self.files

    def load(self, name: str) -> bytes | None:
        return self.files.get(name)

    def store(self, name: str, content: bytes) -> None:
        self.files[name] = content

    def discard(self, name: str) -> None:
        self.files.pop(name, None)


def test_index_files_may_come_from_anywhere(evidence: Any, cache: Path, tmp_path: Path) -> None:
    shelf = Shelf()
    snapshot_of(evidence.path, cache, segment_store=shelf).index.build()
    assert len(shelf.files) == 8 + 2 + 1
    assert not list(cache.rglob("*.segment"))
    elsewhere = snapshot_of(evidence.path, tmp_path / "other", segment_store=shelf, jobs=2)
    view = elsewhere.record_sets(A100)[0]
    assert view.dimension("m") is not None
    assert elsewhere.index.segments_built == 0
    name = segment_name(view.entry.blob)
    shelf.files[name] = shelf.files[name][:-9]
    third = snapshot_of(evidence.path, cache, segment_store=shelf)
    assert third.record_sets(A100)[0].dimension("m") is not None
    assert third.index.segments_built == 1
