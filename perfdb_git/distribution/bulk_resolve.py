"""Tables of questions answered by the workers of a cluster, each from a clone of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar
from uuid import uuid4

from perfdb_git.database import DatabaseSnapshot, PolicyInForce
from perfdb_git.distribution.snapshot_addresses import SnapshotAddress
from perfdb_git.model.query import EvidencePolicy
from perfdb_git.model.spreading import Spread
from perfdb_git.operations.query_files import QuestionChunk
from perfdb_git.resolution.answer_table import AnswerTable
from perfdb_git.resolution.batch_session import BatchSession

R = TypeVar("R")


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
class _Task(Generic[R]):
    request: BatchRequest
    chunk: QuestionChunk
    first: int
    finish: Callable[[QuestionChunk, AnswerTable], R]


def answer_chunks(
    request: BatchRequest,
    chunks: Iterable[QuestionChunk],
    finish: Callable[[QuestionChunk, AnswerTable], R],
    spread: Spread,
) -> Iterator[R]:
    """Answer chunks of questions in order, numbered through.

    Parameters
    ----------
    request : BatchRequest
        Where and how.
    chunks : iterable of QuestionChunk
        The questions; read some chunks ahead of the answers.
    finish : callable
        What a worker makes of a chunk and its answers, which are those of a `BatchSession` of the
        snapshot; whatever takes time is better done there than by the one who asks.
    spread : Spread
        The workers.

    Yields
    ------
    object
        What `finish` returns.

    Raises
    ------
    ClusterUnavailableError
        As `Cluster.map` and `SnapshotAddress.open`.
    UsageError, InvalidInputError, RepositoryUnavailableError
        As `BatchSession.table`.
    """

    def tasks() -> Iterator[_Task[R]]:
        first = 0
        for chunk in chunks:
            yield _Task(request=request, chunk=chunk, first=first, finish=finish)
            first += chunk.count

    return spread(_answered, tasks())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    key: str
    snapshot: DatabaseSnapshot
    session: BatchSession


class _OfThread(threading.local):
    """The last batch of this thread: a worker may have several, and a session serves one."""

    opened: _Opened | None = None


_of_thread = _OfThread()


def _answered(task: _Task[R]) -> R:
    """Answer a chunk in a worker."""
    opened = _of_thread.opened
    if opened is None or opened.key != task.request.key:
        opened = _of_thread.opened = _open(task.request)
    table = opened.session.table(task.chunk.canonical(opened.snapshot.vocabulary), first=task.first)
    return task.finish(task.chunk, table)


def _open(request: BatchRequest) -> _Opened:
    snapshot = request.address.open()
    session = snapshot.batch(
        policy=request.policy,
        limits=request.limits,
        metric=request.metric,
        alternative_values=request.alternative_values,
    )
    return _Opened(key=request.key, snapshot=snapshot, session=session)
