"""What providers need from an evidence snapshot; storage implements it, tests can too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from perfdb_git.model.records import RecordSetHeader, SeriesKey, VerifiedRow
from perfdb_git.model.system_profile import SystemProfile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]
    BoolArray = NDArray[np.bool_]


class RecordSetView(Protocol):
    """One record set as columns, from the index; never the last word on a value."""

    @property
    def sha256(self) -> str:
        """Content address of the record-set file."""

    @property
    def path(self) -> str:
        """Path of the file in the repository."""

    @property
    def header(self) -> RecordSetHeader:
        """The shared facts of the rows."""

    @property
    def row_count(self) -> int:
        """How many rows the set has, retracted ones included."""

    def dimension(self, name: str) -> FloatArray | None:
        """Return the column, shape ``(row_count,)``, NaN where unknown; ``None`` if absent."""

    def live(self) -> BoolArray | None:
        """Return the mask of rows that are not retracted, or ``None`` when all rows are live."""


class EvidenceReader(Protocol):
    """Records of one snapshot."""

    @property
    def commit(self) -> str | None:
        """Full commit id, or ``None`` for uncommitted files."""

    @property
    def committer_time(self) -> int | None:
        """Committer time of the snapshot in seconds since 1970; ``None`` when uncommitted."""

    @property
    def records_digest(self) -> str:
        """Digest that changes whenever any record or retraction does."""

    def series_keys(self) -> Sequence[SeriesKey]:
        """Return every series of the snapshot, sorted."""

    def record_sets(self, key: SeriesKey) -> Sequence[RecordSetView]:
        """Return the record sets of one series, sorted by path."""

    def verified_rows(self, record_set: RecordSetView, rows: Sequence[int]) -> list[VerifiedRow]:
        """Re-read rows from the Git object behind ``record_set``."""


class ProfileReader(Protocol):
    """System profiles of one snapshot."""

    def system_profile(self, name: str) -> SystemProfile:
        """Return the system profile of that name; raises InvalidInputError when absent."""

    def system_profile_digest(self, name: str) -> str:
        """Return the digest of that profile's document."""
