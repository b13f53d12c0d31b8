"""Stored validations against the evidence: pairs that are pairs, and errors worked out again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from perfdb_git.calibration.reports import Predictions, held_out_report
from perfdb_git.calibration.revision_checks import figure_finding, report_differences
from perfdb_git.calibration.selection import Cell, RecordBlock
from perfdb_git.calibration.validating import MEASURED, SIMULATED, shared_names
from perfdb_git.errors import InvalidInputError, NoEvidenceError, UsageError
from perfdb_git.model.findings import Finding
from perfdb_git.model.records import RecordSetHeader
from perfdb_git.model.validation import RecordPair, Validation
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.storage.calibration_documents import CalibrationDocuments
from perfdb_git.storage.documents import StoredDocument
from perfdb_git.storage.snapshot import EvidenceSnapshot

_REMEDY = "validate it again with 'perfdb validate'; a validation is never edited"


def check_validations(snapshot: EvidenceSnapshot) -> tuple[Finding, ...]:
    """Work out the error of every validation again, from the records that it pairs.

    Returns
    -------
    tuple of Finding
        'validation-pair', 'held-out-error', or the code of what keeps one from being worked out.
    """
    documents = CalibrationDocuments(snapshot)
    found: list[Finding] = []
    for sha256, path in documents.validation_paths.items():
        try:
            found += _validation_findings(snapshot, documents.validation(sha256))
        except (InvalidInputError, NoEvidenceError, UsageError) as error:
            found.append(figure_finding(error.code, path, error.message, None, error.remedy))
    return tuple(found)


def _validation_findings(
    snapshot: EvidenceSnapshot, stored: StoredDocument[Validation]
) -> Iterator[Finding]:
    validation, path = stored.value, stored.path
    rows = _Rows(snapshot)
    fault = _first_wrong_pair(validation, rows, snapshot.vocabulary())
    if fault is not None:
        number, text = fault
        yield figure_finding("validation-pair", path, text, f"/pairs/{number}", _REMEDY)
        return
    simulated, measured = (
        np.array(
            [rows.value(getattr(pair, side), validation.response) for pair in validation.pairs]
        )
        for side in ("simulated", "measured")
    )
    if not (np.isfinite(simulated).all() and (measured > 0).all()):
        text = f"a paired record has no {validation.response}"
        yield figure_finding("validation-pair", path, text, "/pairs", _REMEDY)
        return
    predictions = Predictions(
        ids=[pair.measured for pair in validation.pairs], measured=measured, predicted=simulated
    )
    again = held_out_report(predictions, response=validation.response)
    for pointer, text in report_differences(validation.held_out_report, again):
        yield figure_finding(
            "held-out-error", path, f"stated is {text}", f"/held_out_report{pointer}", _REMEDY
        )


class _Rows:
    """Rows by record id, each record set read once."""

    def __init__(self, snapshot: EvidenceSnapshot) -> None:
        self._snapshot = snapshot
        self._blocks: dict[str, RecordBlock] = {}
        self._values: dict[tuple[str, str], list[float]] = {}
        self._cells: dict[tuple[str, str], list[Cell] | None] = {}

    def block(self, record: str) -> tuple[RecordBlock, int]:
        """Return the record set of a record, and its row there."""
        sha256, _, row = record.partition("#")
        if sha256 not in self._blocks:
            view = self._snapshot.find_record_set(sha256)
            header, rows = self._snapshot.read_record_set(view)
            self._blocks[sha256] = RecordBlock(
                sha256=sha256,
                path=view.path,
                header=header,
                rows=rows,
                numbers=np.arange(len(rows), dtype=np.int64),
            )
        block = self._blocks[sha256]
        # A longer number is no row of any file, and reading it could take long.
        if len(row) > len(str(len(block.rows))) or int(row) >= len(block.rows):
            raise InvalidInputError(
                f"there is no row {row} in record set {sha256[:12]}",
                code="unknown-row",
                document=block.path,
            )
        return block, int(row)

    def value(self, record: str, response: str) -> float:
        """Return a metric of a record in its SI unit, NaN where unknown."""
        block, row = self.block(record)
        key = (block.sha256, response)
        if key not in self._values:
            self._values[key] = block.metric(response).tolist()
        return self._values[key][row]

    def cell(self, block: RecordBlock, row: int, name: str) -> Cell:
        """Return a dimension of a row, None where unknown."""
        key = (block.sha256, name)
        if key not in self._cells:
            self._cells[key] = block.dimension(name)
        cells = self._cells[key]
        return None if cells is None else cells[row]


def _first_wrong_pair(
    validation: Validation, rows: _Rows, vocabulary: Vocabulary
) -> tuple[int, str] | None:
    """Return the number of the first pair that compares other things, and how it does."""
    names: dict[tuple[str, str], tuple[str, ...] | None] = {}
    for number, pair in enumerate(validation.pairs):
        ours, row = rows.block(pair.simulated)
        theirs, other = rows.block(pair.measured)
        key = (ours.sha256, theirs.sha256)
        if key not in names:
            fault = _wrong_sets(validation, ours.header, theirs.header)
            if fault is not None:
                return number, fault
            names[key] = shared_names(ours, theirs, vocabulary)
        shared = names[key]
        if shared is None:
            return number, "one record knows a material dimension that the other does not"
        for name in shared:
            one, two = rows.cell(ours, row, name), rows.cell(theirs, other, name)
            if one != two:
                return number, f"{name} is {one} and {two}: {_pair_text(pair)}"
    return None


def _wrong_sets(
    validation: Validation, ours: RecordSetHeader, theirs: RecordSetHeader
) -> str | None:
    simulator, target = validation.simulator, validation.target
    if (ours.source.tool, ours.source.revision) != (simulator.name, simulator.revision):
        return f"the simulated record is of {ours.source.tool}@{ours.source.revision}"
    series = (validation.operation, target.device)
    for header, kinds in ((ours, SIMULATED), (theirs, MEASURED)):
        if header.kind not in kinds:
            return f"a record is {header.kind} where {' or '.join(kinds)} ones are compared"
        stated = (header.context["operation"], header.context["device"])
        if stated != series:
            return f"a record is of {stated[0]} on {stated[1]}"
    return None


def _pair_text(pair: RecordPair) -> str:
    texts = (pair.simulated, pair.measured)
    return " and ".join(f"{sha[:12]}#{row}" for sha, _, row in (t.partition("#") for t in texts))
