"""Which commit and author each file behind an answer came from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from perfdb_git.database import DatabaseSnapshot
from perfdb_git.errors import RepositoryUnavailableError
from perfdb_git.model.policy import Policy
from perfdb_git.review.answers import Answer
from perfdb_git.review.history import author_name
from perfdb_git.storage import layout
from perfdb_git.storage.git import Commit, GitStore

OriginKind: TypeAlias = Literal["record-set", "calibration", "system-profile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceOrigin:
    """One file behind an answer, and where it came from.

    Attributes
    ----------
    kind : str
        What it is.
    path : str
        The file.
    record_ids : tuple of str
        Records of it that the answer rests on.
    session : str or None
        Session of a record set.
    commit : str or None
        Full id of the commit that brought the file as it is; ``None`` where a shallow clone's
        history is cut before it.
    committer_time : int or None
        Seconds since 1970.
    author, summary : str or None
        Who wrote that commit, without the address, and its first line.
    """

    kind: OriginKind
    path: str
    record_ids: tuple[str, ...]
    session: str | None
    commit: str | None
    committer_time: int | None
    author: str | None
    summary: str | None


def answer_origins(
    store: GitStore, snapshot: DatabaseSnapshot, answer: Answer, policy: Policy, device: str | None
) -> tuple[EvidenceOrigin, ...]:
    """Return where the files behind an answer came from, sorted by path.

    Parameters
    ----------
    store : GitStore
        The repository.
    snapshot : DatabaseSnapshot
        Where the answer was given.
    answer : Answer
        The answer.
    policy : Policy
        The policy it was given under.
    device : str or None
        The device that was asked about.
    """
    finder = _OriginFinder(store)
    assert snapshot.commit is not None
    files = sorted(_files(snapshot, answer, policy, device), key=lambda file: file.path)
    return tuple(_origin(finder, snapshot.commit, file) for file in files)


@dataclass(frozen=True, slots=True)
class _File:
    kind: OriginKind
    path: str
    blob: str
    record_ids: tuple[str, ...] = ()
    session: str | None = None


def _files(
    snapshot: DatabaseSnapshot, answer: Answer, policy: Policy, device: str | None
) -> Iterator[_File]:
    by_set: dict[str, list[str]] = {}
    for record in answer.record_ids:
        by_set.setdefault(record.partition("#")[0], []).append(record)
    for sha256, records in by_set.items():
        found = snapshot.evidence.find_record_set(sha256)
        blob, session = found.entry.blob, found.header.session
        yield _File("record-set", found.path, blob, tuple(records), session)
    source = snapshot.evidence.source
    if answer.calibration is not None:
        path = snapshot.calibration_models.document(answer.calibration).path
        blob_id = source.object_id(path)
        assert blob_id is not None
        yield _File("calibration", path, blob_id)
    if answer.method in ("analytical", "fallback") and device is not None:
        for path in layout.system_profile_paths(policy.system_profiles[device]):
            blob_id = source.object_id(path)
            if blob_id is not None:
                yield _File("system-profile", path, blob_id)


def _origin(finder: _OriginFinder, head: str, file: _File) -> EvidenceOrigin:
    commit = finder.find(head, file.path, file.blob)
    return EvidenceOrigin(
        kind=file.kind,
        path=file.path,
        record_ids=file.record_ids,
        session=file.session,
        commit=None if commit is None else commit.id,
        committer_time=None if commit is None else commit.committer_time,
        author=None if commit is None else author_name(commit),
        summary=None if commit is None else commit.summary,
    )


class _OriginFinder:
    """Follows files back through history, into the merged branch where one brought them."""

    def __init__(self, store: GitStore) -> None:
        self._store = store
        self._commits: dict[str, Commit | None] = {}
        self._folders: dict[tuple[str, str], str | None] = {}
        self._blobs: dict[tuple[str, str], str | None] = {}

    def find(self, head: str, path: str, blob: str) -> Commit | None:
        """Return the commit that brought a file, ``None`` where history is cut before it."""
        current = self._commit(head)
        while current is not None:
            if not current.parents:
                return current
            older = next(
                (parent for parent in current.parents if self._has(parent, path, blob)), None
            )
            if older is not None:
                current = self._commit(older)
                continue
            whole = all(self._commit(parent) is not None for parent in current.parents)
            return current if whole else None
        return None

    def _has(self, commit: str, path: str, blob: str) -> bool:
        found = self._commit(commit)
        return found is not None and self._blob(found.tree, path) == blob

    def _blob(self, tree: str, path: str) -> str | None:
        """Look a path up, remembering its top folder, which most commits leave as it is."""
        top, _, rest = path.partition("/")
        if (tree, top) not in self._folders:
            self._folders[tree, top] = self._store.lookup(tree, top)
        folder = self._folders[tree, top]
        if folder is None:
            return None
        if (folder, path) not in self._blobs:
            self._blobs[folder, path] = self._store.lookup(folder, rest)
        return self._blobs[folder, path]

    def _commit(self, commit: str) -> Commit | None:
        """Return a commit, ``None`` where a shallow clone lacks it."""
        if commit not in self._commits:
            try:
                self._commits[commit] = self._store.read_commit(commit)
            except RepositoryUnavailableError as error:
                if error.code != "object-missing" or not self._store.is_shallow:
                    raise
                self._commits[commit] = None
        return self._commits[commit]
