"""nccl-tests and rccl-tests: their table by its header, and the JSON of ``-J``.

Times are the host's over all iterations of one size, per operation; GB/s is 10⁹ bytes a second.
Sizes follow the convention of the vocabulary's ``message_bytes``.
"""

from __future__ import annotations

from perfdb_git.importers.nccl_json import looks_like_nccl_json, read_nccl_json
from perfdb_git.importers.nccl_text import read_nccl_text
from perfdb_git.importers.source_text import SourceText
from perfdb_git.importers.tool_results import ReadingFacts, ToolImporter, ToolResult

_RCCL = "rccl-tests: Version"


def _is_table(source: SourceText) -> bool:
    head = source.head
    return "algbw" in head and "busbw" in head and "# nThread" in head


def _nccl(source: SourceText) -> bool:
    return looks_like_nccl_json(source) or (_is_table(source) and _RCCL not in source.head)


def _rccl(source: SourceText) -> bool:
    return _is_table(source) and _RCCL in source.head


def _read_nccl(source: SourceText, facts: ReadingFacts) -> ToolResult:
    # A table may begin with the [ of mpirun's tags.
    if source.json_object() is not None:
        return read_nccl_json(source, facts)
    return read_nccl_text(source, facts, tool="nccl-tests", library="nccl")


def _read_rccl(source: SourceText, facts: ReadingFacts) -> ToolResult:
    return read_nccl_text(source, facts, tool="rccl-tests", library="rccl")


NCCL_TESTS = ToolImporter(
    name="nccl-tests",
    version=1,
    summary="Import collective times of nccl-tests: its table, or the JSON of -J.",
    recognises=_nccl,
    read=_read_nccl,
)
RCCL_TESTS = ToolImporter(
    name="rccl-tests",
    version=1,
    summary="Import collective times of rccl-tests: its table.",
    recognises=_rccl,
    read=_read_rccl,
)
