"""From fitted slices to a calibration revision."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np

from perfdb_git.calibration.documents import CALIBRATION_SCHEMA
from perfdb_git.calibration.reports import Predictions, held_out_report
from perfdb_git.calibration.slice_fits import SliceFit, SliceRequest
from perfdb_git.calibration.slices import (
    Terms,
    TrainingSlice,
    columns_of,
    domain_of,
    with_terms,
)
from perfdb_git.model.calibration import (
    BaseModel,
    Calibration,
    CalibrationSlice,
    CalibrationSpec,
    SpecPart,
    SpecReference,
)
from perfdb_git.storage.snapshot import EvidenceSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSlice:
    """A slice before its fit."""

    part: SpecPart
    split: str
    rows: TrainingSlice
    request: SliceRequest


def assemble(
    snapshot: EvidenceSnapshot,
    spec: CalibrationSpec,
    reference: SpecReference | None,
    prepared: Sequence[PreparedSlice],
    fits: Sequence[SliceFit],
) -> Calibration:
    """Return the revision, with a report that waits for its judgement."""
    terms = [
        (place, terms) for place, item in enumerate(prepared) for terms in item.rows.all_terms()
    ]
    common = _common_terms([some for _, some in terms])
    slices = [_slice(spec, prepared[place], fits[place], some, common) for place, some in terms]
    nothing = Predictions(ids=[], measured=np.empty(0), predicted=np.empty(0))
    return Calibration(
        schema=CALIBRATION_SCHEMA,
        family=spec.family,
        response=spec.response,
        operation=spec.operation,
        device=spec.device,
        inputs=spec.inputs,
        terms=common,
        base=_base(snapshot, spec),
        slices=tuple(slices),
        held_out_report=held_out_report(nothing, response=spec.response),
        seed=spec.seed,
        libraries=_libraries(fits),
        spec=reference,
        notes=_notes(prepared),
    )


def _slice(
    spec: CalibrationSpec, item: PreparedSlice, fit: SliceFit, terms: Terms, common: Terms
) -> CalibrationSlice:
    own = item.rows.records.subset(with_terms(item.rows.records, terms))
    return CalibrationSlice(
        terms={name: value for name, value in terms.items() if name not in common},
        domain=domain_of(columns_of(own, spec.inputs, {}, spec.operation), spec.inputs),
        training=item.rows.training(),
        split=item.split,
        inside=fit.inside,
        beyond=fit.beyond,
    )


def _common_terms(terms: Sequence[Terms]) -> Terms:
    first = terms[0]
    return {
        name: value
        for name, value in first.items()
        if all(name in other and other[name] == value for other in terms)
    }


def _base(snapshot: EvidenceSnapshot, spec: CalibrationSpec) -> BaseModel | None:
    base = spec.base
    if base is None:
        return None
    digest = None
    if base.kind == "system-profile":
        digest = snapshot.system_profile_digest(base.name)
    return BaseModel(
        kind=base.kind,
        name=base.name,
        sha256=digest,
        component=base.component,
        numbers=dict(sorted(base.numbers.items())),
    )


def _libraries(fits: Sequence[SliceFit]) -> dict[str, str]:
    names = {"numpy", "perfdb-git"}
    if any(form.form == "gaussian-process" for fit in fits for form in fit.tried):
        names.add("scipy")
    found = {name: version(name) for name in sorted(names)}
    return {**found, "python": platform.python_version()}


def _notes(prepared: Sequence[PreparedSlice]) -> tuple[str, ...]:
    """Say which slices share one model."""
    return tuple(
        f"{item.request.name}: one model for {len(item.rows.pooled)} combinations of "
        f"{', '.join(sorted(item.rows.pooled[0]))}, fitted to the records of all of them"
        for item in prepared
        if item.rows.pooled
    )
