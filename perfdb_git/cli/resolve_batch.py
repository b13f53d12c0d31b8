"""``perfdb resolve --queries``: many questions from a file, answered as a table."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, get_args

from perfdb_git.cli.cluster_options import Workers
from perfdb_git.cli.console import Console
from perfdb_git.cli.options import SnapshotChoice, snapshot_messages
from perfdb_git.cli.questions import Question
from perfdb_git.cli.table_output import (
    STANDARD_OUTPUT,
    csv_escape,
    output_stream,
    require_output,
)
from perfdb_git.database import DatabaseSnapshot, PolicyInForce
from perfdb_git.errors import EXIT_FINE, UsageError
from perfdb_git.exports.answer_rows import JsonLinesEncoder, answer_block, answer_columns
from perfdb_git.exports.arrow_files import ArrowEncoder, ArrowWriter
from perfdb_git.exports.columns import ExportColumn
from perfdb_git.exports.csv_files import CsvEncoder
from perfdb_git.exports.row_writers import RowEncoder, RowWriter, TextWriter
from perfdb_git.model.query import EvidencePolicy
from perfdb_git.model.result import Message
from perfdb_git.model.values import JsonValue
from perfdb_git.operations.query_files import (
    QueryFormat,
    QuestionChunk,
    query_format,
    question_chunks,
)
from perfdb_git.reports.progress import ProgressBar
from perfdb_git.reports.screen import Line
from perfdb_git.resolution.answer_table import AnswerTable

AnswerFormat: TypeAlias = Literal["jsonl", "csv", "parquet", "arrow"]

_BY_SUFFIX = {f".{form}": form for form in get_args(AnswerFormat)}
_SHOWN_ERRORS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """What was typed."""

    queries: Path
    queries_format: QueryFormat | None
    output: Path
    output_format: AnswerFormat | None
    kept: tuple[str, ...]
    metric: str
    alternative_values: bool


@dataclass(slots=True)
class _Tally:
    """What became of the questions; ``kept`` names the columns that were passed on."""

    statuses: dict[str, int] = field(default_factory=dict)
    errors: dict[str, tuple[int, str]] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, chunk: QuestionChunk, table: AnswerTable) -> _Tally:
        """Count the answers of one chunk."""
        tally = cls(statuses=table.statuses(), kept=set(chunk.kept))
        codes = table.texts["code"]
        for row, reason in table.reasons.items():
            code = str(table.words[int(codes[row])])
            count, first = tally.errors.get(code, (0, f"question {table.first + row}: {reason}"))
            tally.errors[code] = count + 1, first
        return tally

    def add(self, other: _Tally) -> None:
        """Count the answers of later questions too."""
        self.kept |= other.kept
        for status, count in other.statuses.items():
            self.statuses[status] = self.statuses.get(status, 0) + count
        for code, (count, first) in other.errors.items():
            before, earlier = self.errors.get(code, (0, first))
            self.errors[code] = before + count, earlier

    @property
    def total(self) -> int:
        return sum(self.statuses.values())

    def messages(self, wanted: Sequence[str]) -> list[Message]:
        """Say which faults there were, each with an example, and which wanted column was not."""
        shown = list(self.errors.items())[:_SHOWN_ERRORS]
        messages = [
            Message(level="warning", code=code, text=f"{count} x {code}, such as {example}")
            for code, (count, example) in shown
        ]
        if "unknown-dimension" in self.errors:
            text = "a column that is no dimension, such as an id, is passed on with --keep"
            messages.append(Message(level="note", code="remedy", text=text))
        for name in dict.fromkeys(name for name in wanted if name not in self.kept):
            text = f"no question has a column {name!r} to keep"
            messages.append(Message(level="warning", code="no-such-column", text=text))
        return messages


def resolve_batch(
    console: Console,
    choice: SnapshotChoice,
    question: Question,
    options: BatchOptions,
    workers: Workers,
) -> int:
    """Read the questions in chunks, answer each chunk, and write the answers."""
    # Its data are not those of one question, which the schema of results knows by the command.
    console.command = "resolve --queries"
    form = _answer_format(options)
    _require_possible(console, options, question, form)
    tally = _Tally()
    is_whole = False
    with console.progress("indexing") as indexing:
        snapshot = choice.open(indexing)
        policy = question.policy(snapshot)
    columns = answer_columns(
        policy.policy.tiers, alternative_values=options.alternative_values, kept=options.kept
    )
    metadata = _metadata(snapshot, policy)
    asked = _Asked(snapshot, policy, EvidencePolicy(**question.limits), options)
    with output_stream(options.output) as stream:
        encoder, writer = _opened(stream, columns, metadata, form, options.output)
        of_snapshot = {"commit": snapshot.commit, "marks": snapshot.marks(policy)}
        finish = functools.partial(_finished, encoder, columns, of_snapshot)
        with _answering(console, asked, finish, workers) as answering:
            for counts, encoded in answering.answers:
                tally.add(counts)
                writer.append(encoded)
        writer.close()
        is_whole = True
    if not is_whole:
        return EXIT_FINE  # Who read standard output has seen enough.
    messages = (*snapshot_messages(snapshot), *answering.messages(), *tally.messages(options.kept))
    statuses: dict[str, JsonValue] = {**tally.statuses}
    if options.output == STANDARD_OUTPUT:
        console.remark([*messages, Message(level="note", code="answers", text=_summary(tally))])
        return EXIT_FINE
    return console.answer(
        data={**metadata, "questions": tally.total, "statuses": statuses},
        lines=[Line(f"{options.output}: {_summary(tally)}")],
        messages=messages,
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """What all questions share."""

    snapshot: DatabaseSnapshot
    policy: PolicyInForce
    limits: EvidencePolicy
    options: BatchOptions


_Part: TypeAlias = tuple[_Tally, Any]
"""Some answers: what became of the questions, and the encoded rows."""

_Finish: TypeAlias = Callable[[QuestionChunk, AnswerTable], _Part]


def _finished(
    encoder: RowEncoder,
    columns: list[ExportColumn],
    of_snapshot: dict[str, Any],
    chunk: QuestionChunk,
    table: AnswerTable,
) -> _Part:
    """Do all that can be done of a chunk by whoever has answered it."""
    block = answer_block(table, columns, **of_snapshot, kept=chunk.kept)
    return _Tally.of(chunk, table), encoder.encode(block)


@dataclass(frozen=True, slots=True)
class _Answering:
    """Answers as they come, and what there is to say of how they came, in the end."""

    answers: Iterator[_Part]
    messages: Callable[[], tuple[Message, ...]]


@contextmanager
def _answering(
    console: Console, asked: _Asked, finish: _Finish, workers: Workers
) -> Iterator[_Answering]:
    """Answer the questions here or on workers, for the time of the context."""
    if not workers.are_asked_for:
        with console.progress("answering") as progress:
            yield _Answering(_answered_here(asked, finish, progress), tuple)
        return
    from perfdb_git.distribution.bulk_resolve import BatchRequest, answer_chunks
    from perfdb_git.distribution.snapshot_addresses import share_snapshot

    with console.progress("sharing") as sharing:
        address, remarks = share_snapshot(
            asked.snapshot,
            repository=workers.repository,
            segments=workers.segments,
            progress=sharing,
        )
    request = BatchRequest(
        address=address,
        policy=asked.policy,
        limits=asked.limits,
        metric=asked.options.metric,
        alternative_values=asked.options.alternative_values,
    )
    with console.progress("answering") as progress, workers.open() as place:
        chunks = _chunks(asked.options, progress)
        answers = answer_chunks(request, chunks, finish, place.spread)
        yield _Answering(answers, lambda: (*remarks, *place.messages))


def _answered_here(asked: _Asked, finish: _Finish, progress: ProgressBar) -> Iterator[_Part]:
    session = asked.snapshot.batch(
        policy=asked.policy,
        limits=asked.limits,
        metric=asked.options.metric,
        alternative_values=asked.options.alternative_values,
    )
    first = 0
    for chunk in _chunks(asked.options, progress):
        yield finish(chunk, session.table(chunk.canonical(asked.snapshot.vocabulary), first=first))
        first += chunk.count


def _chunks(options: BatchOptions, progress: ProgressBar) -> Iterator[QuestionChunk]:
    with _questions(options) as (stream, form):
        # How long standard input is, nobody knows.
        size = 0 if options.queries == STANDARD_OUTPUT else options.queries.stat().st_size
        asked = 0
        for chunk in question_chunks(
            stream, form, document=str(options.queries), kept=options.kept
        ):
            yield chunk
            asked += chunk.count
            if size:
                progress(100 * stream.tell() // size, 100, f"% read, {asked:,} questions")


@contextmanager
def _questions(options: BatchOptions) -> Iterator[tuple[BinaryIO, QueryFormat]]:
    if options.queries == STANDARD_OUTPUT:
        yield sys.stdin.buffer, options.queries_format or "jsonl"
        return
    form = options.queries_format or query_format(options.queries)
    with options.queries.open("rb") as stream:
        yield stream, form


def _answer_format(options: BatchOptions) -> AnswerFormat:
    if options.output_format is not None or options.output == STANDARD_OUTPUT:
        return options.output_format or "jsonl"
    form: AnswerFormat | None = _BY_SUFFIX.get(options.output.suffix.lower())
    if form is None:
        raise UsageError(
            f"{options.output}: answers are written to {', '.join(_BY_SUFFIX)} files",
            code="unknown-format",
            remedy="name the format with --output-format",
        )
    return form


def _require_possible(
    console: Console, options: BatchOptions, question: Question, form: AnswerFormat
) -> None:
    """Refuse what could not be answered or written before anything is read."""
    if question.pairs or question.query_file is not None:
        raise UsageError(
            "--queries excludes KEY=VALUE and --query",
            code="conflicting-options",
            remedy="give what all questions share in a column of the file",
        )
    if options.queries != STANDARD_OUTPUT:
        _ = options.queries_format or query_format(options.queries)
    elif options.queries_format == "parquet":
        raise UsageError(
            "a Parquet file cannot be read from standard input",
            code="not-seekable",
            remedy="name a file",
        )
    require_output(
        console, options.output, form, remedy="write the answers to a file with --output"
    )


def _opened(
    stream: BinaryIO,
    columns: list[ExportColumn],
    metadata: dict[str, JsonValue],
    form: AnswerFormat,
    output: Path,
) -> tuple[RowEncoder, RowWriter]:
    if form in ("parquet", "arrow"):
        batches = ArrowEncoder(columns, metadata)
        return batches, ArrowWriter(stream, batches, parquet=form == "parquet")
    text = CsvEncoder(columns, csv_escape(output)) if form == "csv" else JsonLinesEncoder(columns)
    return text, TextWriter(stream, text)


def _metadata(snapshot: DatabaseSnapshot, policy: PolicyInForce) -> dict[str, JsonValue]:
    reference = policy.reference
    return {
        "commit": snapshot.commit,
        "policy": reference.name,
        "policy_digest": reference.digest,
        "policy_origin": reference.origin,
    }


def _summary(tally: _Tally) -> str:
    parts = [f"{count:,} {status}" for status, count in sorted(tally.statuses.items())]
    return f"{tally.total:,} questions: {', '.join(parts) or 'none'}"
