"""Vidur's profiling folder, imported as a whole: each file by its place and mapping."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from perfdb_git.errors import UsageError
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.importers.requests import ImportReport, ImportRequest
from perfdb_git.importers.table import Progress, import_tables
from perfdb_git.model.vocabulary import Vocabulary

LAYOUT = (
    ("compute/*/*/*/mlp.csv", "vidur-mlp"),
    ("compute/*/*/*/attention.csv", "vidur-attention"),
    ("network/*/all_reduce.csv", "vidur-all-reduce"),
    ("network/*/send_recv.csv", "vidur-send-recv"),
    ("*/attention.csv", "vidur-attention-early"),
)
"""Where a profiling folder has its tables, and the mapping that reads them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VidurFiles:
    """The tables of one kind in a profiling folder."""

    mapping: str
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VidurImport:
    """One report for each kind of table that was found."""

    reports: tuple[ImportReport, ...]

    @property
    def records(self) -> int:
        """How many records are new."""
        return sum(report.records for report in self.reports)

    @property
    def known(self) -> int:
        """How many records the repository held already."""
        return sum(report.known for report in self.reports)

    @property
    def commit(self) -> str | None:
        """The commit that added the records, if one was asked for and there were any."""
        return next((r.commit for r in self.reports if r.commit is not None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class VidurProfileImporter:
    """Imports the profiles of one Vidur checkout.

    Parameters
    ----------
    profiling_root : Path
        Its ``data/profiling`` folder.
    source_revision : str or None
        The checkout's commit; None is an explicit unknown.
    source_root : Path or None
        The checkout itself, which recorded file names start from; None takes `profiling_root`.
    """

    profiling_root: Path
    source_revision: str | None
    source_root: Path | None = None

    def tables(self) -> tuple[VidurFiles, ...]:
        """Return the tables that are there, by kind, each list sorted.

        Raises
        ------
        UsageError
            The folder holds none.
        """
        found = tuple(self._found())
        if not found:
            raise UsageError(
                f"{self.profiling_root} holds no Vidur profile",
                code="no-files",
                remedy="name the folder data/profiling of a Vidur checkout",
            )
        return found

    def _found(self) -> Iterator[VidurFiles]:
        for pattern, mapping in LAYOUT:
            files = tuple(sorted(self.profiling_root.glob(pattern)))
            if files:
                yield VidurFiles(mapping=mapping, files=files)

    def import_into(
        self,
        repository: Path,
        *,
        vocabulary: Vocabulary | None = None,
        skip_bad_rows: bool = False,
        dry_run: bool = False,
        commit: bool = False,
        schemas: SchemaStore | None = None,
        progress: Progress | None = None,
    ) -> VidurImport:
        """Import every table that is there, all of them or none.

        Parameters
        ----------
        repository : Path
            The folder that holds ``evidence``.
        vocabulary : Vocabulary or None
            As for `import_table`, and so are the others.

        Raises
        ------
        PerfdbError
            As `import_table`; `UsageError` where there is nothing to import.
        """
        requests = [
            ImportRequest(
                repository=repository,
                mapping=item.mapping,
                files=item.files,
                source_root=self.source_root or self.profiling_root,
                source_revision=self.source_revision,
                skip_bad_rows=skip_bad_rows,
                dry_run=dry_run,
                commit=commit,
            )
            for item in self.tables()
        ]
        reports = import_tables(requests, vocabulary=vocabulary, schemas=schemas, progress=progress)
        return VidurImport(reports=reports)
