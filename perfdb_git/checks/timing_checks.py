"""Timing profiles and pipelines: what their schemas cannot say."""

from __future__ import annotations

from collections.abc import Iterator

from perfdb_git.checks.checked_snapshot import CheckedDocument, CheckedSnapshot
from perfdb_git.checks.profile_checks import NAME_STANDS_TWICE
from perfdb_git.checks.rules import Check, Rule
from perfdb_git.checks.terms import pointer
from perfdb_git.errors import InvalidInputError
from perfdb_git.model.findings import Finding
from perfdb_git.operations.stage_queries import query_faults
from perfdb_git.simulation.documents import (
    PIPELINE_KIND,
    TIMING_PROFILE_KIND,
    read_pipeline,
    read_timing_profile,
)
from perfdb_git.storage import layout

UNSOUND_PROFILE = Rule(
    code="unsound-timing-profile",
    documentation="A timing profile can be simulated with.",
    remedy="change the named value",
)
UNSOUND_PIPELINE = Rule(
    code="unsound-pipeline",
    documentation="A pipeline can be simulated.",
    remedy="change the named value",
)
STAGE_QUERY = Rule(
    code="bad-stage-query",
    documentation="Queries of stages ask for operations, dimensions and terms of the vocabulary.",
    remedy="write the query in canonical names and terms of evidence/vocabulary.yaml",
)


def judge_timing_profile(snapshot: CheckedSnapshot, document: CheckedDocument) -> Iterator[Finding]:
    """Yield what is wrong with one timing profile."""
    if document.kind != TIMING_PROFILE_KIND or not document.is_valid:
        return
    yield from _twin(snapshot, document)
    assert document.content is not None
    try:
        # From the bytes: the value at hand has floats in the place of decimals.
        read_timing_profile(document.content, document=document.path, schemas=snapshot.schemas)
    except InvalidInputError as error:
        yield UNSOUND_PROFILE.broken(document.path, error.reason, pointer=error.pointer)


def judge_pipeline(snapshot: CheckedSnapshot, document: CheckedDocument) -> Iterator[Finding]:
    """Yield what is wrong with one pipeline."""
    if document.kind != PIPELINE_KIND or not document.is_valid:
        return
    yield from _twin(snapshot, document)
    assert document.content is not None
    try:
        pipeline = read_pipeline(
            document.content, document=document.path, schemas=snapshot.schemas
        ).value
    except InvalidInputError as error:
        yield UNSOUND_PIPELINE.broken(document.path, error.reason, pointer=error.pointer)
        return
    if snapshot.vocabulary is None:
        return
    for place, stage in enumerate(pipeline.stages):
        for fault in query_faults(stage.query or {}, snapshot.vocabulary) if stage.query else ():
            path: list[str | int] = ["stages", place, "query"]
            where = path if fault.name is None else [*path, fault.name]
            yield STAGE_QUERY.broken(
                document.path, f"stage {stage.name}: {fault.message}", pointer=pointer(*where)
            )


def _twin(snapshot: CheckedSnapshot, document: CheckedDocument) -> Iterator[Finding]:
    stem = document.path.rpartition(".")[0]
    first, *others = [
        path for suffix in layout.DOCUMENT_SUFFIXES if (path := stem + suffix) in snapshot.paths
    ]
    if others and document.path != first:
        yield NAME_STANDS_TWICE.broken(document.path, f"stands beside {first}")


TIMING_PROFILES = Check(
    id="timing-profiles",
    documentation="Timing profiles can be simulated with.",
    rules=(UNSOUND_PROFILE, NAME_STANDS_TWICE),
    judge_document=judge_timing_profile,
)
PIPELINES = Check(
    id="pipelines",
    documentation="Pipelines can be simulated, and their queries be asked.",
    rules=(UNSOUND_PIPELINE, STAGE_QUERY, NAME_STANDS_TWICE),
    judge_document=judge_pipeline,
)
