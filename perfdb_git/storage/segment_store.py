"""Where index files are kept, and what they are called.

A name says what its file is made from: the format of the index and the id of one Git blob, one Git
tree or one state of the evidence. Nothing else decides what stands in it, so a file may come from
anywhere: this machine's cache directory, a folder that several machines share, an object store.
Whoever opens it checks it (`block_file`), and what is absent is made from Git.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from perfdb_git.storage.block_file import Buffer

INDEX_FORMAT = 2
"""Part of every name: raised when a file's layout changes, or rows are judged anew."""

INDEX_FOLDER = "index"


class SegmentStore(Protocol):
    """Index files by name.

    `CacheDirectory` is the one that is used unless an `EvidenceSnapshot` is given another.
    """

    @property
    def local_root(self) -> Path | None:
        """A cache directory that another process on this machine may fill; None for none."""

    def has(self, name: str) -> bool:
        """Tell whether there is a file of that name; it may be damaged."""

    def load(self, name: str) -> Buffer | None:
        """Return a whole file, mapped into memory where possible; None where it is absent."""

    def store(self, name: str, content: bytes) -> None:
        """Keep a file, whole or not at all: no reader ever sees half of it."""

    def discard(self, name: str) -> None:
        """Forget a file that turned out to be damaged or wrong."""


def segment_name(blob: str) -> str:
    """Return the name of the columns of one record-set file, by its Git blob id."""
    return _name("segments", blob, "segment")


def directory_name(identity: str) -> str:
    """Return the name of the catalogue of one folder of record sets, by its Git tree id."""
    return _name("directories", identity, "directory")


def catalogue_name(digest: str) -> str:
    """Return the name of the catalogue of a whole snapshot, by the digest of its records."""
    return _name("catalogues", digest, "catalogue")


def _name(folder: str, identity: str, suffix: str) -> str:
    return f"{INDEX_FOLDER}/v{INDEX_FORMAT}/{folder}/{identity[:2]}/{identity}.{suffix}"
