"""The work of a process that makes or verifies segments for another one (`segment_workers`).

It reads JSON lines and writes one for each. The first names the snapshot, the cache directory and
the task; each further one lists files, and the answer says by blob how each came out. A file that
cannot be read or is invalid is left out: whoever asked meets it again and says what is wrong with
it. The process ends with its standard input, however its parent ended.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias

from perfdb_git.errors import PerfdbError
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.storage.block_file import Comparison, compare_block_files
from perfdb_git.storage.cache_directory import CacheDirectory
from perfdb_git.storage.segment_store import SegmentStore, segment_name
from perfdb_git.storage.segments import build_segment, without_garbage_collection
from perfdb_git.storage.sources import SourceAddress, SourceFile, open_source

Task: TypeAlias = Literal["make", "verify"]
Outcome: TypeAlias = Literal["made", "absent"] | Comparison


def work(requests: IO[str], answers: IO[str]) -> None:
    """Answer requests until there are no more."""
    first = json.loads(requests.readline())
    source = open_source(SourceAddress(first["path"], first["commit"]))
    cache = CacheDirectory(Path(first["cache"]))
    schemas = SchemaStore()
    task = _TASKS[first["task"]]
    with without_garbage_collection():
        for line in requests:
            outcomes = {}
            for path, blob in json.loads(line):
                try:
                    content = source.read(SourceFile(path, blob))
                    segment = build_segment(content, document=path, schemas=schemas)
                except PerfdbError:
                    continue
                outcome = task(cache, segment_name(blob), segment)
                if outcome is not None:
                    outcomes[blob] = outcome
            answers.write(json.dumps(outcomes) + "\n")
            answers.flush()


def _make(cache: CacheDirectory, name: str, segment: bytes) -> Outcome | None:
    cache.store(name, segment)
    return None if cache.warnings else "made"


def verify_file(store: SegmentStore, name: str, wanted: bytes) -> Outcome:
    """Compare an index file with what it should be, and discard it where it is not."""
    stored = store.load(name)
    if stored is None:
        return "absent"
    outcome = compare_block_files(stored, wanted)
    if outcome != "equal":
        store.discard(name)
    return outcome


_TASKS: Mapping[Task, Callable[[CacheDirectory, str, bytes], Outcome | None]] = {
    "make": _make,
    "verify": verify_file,
}


def request(address: SourceAddress, cache: Path, task: Task) -> dict[str, Any]:
    """Return what the first line says."""
    return {**address._asdict(), "cache": str(cache), "task": task}


def main() -> None:
    """Serve the process that started this one."""
    # An interrupt of the terminal reaches the parent too, which closes our standard input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    work(sys.stdin, sys.stdout)
