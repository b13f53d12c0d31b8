"""The importer of aiconfigurator databases: all tables or none, table by table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TypeAlias

from perfdb_git.errors import InvalidRowsError, UsageError
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.importers.aiconfigurator.database_files import (
    DatabaseFiles,
    TableFile,
    distribution_of,
    open_database,
    tables_of,
)
from perfdb_git.importers.aiconfigurator.judging import FaultyRows
from perfdb_git.importers.aiconfigurator.kinds import KINDS
from perfdb_git.importers.aiconfigurator.known_records import KnownTables
from perfdb_git.importers.aiconfigurator.report import (
    DatabaseImportReport,
    DatabaseImportRequest,
    ImportedTable,
)
from perfdb_git.importers.aiconfigurator.set_building import BuiltSet
from perfdb_git.importers.aiconfigurator.table_import import TableImport
from perfdb_git.importers.saving import commit_written
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.storage.append import NewFiles
from perfdb_git.storage.snapshot import EvidenceSnapshot
from perfdb_git.storage.sources import WorktreeSource

Progress: TypeAlias = Callable[[int, int, str], None]
"""Called with the tables done, their number, and the name of the last one."""


def import_database(
    request: DatabaseImportRequest,
    *,
    vocabulary: Vocabulary | None = None,
    schemas: SchemaStore | None = None,
    progress: Progress | None = None,
) -> DatabaseImportReport:
    """Import every table of an aiconfigurator database whose kind is known: all or none.

    Memory does not grow with the database: each table is read, written under temporary names and
    forgotten, and the files appear together at the end.

    Parameters
    ----------
    request : DatabaseImportRequest
        What to import.
    vocabulary : Vocabulary or None
        What values must be legal in; None takes that of the repository's work tree.
    schemas : SchemaStore or None
        Where the schemas are; None takes the package's own.
    progress : Callable or None
        Told after each table.

    Raises
    ------
    UsageError
        The database cannot be read, or holds no table of a known kind.
    InvalidInputError
        A table or sidecar that cannot be read, or is not what its kind of table is; a vocabulary
        that lacks an operation.
    InvalidRowsError
        Bad rows, every one of them named, unless they are to be skipped.
    MissingExtraError
        Without pyarrow.
    RepositoryUnavailableError
        The repository cannot be read or written.
    """
    schemas = schemas or SchemaStore()
    worktree = WorktreeSource(request.repository)
    if vocabulary is None:
        vocabulary = EvidenceSnapshot(worktree, schemas=schemas).vocabulary()
    with open_database(request.database) as files:
        found = tables_of(files, request.database)
        tables = [table for table in found if table.kind in KINDS]
        if not tables:
            raise UsageError(f"{request.database} holds no table of a known kind", code="no-files")
        run = _Run(request, files, worktree, vocabulary, schemas)
        unknown = tuple(table.name for table in found if table.kind not in KINDS)
        return run.report(tables, unknown, progress)


class _Run:
    """One import: the database, and where its files go."""

    def __init__(
        self,
        request: DatabaseImportRequest,
        files: DatabaseFiles,
        worktree: WorktreeSource,
        vocabulary: Vocabulary,
        schemas: SchemaStore,
    ) -> None:
        self._request = request
        self._files = files
        self._vocabulary = vocabulary
        self._schemas = schemas
        self._known = KnownTables(worktree, schemas=schemas)
        self._revision = request.source_revision or distribution_of(files)
        self._bad_rows = 0
        self._faults: list[FaultyRows] = []
        self._paths: dict[str, None] = {}
        self._written = 0
        self._size = 0

    def report(
        self, tables: Sequence[TableFile], unknown: tuple[str, ...], progress: Progress | None
    ) -> DatabaseImportReport:
        """Import the tables and return what became of them."""
        done: list[ImportedTable] = []
        commit = None
        dry_run = self._request.dry_run
        with nullcontext() if dry_run else NewFiles(self._request.repository) as new_files:
            for count, table in enumerate(tables, start=1):
                done.append(self._import(table, new_files))
                if progress is not None:
                    progress(count, len(tables), table.name)
            self._refuse_bad_rows()
            written = () if new_files is None else new_files.publish()
        records = sum(table.records for table in done)
        if self._request.commit and records and not dry_run:
            message = self._message(done, records)
            commit = commit_written(self._request.repository, self._paths, message, written=written)
        return DatabaseImportReport(
            source_revision=self._revision,
            tables=tuple(done),
            unknown_tables=unknown,
            written=self._written,
            size=self._size,
            commit=commit,
            dry_run=dry_run,
        )

    def _import(self, table: TableFile, new_files: NewFiles | None) -> ImportedTable:
        one = TableImport(
            self._files,
            table,
            revision=self._revision,
            vocabulary=self._vocabulary,
            schemas=self._schemas,
        )
        if one.judged.faults and not self._request.skip_bad_rows:
            self._bad_rows += one.judged.bad_rows
            self._faults += one.judged.faults
        # Once nothing will be imported, the other tables are only judged, so that all bad rows
        # are named.
        if not self._faults:
            for built in one.sets(self._known.records_of(table.name)):
                self._add(built, new_files)
        return one.report()

    def _add(self, built: BuiltSet, new_files: NewFiles | None) -> None:
        self._size += len(built.content)
        files = {built.path: built.content, built.manifest_path: built.manifest}
        for path, content in files.items():
            if new_files is not None:
                self._written += new_files.add(path, content)
            else:
                is_there = path in self._paths or (self._request.repository / path).exists()
                self._written += not is_there
            self._paths[path] = None

    def _refuse_bad_rows(self) -> None:
        if not self._faults:
            return
        noun = "row" if self._bad_rows == 1 else "rows"
        raise InvalidRowsError(
            f"{self._bad_rows} bad {noun}; nothing was imported",
            code="bad-rows",
            document=", ".join(dict.fromkeys(fault.file for fault in self._faults)),
            rows=[str(fault) for fault in self._faults],
            remedy="correct them upstream, or import the good rows with --skip-bad-rows",
        )

    def _message(self, tables: Sequence[ImportedTable], records: int) -> str:
        revision = self._revision or "unknown revision"
        added = [table for table in tables if table.records]
        lines = [f"Import {records} records of aiconfigurator ({revision})", ""]
        lines += [f"{table.file}: {table.records} records" for table in added]
        return "\n".join(lines) + "\n"
