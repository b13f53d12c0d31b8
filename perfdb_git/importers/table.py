"""The table importer: a mapping and files become record sets, all of them or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perfdb_git.errors import (
    InvalidInputError,
    InvalidRowsError,
)
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.importers.frames import Frame
from perfdb_git.importers.known_rows import KnownRows
from perfdb_git.importers.mapping_documents import LoadedMapping, load_mapping
from perfdb_git.importers.observations import Observations, extract
from perfdb_git.importers.patterns import match_path, revision_variables
from perfdb_git.importers.record_sets import (
    NewRecordSet,
    RecordSetBuilder,
    SourceFile,
)
from perfdb_git.importers.repository_rows import RepositoryRows
from perfdb_git.importers.requests import (
    ImportedFile,
    ImportReport,
    ImportRequest,
    imported_set,
)
from perfdb_git.importers.sample_remarks import clock_texts
from perfdb_git.importers.saving import save_files
from perfdb_git.importers.source_files import file_bytes, git_blob, source_names, whole_path
from perfdb_git.importers.tables import read_table
from perfdb_git.model.mapping import TableMapping
from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.storage.snapshot import EvidenceSnapshot
from perfdb_git.storage.sources import WorktreeSource

Progress = Callable[[int, int, str], None]
"""Called with the files done, their number, and the name of the last one."""


def import_table(
    request: ImportRequest,
    *,
    vocabulary: Vocabulary | None = None,
    schemas: SchemaStore | None = None,
    progress: Progress | None = None,
) -> ImportReport:
    """Import foreign tables: all files or none.

    Parameters
    ----------
    request : ImportRequest
        What to import.
    vocabulary : Vocabulary or None
        What values must be legal in; None takes that of the repository's work tree.
    schemas : SchemaStore or None
        Where the schemas are; None takes the package's own.
    progress : Callable or None
        Told after each file.

    Raises
    ------
    UsageError
        No file, one file twice, a file outside the source root, an unknown mapping.
    InvalidInputError
        A mapping or table that cannot be read, or that do not belong together.
    InvalidRowsError
        Bad rows, every one of them named, unless they are to be skipped.
    RepositoryUnavailableError
        The repository cannot be read or written.
    """
    return import_tables([request], vocabulary=vocabulary, schemas=schemas, progress=progress)[0]


def import_tables(
    requests: Sequence[ImportRequest],
    *,
    vocabulary: Vocabulary | None = None,
    schemas: SchemaStore | None = None,
    progress: Progress | None = None,
) -> tuple[ImportReport, ...]:
    """Run several imports into one repository as one: all files of all requests or none.

    Parameters and errors are those of `import_table`; the first request's repository and its
    choice to try only or to commit hold for all.
    """
    schemas = schemas or SchemaStore()
    total = sum(len(request.files) for request in requests)
    count = 0
    prepared: list[_Prepared] = []
    for request in requests:
        names = source_names(request.files, request.source_root)
        run = _Import(request, names, vocabulary, schemas)
        item = _Prepared(request=request, mapping=run.loaded.mapping)
        for path, name in zip(request.files, names, strict=True):
            file, record_sets = run.read(path, name)
            item.add(file, record_sets)
            count += 1
            if progress is not None:
                progress(count, total, name)
        prepared.append(item)
    _refuse_bad_rows(prepared)
    return _save(prepared)


@dataclass(slots=True, kw_only=True)
class _Prepared:
    """What one request will write."""

    request: ImportRequest
    mapping: TableMapping
    files: list[ImportedFile] = field(default_factory=list)
    contents: dict[str, bytes] = field(default_factory=dict)

    def add(self, file: ImportedFile, record_sets: Sequence[NewRecordSet]) -> None:
        self.files.append(file)
        for item in record_sets:
            self.contents[item.path] = item.content
            self.contents[item.manifest_path] = item.manifest

    def message(self) -> str:
        records = sum(file.records for file in self.files)
        revision = self.request.source_revision or "unknown revision"
        lines = [f"Import {records} records of {self.mapping.source.tool} ({revision})", ""]
        lines += [f"{file.file}: {file.records} records" for file in self.files]
        return "\n".join(lines) + "\n"


def _refuse_bad_rows(prepared: Sequence[_Prepared]) -> None:
    bad_rows = [
        row
        for item in prepared
        if not item.request.skip_bad_rows
        for file in item.files
        for row in file.bad_rows
    ]
    if not bad_rows:
        return
    count = len({(row.file, row.position) for row in bad_rows})
    raise InvalidRowsError(
        f"{count} bad {'row' if count == 1 else 'rows'}; nothing was imported",
        code="bad-rows",
        document=", ".join(dict.fromkeys(row.file for row in bad_rows)),
        rows=[str(row) for row in bad_rows],
        remedy="correct them upstream, or import the good rows with --skip-bad-rows",
    )


def _save(prepared: Sequence[_Prepared]) -> tuple[ImportReport, ...]:
    """Write, and commit where that was asked for, everything at once."""
    contents = {path: data for item in prepared for path, data in item.contents.items()}
    written: set[str] = set(contents)
    commit = None
    if prepared and contents and not prepared[0].request.dry_run:
        request = prepared[0].request
        message = "\n".join(item.message() for item in prepared if item.contents)
        saved = save_files(request.repository, contents, message if request.commit else None)
        written, commit = set(saved.written), saved.commit
    return tuple(
        ImportReport(
            mapping=item.mapping.name,
            files=tuple(item.files),
            written=tuple(sorted(written & item.contents.keys())),
            commit=commit if item.contents else None,
            dry_run=item.request.dry_run,
        )
        for item in prepared
    )


class _Import:
    """One run: the mapping, the vocabulary, and what the repository already holds."""

    def __init__(
        self,
        request: ImportRequest,
        names: Sequence[str],
        vocabulary: Vocabulary | None,
        schemas: SchemaStore,
    ) -> None:
        self._request = request
        self._schemas = schemas
        self._worktree = WorktreeSource(request.repository)
        if vocabulary is None:
            vocabulary = EvidenceSnapshot(self._worktree, schemas=schemas).vocabulary()
        self._vocabulary = vocabulary
        self.loaded: LoadedMapping = load_mapping(request.mapping, vocabulary, schemas=schemas)
        self._names = names
        tool = self.loaded.mapping.source.tool
        self._known = RepositoryRows(self._worktree, tool=tool, schemas=schemas)

    def read(self, path: Path, name: str) -> tuple[ImportedFile, Sequence[NewRecordSet]]:
        """Read one file and build its new record sets."""
        mapping = self.loaded.mapping
        variables = self._variables(path, name)
        data = file_bytes(path, name)
        table = read_table(data, mapping.format, document=name, ignored=mapping.ignored_columns)
        extraction = extract(mapping, Frame(table, variables), self._vocabulary)
        builder = RecordSetBuilder(
            loaded=self.loaded,
            vocabulary=self._vocabulary,
            variables=variables,
            source=SourceFile(
                file=name,
                sha256=sha256_hex(data),
                git_blob=git_blob(data),
                revision=self._request.source_revision,
            ),
            schemas=self._schemas,
        )
        known = self._known_rows(name, extraction.observations)
        built = builder.build(extraction.observations, known)
        if self._names.count(name) > 1:
            for item in built.record_sets:
                # The other file of that name must see them.
                known.add(item.header, item.rows)
        file = ImportedFile(
            file=name,
            rows=len(table.row_numbers) + len(table.broken),
            record_sets=tuple(imported_set(item) for item in built.record_sets),
            known=built.known,
            bad_rows=extraction.bad_rows,
            conflicts=built.conflicts,
            absent=extraction.absent,
            throttled=clock_texts(built.record_sets),
        )
        return file, built.record_sets

    def _variables(self, path: Path, name: str) -> dict[str, Scalar | None]:
        mapping = self.loaded.mapping
        variables = revision_variables(self._request.source_revision)
        pattern = mapping.source.path
        if pattern is not None:
            found = match_path(pattern, whole_path(path))
            if found is None:
                raise InvalidInputError(
                    f"its path does not end like {pattern!r}",
                    code="path-mismatch",
                    document=name,
                    remedy=f"mapping {mapping.name!r} takes facts from the path: keep the "
                    "upstream folders",
                )
            variables.update(found)
        for variable, lookup in mapping.variables.items():
            text = str(variables[lookup.of])
            if text not in lookup.table:
                raise InvalidInputError(
                    f"its path gives {lookup.of} = {text!r}, which mapping {mapping.name!r} does "
                    f"not translate to {variable}",
                    code="unlisted-variable",
                    document=name,
                    remedy=f"listed are {', '.join(sorted(lookup.table))}",
                )
            variables[variable] = lookup.table[text]
        return variables

    def _known_rows(self, name: str, observations: Sequence[Observations]) -> KnownRows:
        """Return the rows that the repository holds of a file."""
        for part in observations:
            devices = {part.context.get("device"), *part.terms.get("device", ())} - {None}
            for device in sorted(map(str, devices)):
                self._known.load(name, device, part.operation.operation)
        return self._known.of(name)
