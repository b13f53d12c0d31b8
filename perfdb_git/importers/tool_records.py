"""From the points of a tool's file to record sets and manifests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfdb_git.formats.canonical import canonical_document, canonical_record_set
from perfdb_git.formats.codec import decode, encode
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.redaction import Redactor
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.formats.strict_json import read_json
from perfdb_git.importers.cells import RawCell
from perfdb_git.importers.known_rows import KnownRows
from perfdb_git.importers.record_sets import (
    MANIFEST_SCHEMA,
    RECORD_SET_SCHEMA,
    BuiltSets,
    NewRecordSet,
    SourceFile,
)
from perfdb_git.importers.stated_facts import StatedFacts, contradiction
from perfdb_git.importers.tool_results import MetricColumn, Point, ToolImporter, ToolResult
from perfdb_git.model.records import Column, Manifest, RecordSetHeader, Source
from perfdb_git.model.values import JsonValue, Scalar
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.storage.layout import manifest_path, record_set_path

_SHORT_DIGEST = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRecordBuilder:
    """Builds the record sets of one file of a tool."""

    importer: ToolImporter
    result: ToolResult
    facts: StatedFacts
    source: SourceFile
    vocabulary: Vocabulary
    schemas: SchemaStore
    redactor: Redactor

    def build(self, points: Sequence[Point], known: KnownRows) -> BuiltSets:
        """Group, sort and serialise points, leaving out those that are known already.

        Parameters
        ----------
        points : sequence of Point
            As `PointCompleter` returns them.
        known : KnownRows
            What the repository holds of the file.
        """
        manifest = self._manifest(points)
        sets: list[NewRecordSet] = []
        count = 0
        for group in _groups(points, self.vocabulary):
            header = self._header(group, sha256_hex(manifest))
            rows = _rows(header, group)
            new = known.new_indices(header, rows)
            if new is not None:
                count += len(rows) - len(new)
                rows = [rows[index] for index in new]
            if rows:
                sets.append(_serialised(header, rows, manifest))
        return BuiltSets(record_sets=tuple(sets), known=count, conflicts=())

    def _manifest(self, points: Sequence[Point]) -> bytes:
        """Return the named manifest, or one with what the file says and nothing more."""
        device = points[0].dimensions.get("device")
        if self.facts.manifest is not None:
            return self._stated_manifest(self.facts.manifest, device)
        read = self.result.environment
        form_factor = points[0].dimensions.get("form_factor")
        runtimes = {name: self._clean(version) for name, version in read.runtimes.items()}
        manifest = Manifest(
            schema=MANIFEST_SCHEMA,
            device=None if device is None else str(device),
            device_count=read.device_count,
            form_factor=None if form_factor is None else str(form_factor),
            driver=self._clean(read.driver),
            firmware=None,
            runtimes=runtimes,
            kernel=self._clean(read.kernel),
            operating_system=self._clean(read.operating_system),
            processor=self._clean(read.processor),
            clock_policy=None,
            power_policy=None,
            topology=None,
        )
        value = encode(manifest)
        self.schemas.validate(value, document="environment", expected_kind="manifest")
        return canonical_document(value)

    def _stated_manifest(self, data: bytes, device: Scalar | None) -> bytes:
        value = read_json(data, document="environment")
        self.schemas.validate(value, document="environment", expected_kind="manifest")
        manifest = decode(Manifest, value, document="environment")
        if manifest.device is not None and manifest.device != device:
            raise contradiction("device", device, manifest.device, "environment")
        return canonical_document(encode(manifest))

    def _clean(self, text: str | None) -> str | None:
        return self.redactor.text(text) if text else None

    def _header(self, group: Sequence[Point], environment: str) -> RecordSetHeader:
        result, facts = self.result, self.facts
        context, numeric = _split(group, self.vocabulary)
        constants = _constants(group)
        reasons: dict[str, dict[str, None]] = {}
        for point in group:
            for name, reason in point.null_reasons.items():
                reasons.setdefault(name, {})[self.redactor.text(reason)] = None
        if facts.tool_version and result.revision and facts.tool_version != result.revision:
            raise contradiction(
                "tool_version", facts.tool_version, result.revision, self.source.file
            )
        time = result.time
        observed: dict[str, JsonValue] = dict(result.observed)
        if time is not None:
            observed["time_as_stated"] = time.text
        clean = self.redactor.value(observed)
        assert isinstance(clean, dict)
        default = f"{self.importer.name}-{self.source.sha256[:_SHORT_DIGEST]}"
        return RecordSetHeader(
            schema=RECORD_SET_SCHEMA,
            kind=result.kind,
            session=facts.session or default,
            source=Source(
                tool=result.tool,
                revision=self.source.revision or result.revision or facts.tool_version,
                file=self.redactor.text(self.source.file),
                sha256=self.source.sha256,
                git_blob=self.source.git_blob,
                license=facts.license,
                keys=constants,
                labels={},
                importer=self.importer.label,
                mapping=None,
                measured_at=_measured_at(result, facts, self.source.file),
                skipped=tuple(map(self.redactor.text, (*result.skipped, *result.bad_rows))),
            ),
            environment=environment,
            protocol=group[0].protocol,
            context=context,
            columns=_columns(group, numeric, constants, self.vocabulary),
            observed=clean,
            null_reasons={name: "; ".join(texts) for name, texts in sorted(reasons.items())},
        )


def _measured_at(result: ToolResult, facts: StatedFacts, document: str) -> str | None:
    own = None if result.time is None else result.time.utc
    if own is not None and facts.measured_at not in (None, own):
        raise contradiction("measured_at", facts.measured_at, own, document)
    return own or facts.measured_at


def _is_text(name: str, vocabulary: Vocabulary) -> bool:
    return vocabulary.dimensions[name].type in ("term", "label")


def _groups(points: Sequence[Point], vocabulary: Vocabulary) -> Iterator[list[Point]]:
    """Yield points that share a header, in the order of their texts."""
    groups: dict[tuple[object, ...], list[Point]] = {}
    for point in points:
        texts = sorted(
            (name, "" if value is None else str(value))
            for name, value in point.dimensions.items()
            if _is_text(name, vocabulary)
        )
        numeric = sorted(name for name in point.dimensions if not _is_text(name, vocabulary))
        key: tuple[object, ...] = (
            point.operation,
            tuple(texts),
            tuple(numeric),
            repr(point.protocol),
        )
        groups.setdefault(key, []).append(point)
    for _, group in sorted(groups.items(), key=lambda item: repr(item[0])):
        yield group


def _split(
    group: Sequence[Point], vocabulary: Vocabulary
) -> tuple[dict[str, Scalar | None], list[str]]:
    """Return the constant dimensions, and the names of those that need a column."""
    context: dict[str, Scalar | None] = {}
    numeric: list[str] = []
    for name, value in group[0].dimensions.items():
        same = all(point.dimensions[name] == value for point in group)
        if _is_text(name, vocabulary) or same:
            context[name] = value
        else:
            numeric.append(name)
    return context, numeric


def _source_names(group: Sequence[Point]) -> list[str]:
    return list(dict.fromkeys(name for point in group for name in point.sources))


def _constants(group: Sequence[Point]) -> dict[str, RawCell]:
    found: dict[str, RawCell] = {}
    for name in _source_names(group):
        cells = [point.sources.get(name) for point in group]
        if all(cell == cells[0] for cell in cells):
            found[name] = cells[0]
    return found


def _metrics(group: Sequence[Point]) -> list[MetricColumn]:
    return list(dict.fromkeys(column for point in group for column in point.metrics))


def _columns(
    group: Sequence[Point],
    numeric: Sequence[str],
    constants: Mapping[str, RawCell],
    vocabulary: Vocabulary,
) -> tuple[Column, ...]:
    dimensions = [
        Column(name=name, role="dimension", unit=vocabulary.dimensions[name].unit)
        for name in numeric
    ]
    metrics = [
        Column(name=item.name, role="metric", unit=item.unit, statistic=item.statistic)
        for item in _metrics(group)
    ]
    sources = [
        Column(name=name, role="source") for name in _source_names(group) if name not in constants
    ]
    return (*dimensions, *metrics, *sources)


def _rows(header: RecordSetHeader, group: Sequence[Point]) -> list[list[object]]:
    rows: list[list[object]] = []
    for point in group:
        row: list[object] = []
        for column in header.columns:
            if column.role == "dimension":
                row.append(point.dimensions[column.name])
            elif column.role == "source":
                row.append(point.sources.get(column.name))
            else:
                assert column.statistic is not None
                assert column.unit is not None
                key = MetricColumn(column.name, column.statistic, column.unit)
                cell = point.metrics.get(key)
                row.append(list(cell) if isinstance(cell, tuple) else cell)
        rows.append(row)
    count = sum(column.role == "dimension" for column in header.columns)
    # Unknown ones first; rows of equal dimensions keep the order of the file.
    return sorted(rows, key=lambda row: [(cell is not None, cell or 0) for cell in row[:count]])


def _serialised(
    header: RecordSetHeader, rows: Sequence[Sequence[object]], manifest: bytes
) -> NewRecordSet:
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
