"""What is known of a record set without its rows, and what of its rows is kept."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from perfdb_git.storage.record_columns import ColumnData
from perfdb_git.storage.sources import SourceFile


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSetFacts:
    """What is kept of a record set once its rows are dropped.

    ``row_count``, ``environment``, ``device`` and ``operation`` are None for an invalid file;
    ``observations`` is the digest of what its rows say, whatever the rest of the header; None
    where they say nothing, or were not read.
    """

    path: str
    sha256: str
    row_count: int | None
    environment: str | None
    device: str | None
    operation: str | None
    observations: str | None


class KnownRecordSets(Protocol):
    """Record sets that were read before, such as those of the base of a pull request."""

    def facts(self, file: SourceFile) -> RecordSetFacts | None:
        """Return what is known of a file's content, or None where it has to be read."""


def observations_digest(
    columns: Sequence[Mapping[str, Any]], cells: Sequence[ColumnData | None]
) -> str | None:
    """Return the digest of dimension and metric cells, or None where no metric has a value.

    Parameters
    ----------
    columns : sequence of mapping
        As the header's JSON states them.
    cells : sequence of ColumnData or None
        One entry a column.
    """
    import numpy as np

    digest = hashlib.sha256()
    measured = False
    for column, data in zip(columns, cells, strict=True):
        if data is None:
            continue
        facts = (column["role"], column["name"], column.get("statistic"), column.get("unit"))
        digest.update(f"{' '.join(map(str, facts))}\n".encode())
        digest.update(data.values.tobytes())
        if data.offsets is not None:
            digest.update(data.offsets.tobytes())
        measured |= column["role"] == "metric" and not bool(np.isnan(data.values).all())
    return digest.hexdigest() if measured else None
