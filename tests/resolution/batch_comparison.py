"""Answers to a table of questions beside the answers that each has by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perfdb_git.database import DatabaseSnapshot
from perfdb_git.errors import PerfdbError
from perfdb_git.model.query import EvidencePolicy
from perfdb_git.model.result import Resolution
from perfdb_git.operations.queries import build_query, typed_dimension
from perfdb_git.resolution.answer_table import alternative_name, value_name

Question = Mapping[str, Any]

_TIERS = {"recorded": "recorded-measured"}
"""Tier by the provider's name, where they differ."""


def differences(
    snapshot: DatabaseSnapshot,
    questions: Sequence[Question],
    *,
    limits: EvidencePolicy | None = None,
    policy: str = "default",
) -> list[tuple[Question, dict[str, Any]]]:
    """Return the questions whose row differs from their own answer in any field, in any bit."""
    session = snapshot.batch(policy=policy, limits=limits, alternative_values=True)
    plain = snapshot.batch(policy=policy, limits=limits)
    names = dict.fromkeys(name for item in questions for name in item)
    columns = {name: [item.get(name) for item in questions] for name in names}
    table, without_values = session.table(columns), plain.table(columns)
    found = []
    for row, question in enumerate(questions):
        alone = answered_alone(snapshot, question, limits, policy)
        together = {k: v for k, v in table.row(row).items() if k not in ("query", "metric", "unit")}
        fields = {
            name: (together.get(name), alone.get(name))
            for name in {**together, **alone}
            if not _same(together.get(name), alone.get(name))
        }
        if alone["code"] == "repeated-dimension":
            # Only the command line puts this into words for one question.
            del fields["reason"]
        fields |= {
            f"without values: {name}": (cell, table.row(row)[name])
            for name, cell in without_values.row(row).items()
            if not _same(cell, table.row(row)[name])
        }
        if fields:
            found.append((question, fields))
    return found


def _same(one: Any, other: Any) -> bool:
    return (one in (None, ()) and other in (None, ())) or one == other


def answered_alone(
    snapshot: DatabaseSnapshot, question: Question, limits: EvidencePolicy | None, policy: str
) -> dict[str, Any]:
    """Return a question's own answer under the names of the table's columns."""
    try:
        values: dict[str, Any] = {}
        for name, cell in question.items():
            stated = {} if cell is None else typed_dimension(name, cell, snapshot.vocabulary)
            if any(key in values and values[key] != value for key, value in stated.items()):
                return {"status": "error", "code": "repeated-dimension"}
            values |= stated
        query = build_query(values, snapshot.vocabulary, limits=limits)
    except PerfdbError as error:
        return {"status": "error", "code": error.code, "reason": str(error)}
    return _as_row(snapshot.resolve(query, policy=policy))


def _as_row(resolution: Resolution) -> dict[str, Any]:
    estimate = resolution.estimate
    row: dict[str, Any] = {
        "status": "no-evidence" if estimate is None else "ok",
        "code": resolution.code,
    }
    for lost in resolution.alternatives:
        tier: Any = _TIERS.get(lost.provider, lost.provider)
        row[alternative_name(tier)] = lost.code
        row[value_name(tier)] = lost.latency
    if estimate is None:
        return row
    row |= {
        "method": estimate.method,
        "validity": estimate.validity.kind,
        "distance_octaves": estimate.validity.distance_octaves,
        "provider": estimate.provenance.provider,
        "provider_revision": estimate.provenance.revision,
        "calibration": estimate.provenance.calibration,
        "records": estimate.provenance.record_ids,
    }
    metric = estimate.metrics.get("latency")
    if metric is not None:
        row["value"] = metric.value
        if metric.uncertainty is not None:
            interval = metric.uncertainty
            names = ("lower", "upper", "level", "sample_count")
            row |= {name: getattr(interval, name) for name in names}
            row["interval_rule"] = interval.rule
    return row
