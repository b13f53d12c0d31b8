"""Labels of a source's version that other labels, or the source itself, contradict."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from perfdb_git.checks.change import Change
from perfdb_git.checks.checked_snapshot import RECORD_SET, CheckedDocument
from perfdb_git.checks.rules import Check, Rule
from perfdb_git.model.findings import Finding

CONTRADICTORY_SOURCE = Rule(
    code="contradictory-source",
    documentation="A file of a source at one revision has one content.",
    remedy="state the revision that the file is really from; retract the set that has it wrong",
)
CONTRADICTORY_VERSION = Rule(
    code="contradictory-version",
    severity="warning",
    documentation="A runtime's revision is the one in the path or the labels of its source.",
    remedy="find out which is right; where the rows are, keep the other in the source's labels",
)

_NONE: frozenset[int] = frozenset()
_VERSION = re.compile(r"v?([0-9]+(?:\.[0-9]+)+(?:[a-z0-9.+-]*[a-z0-9])?)", re.ASCII)
"""A part of a path that is a version and nothing else: 1.3.0rc20, v2.26.2."""


class _Content(NamedTuple):
    """What a record set says that its source file holds."""

    sha256: str
    git_blob: str | None


def judge_source(change: Change, document: CheckedDocument) -> Iterator[Finding]:
    """Yield labels of a new record set that contradict each other or existing evidence."""
    header = document.header
    if document.kind != RECORD_SET or header is None:
        return
    yield from _contents(change, document)
    runtime = header.context.get("runtime_revision")
    if not isinstance(runtime, str):
        return
    in_path = [part for part in header.source.file.split("/")[:-1] if _VERSION.fullmatch(part)]
    stated = [match[1] for part in in_path if (match := _VERSION.fullmatch(part)) is not None]
    labelled = {text.removeprefix("v") for text in header.source.labels.values()}
    unexplained = [text for text in stated if text not in labelled]
    if unexplained and runtime.removeprefix("v") not in stated:
        yield CONTRADICTORY_VERSION.broken(
            document.path,
            f"runtime_revision is {runtime!r}, the path of the source says {unexplained[0]!r}, and "
            "no label says why",
            pointer="/context/runtime_revision",
        )


def _contents(change: Change, document: CheckedDocument) -> Iterator[Finding]:
    assert document.header is not None
    source = document.header.source
    if source.revision is None:
        return
    for entry in change.existing.entries:
        other = entry.header["source"]
        named = (other["tool"], other["revision"], other["file"])
        if named != (source.tool, source.revision, source.file):
            continue
        if entry.path == document.path or change.retracted.get(entry.sha256, _NONE) is None:
            continue
        before = _Content(other["sha256"], other["git_blob"])
        for key, mine, theirs in zip(
            _Content._fields, (source.sha256, source.git_blob), before, strict=True
        ):
            if mine is not None and theirs is not None and mine != theirs:
                yield CONTRADICTORY_SOURCE.broken(
                    document.path,
                    f"{source.file} of {source.tool} at revision {source.revision} has {key} "
                    f"{mine[:12]} here and {theirs[:12]} in {entry.path}",
                    pointer=f"/source/{key}",
                )
                return


SOURCES = Check(
    id="sources",
    documentation="Labels of sources agree with each other and with the evidence that is there.",
    rules=(CONTRADICTORY_SOURCE, CONTRADICTORY_VERSION),
    judge_addition=judge_source,
)
