"""From observations to the record sets and manifests that are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfdb_git.formats.canonical import canonical_document, canonical_record_set
from perfdb_git.formats.codec import decode, encode
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.importers.cells import RawCell, text_of
from perfdb_git.importers.known_rows import KnownRows
from perfdb_git.importers.mapping_documents import LoadedMapping
from perfdb_git.importers.observations import Observations
from perfdb_git.importers.patterns import fill, fill_all, fill_name
from perfdb_git.model.records import (
    ROW_NUMBER,
    Column,
    Manifest,
    RecordSetHeader,
    Source,
)
from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.storage.layout import manifest_path, record_set_path

RECORD_SET_SCHEMA = "perfdb/record-set/v1"
MANIFEST_SCHEMA = "perfdb/manifest/v1"
IMPORTER = "table/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """What record sets say of the imported file."""

    file: str
    sha256: str
    git_blob: str
    revision: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelConflict:
    """A label in the rows that contradicts the one in the path."""

    file: str
    column: str
    row_label: str
    path_label: str

    def __str__(self) -> str:
        return (
            f"{self.file}: the rows say {self.column} = {self.row_label!r}, the path says "
            f"{self.path_label!r}; the rows' label is the context, the path's is in source.labels"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRecordSet:
    """A record set to write, with the manifest that it refers to."""

    path: str
    sha256: str
    content: bytes
    header: RecordSetHeader
    rows: Sequence[Sequence[object]]
    manifest_path: str
    manifest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltSets:
    """The new record sets of one file, and how many of its observations were there already."""

    record_sets: tuple[NewRecordSet, ...]
    known: int
    conflicts: tuple[LabelConflict, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSetBuilder:
    """Builds the record sets of one file."""

    loaded: LoadedMapping
    vocabulary: Vocabulary
    variables: Mapping[str, Scalar | None]
    source: SourceFile
    schemas: SchemaStore

    def build(self, observations: Sequence[Observations], known: KnownRows) -> BuiltSets:
        """Group, sort and serialise observations, leaving out those that are known."""
        sets: list[NewRecordSet] = []
        conflicts: dict[LabelConflict, None] = {}
        known_count = 0
        checked = tuple(check.column for check in self.loaded.mapping.label_checks)
        for whole in (group for part in observations for group in _groups(part, checked)):
            group = whole
            header, _ = self._header(group)
            new = known.new_indices(header, _rows(header, group))
            conflicts.update(dict.fromkeys(self._conflicts(header)))
            if new is not None:
                known_count += len(group) - len(new)
                group = group.select(new)
            if len(group) > 0:
                sets.append(self._serialised(group))
        return BuiltSets(record_sets=tuple(sets), known=known_count, conflicts=tuple(conflicts))

    def _header(self, group: Observations) -> tuple[RecordSetHeader, bytes]:
        """Return the header and the canonical manifest that it refers to."""
        mapping, operation = self.loaded.mapping, group.operation
        constants = {name: cells[0] for name, cells in group.sources.items() if _is_constant(cells)}
        own = {name: self._filled(value) for name, value in operation.keys.items()}
        context = {**group.context, **{name: cells[0] for name, cells in group.terms.items()}}
        # What the rows say is nearer to the measurement than what the path says. A column of
        # several values has no one value to put into a text.
        varying = dict.fromkeys((*group.sources, *group.dimensions))
        facts = {**varying, **self.variables, **own, **constants, **context}
        manifest = self._manifest(facts)
        header = RecordSetHeader(
            schema=RECORD_SET_SCHEMA,
            kind=mapping.kind,
            session=fill_name(mapping.session, facts),
            source=self._source(group, {**own, **constants}),
            environment=sha256_hex(manifest),
            protocol=operation.protocol or mapping.protocol,
            context=context,
            columns=self._columns(group, constants),
            extensions=operation.extensions,
        )
        return header, manifest

    def _source(self, group: Observations, keys: Mapping[str, RawCell]) -> Source:
        statement = self.loaded.mapping.source
        return Source(
            tool=statement.tool,
            revision=self.source.revision,
            file=self.source.file,
            sha256=self.source.sha256,
            git_blob=self.source.git_blob,
            license=statement.license,
            keys=keys,
            labels=self._labels(keys),
            importer=IMPORTER,
            mapping=self.loaded.reference,
            measured_at=statement.measured_at,
            skipped=tuple(str(row) for row in group.bad_rows),
        )

    def _filled(self, value: Scalar) -> Scalar | None:
        return fill(value, self.variables) if isinstance(value, str) else value

    def _columns(self, group: Observations, constants: Mapping[str, RawCell]) -> tuple[Column, ...]:
        dimensions = [
            Column(name=name, role="dimension", unit=self.vocabulary.dimensions[name].unit)
            for name in group.dimensions
        ]
        metrics = [
            Column(name=m.metric, role="metric", unit=m.unit, statistic=m.statistic)
            for m in group.operation.metrics
        ]
        names = [name for name in group.sources if name not in constants]
        sources = [Column(name=name, role="source") for name in (*names, ROW_NUMBER)]
        return (*dimensions, *metrics, *sources)

    def _labels(self, constants: Mapping[str, RawCell]) -> dict[str, str]:
        labels: dict[str, str] = {}
        for check in self.loaded.mapping.label_checks:
            expected = text_of(self.variables[check.variable])
            if check.column not in constants or text_of(constants[check.column]) != expected:
                labels[check.variable] = expected
        return labels

    def _conflicts(self, header: RecordSetHeader) -> Iterator[LabelConflict]:
        for check in self.loaded.mapping.label_checks:
            expected = header.source.labels.get(check.variable)
            if expected is not None:
                label = header.source.keys.get(check.column, "several values")
                yield LabelConflict(
                    file=self.source.file,
                    column=check.column,
                    row_label=str(label),
                    path_label=expected,
                )

    def _manifest(self, facts: Mapping[str, Scalar | bool | None]) -> bytes:
        template = {"schema": MANIFEST_SCHEMA, **self.loaded.mapping.environment}
        value = fill_all(template, facts)
        self.schemas.validate(
            value, document=f"environment of {self.loaded.document}", expected_kind="manifest"
        )
        return canonical_document(encode(decode(Manifest, value, document=self.loaded.document)))

    def _serialised(self, group: Observations) -> NewRecordSet:
        header, manifest = self._header(group)
        rows = _rows(header, group)
        value = encode(header)
        assert isinstance(value, dict)
        content = canonical_record_set(value, rows)
        sha256 = sha256_hex(content)
        return NewRecordSet(
            path=record_set_path(header.device, header.operation, header.session, sha256),
            sha256=sha256,
            content=content,
            header=header,
            rows=rows,
            manifest_path=manifest_path(header.environment),
            manifest=manifest,
        )


def _is_constant(cells: Sequence[RawCell]) -> bool:
    return len(cells) > 0 and all(cell == cells[0] for cell in cells)


def _groups(part: Observations, checked: Sequence[str]) -> Iterator[Observations]:
    """Split by string-valued dimensions, the upstream labels behind them, and checked labels."""
    columns = [
        *part.terms.values(),
        *part.labels.values(),
        *(part.sources[name] for name in checked),
    ]
    groups: dict[tuple[object, ...], list[int]] = {}
    if columns:
        for index, key in enumerate(zip(*columns, strict=True)):
            groups.setdefault(key, []).append(index)
    else:
        groups[()] = list(range(len(part)))
    for key in sorted(groups, key=_text_key):
        indices = groups[key]
        if indices:
            yield part.select(sorted(indices, key=_sort_key(part)))


def _text_key(key: tuple[object, ...]) -> tuple[str, ...]:
    return tuple("" if part is None else str(part) for part in key)


def _sort_key(part: Observations) -> Callable[[int], tuple[object, ...]]:
    """Return the key that orders rows by their dimensions, unknown ones first, then by row."""
    columns: list[Sequence[object]] = []
    for cells in part.dimensions.values():
        if None in cells:
            columns.append([cell is not None for cell in cells])
            columns.append([0 if cell is None else cell for cell in cells])
        else:
            columns.append(cells)
    keys = list(zip(*columns, part.row_numbers, strict=True))
    return keys.__getitem__


def _rows(header: RecordSetHeader, group: Observations) -> list[list[object]]:
    names = [column.name for column in header.columns if column.role == "source"]
    sources = [group.sources[name] for name in names if name != ROW_NUMBER]
    columns = [*group.dimensions.values(), *group.metrics, *sources, group.row_numbers]
    return [list(row) for row in zip(*columns, strict=True)]
