"""A change of what judges evidence, or gives it its meaning, is itself a finding for an owner."""

from __future__ import annotations

from collections.abc import Iterator

from perfdb_git.checks.change import Change, ChangedFile
from perfdb_git.checks.checked_snapshot import RECORD_SET
from perfdb_git.checks.rules import Check, Rule
from perfdb_git.checks.vocabulary_meaning import meaning_changes
from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.schemas import parse_schema_id
from perfdb_git.model.findings import Finding
from perfdb_git.storage import layout
from perfdb_git.storage.folders import SCHEMA_KIND, is_remark, place_of

JUDGES_CHANGED = Rule(
    code="judges-changed",
    severity="warning",
    documentation="Schemas, vocabulary, policies and gates change under an owner's eyes only.",
    remedy="an owner of the evidence decides; policies and gates of the merge base judge here",
)
NEW_SCHEMA = Rule(
    code="judged-by-new-schema",
    severity="warning",
    documentation="Documents obey schemas that the merge base has.",
    remedy="merge the schema first, in a change of its own, or let an owner decide",
)
MEANING_CHANGED = Rule(
    code="meaning-changed",
    documentation="What could be asked at the merge base means the same at the head.",
    remedy="keep the old meaning, and add the new one under a new name",
)
MEANING_REMOVED = Rule(
    code="meaning-removed",
    documentation="What could be asked at the merge base can be asked at the head.",
    remedy="keep the name; a term that nobody should use any more can stay without records",
)


def judge_judges(change: Change) -> Iterator[Finding]:
    """Yield changes of schemas, vocabulary and policies, and what they do to old questions."""
    for changed in change.files:
        if _is_judge(changed.path):
            yield JUDGES_CHANGED.broken(changed.path, _said(change, changed))
    yield from _meanings(change)
    yield from _new_schemas(change)


def _is_judge(path: str) -> bool:
    if is_remark(path):
        return False
    return path == layout.VOCABULARY or path.startswith(
        (f"{layout.SCHEMAS}/", f"{layout.POLICIES}/")
    )


def _said(change: Change, changed: ChangedFile) -> str:
    what = "what judges or explains evidence"
    if changed.old is None:
        return f"{what} is added"
    if changed.new is None:
        return f"{what} is removed"
    before = change.base.document(changed.old).value
    after = change.head.document(changed.new).value
    if not isinstance(before, dict) or not isinstance(after, dict):
        return f"{what} changes"
    keys = [key for key in sorted({*before, *after}) if before.get(key) != after.get(key)]
    return f"{what} changes: {', '.join(keys) or 'the layout or a comment alone'}"


def _meanings(change: Change) -> Iterator[Finding]:
    if all(file.path != layout.VOCABULARY for file in change.files):
        return
    before, after = change.base.vocabulary, change.head.vocabulary
    if before is None or after is None:
        return
    for item in meaning_changes(before, after):
        rule = MEANING_REMOVED if item.lost else MEANING_CHANGED
        yield rule.broken(layout.VOCABULARY, item.message, pointer=item.pointer)


def _new_schemas(change: Change) -> Iterator[Finding]:
    """Yield each schema that new documents name and the merge base has not, once."""
    known = change.base.schema_paths
    if not known:
        # A repository may leave its copies of the schemas out.
        return
    found: dict[str, list[str]] = {}
    for file in sorted(change.additions):
        place = place_of(file.path)
        # A new version of record sets shows by its schema; their rows are not read again for it.
        if place is None or place.kind in (RECORD_SET, SCHEMA_KIND):
            continue
        value = change.head.document(file).value
        stated = value.get("schema") if isinstance(value, dict) else None
        path = _schema_path(stated)
        if path is not None and path not in known:
            found.setdefault(str(stated), []).append(file.path)
    for stated, paths in found.items():
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        yield NEW_SCHEMA.broken(
            paths[0],
            f"this document{more} names {stated}, whose schema the merge base has not",
            pointer="/schema",
        )


def _schema_path(stated: object) -> str | None:
    if not isinstance(stated, str):
        return None
    try:
        return layout.schema_path(*parse_schema_id(stated))
    except InvalidInputError:
        # The check of schemas says so.
        return None


JUDGES = Check(
    id="judges",
    documentation="Those who judge change openly, and old questions keep their meaning.",
    rules=(JUDGES_CHANGED, NEW_SCHEMA, MEANING_CHANGED, MEANING_REMOVED),
    judge_change=judge_judges,
)
