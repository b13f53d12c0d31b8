"""Tables of questions answered by the workers of a cluster, each from a clone of its own."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from uuid import uuid4

from perfdb_git.database import DatabaseSnapshot, PolicyInForce
from perfdb_git.distribution.snapshot_addresses import SnapshotAddress
from perfdb_git.model.query import EvidencePolicy
from perfdb_git.model.spreading import Spread
from perfdb_git.operations.query_columns import Cells, QuestionFault, canonical_columns
from perfdb_git.operations.query_files import QuestionChunk
from perfdb_git.resolution.answer_table import AnswerTable
from perfdb_git.resolution.batch_session import BatchSession


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRequest:
    """Where and how questions are answered: everything but the questions.

    Attributes
    ----------
    address : SnapshotAddress
        The snapshot.
    policy : PolicyInForce
        The policy in force, itself and not by name.
    limits : EvidencePolicy
        Limits of every question.
    metric : str
        The metric whose values are wanted.
    alternative_values : bool
        Whether to compute what the sources that lose would answer.
    key : str
        Tells this batch from others, so that a worker opens the snapshot once for all of it.
    """

    address: SnapshotAddress
    policy: PolicyInForce
    limits: EvidencePolicy = field(default_factory=EvidencePolicy)
    metric: str = "latency"
    alternative_values: bool = False
    key: str = field(default_factory=lambda: uuid4().hex)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    request: BatchRequest
    columns: Mapping[str, Cells]
    count: int
    faults: Mapping[int, QuestionFault]


def answer_chunks(
    request: BatchRequest, chunks: Iterable[QuestionChunk], spread: Spread
) -> Iterator[tuple[QuestionChunk, AnswerTable]]:
    """Answer chunks of questions in order, numbered through.

    Parameters
    ----------
    request : BatchRequest
        Where and how.
    chunks : iterable of QuestionChunk
        The questions; read some chunks ahead of the answers.
    spread : Spread
        The workers.

    Yields
    ------
    (QuestionChunk, AnswerTable)
        What a `BatchSession` of the snapshot would answer.

    Raises
    ------
    ClusterUnavailableError
        As `Cluster.map` and `SnapshotAddress.open`.
    UsageError, InvalidInputError, RepositoryUnavailableError
        As `BatchSession.table`.
    """
    asked: deque[QuestionChunk] = deque()

    def tasks() -> Iterator[_Task]:
        for chunk in chunks:
            asked.append(chunk)
            # What is passed on to the answers stays here.
            yield _Task(
                request=request, columns=chunk.columns, count=chunk.count, faults=chunk.faults
            )

    first = 0
    for table in spread(_answered, tasks()):
        yield asked.popleft(), replace(table, first=first)
        first += table.count


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    key: str
    snapshot: DatabaseSnapshot
    session: BatchSession


class _OfThread(threading.local):
    """The last batch of this thread: a worker may have several, and a session serves one."""

    opened: _Opened | None = None


_of_thread = _OfThread()


def _answered(task: _Task) -> AnswerTable:
    """Answer a chunk in a worker."""
    opened = _of_thread.opened
    if opened is None or opened.key != task.request.key:
        opened = _of_thread.opened = _open(task.request)
    columns = canonical_columns(
        task.columns, opened.snapshot.vocabulary, count=task.count, faults=task.faults
    )
    return opened.session.table(columns)


def _open(request: BatchRequest) -> _Opened:
    snapshot = request.address.open()
    session = snapshot.batch(
        policy=request.policy,
        limits=request.limits,
        metric=request.metric,
        alternative_values=request.alternative_values,
    )
    return _Opened(key=request.key, snapshot=snapshot, session=session)
