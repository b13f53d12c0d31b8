"""A simulator's records against measurements of the same points, as a validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perfdb_git.calibration.documents import VALIDATION_SCHEMA
from perfdb_git.calibration.reports import Predictions, held_out_report
from perfdb_git.calibration.selection import LATENCY, Cell, RecordBlock, SelectedRecords
from perfdb_git.errors import NoEvidenceError, UsageError
from perfdb_git.model.records import RecordKind, record_id
from perfdb_git.model.validation import (
    ErrorLimit,
    RecordPair,
    Simulator,
    Validation,
    ValidationTarget,
)
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.storage.record_sets import IndexedRecordSet
from perfdb_git.storage.snapshot import EvidenceSnapshot

DEFAULT_LIMIT = ErrorLimit(statistic="mape_pct", value=10.0)
MIN_POINTS = 8
"""Fewest different points at which a simulator is compared."""

SIMULATED: tuple[RecordKind, ...] = ("simulated",)
MEASURED: tuple[RecordKind, ...] = ("measured", "profiled")
"""Kinds of record on either side of a pair."""

_SERIES = frozenset({"operation", "device"})
_Key = tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationRequest:
    """What to compare.

    Attributes
    ----------
    simulated, measured : str
        The beginning of a record set's SHA-256, or ``TOOL@REVISION`` for all records of a source.
    device : str
        Canonical term of the target.
    operation : str or None
        The operation to compare; None where the records have one only.
    response : str
        The metric.
    limit : ErrorLimit
        The error up to which the simulator's records may answer.
    min_points : int
        Fewest points that are enough, at least 1.
    """

    simulated: str
    measured: str
    device: str
    operation: str | None = None
    response: str = LATENCY
    limit: ErrorLimit = DEFAULT_LIMIT
    min_points: int = MIN_POINTS


@dataclass(frozen=True, slots=True)
class _Compared:
    pair: RecordPair
    point: _Key
    simulated: float
    measured: float


def validate_simulator(snapshot: EvidenceSnapshot, request: ValidationRequest) -> Validation:
    """Compare simulated with measured records of equal dimensions; nothing is written.

    Two records are a pair where all dimensions that both know are equal, and none that is
    material is known to one of them alone. A simulated record is paired with every measured one
    of its point. A comparison over its limit is returned as well: it admits no record.

    Raises
    ------
    UsageError
        'unknown-id', 'ambiguous-id', 'unknown-source', 'wrong-kind', 'wrong-device',
        'several-operations', 'several-simulators', 'several-targets' or 'unknown-revision'.
    NoEvidenceError
        'too-few-pairs'.
    """
    simulated = _records(snapshot, request.simulated, request, SIMULATED)
    measured = _records(snapshot, request.measured, request, MEASURED)
    operation = _operation(request, simulated)
    simulated, measured = _of(simulated, operation), _of(measured, operation)
    simulator, target = _simulator(simulated), _target(simulated, request.device)
    compared = _pairs(simulated, measured, request.response, snapshot.vocabulary())
    points = len({item.point for item in compared})
    if points < request.min_points:
        raise NoEvidenceError(
            f"{len(simulated)} simulated and {len(measured)} measured records of {operation} are "
            f"pairs at {points} points, fewer than {request.min_points}",
            code="too-few-pairs",
            remedy="measure the points that were simulated, all material dimensions stated",
        )
    predictions = Predictions(
        ids=[item.pair.measured for item in compared],
        measured=np.array([item.measured for item in compared]),
        predicted=np.array([item.simulated for item in compared]),
    )
    return Validation(
        schema=VALIDATION_SCHEMA,
        simulator=simulator,
        target=target,
        operation=operation,
        response=request.response,
        pairs=tuple(item.pair for item in compared),
        held_out_report=held_out_report(predictions, response=request.response),
        limit=request.limit,
    )


def _records(
    snapshot: EvidenceSnapshot,
    name: str,
    request: ValidationRequest,
    kinds: Sequence[RecordKind],
) -> SelectedRecords:
    if "@" not in name:
        view = snapshot.find_record_set(name)
        _require(view, request.device, kinds)
        return SelectedRecords([_live(snapshot, view)])
    tool, _, revision = name.rpartition("@")
    keys = [key for key in snapshot.series_keys() if key.kind in kinds]
    found = [
        view
        for key in keys
        for view in snapshot.record_sets(key)
        if view.header.source.tool == tool
        and (view.header.source.revision or "unknown") == revision
        and request.operation in (None, key.operation)
    ]
    views = [view for view in found if view.header.context["device"] == request.device]
    if found and not views:
        _require(found[0], request.device, kinds)
    if not found:
        raise UsageError(
            f"no {' or '.join(kinds)} records come from {name}",
            code="unknown-source",
            remedy="'perfdb list' shows what there is",
        )
    return SelectedRecords([_live(snapshot, view) for view in views])


def _require(view: IndexedRecordSet, device: str, kinds: Sequence[RecordKind]) -> None:
    header = view.header
    if header.kind not in kinds:
        raise UsageError(
            f"record set {view.sha256[:12]} is {header.kind}, not {' or '.join(kinds)}",
            code="wrong-kind",
            remedy="perfdb validate SIMULATED --against MEASURED",
        )
    if header.context["device"] != device:
        raise UsageError(
            f"record set {view.sha256[:12]} is of {header.context['device']}, not of {device}",
            code="wrong-device",
            remedy="a simulator is validated for the device that was measured",
        )


def _live(snapshot: EvidenceSnapshot, view: IndexedRecordSet) -> RecordBlock:
    header, rows = snapshot.read_record_set(view)
    block = RecordBlock(
        sha256=view.sha256,
        path=view.path,
        header=header,
        rows=rows,
        numbers=np.arange(len(rows), dtype=np.int64),
    )
    live = view.live()
    return block if live is None else block.subset(live)


def _operation(request: ValidationRequest, records: SelectedRecords) -> str:
    names = sorted({str(block.header.context["operation"]) for block in records.blocks})
    if request.operation is not None:
        return request.operation
    if len(names) != 1:
        raise UsageError(
            f"the simulated records are of {', '.join(names) or 'no operation'}",
            code="several-operations",
            remedy="name one with --operation",
        )
    return names[0]


def _of(records: SelectedRecords, operation: str) -> SelectedRecords:
    blocks = [item for item in records.blocks if item.header.context["operation"] == operation]
    return SelectedRecords(blocks)


def _simulator(records: SelectedRecords) -> Simulator:
    sources = {(block.header.source.tool, block.header.source.revision) for block in records.blocks}
    if len(sources) > 1:
        raise UsageError(
            "the simulated records come from several simulators or revisions",
            code="several-simulators",
            remedy="name one as TOOL@REVISION",
        )
    for tool, revision in sources:
        if revision is None:
            raise UsageError(
                f"the simulated records do not state the revision of {tool}",
                code="unknown-revision",
                remedy="import them again with --source-revision",
            )
        return Simulator(name=tool, revision=revision)
    raise NoEvidenceError("no simulated records are left to compare", code="too-few-pairs")


def _target(records: SelectedRecords, device: str) -> ValidationTarget:
    names = ("component", "capability_revision")
    found = {tuple(block.header.context.get(name) for name in names) for block in records.blocks}
    if len(found) > 1:
        raise UsageError(
            "the simulated records are of several components or capability revisions",
            code="several-targets",
            remedy="name one record set",
        )
    component, capability = found.pop()
    return ValidationTarget(
        device=device,
        component=None if component is None else str(component),
        capability_revision=None if capability is None else str(capability),
    )


def _pairs(
    simulated: SelectedRecords, measured: SelectedRecords, response: str, vocabulary: Vocabulary
) -> list[_Compared]:
    """Return the pairs that have both values, in the order of their record ids."""
    found: list[_Compared] = []
    for ours in simulated.blocks:
        for theirs in measured.blocks:
            found += _block_pairs(ours, theirs, response, vocabulary)
    return sorted(found, key=lambda item: (item.pair.simulated, item.pair.measured))


def _block_pairs(
    ours: RecordBlock, theirs: RecordBlock, response: str, vocabulary: Vocabulary
) -> list[_Compared]:
    names = shared_names(ours, theirs, vocabulary)
    if names is None:
        return []
    by_point: dict[_Key, list[tuple[str, float]]] = {}
    for key, name, value in _points(theirs, names, response):
        by_point.setdefault(key, []).append((name, value))
    return [
        _Compared(RecordPair(simulated=name, measured=other), key, value, against)
        for key, name, value in _points(ours, names, response)
        for other, against in by_point.get(key, ())
        if against > 0
    ]


def _points(
    block: RecordBlock, names: Sequence[str], response: str
) -> list[tuple[_Key, str, float]]:
    """Return point, id and value of each row that has a value."""
    cells = [block.dimension(name) or [] for name in names]
    points = list(zip(*cells, strict=True)) if cells else [()] * len(block.rows)
    ids = [record_id(block.sha256, number) for number in block.numbers.tolist()]
    values = block.metric(response).tolist()
    return [item for item in zip(points, ids, values, strict=True) if item[2] == item[2]]


def shared_names(
    ours: RecordBlock, theirs: RecordBlock, vocabulary: Vocabulary
) -> tuple[str, ...] | None:
    """Return the dimensions that both know; None where one alone knows a material one."""
    one, other = (_known(block, vocabulary) for block in (ours, theirs))
    if any(vocabulary.dimensions[name].material for name in one ^ other):
        return None
    return tuple(sorted(one & other))


def _known(block: RecordBlock, vocabulary: Vocabulary) -> set[str]:
    columns = {item.name for item in block.header.columns if item.role == "dimension"}
    context = {name for name, value in block.header.context.items() if value is not None}
    names = (columns | context) - _SERIES
    return {name for name in names if vocabulary.dimensions[name].matched}
