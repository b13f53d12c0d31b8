"""Samples of a scale-offset fit: enough of them, and split by size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from perfdb_git.analysis.scale_offset import SampleGate, sample_shortfalls
from perfdb_git.calibration.selection import LATENCY, SelectedRecords
from perfdb_git.calibration.splits import SPLIT_SCHEMA, Assignment, assign
from perfdb_git.errors import InvalidInputError, NoEvidenceError
from perfdb_git.model.splits import (
    BucketRange,
    BucketRule,
    KeyText,
    RecordSelection,
    Split,
    SplitRecipe,
)
from perfdb_git.model.values import Scalar
from perfdb_git.providers.observations import observe

GATE = SampleGate()
MIN_HELD_OUT = 2
"""Sizes that judge, beside those that the gate asks for."""

_HELD_OUT_SHARE = 0.25
_MOST_SEEDS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleOffsetRequest:
    """What to fit.

    Attributes
    ----------
    component : str
        Of the profile.
    device : str
        Canonical term of the target.
    operation : str
        Whose latencies are visits to the component.
    work, dimension : str
        A visit asks for as much ``work`` (such as bytes) as the record's ``dimension`` says.
    terms : mapping
        Narrows the records to those with these values.
    """

    component: str
    device: str
    operation: str
    work: str
    dimension: str
    terms: Mapping[str, Scalar] = field(default_factory=dict)


def size_recipe(request: ScaleOffsetRequest, seed: int) -> SplitRecipe:
    """Return the rule that holds out about a quarter of the sizes, by a seeded hash."""
    return SplitRecipe(
        name=f"{request.device}-{request.operation}-{request.component}-sizes",
        description=(
            f"About a quarter of the sizes ({request.dimension}), neither the smallest nor the "
            "largest; the seed is the first one that leaves enough on both sides."
        ),
        records=RecordSelection(
            device=request.device,
            operations=(request.operation,),
            terms={name: (value,) for name, value in sorted(request.terms.items())},
        ),
        key=KeyText(columns=(request.dimension,), form="named"),
        bucket=BucketRule(
            seed=str(seed),
            hex_digits=8,
            held_out=BucketRange(at_least=0.0, below=_HELD_OUT_SHARE),
        ),
    )


def require_samples(records: SelectedRecords, request: ScaleOffsetRequest, document: str) -> None:
    """Refuse records that miss the gate, with everything that is missing.

    Raises
    ------
    InvalidInputError
        'no-response' where a record has no size or no positive latency.
    NoEvidenceError
        'too-few-samples'.
    """
    sizes, measured = records.numbers(request.dimension), records.metric(LATENCY)
    if bool(np.isnan(sizes).any()) or not bool((measured > 0).all()):
        raise InvalidInputError(
            f"a selected record has no {request.dimension}, or no positive latency",
            code="no-response",
            document=document,
            remedy="narrow the records with --term",
        )
    gate = replace(GATE, sizes=GATE.sizes + MIN_HELD_OUT)
    every = np.repeat(sizes, _repeats(records))
    texts = {
        "sizes": f"sizes of {request.dimension}: {{found:g}}, {{needed:g}} are needed "
        f"({GATE.sizes} to fit, {MIN_HELD_OUT} to judge)",
        "span": "span, largest over smallest size: {found:.3g}, {needed:g} is needed",
        "repeats": "measurements of the size that has the fewest: {found:g}, {needed:g} are needed",
    }
    missing = [
        texts[item.requirement].format(found=item.found, needed=item.needed)
        for item in sample_shortfalls(every, gate)
    ]
    if missing:
        raise NoEvidenceError(
            f"too few samples for a scale and an offset: {'; '.join(missing)}",
            code="too-few-samples",
            remedy="measure what is missing; until then the component stays analytic",
        )


def _repeats(records: SelectedRecords) -> list[int]:
    """Return how many measurements each record stands for; 1 where it does not say."""
    counts = []
    for block in records.blocks:
        for row in block.rows:
            seen = observe(block.header, row, LATENCY)
            counts.append(1 if seen is None or seen.count is None else max(1, seen.count))
    return counts


def split_by_size(
    request: ScaleOffsetRequest, records: SelectedRecords
) -> tuple[Split, Assignment]:
    """Return the first split by seed that leaves enough sizes on both sides."""
    sizes = records.numbers(request.dimension)
    wanted = len(np.unique(sizes))
    for seed in range(_MOST_SEEDS):
        recipe = size_recipe(request, seed)
        assignment = assign(recipe, records)
        held_out = np.unique(sizes[assignment.held_out])
        if not MIN_HELD_OUT <= len(held_out) <= wanted - GATE.sizes:
            continue
        if sizes.min() < held_out[0] and held_out[-1] < sizes.max():
            split = Split(schema=SPLIT_SCHEMA, recipe=recipe, membership=assignment.membership())
            return split, assignment
    raise NoEvidenceError("no seed splits these sizes", code="too-few-samples")
