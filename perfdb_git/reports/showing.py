"""One thing of a snapshot, found by its id or name and shown whole."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from perfdb_git.database import DatabaseSnapshot
from perfdb_git.errors import UsageError
from perfdb_git.model.gates import Gates
from perfdb_git.model.records import RecordSetHeader, record_id
from perfdb_git.model.values import JsonValue
from perfdb_git.reports.envelope import encoded
from perfdb_git.reports.screen import Line, fact, table, wrapped
from perfdb_git.storage.layout import GATES, manifest_path, policy_path
from perfdb_git.storage.plan_documents import PlanDocuments
from perfdb_git.storage.record_sets import IndexedRecordSet
from perfdb_git.storage.snapshot import MIN_PREFIX

ShownKind: TypeAlias = Literal[
    "record",
    "record-set",
    "manifest",
    "retraction",
    "policy",
    "gates",
    "system-profile",
    "timing-profile",
    "pipeline",
    "plan",
    "plan-lock",
    "operation",
    "dimension",
]

_EVIDENCE = ("record", "record-set", "manifest", "retraction")
"""Kinds of document in which null is an explicit unknown."""

_ROW_ID = re.compile(r"([0-9a-fA-F]+)#(0|[1-9][0-9]{0,17})")
_HEX = re.compile(r"[0-9a-f]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One thing with its full id and the document that states it.

    ``rows`` are the first rows of a record set, as its columns have them.
    """

    commit: str | None
    kind: ShownKind
    id: str
    path: str | None
    retracted: bool
    document: Mapping[str, JsonValue]
    row_count: int | None = None
    rows: tuple[tuple[JsonValue, ...], ...] = ()


def find_shown(
    snapshot: DatabaseSnapshot, identifier: str, kind: ShownKind | None, *, rows: int
) -> Shown:
    """Find what an id, a unique prefix of one, or a name stands for.

    Parameters
    ----------
    snapshot : DatabaseSnapshot
        Where to look.
    identifier : str
        ``<record-set id>#<row>``, a digest or at least 4 digits of one, or a name.
    kind : str or None
        The only kind to look for.
    rows : int
        How many rows of a record set to show.

    Raises
    ------
    UsageError
        'unknown-id', or 'ambiguous-id' with the candidates.
    """
    row = _ROW_ID.fullmatch(identifier)
    if row is not None and kind in (None, "record"):
        return _record(snapshot, row[1].lower(), int(row[2]))
    candidates = [item for item in _candidates(snapshot, identifier) if kind in (None, item[0])]
    if kind == "plan-lock" and identifier in PlanDocuments(snapshot.evidence).locks():
        # It shares the name of its plan, so it has to be asked for.
        candidates.append(("plan-lock", identifier))
    if not candidates:
        raise UsageError(
            f"nothing in this snapshot is called {identifier!r}",
            code="unknown-id",
            remedy=f"give a name, or at least {MIN_PREFIX} digits of an id; 'perfdb list --what "
            "sets' shows some",
        )
    if len(candidates) > 1:
        named = ", ".join(f"{found} {name[:16]}" for found, name in candidates[:5])
        raise UsageError(
            f"{identifier!r} could be any of {len(candidates)}: {named}",
            code="ambiguous-id",
            remedy="give more digits, or --kind",
        )
    return _shown(snapshot, *candidates[0], rows=rows)


def _candidates(snapshot: DatabaseSnapshot, text: str) -> Iterator[tuple[ShownKind, str]]:
    evidence, timing = snapshot.evidence, snapshot.timing_documents
    plans = PlanDocuments(evidence)
    named: tuple[tuple[ShownKind, Container[str]], ...] = (
        ("policy", evidence.policies()),
        ("gates", () if evidence.source.object_id(GATES) is None else ("gates",)),
        ("system-profile", evidence.system_profiles()),
        ("timing-profile", timing.timing_profiles()),
        ("pipeline", timing.pipelines()),
        ("plan", plans.plans()),
        ("operation", snapshot.vocabulary.operations),
        ("dimension", snapshot.vocabulary.dimensions),
    )
    for kind, names in named:
        if text in names:
            yield kind, text
    prefix = text.lower()
    if len(prefix) < MIN_PREFIX or _HEX.fullmatch(prefix) is None:
        return
    for view in evidence.matching_record_sets(prefix):
        yield "record-set", view.sha256
    for name in evidence.manifests():
        if name.startswith(prefix):
            yield "manifest", name
    for retraction in evidence.retractions():
        if retraction.sha256.startswith(prefix):
            yield "retraction", retraction.sha256


def _shown(snapshot: DatabaseSnapshot, kind: ShownKind, name: str, *, rows: int) -> Shown:
    evidence = snapshot.evidence
    path: str | None = None
    document: object
    if kind == "record-set":
        return _record_set(snapshot, evidence.find_record_set(name), rows)
    if kind == "manifest":
        document, path = evidence.manifest(name), manifest_path(name)
    elif kind == "policy":
        document, path = evidence.policy(name)[0], policy_path(name)
    elif kind == "gates":
        document, path = _gates(snapshot), GATES
    elif kind == "system-profile":
        document = evidence.system_profile(name)
    elif kind == "timing-profile":
        path = snapshot.timing_profile(name).document
        document = snapshot.timing_documents.stated(path)
    elif kind == "pipeline":
        path = snapshot.pipeline(name).document
        document = snapshot.timing_documents.stated(path)
    elif kind == "plan":
        plan = PlanDocuments(evidence).plan(name)
        document, path = plan.value, plan.path
    elif kind == "plan-lock":
        lock = PlanDocuments(evidence).lock(name)
        document, path = lock.value, lock.path
    elif kind == "operation":
        document = snapshot.vocabulary.operations[name]
    elif kind == "dimension":
        document = snapshot.vocabulary.dimensions[name]
    else:
        found = next(item for item in evidence.retractions() if item.sha256 == name)
        document, path = found.value, found.path
    return Shown(
        commit=snapshot.commit,
        kind=kind,
        id=name,
        path=path,
        retracted=False,
        # What a timing profile or pipeline states are JSON values already.
        document=document if isinstance(document, dict) else encoded(document),
    )


