"""Plans and their locks: by name from a snapshot, or a lock from the bytes of a file."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.codec import decode, encode
from perfdb_git.formats.digests import canonical_digest, sha256_hex
from perfdb_git.formats.json_value import JsonValue
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.formats.strict_json import read_json
from perfdb_git.model.plan import Plan
from perfdb_git.model.plan_lock import PlanLock
from perfdb_git.storage import layout
from perfdb_git.storage.documents import StoredDocument
from perfdb_git.storage.snapshot import EvidenceSnapshot
from perfdb_git.storage.sources import SourceFile

PLAN_KIND = "plan"
PLAN_LOCK_KIND = "plan-lock"
LOCK_DIGEST = "lock-digest"


class PlanDocuments:
    """The plans of one snapshot; read when asked for.

    Parameters
    ----------
    snapshot : EvidenceSnapshot
        Where the documents stand.
    """

    def __init__(self, snapshot: EvidenceSnapshot) -> None:
        self._snapshot = snapshot

    def plans(self) -> tuple[str, ...]:
        """Return the names of all plans, sorted."""
        names = {
            layout.document_name(path)
            for path in self._paths()
            if not path.endswith(layout.LOCK_SUFFIX)
        }
        return tuple(sorted(name for name in names if name is not None))

    def locks(self) -> tuple[str, ...]:
        """Return the names of all plans with a lock, sorted; the plan itself may be gone."""
        return tuple(
            sorted(
                path.rpartition("/")[2].removesuffix(layout.LOCK_SUFFIX)
                for path in self._paths()
                if path.endswith(layout.LOCK_SUFFIX)
            )
        )

    def plan(self, name: str) -> StoredDocument[Plan]:
        """Return a plan by its name, or by its path in the repository.

        Raises
        ------
        InvalidInputError
            'unknown-plan' with what there is, 'name-stands-twice' where it is JSON and YAML,
            'plan-name' where it is called otherwise than its file, or what breaks its format or
            schema.
        """
        stem = _stem(name)
        paths = layout.plan_paths(stem)
        present = [path for path in paths if self._snapshot.source.object_id(path) is not None]
        if len(present) > 1:
            raise InvalidInputError(
                f"stands beside {present[0]}",
                code="name-stands-twice",
                document=present[1],
                remedy="remove one of the two",
            )
        document = self._snapshot.document(present[0], Plan, PLAN_KIND) if present else None
        if document is None:
            raise self._unknown(name, stem)
        if document.value.name != stem:
            raise InvalidInputError(
                f"the plan is called {document.value.name!r}, its file {stem!r}",
                code="plan-name",
                document=document.path,
                pointer="/name",
                remedy="rename the file or the plan",
            )
        return document

    def lock(self, name: str) -> StoredDocument[PlanLock]:
        """Return the lock of a plan that stands beside it.

        Raises
        ------
        InvalidInputError
            'unknown-plan-lock' with what there is, or what `read_plan_lock` raises.
        """
        path = layout.plan_lock_path(name)
        blob = self._snapshot.source.object_id(path)
        if blob is None:
            raise InvalidInputError(
                f"{self._where()} has no such lock of a plan",
                code="unknown-plan-lock",
                document=path,
                remedy=f"it has: {', '.join(self.locks()) or 'none'}; 'perfdb plan lock' makes one",
            )
        content = self._snapshot.source.read(SourceFile(path, blob))
        return read_plan_lock(content, document=path)

    def _paths(self) -> tuple[str, ...]:
        depth = layout.PLANS.count("/") + 1
        files = self._snapshot.source.files(layout.PLANS)
        return tuple(file.path for file in files if file.path.count("/") == depth)

    def _where(self) -> str:
        commit = self._snapshot.commit
        return "the work tree" if commit is None else f"commit {commit}"

    def _unknown(self, name: str, stem: str) -> InvalidInputError:
        known = self.plans()
        close = difflib.get_close_matches(stem[:100], known, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        return InvalidInputError(
            f"{self._where()} has no such plan",
            code="unknown-plan",
            document=name,
            remedy=f"{hint}it has: {', '.join(known) or 'none'}; a plan is read from the snapshot, "
            "so commit it first",
        )


def _stem(name: str) -> str:
    """Return the name of a plan that is named by its path."""
    text = name.removeprefix("./").removeprefix(f"{layout.PLANS}/")
    if "/" in text:
        raise InvalidInputError(
            f"plans stand in {layout.PLANS}",
            code="unknown-plan",
            document=name,
            remedy="give the name of one; 'perfdb list --what plans' shows them",
        )
    return layout.document_name(text) or text


def lock_digest(value: Mapping[str, JsonValue]) -> str:
    """Return ``sha256:`` and the digest that a lock of these members must state.

    Parameters
    ----------
    value : mapping
        The members of a lock; ``digest`` is left out.
    """
    return canonical_digest({key: item for key, item in value.items() if key != "digest"})


def plan_digest(plan: Plan) -> str:
    """Return ``sha256:`` and the digest of a plan's RFC 8785 text, every default written."""
    return canonical_digest(encode(plan))


def lock_fault(value: Mapping[str, JsonValue], lock: PlanLock) -> str | None:
    """Say how a lock contradicts itself, as one that was edited by hand does, or None."""
    wanted = lock_digest(value)
    if lock.digest != wanted:
        return f"it states the digest {lock.digest}, its content has {wanted}"
    wanted = plan_digest(lock.plan)
    if lock.source.digest != wanted:
        return f"it states the plan's digest {lock.source.digest}, the plan in it has {wanted}"
    return None


def read_plan_lock(
    data: bytes, *, document: str, schemas: SchemaStore | None = None
) -> StoredDocument[PlanLock]:
    """Read and judge a lock.

    Parameters
    ----------
    data : bytes
        The whole document.
    document : str
        Its path, for messages.
    schemas : SchemaStore or None
        Where the schemas are; ``None`` takes the package's own.

    Raises
    ------
    InvalidInputError
        If it is not strict JSON, breaks its schema, or is not what its digest says
        ('lock-digest').
    """
    value = read_json(data, document=document)
    (schemas or SchemaStore()).validate(value, document=document, expected_kind=PLAN_LOCK_KIND)
    lock = decode(PlanLock, value, document=document)
    assert isinstance(value, dict)
    fault = lock_fault(value, lock)
    if fault is not None:
        raise InvalidInputError(
            f"the lock was edited: {fault}",
            code=LOCK_DIGEST,
            document=document,
            pointer="/digest",
            remedy="restore it, or make it again with 'perfdb plan lock'",
        )
    return StoredDocument(path=document, sha256=sha256_hex(data), value=lock)
