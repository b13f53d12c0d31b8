"""New records against existing ones of the same context: do they tell the same story?"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from perfdb_git.checks.change import Change
from perfdb_git.checks.checked_snapshot import RECORD_SET, CheckedDocument
from perfdb_git.checks.rules import Check, Rule
from perfdb_git.checks.same_context import KeyedRows
from perfdb_git.checks.terms import pointer
from perfdb_git.checks.typical_values import dimension_columns, indexed_columns, typical_values
from perfdb_git.checks.unit_swaps import swapped_units
from perfdb_git.model.findings import Finding
from perfdb_git.model.records import RecordSetHeader, SeriesKey
from perfdb_git.operations.units import METRIC_UNITS
from perfdb_git.providers.matching import Matcher
from perfdb_git.storage import layout
from perfdb_git.storage.catalogue_entries import CatalogueEntry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray: TypeAlias = NDArray[np.float64]
    BoolArray: TypeAlias = NDArray[np.bool_]

CONFLICT = Rule(
    code="conflicting-evidence",
    severity="warning",
    documentation="New records agree with existing ones, within the gate or the policy.",
    remedy="find out which is right; retract the wrong one, or state what differs as a dimension",
)
REFUSED_CONFLICT = Rule(
    code="refused-conflict",
    documentation="Where the policy refuses conflicting evidence, new records bring none.",
    remedy="find out which is right and retract the wrong one: no answer is given until then",
)
SWAPPED_UNIT = Rule(
    code="suspected-unit",
    documentation="New records do not differ from existing ones by a power of 10^3.",
    remedy="compare the unit of the column with the source; import again in the right unit",
)
NOT_READABLE = Rule(
    code="existing-unreadable",
    documentation="Record sets of the base can be read, so that new ones can be compared.",
    remedy="run 'perfdb check --at' with the base to see what is wrong there",
)

_TOGETHER = ("measured", "profiled")
"""Kinds that answer at one tier, so that they are pooled; simulations are validated instead."""

Sessions: TypeAlias = dict[str, list[float]]
"""Values of one metric in one context, by session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Disagreement:
    """A row, its value in SI units, and the session whose median is furthest from it."""

    row: int
    value: float
    other: float
    session: str

    @property
    def ratio(self) -> float:
        return self.value / self.other

    @property
    def size(self) -> float:
        """How many times the smaller of the two the larger one is."""
        return max(self.ratio, 1 / self.ratio)


def judge_conflicts(change: Change, document: CheckedDocument) -> Iterator[Finding]:
    """Yield that rows of a new record set disagree with existing evidence."""
    import numpy as np

    header, columns = document.header, document.columns
    policy, vocabulary = change.policy, change.head.vocabulary
    if document.kind != RECORD_SET or header is None or columns is None:
        return
    retracted = change.retracted.get(document.sha256, frozenset())
    if policy is None or vocabulary is None or retracted is None:
        return
    rows = len(document.value["rows"])
    keyed = KeyedRows(
        document.value,
        dimension_columns(document.value, columns),
        rows=rows,
        vocabulary=vocabulary,
        matcher=Matcher(vocabulary, policy.matching),
    )
    values = typical_values(document.value, columns, rows)
    sessions = _existing_sessions(change, header, keyed)
    for metric, own in values.items():
        # What is pooled and compared is the median of a session, as in an answer.
        own = keyed.medians(np.where(_mask(rows, retracted), np.nan, own))
        gate = change.gate_limits(metric, header.operation, header.device).max_disagreement
        threshold = policy.conflict.threshold if gate is None else gate
        worse = _disagreements(sessions.get(metric, {}), own, threshold)
        if worse:
            rule = REFUSED_CONFLICT if policy.conflict.action == "refuse" else CONFLICT
            yield _finding(rule, document, metric, worse, compared=len(sessions[metric]))


def _mask(rows: int, chosen: frozenset[int]) -> BoolArray:
    """Return which of the rows are chosen."""
    import numpy as np

    mask = np.zeros(rows, dtype=np.bool_)
    mask[[row for row in chosen if row < rows]] = True
    return mask


def _existing_sessions(
    change: Change, header: RecordSetHeader, keyed: KeyedRows
) -> dict[str, dict[int, Sessions]]:
    """Return existing values by metric, own row and session."""
    kinds = _TOGETHER if header.kind in _TOGETHER else (header.kind,)
    found: dict[str, dict[int, Sessions]] = {}
    for kind in kinds:
        key = SeriesKey(kind=kind, device=header.device, operation=header.operation)
        for entry in change.existing.series(key):
            # Rows of one session are pooled, never compared.
            if entry.header["session"] != header.session:
                _collect(change, keyed, entry, found)
    return found


def _collect(
    change: Change,
    keyed: KeyedRows,
    entry: CatalogueEntry,
    found: dict[str, dict[int, Sessions]],
) -> None:
    by_row = keyed.shared_dimensions(entry.header)
    retracted = change.retracted.get(entry.sha256, frozenset())
    if by_row is None or retracted is None:
        return
    columns = indexed_columns(change.existing.snapshot.index, entry)
    dimensions = dimension_columns(entry.header, columns)
    pairs = list(keyed.pairs(by_row, entry.header, dimensions, entry.row_count))
    if not pairs:
        return
    session = entry.header["session"]
    for metric, values in typical_values(entry.header, columns, entry.row_count).items():
        rows = found.setdefault(metric, {})
        for own, other in pairs:
            value = float(values[other])
            if value > 0 and other not in retracted:
                rows.setdefault(own, {}).setdefault(session, []).append(value)


def _disagreements(
    existing: Mapping[int, Sessions], own: FloatArray, threshold: float
) -> list[_Disagreement]:
    found = []
    for row, sessions in existing.items():
        value = float(own[row])
        if not value > 0:
            continue
        medians = {name: statistics.median(values) for name, values in sessions.items()}
        session = max(medians, key=lambda name: abs(math.log(value / medians[name])))
        item = _Disagreement(row=row, value=value, other=medians[session], session=session)
        if item.size - 1 > threshold:
            found.append(item)
    return found


def _finding(
    rule: Rule,
    document: CheckedDocument,
    metric: str,
    found: Sequence[_Disagreement],
    *,
    compared: int,
) -> Finding:
    worst = max(found, key=lambda item: (item.size, -item.row))
    # One finding a set and metric: all rows of a set are usually off for one reason.
    swap = swapped_units(statistics.median(item.ratio for item in found))
    unit = METRIC_UNITS.get(metric, "")
    message = (
        f"{metric}: {len(found)} of {compared} contexts that were measured before differ by more "
        f"than the gates or the policy allow; the furthest, row {worst.row}, is {worst.value:.4g} "
        f"{unit} here and {worst.other:.4g} {unit} in session {worst.session!r} "
        f"(a factor {worst.size:.3g})"
    )
    if swap is not None:
        rule = SWAPPED_UNIT
        message += f": {swap}"
    return rule.broken(document.path, message, pointer=pointer("rows", worst.row), row=worst.row)


def judge_readable(change: Change) -> Iterator[Finding]:
    """Yield that new records cannot be compared, where the base's own cannot be read."""
    fault = change.existing.fault
    if fault is not None:
        yield NOT_READABLE.broken(layout.RECORDS, f"the base's evidence is broken: {fault.message}")


CONFLICTS = Check(
    id="conflicts",
    documentation="New records agree with the evidence that is there.",
    rules=(CONFLICT, REFUSED_CONFLICT, SWAPPED_UNIT, NOT_READABLE),
    judge_addition=judge_conflicts,
    judge_change=judge_readable,
)
