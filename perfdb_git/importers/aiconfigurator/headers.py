"""The headers and manifests of record sets: what a table's labels, place and sidecar state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perfdb_git.environment.device_terms import term_of_product
from perfdb_git.formats.canonical import canonical_document
from perfdb_git.formats.codec import encode
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.importers.aiconfigurator.arrow_columns import Label
from perfdb_git.importers.aiconfigurator.database_files import TableFile
from perfdb_git.importers.aiconfigurator.labels import (
    GENERIC_KERNELS,
    PRODUCTS,
    SYSTEMS,
    UNKNOWN_VERSIONS,
)
from perfdb_git.importers.aiconfigurator.meaning import Operation, TableKind
from perfdb_git.importers.aiconfigurator.sidecars import Collection
from perfdb_git.importers.patterns import fill_name, revision_variables
from perfdb_git.importers.record_sets import MANIFEST_SCHEMA, RECORD_SET_SCHEMA, SourceFile
from perfdb_git.model.records import (
    Column,
    Manifest,
    MeasurementProtocol,
    RecordSetHeader,
    Source,
)
from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Vocabulary

TOOL = "aiconfigurator"
IMPORTER = "aiconfigurator/1"
LICENSE = "Apache-2.0"
OBSERVED = "collection_meta"
ZERO_REASON = "the source states 0, which is no time: it could not tell it from none"

_SESSION = "{revision7}-{system}-{runtime}-{version}"
_NOT_STATED = "Driver, CUDA, clocks, power limit and host are not stated."
_PARTLY_STATED = "Clocks, power limit and host are not stated."
_DEVICE_NOTE = "The device is the rows' label, the form factor that of the folder's name."
_REPLAYS = "The collector times several replays with one pair of device events and keeps the mean."
_NCCL_TESTS = "The collector ran nccl-tests and kept one latency; nothing else is stated."
_UNSTATED = "How the collector timed this is not stated."
_COMMUNICATION = (
    "moe_dispatch",
    "moe_combine",
    "moe_dispatch_prepare",
    "moe_combine_low_precision",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlace:
    """What is the same for all rows of a table."""

    table: TableFile
    kind: TableKind
    collection: Collection
    source: SourceFile

    @property
    def runtime(self) -> str | None:
        """The library that the kind of the table is about, if it is one."""
        return self.kind.runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderFacts:
    """What a group's labels mean, in the vocabulary's terms.

    ``labels`` are what the path claims where the rows say otherwise.
    """

    context: Mapping[str, Scalar | None]
    labels: Mapping[str, str]
    session: str
    manifest: bytes


def device_of(place: TablePlace, labels: Mapping[str, Label], vocabulary: Vocabulary) -> str | None:
    """Return the device of some rows, or None for a label that nobody knows."""
    system = SYSTEMS.get(place.table.system)
    label = labels.get("device", None if system is None else system.label)
    product = PRODUCTS.get(str(label), str(label))
    found = term_of_product(product, vocabulary.dimensions["device"])
    return None if found is None else found.device


def facts_of(
    place: TablePlace, operation: Operation, labels: Mapping[str, Label], vocabulary: Vocabulary
) -> HeaderFacts:
    """Translate the labels of a group whose rows were judged good."""
    device = device_of(place, labels, vocabulary)
    system = SYSTEMS.get(place.table.system)
    of_folder = device_of(place, {}, vocabulary) == device
    form_factor = system.form_factor if system is not None and of_folder else None
    runtime = place.runtime or str(labels.get("framework", place.table.backend)).lower()
    version = str(labels.get("version", place.table.version))
    revision = None if version in UNKNOWN_VERSIONS else version
    kernel = labels.get("kernel_source")
    context: dict[str, Scalar | None] = {
        "operation": operation.name,
        "device": device,
        "form_factor": form_factor,
        "topology": None,
        "runtime": runtime,
        "runtime_revision": revision,
        "implementation": None if kernel is None or kernel in GENERIC_KERNELS else str(kernel),
        **operation.constants,
    }
    for name, text in operation.texts.items():
        if name in labels:
            context[text.dimension] = text.meaning(str(labels[name]))
    manifest = _manifest(place, device, form_factor, {runtime: revision})
    named = {
        **revision_variables(place.source.revision),
        "system": place.table.system,
        "runtime": runtime,
        "version": revision,
    }
    return HeaderFacts(
        context=context,
        labels=_contradicted(place, labels),
        session=fill_name(_SESSION, named),
        manifest=manifest,
    )


def _contradicted(place: TablePlace, labels: Mapping[str, Label]) -> dict[str, str]:
    """Return what the path says where the rows say something else."""
    table, system = place.table, SYSTEMS.get(place.table.system)
    found: dict[str, str] = {}
    if labels.get("version", table.version) != table.version:
        found["directory_version"] = table.version
    if system is not None and labels.get("device", system.label) != system.label:
        found["device_label"] = system.label
    framework = labels.get("framework", table.backend)
    if place.runtime is None and str(framework).lower() != table.backend:
        found["directory_framework"] = table.backend
    return found


def _manifest(
    place: TablePlace,
    device: str | None,
    form_factor: str | None,
    runtimes: Mapping[str, str | None],
) -> bytes:
    collection = place.collection
    stated = collection.driver is not None or "cuda" in collection.runtimes
    return canonical_document(
        encode(
            Manifest(
                schema=MANIFEST_SCHEMA,
                device=device,
                device_count=None,
                form_factor=form_factor,
                driver=collection.driver,
                firmware=None,
                runtimes={**collection.runtimes, **runtimes},
                kernel=None,
                operating_system=None,
                processor=None,
                clock_policy=None,
                power_policy=None,
                topology=None,
                notes=(_PARTLY_STATED if stated else _NOT_STATED, _DEVICE_NOTE),
            )
        )
    )


def header_of(
    place: TablePlace,
    operation: Operation,
    facts: HeaderFacts,
    *,
    keys: Mapping[str, Scalar | bool | None],
    columns: tuple[Column, ...],
    constants: Mapping[str, Scalar],
    unresolved: tuple[str, ...],
    skipped: tuple[str, ...],
) -> RecordSetHeader:
    """Return the header of one record set.

    Parameters
    ----------
    keys : mapping
        Upstream columns that are constant in the set, verbatim.
    columns : tuple of Column
        Those of its rows.
    constants : mapping
        Numeric dimensions that are constant in the set.
    unresolved : tuple of str
        Metrics with cells where the source has 0 for a time.
    skipped : tuple of str
        Bad rows that were left out.
    """
    collection = place.collection
    return RecordSetHeader(
        schema=RECORD_SET_SCHEMA,
        kind="measured",
        session=facts.session,
        source=Source(
            tool=TOOL,
            revision=place.source.revision,
            file=place.source.file,
            sha256=place.source.sha256,
            git_blob=place.source.git_blob,
            license=LICENSE,
            keys=keys,
            labels=facts.labels,
            importer=IMPORTER,
            mapping=None,
            measured_at=collection.measured_at,
            skipped=skipped,
        ),
        environment=sha256_hex(facts.manifest),
        protocol=_protocol(place, operation, keys),
        context={**facts.context, **constants},
        columns=columns,
        observed={OBSERVED: collection.stated} if collection.stated else {},
        null_reasons=dict.fromkeys(unresolved, ZERO_REASON),
    )


def _protocol(
    place: TablePlace, operation: Operation, keys: Mapping[str, Scalar | bool | None]
) -> MeasurementProtocol:
    note = _REPLAYS
    if place.runtime is not None:
        note = _NCCL_TESTS
    elif operation.name in _COMMUNICATION:
        note = _UNSTATED
    limit = keys.get("power_limit")
    return MeasurementProtocol(
        warmup=None,
        repetitions=None,
        synchronization=None,
        timer_resolution=None,
        clock_state=None,
        power_state=None if limit is None else f"power limit {limit:g} W",
        measurement_error=None,
        notes=(note,),
    )
