"""Importing tools' files: sniffed or named, all files or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdb_git.errors import InvalidInputError, InvalidRowsError
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.redaction import Redactor
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.importers.completed_points import PointCompleter
from perfdb_git.importers.plausible_points import plausible
from perfdb_git.importers.record_sets import BuiltSets, NewRecordSet, SourceFile
from perfdb_git.importers.repository_rows import RepositoryRows
from perfdb_git.importers.requests import ImportedSet, imported_set
from perfdb_git.importers.sample_remarks import clock_texts, sample_remarks, time_remarks
from perfdb_git.importers.saving import save_files
from perfdb_git.importers.source_files import file_bytes, git_blob, source_names
from perfdb_git.importers.source_text import SourceText
from perfdb_git.importers.stated_facts import StatedFacts, read_stated_facts
from perfdb_git.importers.tool_records import ToolRecordBuilder
from perfdb_git.importers.tool_registry import AUTO, importer, sniff
from perfdb_git.importers.tool_results import (
    Point,
    Remark,
    ToolImporter,
    ToolResult,
)
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.storage.snapshot import EvidenceSnapshot
from perfdb_git.storage.sources import WorktreeSource

Progress = Callable[[int, int, str], None]

_OTHER_SHAPES = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError)
"""What reading a member of a document raises where it has another type, or is not there."""


def _shape_fault(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"a member lacks {error}"
    return f"a member is of another type ({error})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolImportRequest:
    """What to import, from where, to where.

    Parameters
    ----------
    repository : Path
        The folder that holds ``evidence``.
    tool : str
        An importer's name, or ``auto``: each file is sniffed.
    files : tuple of Path
        The tool's files.
    stated : tuple of str
        ``KEY=VALUE`` facts that the files lack.
    source_root, source_revision, skip_bad_rows, dry_run, commit
        As in `ImportRequest`; what an importer leaves out by itself is no bad row.
    """

    repository: Path
    tool: str
    files: tuple[Path, ...]
    stated: tuple[str, ...] = ()
    source_root: Path | None = None
    source_revision: str | None = None
    skip_bad_rows: bool = False
    dry_run: bool = False
    commit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedPoint:
    """One record for people: its operation, what it is of, and its metrics."""

    operation: str
    about: str
    metrics: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedToolFile:
    """What became of one file.

    ``sniffed`` tells that nobody named the tool; ``skipped`` are rows that are no observation.
    """

    file: str
    importer: str
    tool: str
    tool_version: str | None
    sniffed: bool
    measured_at: str | None
    records: tuple[ImportedPoint, ...]
    record_sets: tuple[ImportedSet, ...]
    known: int
    redactions: int
    skipped: tuple[str, ...]
    remarks: tuple[Remark, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolImportReport:
    """The outcome of an import; ``written`` are the new files, manifests among them."""

    files: tuple[ImportedToolFile, ...]
    written: tuple[str, ...]
    commit: str | None
    dry_run: bool

    @property
    def records(self) -> int:
        """How many records are new."""
        return sum(item.rows for file in self.files for item in file.record_sets)

    @property
    def known(self) -> int:
        """How many records the repository held already."""
        return sum(file.known for file in self.files)


def import_tool_files(
    request: ToolImportRequest,
    *,
    vocabulary: Vocabulary | None = None,
    schemas: SchemaStore | None = None,
    progress: Progress | None = None,
) -> ToolImportReport:
    """Import files of benchmarks, profilers and simulators: all of them or none.

    Parameters
    ----------
    request : ToolImportRequest
        What to import.
    vocabulary : Vocabulary or None
        What values must be legal in; None takes that of the repository's work tree.
    schemas : SchemaStore or None
        Where the schemas are; None takes the package's own.
    progress : callable or None
        Told after each file.

    Raises
    ------
    UsageError
        No file, an unknown importer or fact.
    InvalidInputError
        A file that is broken, of no known tool, ambiguous, or lacks a fact.
    InvalidRowsError
        Rows that are wrong, unless they are to be skipped.
    RepositoryUnavailableError
        The repository cannot be read or written.
    """
    run = _Run(request, vocabulary, schemas or SchemaStore())
    names = source_names(request.files, request.source_root)
    files: list[ImportedToolFile] = []
    contents: dict[str, bytes] = {}
    for count, (path, name) in enumerate(zip(request.files, names, strict=True), start=1):
        file, record_sets = run.read(path, name)
        files.append(file)
        for item in record_sets:
            contents[item.path] = item.content
            contents[item.manifest_path] = item.manifest
        if progress is not None:
            progress(count, len(names), name)
    written, commit = tuple(sorted(contents)), None
    if contents and not request.dry_run:
        message = _message(files) if request.commit else None
        saved = save_files(request.repository, contents, message)
        written, commit = tuple(sorted(saved.written)), saved.commit
    return ToolImportReport(
        files=tuple(files), written=written, commit=commit, dry_run=request.dry_run
    )


def _message(files: Sequence[ImportedToolFile]) -> str:
    count = sum(item.rows for file in files for item in file.record_sets)
    tools = ", ".join(dict.fromkeys(file.tool for file in files))
    lines = [f"Import {count} records of {tools}", ""]
    lines += [f"{file.file}: {sum(s.rows for s in file.record_sets)} records" for file in files]
    return "\n".join(lines) + "\n"


class _Run:
    """One import: the vocabulary, the stated facts, and what the repository already holds."""

    def __init__(
        self, request: ToolImportRequest, vocabulary: Vocabulary | None, schemas: SchemaStore
    ) -> None:
        self._request = request
        self._schemas = schemas
        self._worktree = WorktreeSource(request.repository)
        if vocabulary is None:
            vocabulary = EvidenceSnapshot(self._worktree, schemas=schemas).vocabulary()
        self._vocabulary = vocabulary
        self._facts: StatedFacts = read_stated_facts(request.stated, vocabulary, request.repository)
        self._known: dict[str, RepositoryRows] = {}

    def read(self, path: Path, name: str) -> tuple[ImportedToolFile, Sequence[NewRecordSet]]:
        """Read one file and build its new record sets."""
        data = file_bytes(path, name)
        text = SourceText(document=name, data=data)
        sniffed = self._request.tool == AUTO
        tool = sniff(text) if sniffed else importer(self._request.tool)
        if not tool.recognises(text):
            text.require_readable()
        result = self._result(tool, text)
        self._refuse_bad_rows(result, name)
        redactor = Redactor(users=result.environment.users, hosts=result.environment.hosts)
        points = PointCompleter(
            result=result,
            facts=self._facts,
            document=name,
            vocabulary=self._vocabulary,
            redactor=redactor,
        ).completed()
        built = self._built(tool, result, points, redactor, name, data)
        file = ImportedToolFile(
            file=name,
            importer=tool.label,
            tool=result.tool,
            tool_version=result.revision,
            sniffed=sniffed,
            measured_at=None if result.time is None else result.time.utc,
            records=tuple(map(_summary, points)),
            record_sets=tuple(map(imported_set, built.record_sets)),
            known=built.known,
            redactions=redactor.count,
            skipped=(*result.skipped, *result.bad_rows),
            remarks=(
                *result.remarks,
                *time_remarks(result),
                *sample_remarks(points),
                *(Remark(code="throttled", text=text) for text in clock_texts(built.record_sets)),
            ),
        )
        return file, built.record_sets

    def _result(self, tool: ToolImporter, text: SourceText) -> ToolResult:
        try:
            return plausible(tool.read(text, self._facts.reading))
        except _OTHER_SHAPES as error:
            # Importers walk through documents of others: a member that is missing or of another
            # type is the file's, and of a version that the importer does not know.
            raise InvalidInputError(
                f"has another layout than {tool.label} reads: {_shape_fault(error)}",
                code="unknown-layout",
                document=text.document,
                remedy="if this is what the tool writes, report its version",
            ) from error

    def _refuse_bad_rows(self, result: ToolResult, name: str) -> None:
        if result.bad_rows and not self._request.skip_bad_rows:
            count = len(result.bad_rows)
            raise InvalidRowsError(
                f"{count} bad {'row' if count == 1 else 'rows'}; nothing was imported",
                code="bad-rows",
                document=name,
                rows=[f"{name}: {row}" for row in result.bad_rows],
                remedy="correct them upstream, or import the good rows with --skip-bad-rows",
            )

    def _built(
        self,
        tool: ToolImporter,
        result: ToolResult,
        points: Sequence[Point],
        redactor: Redactor,
        name: str,
        data: bytes,
    ) -> BuiltSets:
        rows = self._known.setdefault(
            result.tool, RepositoryRows(self._worktree, tool=result.tool, schemas=self._schemas)
        )
        file = redactor.text(name)
        for point in points:
            rows.load(file, str(point.dimensions["device"]), point.operation)
        builder = ToolRecordBuilder(
            importer=tool,
            result=result,
            facts=self._facts,
            source=SourceFile(
                file=file,
                sha256=sha256_hex(data),
                git_blob=git_blob(data),
                revision=self._request.source_revision,
            ),
            vocabulary=self._vocabulary,
            schemas=self._schemas,
            redactor=redactor,
        )
        built = builder.build(points, rows.of(file))
        for item in built.record_sets:
            # Another file of that name must see them.
            rows.of(file).add(item.header, item.rows)
        return built


def _summary(point: Point) -> ImportedPoint:
    about = [
        f"{name}={'unknown' if value is None else value}"
        for name, value in point.dimensions.items()
        if name not in ("operation", "device")
    ]
    metrics = [
        f"{column.name} {column.statistic} {_shown(cell)} {column.unit}".removesuffix(" 1")
        for column, cell in point.metrics.items()
    ]
    return ImportedPoint(
        operation=point.operation, about=" ".join(about), metrics=", ".join(metrics)
    )


def _shown(cell: object) -> str:
    if cell is None:
        return "unknown"
    if isinstance(cell, tuple):
        few = ", ".join(f"{value:.6g}" for value in cell[:5])
        return f"[{few}{', …' if len(cell) > 5 else ''}] ({len(cell)})"
    return f"{cell:.6g}"
