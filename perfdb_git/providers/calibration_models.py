"""Calibration revisions of one snapshot with their decoded models, each made once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from perfdb_git.model.calibration import Calibration

if TYPE_CHECKING:
    from perfdb_git.providers.fitted_decoding import FittedPredictor


class CalibrationDocument(Protocol):
    """A calibration revision with the place of its file."""

    @property
    def path(self) -> str:
        """Path in the repository."""

    @property
    def sha256(self) -> str:
        """Content address."""

    @property
    def value(self) -> Calibration:
        """The revision."""


class CalibrationReader(Protocol):
    """Calibration revisions of one snapshot."""

    def calibration(self, sha256: str) -> CalibrationDocument:
        """Return the revision of that digest.

        Raises
        ------
        InvalidInputError
            'unknown-calibration' or 'wrong-digest'.
        """


class CalibrationModels:
    """Reads a revision when it is first asked for, and decodes a model when it is first used.

    Parameters
    ----------
    reader : CalibrationReader
        Where the revisions stand.
    """

    def __init__(self, reader: CalibrationReader) -> None:
        self._reader = reader
        self._documents: dict[str, CalibrationDocument] = {}
        self._predictors: dict[tuple[str, int, bool], FittedPredictor] = {}

    def document(self, sha256: str) -> CalibrationDocument:
        """Return the revision of that digest; see `CalibrationReader`."""
        if sha256 not in self._documents:
            self._documents[sha256] = self._reader.calibration(sha256)
        return self._documents[sha256]

    def predictor(
        self, sha256: str, number: int, *, beyond: bool = False
    ) -> FittedPredictor | None:
        """Return the decoded model of a slice.

        Parameters
        ----------
        sha256 : str
            Of the revision.
        number : int
            Place of the slice.
        beyond : bool
            The model outside the domain; ``None`` is returned where there is none.

        Raises
        ------
        InvalidInputError
            As `decode_model`.
        """
        # Imported here: a query that no calibration answers needs none of it.
        from perfdb_git.providers.fitted_decoding import decode_model

        key = (sha256, number, beyond)
        if key not in self._predictors:
            document = self.document(sha256)
            item = document.value.slices[number]
            model = item.beyond if beyond else item.inside
            if model is None:
                return None
            self._predictors[key] = decode_model(
                model,
                document.value,
                document=document.path,
                pointer=f"/slices/{number}/{'beyond' if beyond else 'inside'}",
                terms=item.terms,
            )
        return self._predictors[key]
