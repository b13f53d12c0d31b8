"""New retractions: the statement that records are wrong, as a file to add to the evidence."""

from __future__ import annotations

import datetime
import re

from perfdb_git.errors import UsageError
from perfdb_git.formats.canonical import canonical_document
from perfdb_git.formats.codec import encode
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.model.records import Retraction, record_id
from perfdb_git.storage import layout
from perfdb_git.storage.snapshot import EvidenceSnapshot

RETRACTION_SCHEMA = "perfdb/retraction/v1"

_ROW = re.compile(r"0|[1-9][0-9]{0,17}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def build_retraction(
    snapshot: EvidenceSnapshot,
    target: str,
    reason: str,
    *,
    replacement: str | None = None,
    retracted_on: str | None = None,
) -> tuple[str, bytes]:
    """Return the path and the bytes of a retraction; nothing is written.

    Parameters
    ----------
    snapshot : EvidenceSnapshot
        Where the records stand.
    target : str
        SHA-256 of a record set or a unique prefix of it; with ``#<row>`` for one record.
    reason : str
        Why the records are wrong.
    replacement : str or None
        What replaces them, named like the target.
    retracted_on : str or None
        Date as ``YYYY-MM-DD``; None leaves it unknown.

    Raises
    ------
    UsageError
        'bad-id', 'unknown-id', 'ambiguous-id', 'row-out-of-range', 'already-retracted',
        'empty-reason', 'bad-date', 'replaced-by-itself' or 'replacement-retracted'.
    """
    if not reason.strip():
        raise UsageError(
            "a retraction needs a reason",
            code="empty-reason",
            remedy="say what is wrong with the records",
        )
    _require_date(retracted_on)
    retracted = {document.value.target for document in snapshot.retractions()}
    retracted_target = full_id(snapshot, target)
    if _covers(retracted, retracted_target):
        raise UsageError(
            f"{retracted_target} is retracted already",
            code="already-retracted",
            remedy="its retraction stands under evidence/retractions/",
        )
    retraction = Retraction(
        schema=RETRACTION_SCHEMA,
        target=retracted_target,
        reason=reason.strip(),
        replacement=_replacement(snapshot, replacement, retracted_target, retracted),
        retracted_on=retracted_on,
    )
    content = canonical_document(encode(retraction))
    return layout.retraction_path(sha256_hex(content)), content


def full_id(snapshot: EvidenceSnapshot, text: str) -> str:
    """Return the full id of a record set or record that is named by a unique prefix.

    Raises
    ------
    UsageError
        'bad-id', 'unknown-id', 'ambiguous-id' or 'row-out-of-range'.
    """
    prefix, separator, row = text.partition("#")
    if separator and _ROW.fullmatch(row) is None:
        raise UsageError(
            f"{text!r} is no record id",
            code="bad-id",
            remedy="write <SHA-256 of the record set>#<row>, rows from 0",
        )
    record_set = snapshot.find_record_set(prefix)
    if not separator:
        return record_set.sha256
    if int(row) >= record_set.row_count:
        raise UsageError(
            f"{record_set.path} has {record_set.row_count} rows, there is no #{row}",
            code="row-out-of-range",
            remedy="rows count from 0",
        )
    return record_id(record_set.sha256, int(row))


def _replacement(
    snapshot: EvidenceSnapshot, text: str | None, target: str, retracted: set[str]
) -> str | None:
    if text is None:
        return None
    replacement = full_id(snapshot, text)
    if _covers({target}, replacement):
        raise UsageError(
            f"{replacement} cannot replace itself",
            code="replaced-by-itself",
            remedy="name the record that is right",
        )
    if _covers(retracted, replacement):
        raise UsageError(
            f"{replacement} is retracted and replaces nothing",
            code="replacement-retracted",
            remedy="name the record that replaced it",
        )
    return replacement


def _covers(targets: set[str], identity: str) -> bool:
    """Tell whether an id, or the whole record set it belongs to, is among `targets`."""
    return identity in targets or identity.partition("#")[0] in targets


def _require_date(text: str | None) -> None:
    if text is None:
        return
    try:
        if _DATE.fullmatch(text) is not None:
            datetime.date.fromisoformat(text)
            return
    except ValueError:
        pass
    raise UsageError(f"{text!r} is no date", code="bad-date", remedy="write YYYY-MM-DD")
