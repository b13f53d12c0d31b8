"""Each document by itself: strict text, its schema, its bytes and its name."""

from __future__ import annotations

from collections.abc import Iterator

from perfdb_git.checks.checked_snapshot import RECORD_SET, CheckedDocument, CheckedSnapshot
from perfdb_git.checks.rules import Check, Rule
from perfdb_git.formats.canonical import first_uncanonical_line
from perfdb_git.model.findings import Finding
from perfdb_git.storage import layout
from perfdb_git.storage.folders import SCHEMA_KIND

UNREADABLE = Rule(
    code="unreadable-document",
    documentation="Documents are strict UTF-8 JSON or YAML.",
    remedy="write it as strict JSON or YAML, in UTF-8",
)
SCHEMA_VIOLATION = Rule(
    code="schema-violation",
    documentation="Documents obey the schema that they name, of the kind that belongs there.",
    remedy="change the document to what its schema under schemas/ says",
)
UNKNOWN_VERSION = Rule(
    code="unknown-version",
    documentation="This perfdb knows the schema that a document names.",
    remedy="pip install --upgrade perfdb-git",
)
UNKNOWN_SCHEMA = Rule(
    code="unknown-schema",
    documentation="Files under schemas/ are schemas that this perfdb has.",
    remedy="remove it, or check with the newer perfdb that has it",
)
SCHEMA_DIFFERS = Rule(
    code="schema-differs",
    documentation="The repository's copies of schemas are byte-equal to the package's.",
    remedy="restore the released file: the package's schemas judge, a changed copy misleads",
)
NOT_CANONICAL = Rule(
    code="not-canonical",
    documentation="Documents that the tool writes have its canonical bytes.",
    remedy="write it with perfdb instead of by hand",
)
WRONG_DIGEST = Rule(
    code="wrong-digest",
    documentation="Content-addressed names state the SHA-256 of the file's bytes.",
    remedy="never edit it: restore it, and add the new content beside it under its own name",
)
WRONG_FOLDER = Rule(
    code="wrong-folder",
    documentation="Record sets and calibrations stand in the folders that they name.",
    remedy="move it to the folder that the document names",
)

UNKNOWN_SCHEMA_CODES = frozenset({"unknown-kind", "unknown-version"})
_SHORT_DIGEST = 12
_ADDRESSED = frozenset({"manifest", "retraction", "calibration", "validation"})
_SHORTLY_ADDRESSED = frozenset({RECORD_SET, "split"})


def judge_schema(_: CheckedSnapshot, document: CheckedDocument) -> Iterator[Finding]:
    """Yield what a document breaks of strict syntax and of its schema."""
    fault = document.fault
    if fault is not None and document.content is not None:
        where = "" if fault.line is None else f"line {fault.line}: "
        yield UNREADABLE.broken(
            document.path,
            where + fault.reason,
            pointer=fault.pointer,
            line=fault.line,
            remedy=fault.remedy,
        )
    for violation in document.violations:
        unknown = violation.code in UNKNOWN_SCHEMA_CODES
        rule = UNKNOWN_VERSION if unknown else SCHEMA_VIOLATION
        yield rule.broken(document.path, violation.message, pointer=violation.pointer)


def judge_schema_copy(snapshot: CheckedSnapshot, document: CheckedDocument) -> Iterator[Finding]:
    """Yield what is wrong with a repository's copy of a schema."""
    if document.kind != SCHEMA_KIND or document.content is None:
        return
    name = document.path.removeprefix(f"{layout.SCHEMAS}/")
    released = snapshot.released_schemas.get(name)
    if released is None:
        yield UNKNOWN_SCHEMA.broken(document.path, "this perfdb has no such schema")
    elif released != document.content:
        yield SCHEMA_DIFFERS.broken(document.path, "differs from the schema of this perfdb")


def judge_bytes(_: CheckedSnapshot, document: CheckedDocument) -> Iterator[Finding]:
    """Yield that a document's bytes are not canonical."""
    place = document.place
    if place is None or not place.canonical or not document.is_valid:
        return
    assert document.content is not None
    try:
        line = first_uncanonical_line(document.content, document.value)
    except TypeError:
        # Some cell is no cell at all; the check of the cells says which.
        return
    if line is not None:
        message = f"line {line} is not in the canonical layout"
        yield NOT_CANONICAL.broken(document.path, message, line=line)


def judge_digest(_: CheckedSnapshot, document: CheckedDocument) -> Iterator[Finding]:
    """Yield that a name does not state the digest of its file."""
    if document.content is None:
        return
    name = layout.document_name(document.path)
    if document.kind in _ADDRESSED and name != document.sha256:
        yield WRONG_DIGEST.broken(document.path, f"the file's SHA-256 is {document.sha256}")
    elif document.kind in _SHORTLY_ADDRESSED:
        wanted = document.sha256[:_SHORT_DIGEST]
        if name is None or not name.endswith(f"-{wanted}"):
            yield WRONG_DIGEST.broken(
                document.path, f"the name does not end in -{wanted}, where its SHA-256 begins"
            )


def judge_folder(_: CheckedSnapshot, document: CheckedDocument) -> Iterator[Finding]:
    """Yield that a record set stands in another series' folder, a calibration in no family's."""
    if document.kind == "calibration" and document.is_valid:
        family, folder = document.value["family"], document.path.split("/")[2]
        if family != folder:
            yield WRONG_FOLDER.broken(
                document.path,
                f"the family is {family!r}, the folder is {folder!r}",
                pointer="/family",
            )
    header = document.header
    if header is None:
        return
    device, operation = document.path.split("/")[2:4]
    for key, stated, folder in (
        ("device", header.device, device),
        ("operation", header.operation, operation),
    ):
        if layout.slug(stated) != folder:
            yield WRONG_FOLDER.broken(
                document.path,
                f"the {key} is {stated!r}, the folder is {folder!r}",
                pointer=f"/context/{key}",
            )


SCHEMAS = Check(
    id="schemas",
    documentation="Every document is strict text that obeys its released schema.",
    rules=(UNREADABLE, SCHEMA_VIOLATION, UNKNOWN_VERSION),
    judge_document=judge_schema,
)
SCHEMA_COPIES = Check(
    id="schema-copies",
    documentation="The repository's schemas are those of the package.",
    rules=(UNKNOWN_SCHEMA, SCHEMA_DIFFERS),
    judge_document=judge_schema_copy,
)
CANONICAL_BYTES = Check(
    id="canonical-bytes",
    documentation="Documents that the tool writes have its one layout.",
    rules=(NOT_CANONICAL,),
    judge_document=judge_bytes,
)
DIGESTS = Check(
    id="digests",
    documentation="Names state the digests of their files.",
    rules=(WRONG_DIGEST,),
    judge_document=judge_digest,
)
FOLDERS = Check(
    id="folders",
    documentation="Documents stand in the folders of what they are about.",
    rules=(WRONG_FOLDER,),
    judge_document=judge_folder,
)