def _gates(snapshot: DatabaseSnapshot) -> Gates:
    found = snapshot.evidence.document(GATES, Gates, "gates")
    assert found is not None  # it was a candidate
    return found.value


def _record_set(snapshot: DatabaseSnapshot, view: IndexedRecordSet, rows: int) -> Shown:
    shown = range(min(rows, view.row_count))
    verified = snapshot.evidence.verified_rows(view, shown)
    return Shown(
        commit=snapshot.commit,
        kind="record-set",
        id=view.sha256,
        path=view.path,
        retracted=view.entry.retracted is None,
        document=encoded(view.header),
        row_count=view.row_count,
        rows=tuple(row.cells for row in verified),
    )


def _record(snapshot: DatabaseSnapshot, prefix: str, row: int) -> Shown:
    view = snapshot.evidence.find_record_set(prefix)
    if row >= view.row_count:
        raise UsageError(
            f"record set {view.sha256[:16]} has {view.row_count} rows, numbered from 0",
            code="unknown-id",
        )
    cells = snapshot.evidence.verified_rows(view, [row])[0].cells
    retracted = view.entry.retracted
    return Shown(
        commit=snapshot.commit,
        kind="record",
        id=record_id(view.sha256, row),
        path=view.path,
        retracted=retracted is None or row in retracted,
        document=_record_document(view.header, cells),
    )


def _record_document(header: RecordSetHeader, cells: Sequence[JsonValue]) -> dict[str, JsonValue]:
    """Put a row and the header's shared facts together."""
    context: dict[str, JsonValue] = dict(header.context)
    keys: dict[str, JsonValue] = dict(header.source.keys)
    metrics: list[JsonValue] = []
    for column, cell in zip(header.columns, cells, strict=True):
        if column.role == "dimension":
            context[column.name] = cell
        elif column.role == "source":
            keys[column.name] = cell
        else:
            metrics.append(
                {
                    "name": column.name,
                    "statistic": column.statistic,
                    "value": cell,
                    "unit": column.unit,
                }
            )
    whole = encoded(header)
    source = whole["source"]
    assert isinstance(source, dict)
    shared = {
        name: whole[name]
        for name in ("kind", "session", "environment", "protocol", "observed", "extensions")
        if whole.get(name)
    }
    return {"metrics": metrics, "context": context, **shared, "source": {**source, "keys": keys}}


def shown_lines(shown: Shown) -> list[Line]:
    """Return one thing for people."""
    title = f"{shown.kind} {shown.id}"
    lines = [Line(title, "strong")]
    if shown.retracted:
        lines.append(Line("  retracted: it answers no question of this snapshot", "bad"))
    if shown.path is not None:
        lines += fact("path", shown.path)
    lines += fact("commit", shown.commit or "none: uncommitted files of the work tree")
    document = dict(shown.document)
    if shown.kind == "record-set":
        document.pop("columns", None)
    if shown.kind == "record":
        lines += _metric_lines(document.pop("metrics"))
    null = "unknown" if shown.kind in _EVIDENCE else "null"
    lines += [Line(), *_value_lines(document, "", null)]
    if shown.row_count is not None:
        lines += _row_lines(shown)
    return lines


def _metric_lines(metrics: JsonValue) -> list[Line]:
    assert isinstance(metrics, list)
    lines: list[Line] = []
    for metric in metrics:
        assert isinstance(metric, dict)
        unit = "" if metric["value"] is None or metric["unit"] == "1" else f" {metric['unit']}"
        text = f"{_text(metric['value'])}{unit} ({metric['statistic']})"
        lines += fact(str(metric["name"]), text, "good")
    return lines


def _row_lines(shown: Shown) -> list[Line]:
    columns = shown.document["columns"]
    assert isinstance(columns, list)
    titles = ["#", *(_title(column) for column in columns)]
    rows = [
        [str(number), *(_text(cell) for cell in cells)] for number, cells in enumerate(shown.rows)
    ]
    count = f"{len(rows)} of {shown.row_count} rows"
    return [Line(), *table(titles, rows, right=titles), Line(count, "faint")]


def _title(column: JsonValue) -> str:
    assert isinstance(column, dict)
    words = [str(column["name"])]
    if column.get("statistic") is not None:
        words.append(str(column["statistic"]))
    if column.get("unit") not in (None, "1"):
        words.append(f"({column['unit']})")
    return " ".join(words)


def _value_lines(value: Mapping[str, JsonValue], margin: str, null: str) -> list[Line]:
    lines: list[Line] = []
    for name, item in value.items():
        head = f"{margin}{name}: "
        if isinstance(item, Mapping) and item:
            lines += [Line(head.rstrip()), *_value_lines(item, f"{margin}  ", null)]
        elif isinstance(item, list) and any(_is_long(part) for part in item):
            lines.append(Line(head.rstrip()))
            for part in item:
                lines += wrapped(_text(part, null), head=f"{margin}  - ")
        else:
            lines += wrapped(_text(item, null), head=head)
    return lines


def _is_long(value: JsonValue) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, str) and " " in value)


def _text(value: JsonValue, null: str = "unknown") -> str:
    if value is None:
        return null
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(item, null)}" for name, item in value.items()) or "none"
    if isinstance(value, Sequence):
        return ", ".join(_text(item, null) for item in value) or "none"
    return str(value)
