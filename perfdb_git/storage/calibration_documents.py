"""Splits, calibrations and validations of a snapshot, found by their digests."""

from __future__ import annotations

from functools import cached_property
from typing import TypeVar

from perfdb_git.errors import InvalidInputError
from perfdb_git.model.calibration import Calibration
from perfdb_git.model.splits import Split
from perfdb_git.model.validation import Validation
from perfdb_git.storage import layout
from perfdb_git.storage.documents import StoredDocument
from perfdb_git.storage.snapshot import EvidenceSnapshot

T = TypeVar("T")


class CalibrationDocuments:
    """What a snapshot has learned, and how it was judged; read when asked for.

    Parameters
    ----------
    snapshot : EvidenceSnapshot
        Where the documents stand.
    """

    def __init__(self, snapshot: EvidenceSnapshot) -> None:
        self._snapshot = snapshot

    @cached_property
    def calibration_paths(self) -> dict[str, str]:
        """Path of every calibration revision by its digest, sorted by path."""
        return {
            _stem(path): path
            for path in self._paths(layout.CALIBRATIONS)
            if not path.startswith(f"{layout.CALIBRATION_SPECS}/")
        }

    @cached_property
    def split_paths(self) -> tuple[str, ...]:
        """Path of every split, sorted."""
        return self._paths(layout.SPLITS)

    @cached_property
    def validation_paths(self) -> dict[str, str]:
        """Path of every validation by its digest, sorted by path."""
        return {_stem(path): path for path in self._paths(layout.VALIDATIONS)}

    def calibration(self, sha256: str) -> StoredDocument[Calibration]:
        """Return the calibration revision of that digest.

        Raises
        ------
        InvalidInputError
            'unknown-calibration', or 'wrong-digest' where the file is another one than its name
            says.
        """
        path = self.calibration_paths.get(sha256)
        return self._read(path, sha256, Calibration, "calibration")

    def calibrations(self) -> tuple[StoredDocument[Calibration], ...]:
        """Return every calibration revision, sorted by path."""
        return tuple(self.calibration(sha256) for sha256 in self.calibration_paths)

    def split(self, sha256: str) -> StoredDocument[Split]:
        """Return the split of that digest.

        Raises
        ------
        InvalidInputError
            'unknown-split' or 'wrong-digest'.
        """
        ending = f"-{sha256[:12]}{layout.JSON_SUFFIX}"
        found = [path for path in self.split_paths if path.endswith(ending)]
        return self._read(found[0] if found else None, sha256, Split, "split")

    def splits(self) -> tuple[StoredDocument[Split], ...]:
        """Return every split, sorted by path."""
        found = (self._snapshot.document(path, Split, "split") for path in self.split_paths)
        return tuple(document for document in found if document is not None)

    def validation(self, sha256: str) -> StoredDocument[Validation]:
        """Return the validation of that digest.

        Raises
        ------
        InvalidInputError
            'unknown-validation' or 'wrong-digest'.
        """
        path = self.validation_paths.get(sha256)
        return self._read(path, sha256, Validation, "validation")

    def validations(self) -> tuple[StoredDocument[Validation], ...]:
        """Return every validation, sorted by path."""
        return tuple(self.validation(sha256) for sha256 in self.validation_paths)

    def _paths(self, folder: str) -> tuple[str, ...]:
        files = self._snapshot.source.files(folder)
        return tuple(sorted(file.path for file in files if file.path.endswith(layout.JSON_SUFFIX)))

    def _read(self, path: str | None, sha256: str, cls: type[T], kind: str) -> StoredDocument[T]:
        document = None if path is None else self._snapshot.document(path, cls, kind)
        if document is None:
            raise InvalidInputError(
                f"the snapshot has no {kind} {sha256}",
                code=f"unknown-{kind}",
                document=f"{layout.EVIDENCE}/{kind}s",
                remedy="name one by its full SHA-256",
            )
        if document.sha256 != sha256:
            raise InvalidInputError(
                f"the file's SHA-256 is {document.sha256}, not {sha256}",
                code="wrong-digest",
                document=document.path,
                remedy="it is never edited: restore it, and add the new one beside it",
            )
        return document


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(layout.JSON_SUFFIX)
