"""Which evidence an oracle's rows are in, so that a comparison can leave it aside."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from perfdb_git.model.exclusion import Exclusion
from perfdb_git.model.records import RecordSetHeader
from perfdb_git.plans.oracle_files import OracleFile, label
from perfdb_git.storage.calibration_documents import CalibrationDocuments
from perfdb_git.storage.record_sets import IndexedRecordSet
from perfdb_git.storage.snapshot import EvidenceSnapshot

Ground: TypeAlias = Literal["source-digest", "keys"]
"""Why a record set is excluded: it was made from the very file, or has rows with its keys."""

_COMPONENT = "op"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcludedRecordSet:
    """A record set that holds rows of the oracle."""

    sha256: str
    path: str
    oracle: str
    ground: Ground
    rows: int
    shared_rows: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcludedCalibration:
    """A calibration that an excluded record set trained; ``record_sets`` are those."""

    sha256: str
    path: str
    operation: str
    device: str
    record_sets: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """All that a comparison with an oracle leaves aside."""

    record_sets: tuple[ExcludedRecordSet, ...]
    calibrations: tuple[ExcludedCalibration, ...]

    def exclusion(self) -> Exclusion:
        """Return it as a resolver takes it."""
        return Exclusion(
            record_sets=frozenset(item.sha256 for item in self.record_sets),
            calibrations=frozenset(item.sha256 for item in self.calibrations),
        )


def isolate(
    evidence: EvidenceSnapshot, oracles: Sequence[OracleFile], devices: Collection[str]
) -> Isolation:
    """Find the evidence that holds an oracle's rows, or has learned from them.

    A record set is excluded where its source has the digest of an oracle's file, on any device;
    and, since a part of a file has another digest, where a row of it has the identity columns of
    an oracle's row, on a device that the plan asks about. Equal keys are enough: a measured value
    is not compared, because none is read before the estimates are made.

    Parameters
    ----------
    evidence : EvidenceSnapshot
        The records and calibrations.
    oracles : sequence of OracleFile
        See `identify`.
    devices : collection of str
        Devices that the plan asks about; Vidur's rows name none.
    """
    record_sets = tuple(
        found
        for key in evidence.series_keys()
        for view in evidence.record_sets(key)
        if (found := _excluded(evidence, view, oracles, devices)) is not None
    )
    addresses = {item.sha256 for item in record_sets}
    return Isolation(
        record_sets=tuple(sorted(record_sets, key=lambda item: item.path)),
        calibrations=tuple(_calibrations(evidence, addresses)),
    )


def _excluded(
    evidence: EvidenceSnapshot,
    view: IndexedRecordSet,
    oracles: Sequence[OracleFile],
    devices: Collection[str],
) -> ExcludedRecordSet | None:
    header = view.header
    for oracle in oracles:
        ground: Ground | None = None
        shared: int | None = None
        if _is_made_from(header, oracle):
            ground = "source-digest"
        elif header.device in devices and _may_share(header, oracle):
            shared = _shared_rows(*evidence.read_record_set(view), oracle)
            ground = "keys" if shared else None
        if ground is not None:
            return ExcludedRecordSet(
                sha256=view.sha256,
                path=view.path,
                oracle=oracle.path.name,
                ground=ground,
                rows=view.row_count,
                shared_rows=shared,
            )
    return None


def _is_made_from(header: RecordSetHeader, oracle: OracleFile) -> bool:
    source = header.source
    return source.sha256 == oracle.sha256 or source.git_blob == oracle.git_blob


def _may_share(header: RecordSetHeader, oracle: OracleFile) -> bool:
    """Tell whether a set knows every identity column, and may be of one of the components."""
    component = header.source.keys.get(_COMPONENT)
    if component is not None and component not in oracle.components:
        return False
    names = {*header.source.keys, *(column.name for column in header.columns)}
    return bool(oracle.keys) and names.issuperset(oracle.keys)


def _shared_rows(header: RecordSetHeader, rows: Sequence[Sequence[Any]], oracle: OracleFile) -> int:
    places = {column.name: place for place, column in enumerate(header.columns)}
    constants = {name: label(value) for name, value in header.source.keys.items()}
    identities = (
        tuple(
            label(row[places[name]]) if name in places else constants[name] for name in oracle.keys
        )
        for row in rows
    )
    return sum(identity in oracle.identities for identity in identities)


def _calibrations(
    evidence: EvidenceSnapshot, record_sets: Collection[str]
) -> Iterator[ExcludedCalibration]:
    if not record_sets:
        return
    for document in CalibrationDocuments(evidence).calibrations():
        trained_on = {
            address for item in document.value.slices for address in item.training.record_sets
        }
        shared = sorted(trained_on.intersection(record_sets))
        if shared:
            yield ExcludedCalibration(
                sha256=document.sha256,
                path=document.path,
                operation=document.value.operation,
                device=document.value.device,
                record_sets=tuple(shared),
            )
