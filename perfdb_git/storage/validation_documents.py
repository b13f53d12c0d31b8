"""Validations of a snapshot, counted without reading them and read when one is needed."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from perfdb_git.storage import layout
from perfdb_git.storage.snapshot import EvidenceSnapshot

if TYPE_CHECKING:
    from perfdb_git.model.validation import Validation
    from perfdb_git.storage.documents import StoredDocument


class SnapshotValidations:
    """What simulators were judged by at a snapshot.

    Parameters
    ----------
    snapshot : EvidenceSnapshot
        Where the documents stand.
    """

    def __init__(self, snapshot: EvidenceSnapshot) -> None:
        self._snapshot = snapshot
        self._read: tuple[StoredDocument[Validation], ...] | None = None

    @cached_property
    def validation_ids(self) -> tuple[str, ...]:
        """SHA-256 of every validation, sorted, by the names of the files."""
        files = self._snapshot.source.files(layout.VALIDATIONS)
        names = (layout.document_name(file.path) for file in files)
        return tuple(sorted(name for name in names if name is not None))

    def validations(self) -> tuple[StoredDocument[Validation], ...]:
        """Return every validation, sorted by its digest.

        Raises
        ------
        InvalidInputError
            'wrong-digest', or what breaks the format or schema of one of them.
        """
        if self._read is None:
            # Imported here: most snapshots, and most resolutions, need none of it.
            from perfdb_git.storage.calibration_documents import CalibrationDocuments

            self._read = CalibrationDocuments(self._snapshot).validations()
        return self._read
