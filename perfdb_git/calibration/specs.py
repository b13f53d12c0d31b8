"""Calibration specs, from the snapshot by name or from a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.formats.codec import decode
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.formats.strict_json import read_json
from perfdb_git.formats.strict_yaml import read_yaml
from perfdb_git.model.calibration import CalibrationSpec, SpecReference
from perfdb_git.storage import layout
from perfdb_git.storage.snapshot import EvidenceSnapshot

_KIND = "calibration-spec"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSpec:
    """A spec with its place and what a revision keeps of it."""

    path: str
    spec: CalibrationSpec
    reference: SpecReference


def read_spec(snapshot: EvidenceSnapshot, name: str) -> ReadSpec:
    """Return the snapshot's spec of a name, or the one in a file.

    Parameters
    ----------
    snapshot : EvidenceSnapshot
        Where named specs stand.
    name : str
        A name, or the path of a file if it has a suffix or a folder.

    Raises
    ------
    InvalidInputError
        'unknown-spec', or what breaks the file's format or schema.
    UsageError
        'unreadable-file'.
    """
    if "/" in name or name.endswith(layout.DOCUMENT_SUFFIXES):
        return _from_file(Path(name))
    for suffix in layout.DOCUMENT_SUFFIXES:
        path = f"{layout.CALIBRATION_SPECS}/{name}{suffix}"
        found = snapshot.document(path, CalibrationSpec, _KIND)
        if found is not None:
            return ReadSpec(
                path=path,
                spec=found.value,
                reference=SpecReference(name=found.value.name, sha256=found.sha256),
            )
    known = sorted(
        stem
        for file in snapshot.source.files(layout.CALIBRATION_SPECS)
        if (stem := layout.document_name(file.path)) is not None
    )
    raise InvalidInputError(
        f"the snapshot has no calibration spec {name!r}",
        code="unknown-spec",
        document=layout.CALIBRATION_SPECS,
        remedy=f"known: {', '.join(known)}" if known else "name a file instead",
    )


def _from_file(path: Path) -> ReadSpec:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}", code="unreadable-file"
        ) from error
    reader = read_json if path.suffix == layout.JSON_SUFFIX else read_yaml
    value = reader(content, document=str(path))
    SchemaStore().validate(value, document=str(path), expected_kind=_KIND)
    spec = decode(CalibrationSpec, value, document=str(path))
    reference = SpecReference(name=spec.name, sha256=sha256_hex(content))
    return ReadSpec(path=str(path), spec=spec, reference=reference)
