"""What documents say of each other: manifests that exist, targets that exist."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from perfdb_git.checks.checked_snapshot import CheckedDocument, CheckedSnapshot
from perfdb_git.checks.record_set_facts import RecordSetFacts
from perfdb_git.checks.rules import Check, Rule
from perfdb_git.model.findings import Finding
from perfdb_git.model.records import Manifest, Retraction
from perfdb_git.storage import layout

UNKNOWN_MANIFEST = Rule(
    code="unknown-manifest",
    documentation="The environment manifest of every record set exists.",
    remedy="add the manifest file that the record set was imported with",
)
ENVIRONMENT_DIFFERS = Rule(
    code="environment-differs",
    documentation="A record set ran on the device of its environment manifest.",
    remedy="import it again with the environment that it ran in",
)
UNKNOWN_TARGET = Rule(
    code="unknown-target",
    documentation="Retracted and replacing record sets exist.",
    remedy="name a record set of this repository by its full SHA-256",
)
ROW_OUT_OF_RANGE = Rule(
    code="row-out-of-range",
    documentation="Retracted and replacing rows exist.",
    remedy="rows count from 0",
)
SELF_REPLACEMENT = Rule(
    code="replaced-by-itself",
    documentation="What replaces a retracted record is another record.",
    remedy="name the record that is right, or null",
)
RETRACTED_TWICE = Rule(
    code="retracted-twice",
    severity="warning",
    documentation="A record is retracted once.",
    remedy="keep the retraction with the better reason",
)
_MAX_ROW_DIGITS = 18


def judge_environments(snapshot: CheckedSnapshot) -> Iterator[Finding]:
    """Yield record sets whose manifest is absent or describes another device."""
    devices = _manifest_devices(snapshot)
    for facts in snapshot.record_sets:
        if facts.environment is None:
            continue
        path = layout.manifest_path(facts.environment)
        if path not in snapshot.paths:
            if snapshot.is_walked(layout.MANIFESTS):
                message = f"there is no {path}"
                yield UNKNOWN_MANIFEST.broken(facts.path, message, pointer="/environment")
            continue
        device = devices.get(path)
        if device is not None and device != facts.device:
            yield ENVIRONMENT_DIFFERS.broken(
                facts.path,
                f"the rows ran on {facts.device!r}, {path} describes {device!r}",
                pointer="/environment",
            )


def _manifest_devices(snapshot: CheckedSnapshot) -> Mapping[str, str | None]:
    found = {}
    for document in snapshot.documents("manifest"):
        manifest = document.as_model(Manifest)
        if manifest is not None:
            found[document.path] = manifest.device
    return found


def judge_retractions(snapshot: CheckedSnapshot) -> Iterator[Finding]:
    """Yield retractions of, or in favour of, what does not exist."""
    documents = snapshot.documents("retraction")
    if not documents or not snapshot.is_walked(layout.RECORDS):
        return
    sets = {facts.sha256: facts for facts in snapshot.record_sets}
    first: dict[str, str] = {}
    for document in documents:
        retraction = document.as_model(Retraction)
        if retraction is None:
            continue
        target, replacement = retraction.target, retraction.replacement
        yield from _missing(document, "target", target, sets)
        if replacement == target:
            yield SELF_REPLACEMENT.broken(
                document.path, f"{target} cannot replace itself", pointer="/replacement"
            )
        elif replacement is not None:
            yield from _missing(document, "replacement", replacement, sets)
        if target in first:
            yield RETRACTED_TWICE.broken(
                document.path, f"{first[target]} retracts {target} too", pointer="/target"
            )
        first.setdefault(target, document.path)


def _missing(
    document: CheckedDocument, key: str, identity: str, sets: Mapping[str, RecordSetFacts]
) -> Iterator[Finding]:
    sha256, _, row = identity.partition("#")
    facts = sets.get(sha256)
    if facts is None:
        yield UNKNOWN_TARGET.broken(
            document.path, f"there is no record set {sha256}", pointer=f"/{key}"
        )
        return
    rows = facts.row_count
    # A longer number is no row of any file, and reading it could take long.
    if row and rows is not None and (len(row) > _MAX_ROW_DIGITS or int(row) >= rows):
        yield ROW_OUT_OF_RANGE.broken(
            document.path, f"{facts.path} has {rows} rows, there is no #{row}", pointer=f"/{key}"
        )


REFERENCES = Check(
    id="references",
    documentation="What documents refer to exists.",
    rules=(
        UNKNOWN_MANIFEST,
        ENVIRONMENT_DIFFERS,
        UNKNOWN_TARGET,
        ROW_OUT_OF_RANGE,
        SELF_REPLACEMENT,
        RETRACTED_TWICE,
    ),
    judge_snapshot=lambda snapshot: (
        *judge_environments(snapshot),
        *judge_retractions(snapshot),
    ),
)
