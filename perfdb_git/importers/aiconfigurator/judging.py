"""Which rows of a table can be records, and why the others cannot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from perfdb_git.errors import InvalidInputError
from perfdb_git.importers.aiconfigurator.arrow_columns import ArrowColumns
from perfdb_git.importers.aiconfigurator.headers import TablePlace, device_of
from perfdb_git.importers.aiconfigurator.kinds import SOURCE_NUMBERS
from perfdb_git.importers.aiconfigurator.meaning import Operation
from perfdb_git.importers.aiconfigurator.sorted_rows import select_rows
from perfdb_git.model.vocabulary import Dimension, Vocabulary
from perfdb_git.operations.element_sizes import ELEMENT_BYTES
from perfdb_git.operations.queries import LARGEST_INTEGER, value_fault

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers: TypeAlias = NDArray[np.int64]
    Numbers: TypeAlias = NDArray[np.int64] | NDArray[np.float64]
    Mask: TypeAlias = NDArray[np.bool_]

_MOST_RANGES = 20
_BEYOND = "is beyond ±(2^53 - 1)"


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultyRows:
    """Rows of a table that one reason makes bad.

    Attributes
    ----------
    file : str
        The table.
    rows : int
        How many there are.
    places : str
        Which ones, counted from 1; the first ranges of many.
    column : str or None
        What the reason is about.
    reason : str
        Why they are no records.
    """

    file: str
    rows: int
    places: str
    column: str | None
    reason: str

    def __str__(self) -> str:
        column = "" if self.column is None else f" column {self.column!r}:"
        noun = "row" if self.rows == 1 else "rows"
        return f"{self.file}: {noun} {self.places}:{column} {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTable:
    """What a table holds.

    Attributes
    ----------
    rows : tuple of (Operation, array)
        Good rows by operation, each with what the table's own columns state of it.
    faults : tuple of FaultyRows
        Every reason why other rows are no records.
    bad_rows : int
        How many those are.
    sources : tuple of str
        Numeric columns that state no dimension and no metric of any of the operations.
    unstated : tuple of str
        Those of them that the importer knows nothing of.
    """

    rows: tuple[tuple[Operation, Integers], ...]
    faults: tuple[FaultyRows, ...]
    bad_rows: int
    sources: tuple[str, ...]
    unstated: tuple[str, ...]


class _Faults:
    """Notes bad rows of one table."""

    def __init__(self, document: str, count: int) -> None:
        import numpy as np

        self.bad: Mask = np.zeros(count, dtype=np.bool_)
        self.found: list[FaultyRows] = []
        self._document = document

    def note(self, mask: Mask, column: str | None, reason: str) -> None:
        import numpy as np

        rows = np.flatnonzero(mask)
        if len(rows) == 0:
            return
        self.bad |= mask
        self.found.append(
            FaultyRows(
                file=self._document,
                rows=len(rows),
                places=_ranges(rows + 1),
                column=column,
                reason=reason,
            )
        )


def _ranges(numbers: Integers) -> str:
    """Return ascending numbers as text, such as ``3, 7-9``; the first of many."""
    import numpy as np

    ends = np.flatnonzero(np.diff(numbers) > 1)
    firsts = [numbers[0], *numbers[ends + 1]]
    lasts = [*numbers[ends], numbers[-1]]
    shown = [
        f"{first}" if first == last else f"{first}-{last}"
        for first, last in zip(firsts[:_MOST_RANGES], lasts, strict=False)
    ]
    if len(firsts) > _MOST_RANGES:
        shown.append(f"… ({len(numbers)} rows)")
    return ", ".join(shown)


def judge_table(columns: ArrowColumns, place: TablePlace, vocabulary: Vocabulary) -> JudgedTable:
    """Judge every row of a table by its operations and the vocabulary.

    Raises
    ------
    InvalidInputError
        'missing-column', or 'unknown-operation' or 'unknown-dimension' where the repository's
        vocabulary lacks what the rows are observations of.
    """
    import numpy as np

    document = place.table.name
    faults = _Faults(document, len(columns))
    selected = []
    covered = np.zeros(len(columns), dtype=np.bool_)
    for whole in place.kind.operations:
        _require_columns(columns, _selecting_columns(whole), document)
        mask = select_rows(columns, whole)
        covered |= mask
        if bool(mask.any()):
            operation = _fitted(whole, columns, vocabulary, document)
            _judge_rows(columns, operation, mask, vocabulary, faults)
            selected.append((operation, mask))
    faults.note(~covered, None, "is an observation of no operation of its kind of table")
    _judge_devices(columns, place, vocabulary, faults)
    used = {name for one, _ in selected for name in (*one.numbers, *one.metrics)}
    sources = tuple(name for name in columns.number_names if name not in used)
    for name in sources:
        values = columns.numbers(name)
        faults.note(np.isinf(values), name, "is infinite")
        if columns.is_integer(name):
            faults.note(np.abs(values) > LARGEST_INTEGER, name, _BEYOND)
    counts = {one.message for one in place.kind.operations}
    return JudgedTable(
        rows=tuple((operation, np.flatnonzero(mask & ~faults.bad)) for operation, mask in selected),
        faults=tuple(faults.found),
        bad_rows=int(faults.bad.sum()),
        sources=sources,
        unstated=tuple(name for name in sources if name not in counts | SOURCE_NUMBERS),
    )


def _require_columns(columns: ArrowColumns, names: Iterable[str], document: str) -> None:
    missing = [name for name in names if name not in columns.names]
    if missing:
        raise InvalidInputError(
            f"lacks the columns {', '.join(map(repr, missing))} of its kind of table",
            code="missing-column",
            document=document,
            remedy="import the tables one by one, with a mapping for this one",
        )


def _selecting_columns(operation: Operation) -> list[str]:
    """Return the columns that tell which rows are observations of an operation."""
    named = ["op_name"] if operation.op_names else []
    return named if operation.where is None else [*named, operation.where[0]]


def _fitted(
    operation: Operation, columns: ArrowColumns, vocabulary: Vocabulary, document: str
) -> Operation:
    """Return what the table's own columns state of the operation.

    A dimension that the operation does not have is none of it: its column stays with the source.
    """
    entry = vocabulary.operations.get(operation.name)
    if entry is None:
        raise _missing_word(f"the operation {operation.name!r}", "unknown-operation", document)
    stated = {name: text.dimension for name, text in operation.texts.items()}
    stated |= operation.numbers
    needed = [n for n, dimension in stated.items() if dimension in (*entry.shape, "dtype")]
    needed += [] if operation.message is None else [operation.message]
    if not set(operation.metrics) & set(columns.number_names):
        needed += operation.metrics
    _require_columns(columns, needed, document)
    stated = {name: dimension for name, dimension in stated.items() if name in columns.names}
    names = {*stated.values(), *operation.constants}
    unknown = sorted(name for name in names if name not in vocabulary.dimensions)
    if unknown:
        raise _missing_word(f"the dimension {unknown[0]!r}", "unknown-dimension", document)
    own = {name for name in names if vocabulary.dimensions[name].group != "shape"}
    own |= {*entry.shape, *entry.optional}
    kept = {name for name, dimension in stated.items() if dimension in own}
    return replace(
        operation,
        texts={name: text for name, text in operation.texts.items() if name in kept},
        numbers={name: text for name, text in operation.numbers.items() if name in kept},
        metrics={n: m for n, m in operation.metrics.items() if n in columns.number_names},
        constants={name: value for name, value in operation.constants.items() if name in own},
    )


def _missing_word(what: str, code: str, document: str) -> InvalidInputError:
    return InvalidInputError(
        f"needs {what}, which the vocabulary lacks",
        code=code,
        document=document,
        remedy="add what evidence/vocabulary.yaml lacks, as the vocabulary of 'perfdb init' has it",
    )


def _judge_rows(
    columns: ArrowColumns,
    operation: Operation,
    mask: Mask,
    vocabulary: Vocabulary,
    faults: _Faults,
) -> None:
    for name, text in operation.texts.items():
        _judge_labels(columns, operation, name, mask, vocabulary.dimensions[text.dimension], faults)
    for name, dimension in operation.numbers.items():
        for reason, bad in _number_faults(columns.numbers(name), vocabulary.dimensions[dimension]):
            faults.note(bad & mask, name, reason)
    if operation.message is not None:
        size = columns.numbers(operation.message)
        faults.note(~(size > 0) & mask, operation.message, "is not positive")
    for name in operation.metrics:
        for reason, bad in _metric_faults(columns.numbers(name)):
            faults.note(bad & mask, name, reason)


def _judge_labels(
    columns: ArrowColumns,
    operation: Operation,
    name: str,
    mask: Mask,
    dimension: Dimension,
    faults: _Faults,
) -> None:
    text = operation.texts[name]
    codes, labels = columns.codes(name)
    for code, label in enumerate(labels):
        reason = None
        if label is None:
            reason = "is empty"
        elif not text.is_listed(str(label)):
            reason = f"{label!r} is not a label that is known"
        else:
            meaning = text.meaning(str(label))
            reason = None if meaning is None else value_fault(dimension, meaning)
            sized = operation.message is not None and text.dimension == "dtype"
            if reason is None and sized and meaning not in ELEMENT_BYTES:
                reason = f"{label!r} has no known size, which turns elements into bytes"
        if reason is not None:
            faults.note((codes == code) & mask, name, reason)


def _number_faults(values: Numbers, dimension: Dimension) -> Iterator[tuple[str, Mask]]:
    import numpy as np

    unknown = np.isnan(values)
    yield "is empty", unknown
    yield _BEYOND, np.abs(values) > LARGEST_INTEGER
    yield "is negative", values < 0
    if not dimension.zero:
        yield "is not positive", values == 0
    if dimension.type == "integer":
        yield "is no whole number", (values != np.floor(values)) & ~unknown


def _metric_faults(values: Numbers) -> Iterator[tuple[str, Mask]]:
    import numpy as np

    yield "is not a finite number", ~np.isfinite(values)
    yield "is negative", values < 0


def _judge_devices(
    columns: ArrowColumns, place: TablePlace, vocabulary: Vocabulary, faults: _Faults
) -> None:
    import numpy as np

    if "device" not in columns.text_names:
        if device_of(place, {}, vocabulary) is None:
            everything: Mask = np.ones(len(columns), dtype=np.bool_)
            faults.note(everything, None, f"is of the unknown system {place.table.system!r}")
        return
    codes, labels = columns.codes("device")
    for code, label in enumerate(labels):
        if label is None or device_of(place, {"device": label}, vocabulary) is None:
            reason = f"{label!r} is not a device that is known and in the vocabulary"
            faults.note(codes == code, "device", reason)
