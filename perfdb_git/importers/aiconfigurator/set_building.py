"""From the sorted rows of a table to the record sets that are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from perfdb_git.formats.canonical import canonical_record_set_of_texts
from perfdb_git.formats.codec import encode
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.importers.aiconfigurator.headers import TablePlace, facts_of, header_of
from perfdb_git.importers.aiconfigurator.row_text import CellTexts, cell_texts, row_texts
from perfdb_git.importers.aiconfigurator.sorted_rows import RowGroup, SortedRows
from perfdb_git.model.records import Column, ColumnRole, RecordSetHeader
from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.storage.layout import manifest_path, record_set_path

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers: TypeAlias = NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltSet:
    """A record set as bytes, with the manifest that it refers to, and its rows' place."""

    path: str
    content: bytes
    header: RecordSetHeader
    group: RowGroup
    manifest_path: str
    manifest: bytes


class _Cells:
    """A column of the sorted rows, formatted once, when the first set needs it."""

    def __init__(self, column: Column, values: Numbers) -> None:
        self.column = column
        self.values = values

    @cached_property
    def texts(self) -> CellTexts:
        return cell_texts(self.values)

    def constant(self, group: RowGroup) -> Scalar | None:
        """Return the value that all rows of a group have, or None where they differ."""
        part = self.values[group.start : group.stop]
        first: Scalar = part[0].item()
        return first if bool((part == first).all()) else None


class SetBuilder:
    """Builds the record sets of one operation of one table.

    Parameters
    ----------
    place : TablePlace
        The table.
    rows : SortedRows
        Its rows of one operation.
    skipped : tuple of str
        Bad rows of the table that are left out.
    vocabulary : Vocabulary
        Gives the units and the devices' terms.
    schemas : SchemaStore
        What headers must obey.
    """

    def __init__(
        self,
        place: TablePlace,
        rows: SortedRows,
        *,
        skipped: tuple[str, ...],
        vocabulary: Vocabulary,
        schemas: SchemaStore,
    ) -> None:
        self._place = place
        self._rows = rows
        self._skipped = skipped
        self._vocabulary = vocabulary
        self._schemas = schemas
        self._dimensions = [
            _cells(name, "dimension", values, vocabulary.dimensions[name].unit)
            for name, values in rows.dimensions.items()
        ]
        self._metrics = [
            _Cells(
                Column(
                    name=metric.name, role="metric", unit=metric.unit, statistic=metric.statistic
                ),
                values,
            )
            for metric, values in rows.metrics
        ]
        self._sources = [
            _cells(name, "source", values, None) for name, values in rows.sources.items()
        ]

    def sets(self) -> Iterator[BuiltSet]:
        """Yield the record set of each group."""
        for group in self._rows.groups:
            yield self._built(group)

    def _built(self, group: RowGroup) -> BuiltSet:
        columns, constants = self._split(self._dimensions, group)
        columns += self._metrics
        varying, keys = self._split(self._sources, group)
        columns += varying
        facts = facts_of(self._place, self._rows.operation, group.labels, self._vocabulary)
        header = header_of(
            self._place,
            self._rows.operation,
            facts,
            keys={**group.labels, **keys},
            columns=tuple(cells.column for cells in columns),
            constants=constants,
            unresolved=tuple(c.column.name for c in self._metrics if _has_unknown(c, group)),
            skipped=self._skipped,
        )
        value = encode(header)
        assert isinstance(value, dict)
        self._schemas.validate(
            {**value, "rows": []}, document=self._place.table.name, expected_kind="record-set"
        )
        texts = row_texts([cells.texts.slice(group.start, len(group)) for cells in columns])
        content = canonical_record_set_of_texts(value, texts)
        sha256 = sha256_hex(content)
        return BuiltSet(
            path=record_set_path(header.device, header.operation, header.session, sha256),
            content=content,
            header=header,
            group=group,
            manifest_path=manifest_path(header.environment),
            manifest=facts.manifest,
        )

    def _split(
        self, cells: list[_Cells], group: RowGroup
    ) -> tuple[list[_Cells], dict[str, Scalar]]:
        """Tell columns of a group from what stands in its header once."""
        varying: list[_Cells] = []
        constants: dict[str, Scalar] = {}
        for column in cells:
            value = column.constant(group)
            if value is None:
                varying.append(column)
            else:
                constants[column.column.name] = value
        return varying, constants


def _cells(name: str, role: ColumnRole, values: Numbers, unit: str | None) -> _Cells:
    return _Cells(Column(name=name, role=role, unit=unit), values)


def _has_unknown(cells: _Cells, group: RowGroup) -> bool:
    part = cells.values[group.start : group.stop]
    return part.dtype.kind == "f" and bool((part != part).any())


def cells_of(built: BuiltSet, rows: SortedRows) -> dict[str, list[Scalar | None]]:
    """Return the dimensions and metrics of a set by name, None where unknown."""
    part = slice(built.group.start, built.group.stop)
    columns = {**rows.dimensions, **{metric.name: values for metric, values in rows.metrics}}
    found: dict[str, list[Scalar | None]] = {}
    for name, values in columns.items():
        cells = values[part].tolist()
        # NaN is the one number that differs from itself.
        found[name] = [cell if cell == cell else None for cell in cells]
    return found
