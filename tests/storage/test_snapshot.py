"""What a snapshot says: verified rows, retractions, documents, ids."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.errors import (
    InvalidInputError,
    PerfdbError,
    RepositoryUnavailableError,
    UsageError,
)
from perfdb_git.formats.canonical import canonical_document
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.model.records import SeriesKey
from perfdb_git.storage.block_file import BlockFile, pack_block_file
from perfdb_git.storage.directory_catalogue import DIRECTORY_MAGIC
from perfdb_git.storage.index import IndexRebuiltError
from perfdb_git.storage.segment_store import segment_name
from perfdb_git.storage.segments import SEGMENT_MAGIC, build_segment
from perfdb_git.storage.snapshot import EvidenceSnapshot
from perfdb_git.storage.sources import SourceFile
from tests.storage.evidence_fixtures import (
    METRICS,
    PROFILE,
    everything,
    evidence_files,
    header,
    record_set,
    retraction,
    rows,
    snapshot_of,
)

A100 = SeriesKey(kind="measured", device="a100", operation="gemm")
MANIFEST = {
    "schema": "perfdb/manifest/v1",
    "device": "a100",
    **dict.fromkeys(("device_count", "form_factor", "driver", "firmware"), None),
    "runtimes": {},
    **dict.fromkeys(("kernel", "operating_system", "processor"), None),
    **dict.fromkeys(("clock_policy", "power_policy", "topology"), None),
}


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def evidence(new_repository: Callable[..., Any]) -> Any:
    made = new_repository()
    made.commit("evidence", evidence_files())
    return made


@pytest.fixture
def snapshot(evidence: Any, cache: Path) -> EvidenceSnapshot:
    return snapshot_of(evidence.path, cache)


def test_a_series_and_its_record_sets(snapshot: EvidenceSnapshot) -> None:
    assert [key.device for key in snapshot.series_keys()] == ["a100", "h100"]
    assert [(item.record_sets, item.rows) for item in snapshot.series()] == [(2, 40), (2, 40)]
    views = snapshot.record_sets(A100)
    assert [view.path for view in views] == sorted(view.path for view in views)
    assert {view.header.session for view in views} == {"session-0", "session-2"}
    cells = rows(20)
    first = next(view for view in views if view.header.session == "session-0")
    m, median = first.dimension("m"), first.metric("latency", "median")
    assert m is not None
    assert median is not None
    assert m.tolist() == [row[0] for row in cells]
    assert median.tolist() == [row[2] for row in cells]
    assert first.dimension("n") is None
    assert first.dimension("latency") is None
    assert first.dimension("row") is None
    assert first.metric("latency", "max") is None
    assert first.live() is None
    assert snapshot.record_sets(SeriesKey(kind="measured", device="x", operation="gemm")) == ()


def test_verified_rows_come_from_git(snapshot: EvidenceSnapshot, evidence: Any) -> None:
    view = snapshot.record_sets(A100)[0]
    stated = json.loads(evidence.git("show", f"HEAD:{view.path}"))["rows"]
    found = snapshot.verified_rows(view, [7, 0, 19])
    assert [row.row for row in found] == [7, 0, 19]
    assert [list(row.cells) for row in found] == [stated[7], stated[0], stated[19]]
    assert {row.record_set for row in found} == {view.sha256}
    assert snapshot.verified_rows(view, []) == []
    for row in (20, -1):
        with pytest.raises(PerfdbError, match="has 20 rows"):
            snapshot.verified_rows(view, [row])


def test_an_index_that_lies_is_found_out(evidence: Any, cache: Path) -> None:
    """A segment with valid checksums and a wrong number, as a bug or a forger would make it."""
    wanted = everything(snapshot_of(evidence.path, cache))
    snapshot = snapshot_of(evidence.path, cache)
    view = snapshot.record_sets(A100)[0]
    content = snapshot.source.read(SourceFile(view.path, view.entry.blob))
    document = json.loads(content)
    document["rows"][4][2] *= 2
    lie = build_segment(json.dumps(document).encode(), document="forged", schemas=SchemaStore())
    file = BlockFile(lie, magic=SEGMENT_MAGIC)
    blocks = [bytes(file.block(number)) for number in range(4)]
    blob = view.entry.blob
    path = cache / segment_name(blob)
    path.unlink()
    path.write_bytes(
        pack_block_file(SEGMENT_MAGIC, {**file.content, "sha256": view.sha256}, blocks)
    )

    assert snapshot.verified_rows(view, [3])
    with pytest.raises(IndexRebuiltError) as caught:
        snapshot.verified_rows(view, [3, 4])
    assert isinstance(caught.value, RepositoryUnavailableError)
    assert snapshot.generation == 1
    assert everything(snapshot) == wanted
    assert everything(snapshot_of(evidence.path, cache)) == wanted


@pytest.mark.parametrize("lie", ["sha256", "row_count", "header", "blob"])
def test_a_catalogue_that_lies_is_found_out(evidence: Any, cache: Path, lie: str) -> None:
    wanted = everything(snapshot_of(evidence.path, cache))
    [path] = cache.rglob(f"{evidence.git('rev-parse', 'HEAD:evidence/records/a100/gemm')}.*")
    file = BlockFile(path.read_bytes(), magic=DIRECTORY_MAGIC)
    blocks = [bytes(file.block(number)) for number in range(len(file.content) + 2)]
    entries = json.loads(blocks[0])
    entry, other = entries[0], entries[1]
    if lie == "sha256":
        entry[2] = "f" * 64
    elif lie == "row_count":
        entry[3] = 10
    elif lie == "header":
        entry[4]["session"] = "another"
    else:
        entry[1] = other[1]
    path.unlink()
    blocks[0] = json.dumps(entries).encode()
    path.write_bytes(pack_block_file(DIRECTORY_MAGIC, file.content, blocks))
    snapshot = snapshot_of(evidence.path, cache)
    with pytest.raises(IndexRebuiltError):
        for view in snapshot.record_sets(A100):
            snapshot.verified_rows(view, [0])
    assert snapshot.generation == 1
    assert everything(snapshot) == wanted


def test_a_retraction_applies_from_its_commit_on(evidence: Any, cache: Path) -> None:
    first, second = snapshot_of(evidence.path, cache).record_sets(A100)
    evidence.commit("one row", dict([retraction(f"{first.sha256}#2")]))
    evidence.commit(
        "a whole set and an unknown one",
        dict([retraction(second.sha256), retraction("e" * 64), retraction(f"{first.sha256}#99")]),
    )
    old, middle, new = (
        snapshot_of(evidence.path, cache, revision) for revision in ("HEAD~2", "HEAD~1", "HEAD")
    )
    lives = [[view.live() for view in item.record_sets(A100)] for item in (old, middle, new)]
    assert lives[0] == [None, None]
    assert lives[1][0] is not None
    assert lives[1][0].sum() == 19
    assert not lives[1][0][2]
    assert lives[1][1] is None
    assert lives[2][0] is not None
    assert lives[2][0].tolist() == lives[1][0].tolist()
    assert lives[2][1] is not None
    assert not lives[2][1].any()
    assert len({item.records_digest for item in (old, middle, new)}) == 3
    assert len(new.retractions()) == 4
    assert new.retractions()[0].value.reason == "the clock was wrong"
    assert old.retractions() == ()


def test_an_invalid_retraction_is_an_error(evidence: Any, cache: Path) -> None:
    evidence.commit("bad", {"evidence/retractions/x.json": b'{"schema": "perfdb/retraction/v1"}'})
    with pytest.raises(InvalidInputError, match=r"evidence/retractions/x\.json"):
        snapshot_of(evidence.path, cache).series_keys()


def test_samples_of_a_row(evidence: Any, cache: Path) -> None:
    metrics = [{**METRICS[0], "statistic": "sample"}]
    head = header(device="s1", metrics=metrics)
    scalar = header(device="s2", metrics=metrics)
    evidence.commit(
        "samples",
        dict(
            [
                record_set(head, [[1, 1, [0.5, 0.25], 0], [2, 1, None, 1], [3, 1, 2, 2]]),
                record_set(scalar, [[1, 1, 0.5, 0], [2, 1, None, 1]]),
            ]
        ),
    )
    snapshot = snapshot_of(evidence.path, cache)
    [ragged] = snapshot.record_sets(SeriesKey(kind="measured", device="s1", operation="gemm"))
    [plain] = snapshot.record_sets(SeriesKey(kind="measured", device="s2", operation="gemm"))
    found = [ragged.samples("latency", row) for row in range(3)]
    assert [None if f is None else f.tolist() for f in found] == [[0.5, 0.25], [], [2.0]]
    found = [plain.samples("latency", row) for row in range(2)]
    assert [None if f is None else f.tolist() for f in found] == [[0.5], []]
    assert ragged.metric("latency", "sample") is None
    assert plain.metric("latency", "sample") is not None
    assert ragged.samples("energy", 0) is None
    assert snapshot.verified_rows(ragged, [0])[0].cells == (1, 1, [0.5, 0.25], 0)


def test_record_sets_are_found_by_prefix(snapshot: EvidenceSnapshot) -> None:
    views = [view for key in snapshot.series_keys() for view in snapshot.record_sets(key)]
    for view in views:
        assert snapshot.find_record_set(view.sha256) is view
        assert snapshot.find_record_set(view.sha256[:12]) is view
    for prefix in ("", "abc", "f" * 64, "XYZW", views[0].sha256 + "0"):
        with pytest.raises(UsageError) as caught:
            snapshot.find_record_set(prefix)
        assert caught.value.code == "unknown-id"


def test_an_ambiguous_prefix_names_the_candidates(
    snapshot: EvidenceSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    views = snapshot.record_sets(A100)
    monkeypatch.setattr(snapshot, "matching_record_sets", lambda prefix: views)
    with pytest.raises(UsageError, match=views[1].sha256[:16]) as caught:
        snapshot.find_record_set("0000")
    assert caught.value.code == "ambiguous-id"


def test_whole_record_sets_are_read_strictly(evidence: Any, snapshot: EvidenceSnapshot) -> None:
    found = list(snapshot.record_set_documents("a100", "gemm"))
    assert [path for path, _, _ in found] == [view.path for view in snapshot.record_sets(A100)]
    for path, head, cells in found:
        assert cells == json.loads(evidence.git("show", f"HEAD:{path}"))["rows"]
        assert head.device == "a100"
    assert list(snapshot.record_set_documents("a100", "softmax")) == []


def test_documents_are_typed_and_digested(evidence: Any, snapshot: EvidenceSnapshot) -> None:
    assert snapshot.vocabulary().dimensions["m"].unit == "1"
    assert snapshot.policies() == ("default",)
    policy, digest = snapshot.policy("default")
    assert policy.conflict.threshold == 0.1
    content = evidence.run("show", "HEAD:evidence/policies/default.yaml")
    assert digest == f"sha256:{sha256_hex(content)}"
    assert snapshot.system_profiles() == ("a100",)
    assert snapshot.system_profile("a100").device == "a100"
    assert snapshot.system_profile_digest("a100") == f"sha256:{sha256_hex(PROFILE)}"


def test_a_known_document_needs_neither_parser_nor_validator(
    evidence: Any, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = snapshot_of(evidence.path, cache).vocabulary()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("parsed again")

    monkeypatch.setattr(SchemaStore, "validate", refuse)
    monkeypatch.setattr("perfdb_git.storage.documents.read_yaml", refuse)
    assert snapshot_of(evidence.path, cache).vocabulary() == wanted
    monkeypatch.setattr("perfdb_git.storage.documents.__version__", "99.0")
    with pytest.raises(AssertionError, match="parsed again"):
        snapshot_of(evidence.path, cache).vocabulary()


def test_missing_documents_say_what_there_is(snapshot: EvidenceSnapshot) -> None:
    with pytest.raises(InvalidInputError, match="it has: default") as caught:
        snapshot.policy("strict")
    assert caught.value.code == "unknown-policy"
    with pytest.raises(InvalidInputError, match="it has: a100") as caught:
        snapshot.system_profile("b200")
    assert caught.value.code == "unknown-system-profile"
    with pytest.raises(InvalidInputError) as caught:
        snapshot.manifest("a" * 64)
    assert caught.value.code == "unknown-manifest"
    with pytest.raises(InvalidInputError) as caught:
        snapshot.policy("../../secret")
    assert caught.value.code == "odd-name"


def test_a_profile_in_two_notations_is_refused(evidence: Any, cache: Path) -> None:
    evidence.commit("twin", {"profiles/systems/a100.json": b"{}"})
    with pytest.raises(InvalidInputError):
        snapshot_of(evidence.path, cache).system_profile("a100")


def test_an_invalid_document_is_an_error_each_time(evidence: Any, cache: Path) -> None:
    evidence.commit("bad", {"evidence/policies/bad.yaml": b"schema: perfdb/policy/v1\n"})
    for _ in range(2):
        with pytest.raises(InvalidInputError, match=r"evidence/policies/bad\.yaml"):
            snapshot_of(evidence.path, cache).policy("bad")


def test_manifests_are_content_addressed(evidence: Any, cache: Path) -> None:
    content = canonical_document(MANIFEST)
    good, wrong = sha256_hex(content), "b" * 64
    folder = "evidence/manifests"
    evidence.commit(
        "manifests", {f"{folder}/{good}.json": content, f"{folder}/{wrong}.json": content}
    )
    snapshot = snapshot_of(evidence.path, cache)
    assert snapshot.manifests() == tuple(sorted((good, wrong)))
    assert snapshot.manifest(good).device == "a100"
    with pytest.raises(InvalidInputError) as caught:
        snapshot.manifest(wrong)
    assert caught.value.code == "wrong-digest"


def test_tree_ids_are_those_of_git(evidence: Any, snapshot: EvidenceSnapshot) -> None:
    assert snapshot.tree_ids() == {
        "evidence": evidence.git("rev-parse", "HEAD:evidence"),
        "profiles": evidence.git("rev-parse", "HEAD:profiles"),
        "schemas": None,
    }
    assert snapshot.commit == evidence.git("rev-parse", "HEAD")
    assert snapshot.committer_time == int(evidence.git("log", "-1", "--format=%ct"))
