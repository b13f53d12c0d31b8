"""Verifying: every file that is not what Git says is named and removed, and nothing else is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.errors import RepositoryUnavailableError
from perfdb_git.storage.block_file import BlockFile, pack_block_file
from perfdb_git.storage.cache_files import own_files
from perfdb_git.storage.segments import SEGMENT_MAGIC
from tests.storage.evidence_fixtures import everything, evidence_files, snapshot_of


@pytest.fixture
def evidence(new_repository: Callable[..., Any]) -> Any:
    made = new_repository()
    made.commit("evidence", evidence_files(sets=6))
    return made


def forged(content: bytes) -> bytes:
    """Return a segment with one number changed and valid checksums."""
    file = BlockFile(content, magic=SEGMENT_MAGIC)
    blocks = [bytearray(file.block(number)) for number in range(4)]
    blocks[2][3] ^= 1
    return pack_block_file(SEGMENT_MAGIC, file.content, [bytes(block) for block in blocks])


def flipped(content: bytes) -> bytes:
    place = len(content) - 100
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


_HARM: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda content: content[:-70],
    "damaged": flipped,
    "differs": forged,
}


@pytest.mark.parametrize("jobs", [1, 2])
def test_each_kind_of_fault_is_found_and_removed(evidence: Any, tmp_path: Path, jobs: int) -> None:
    snapshot = snapshot_of(evidence.path, tmp_path)
    wanted = everything(snapshot)
    assert snapshot.index.verify().faults == ()
    segments = sorted(tmp_path.rglob("*.segment"))
    for path, harm in zip(segments, _HARM.values(), strict=False):
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(harm(content))
    segments[3].unlink()

    again = snapshot_of(evidence.path, tmp_path, jobs=jobs)
    found = again.index.verify()
    assert {fault.file.rpartition("/")[2]: fault.fault for fault in found.faults} == {
        path.name: fault for path, fault in zip(segments, _HARM, strict=False)
    }
    paths = {view.path for key in again.series_keys() for view in again.record_sets(key)}
    assert {fault.path for fault in found.faults} < paths
    assert (found.record_sets, found.not_indexed) == (6, 1)
    assert [path.exists() for path in segments] == [False] * 4 + [True] * 2
    assert everything(again) == wanted
    assert snapshot_of(evidence.path, tmp_path).index.verify().faults == ()


@pytest.mark.parametrize("suffix", ["directory", "catalogue"])
@pytest.mark.parametrize("fault", ["truncated", "damaged"])
def test_catalogues_are_verified_too(
    evidence: Any, tmp_path: Path, suffix: str, fault: str
) -> None:
    everything(snapshot_of(evidence.path, tmp_path))
    path = min(tmp_path.rglob(f"*.{suffix}"))
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(_HARM[fault](content))
    (found,) = snapshot_of(evidence.path, tmp_path).index.verify().faults
    assert (found.file, found.fault) == (path.relative_to(tmp_path).as_posix(), fault)


def test_a_missing_index_is_no_fault_and_is_not_made(evidence: Any, tmp_path: Path) -> None:
    found = snapshot_of(evidence.path, tmp_path).index.verify()
    assert (found.record_sets, found.not_indexed, found.faults) == (6, 6, ())
    assert list(own_files(tmp_path)) == []


def test_a_missing_object_is_an_error(evidence: Any, tmp_path: Path) -> None:
    snapshot = snapshot_of(evidence.path, tmp_path)
    path = next(iter(everything(snapshot).keys() - {"digest"}))
    evidence.loose(evidence.git("rev-parse", f"HEAD:{path}")).unlink()
    with pytest.raises(RepositoryUnavailableError, match="not present"):
        snapshot_of(evidence.path, tmp_path, jobs=2).index.verify()
