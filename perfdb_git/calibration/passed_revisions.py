"""Which revisions were worked out again and found right, remembered in the cache directory.

A verdict is named by the digest of all that it follows from: the bytes of the revision, of its
splits, of the vocabulary and of the record sets that the splits pin, and the code and libraries
that worked it out. Retractions have no part in it: a split pins what it left out. A verdict that is
lost costs time; only passed ones are kept, so that a fault is always explained afresh.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path

from perfdb_git.formats.digests import sha256_hex
from perfdb_git.model.calibration import Calibration
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.storage import layout
from perfdb_git.storage.calibration_documents import CalibrationDocuments
from perfdb_git.storage.documents import StoredDocument
from perfdb_git.storage.snapshot import EvidenceSnapshot

VERDICT_FORMAT = 1


class PassedRevisions:
    """Verdicts over the calibration revisions of one snapshot.

    Parameters
    ----------
    snapshot : EvidenceSnapshot
        Where the records stand; its cache directory keeps the verdicts.
    documents : CalibrationDocuments
        The splits of that snapshot.
    """

    def __init__(self, snapshot: EvidenceSnapshot, documents: CalibrationDocuments) -> None:
        self._snapshot = snapshot
        self._documents = documents

    def holds(self, stored: StoredDocument[Calibration]) -> bool:
        """Tell whether a revision passed before, with nothing changed since.

        Raises
        ------
        InvalidInputError
            'unknown-split', or what breaks a split's format or schema.
        """
        key = self._key(stored)
        return key is not None and self._snapshot.cache.read(_name(key)) == _content(key)

    def remember(self, stored: StoredDocument[Calibration]) -> None:
        """Keep that a revision passed."""
        key = self._key(stored)
        if key is not None:
            self._snapshot.cache.store(_name(key), _content(key))

    def _key(self, stored: StoredDocument[Calibration]) -> str | None:
        """Return the digest of a verdict's inputs, or None where a record set is not there."""
        splits = sorted({item.split for item in stored.value.slices})
        record_sets = sorted(
            {
                sha256
                for split in splits
                for sha256 in self._documents.split(split).value.membership.record_sets
            }
        )
        # The index knows a record set by the digest of its bytes, whatever its path says.
        if any(len(self._snapshot.matching_record_sets(sha256)) != 1 for sha256 in record_sets):
            return None
        parts = (self._around, stored.sha256, *splits, *record_sets)
        return sha256_hex("\n".join(parts).encode("ascii"))

    @cached_property
    def _around(self) -> str:
        """Digest of what all verdicts of the snapshot follow from."""
        vocabulary = self._snapshot.document(layout.VOCABULARY, Vocabulary, "vocabulary")
        parts = ("none" if vocabulary is None else vocabulary.sha256, *_libraries(), code_digest())
        return sha256_hex("\n".join(parts).encode("ascii"))


def _libraries() -> Iterator[str]:
    import numpy as np

    yield from (platform.python_version(), np.__version__, platform.machine())


@cache
def code_digest() -> str:
    """Return the digest of the package's own source files: another program, another verdict."""
    import perfdb_git

    root = Path(perfdb_git.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode("utf-8") + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _name(key: str) -> str:
    return f"verdicts/v{VERDICT_FORMAT}/{key[:2]}/{key}.passed"


def _content(key: str) -> bytes:
    return f"{key}\n".encode("ascii")
