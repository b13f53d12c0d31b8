"""What an import is asked for, and what it reports."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfdb_git.importers.observations import BadRow
from perfdb_git.importers.record_sets import LabelConflict, NewRecordSet


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """What to import, from where, to where.

    Parameters
    ----------
    repository : Path
        The folder that holds ``evidence``; its files are what the import adds to.
    mapping : str
        A shipped mapping's name, or the path of a mapping document.
    files : tuple[Path, ...]
        The tables.
    source_root : Path or None
        Folder that recorded file names start from, usually the upstream checkout; without it
        base names are recorded. Absolute paths, which hold user names, never are.
    source_revision : str or None
        Upstream revision of the files; None is an explicit unknown.
    skip_bad_rows : bool
        Import the good rows and list the others in the record sets.
    dry_run : bool
        Report what would be written, and write nothing.
    commit : bool
        Commit the new files on the current branch; without it Git is not touched.
    """

    repository: Path
    mapping: str
    files: tuple[Path, ...]
    source_root: Path | None = None
    source_revision: str | None = None
    skip_bad_rows: bool = False
    dry_run: bool = False
    commit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedSet:
    """One record set that the import wrote, or would write."""

    path: str
    sha256: str
    device: str
    operation: str
    session: str
    rows: int
    size: int


def imported_set(item: NewRecordSet) -> ImportedSet:
    """Return what a report says of a new record set."""
    return ImportedSet(
        path=item.path,
        sha256=item.sha256,
        device=item.header.device,
        operation=item.header.operation,
        session=item.header.session,
        rows=len(item.rows),
        size=len(item.content),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedFile:
    """What became of one file: its rows, and the records they made.

    ``known`` counts records that the repository held already; ``absent`` names operations of
    the mapping whose columns the file does not have; ``throttled`` says of which record sets the
    clock was held down.
    """

    file: str
    rows: int
    record_sets: tuple[ImportedSet, ...]
    known: int
    bad_rows: tuple[BadRow, ...]
    conflicts: tuple[LabelConflict, ...]
    absent: tuple[str, ...]
    throttled: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        """How many records are new."""
        return sum(item.rows for item in self.record_sets)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """The outcome of an import; ``written`` are the new files, manifests among them."""

    mapping: str
    files: tuple[ImportedFile, ...]
    written: tuple[str, ...]
    commit: str | None
    dry_run: bool

    @property
    def record_sets(self) -> tuple[ImportedSet, ...]:
        """Every new record set."""
        return tuple(item for file in self.files for item in file.record_sets)

    @property
    def records(self) -> int:
        """How many records are new."""
        return sum(file.records for file in self.files)

    @property
    def known(self) -> int:
        """How many records the repository held already."""
        return sum(file.known for file in self.files)

    @property
    def bad_rows(self) -> tuple[BadRow, ...]:
        """Every row that was left out, with the reason."""
        return tuple(row for file in self.files for row in file.bad_rows)

    @property
    def conflicts(self) -> tuple[LabelConflict, ...]:
        """Every label that contradicts its path."""
        return tuple(item for file in self.files for item in file.conflicts)
