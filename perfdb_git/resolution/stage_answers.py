"""Stages with a query instead of work: each answered at the pipeline's own snapshot."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from fractions import Fraction

from perfdb_git.errors import InvalidInputError, NoEvidenceError
from perfdb_git.formats.codec import encode
from perfdb_git.formats.json_value import pointer_of
from perfdb_git.model.estimate import CostEstimate, Method, MetricEstimate
from perfdb_git.model.pipeline import Pipeline
from perfdb_git.model.query import CostQuery
from perfdb_git.model.result import Resolution
from perfdb_git.model.simulation import EvidenceClass, ResolvedService
from perfdb_git.model.values import JsonValue, Scalar
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.queries import build_query, query_digest
from perfdb_git.operations.stage_queries import query_faults
from perfdb_git.simulation.documents import ReadDocument

NS_PER_S = 10**9
SERVICE_METRIC = "latency"
"""The metric that is a stage's service time, in seconds."""

EVIDENCE_OF_METHOD: Mapping[Method, EvidenceClass] = {
    "measured": "measured",
    "calibrated": "calibrated",
    "simulated": "simulated",
    "analytical": "analytic",
    "fallback": "fallback",
}


def answer_stages(
    pipeline: ReadDocument[Pipeline],
    vocabulary: Vocabulary,
    resolve: Callable[[CostQuery], Resolution],
) -> dict[str, ResolvedService]:
    """Service time of every stage that carries a query.

    Parameters
    ----------
    pipeline : ReadDocument[Pipeline]
        The stages.
    vocabulary : Vocabulary
        That of the snapshot.
    resolve : callable
        Answers a query at the snapshot; stages with equal queries ask it once.

    Returns
    -------
    dict of str to ResolvedService
        By stage name.

    Raises
    ------
    InvalidInputError
        'bad-stage-query' where a query cannot be asked.
    NoEvidenceError
        With the resolution's code where there is no answer, 'no-latency' where it is no time.
    """
    resolved: dict[str, Resolution] = {}
    answers = {}
    for place, stage in enumerate(pipeline.value.stages):
        if stage.query is None:
            continue
        query = _query(stage.query, vocabulary, f"stage {stage.name!r}", pipeline.document, place)
        digest = query_digest(query)
        if digest not in resolved:
            resolved[digest] = resolve(query)
        answers[stage.name] = _service(
            resolved[digest], f"stage {stage.name!r} of {pipeline.document}"
        )
    return answers


def _query(
    values: Mapping[str, Scalar], vocabulary: Vocabulary, stage: str, document: str, place: int
) -> CostQuery:
    for fault in query_faults(values, vocabulary):
        path: list[str | int] = ["stages", place, "query"]
        raise InvalidInputError(
            f"the query of {stage} cannot be asked: {fault.message}",
            code="bad-stage-query",
            document=document,
            pointer=pointer_of(path if fault.name is None else [*path, fault.name]),
        )
    return build_query(values, vocabulary)


def _service(resolution: Resolution, stage: str) -> ResolvedService:
    known = resolution.query.coordinates().items()
    pairs = " ".join(shlex.quote(f"{name}={value}") for name, value in known)
    commit = resolution.snapshot.commit
    where = "in the work tree" if commit is None else f"at commit {commit}"
    estimate = resolution.estimate
    if estimate is None:
        revision = "--worktree" if commit is None else f"--at {commit[:12]}"
        raise NoEvidenceError(
            f"{stage} asks {pairs}, which has no answer {where}: {resolution.reason}",
            code=resolution.code,
            remedy=f"'perfdb resolve {pairs} {revision}' names the nearest contexts with an answer",
        )
    metric = estimate.metrics.get(SERVICE_METRIC)
    if metric is None:
        others = ", ".join(sorted(estimate.metrics))
        raise NoEvidenceError(
            f"{stage} asks {pairs}, whose answer {where} has no {SERVICE_METRIC}, only {others}",
            code="no-latency",
            remedy="give the stage work, or add evidence with a latency",
        )
    value, lower, upper = _interval(metric)
    return ResolvedService(
        service_ns=value,
        lower_ns=lower,
        upper_ns=upper,
        evidence=EVIDENCE_OF_METHOD[estimate.method],
        uncertainty_pct=(
            None if lower is None or upper is None or not value else (upper - lower) / value * 50
        ),
        provenance=_provenance(resolution, estimate, metric),
    )


def _interval(metric: MetricEstimate) -> tuple[Fraction, Fraction | None, Fraction | None]:
    """Value and bounds in ns, as exact as the floats that state them."""
    value = Fraction(metric.value) * NS_PER_S
    if metric.uncertainty is None:
        return value, None, None
    bounds = metric.uncertainty
    return value, Fraction(bounds.lower) * NS_PER_S, Fraction(bounds.upper) * NS_PER_S


def _provenance(
    resolution: Resolution, estimate: CostEstimate, metric: MetricEstimate
) -> dict[str, JsonValue]:
    """What the simulation's reader needs to find the answer again."""
    uncertainty = metric.uncertainty
    stated = encode(estimate.provenance)
    assert isinstance(stated, dict)
    return {
        "query": dict(resolution.query.coordinates()),
        "query_digest": resolution.query_digest,
        "method": estimate.method,
        "validity": estimate.validity.kind,
        **stated,
        "interval": None
        if uncertainty is None
        else {
            "kind": uncertainty.kind,
            "level": uncertainty.level,
            "rule": uncertainty.rule,
            "sample_count": uncertainty.sample_count,
        },
        "assumptions": list(estimate.diagnostics.assumptions),
        "conflicts": list(estimate.diagnostics.conflicts),
    }
