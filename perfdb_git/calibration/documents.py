"""Splits, calibrations and validations as files: canonical, content-addressed, never changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from perfdb_git.formats.canonical import canonical_document
from perfdb_git.formats.codec import encode
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.formats.strict_json import read_json
from perfdb_git.model.calibration import Calibration
from perfdb_git.model.splits import Split
from perfdb_git.model.validation import Validation
from perfdb_git.storage import layout
from perfdb_git.storage.append import write_new_files

CALIBRATION_SCHEMA = "perfdb/calibration/v1"
VALIDATION_SCHEMA = "perfdb/validation/v1"

_KINDS: Mapping[type, str] = {Split: "split", Calibration: "calibration", Validation: "validation"}


def document_file(
    document: Split | Calibration | Validation, *, schemas: SchemaStore | None = None
) -> tuple[str, str, bytes]:
    """Return path, SHA-256 and bytes of a document; nothing is written.

    Raises
    ------
    InvalidInputError
        If the document breaks its schema.
    """
    content = canonical_document(encode(document))
    sha256 = sha256_hex(content)
    path = _path(document, sha256)
    # Judged as it will be read, not as it was made.
    value = read_json(content, document=path)
    judge = SchemaStore() if schemas is None else schemas
    judge.validate(value, document=path, expected_kind=_KINDS[type(document)])
    return path, sha256, content


def write_documents(root: Path, *documents: Split | Calibration | Validation) -> tuple[str, ...]:
    """Write documents below the folder that holds ``evidence``, and return the new paths.

    One that is there already is left alone; see `write_new_files`.

    Raises
    ------
    InvalidInputError, RepositoryUnavailableError
        As `document_file` and `write_new_files`; then nothing was written.
    """
    schemas = SchemaStore()
    files = [document_file(document, schemas=schemas) for document in documents]
    return write_new_files(root, {path: content for path, _, content in files})


def _path(document: Split | Calibration | Validation, sha256: str) -> str:
    if isinstance(document, Split):
        return layout.split_path(document.recipe.name, sha256)
    if isinstance(document, Calibration):
        return layout.calibration_path(document.family, sha256)
    return layout.validation_path(sha256)
