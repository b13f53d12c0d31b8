"""What several snapshots of one repository read alike, kept once and found by content.

Two commits mostly hold the same files. Whatever depends on a blob's bytes alone is read, verified
and parsed once for all snapshots of a database.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from perfdb_git.model.records import RecordSetHeader
from perfdb_git.storage.documents import DecodedDocuments
from perfdb_git.storage.record_sets import StatedRecordSet
from perfdb_git.storage.segments import Segment

MOST_BYTES = 128 * 1024 * 1024
"""Size of the record-set files of which the text is kept."""


class SharedReads:
    """Segments and record-set files by Git blob id.

    Attributes
    ----------
    segments : dict of str to Segment
        Open segments; the index that finds one damaged removes it.
    headers : dict of str to RecordSetHeader
        Their headers as model objects, removed with them.
    documents : dict
        Vocabularies, policies, profiles and calibrations as model objects.
    """

    def __init__(self, *, most_bytes: int = MOST_BYTES) -> None:
        self.segments: dict[str, Segment] = {}
        self.headers: dict[str, RecordSetHeader] = {}
        self.documents: DecodedDocuments = {}
        self._most_bytes = most_bytes
        self._bytes = 0
        self._lock = Lock()
        self._stated: OrderedDict[str, StatedRecordSet] = OrderedDict()

    def stated(self, blob: str, read: Callable[[], StatedRecordSet]) -> StatedRecordSet:
        """Return what a record-set file says, read from Git the first time.

        Parameters
        ----------
        blob : str
            Git blob id.
        read : callable
            Reads the file.
        """
        with self._lock:
            known = self._stated.get(blob)
            if known is not None:
                self._stated.move_to_end(blob)
                return known
        found = read()
        with self._lock:
            if blob not in self._stated:
                self._stated[blob] = found
                self._bytes += found.size
            # The newest stays, however large it is: it is in use.
            while self._bytes > self._most_bytes and len(self._stated) > 1:
                self._bytes -= self._stated.popitem(last=False)[1].size
        return found
