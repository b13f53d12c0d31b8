"""The lock that a user names: a file, or a plan whose lock is committed beside it."""

from __future__ import annotations

from pathlib import Path

from perfdb_git.database import DatabaseSnapshot, PerformanceDatabase
from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.model.plan_lock import PlanLock
from perfdb_git.storage.documents import StoredDocument
from perfdb_git.storage.layout import JSON_SUFFIX
from perfdb_git.storage.plan_documents import PlanDocuments, plan_digest, read_plan_lock


def find_lock(database: PerformanceDatabase, text: str) -> StoredDocument[PlanLock]:
    """Read a lock from a file, or by the name of its plan from the commit at ``HEAD``.

    Parameters
    ----------
    database : PerformanceDatabase
        Where a name is looked up.
    text : str
        With a slash or the suffix ``.json`` it is a file on disk, else a name.

    Raises
    ------
    UsageError
        'unknown-file' where the file cannot be read.
    InvalidInputError
        'unknown-plan-lock', or what `read_plan_lock` raises.
    """
    if "/" not in text and not text.endswith(JSON_SUFFIX):
        return PlanDocuments(database.at().evidence).lock(text)
    try:
        content = Path(text).read_bytes()
    except OSError as error:
        raise UsageError(
            f"{text} cannot be read: {error.strerror}",
            code="unknown-file",
            remedy="name a lock's file, or a plan whose lock is committed",
        ) from error
    return read_plan_lock(content, document=text)


def has_changed(snapshot: DatabaseSnapshot, lock: PlanLock) -> bool:
    """Tell whether the snapshot's plan of that name is absent or another one than was locked."""
    try:
        document = PlanDocuments(snapshot.evidence).plan(lock.plan.name)
    except InvalidInputError as error:
        if error.code != "unknown-plan":
            raise
        return True
    return plan_digest(document.value) != lock.source.digest
