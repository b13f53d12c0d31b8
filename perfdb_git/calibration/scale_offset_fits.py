"""Scale and offset of a timing component: measured = scale * modelled + offset.

What is measured has to be a visit without load: waiting is the simulation's, never the component's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from importlib.metadata import version
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from perfdb_git.analysis.conformal import conformal_quantile
from perfdb_git.analysis.scale_offset import (
    ScaleOffset,
    fit_scale_offset,
)
from perfdb_git.calibration.assembling import PreparedSlice, assemble
from perfdb_git.calibration.documents import document_file
from perfdb_git.calibration.judging import judge
from perfdb_git.calibration.scale_offset_samples import (
    ScaleOffsetRequest,
    require_samples,
    size_recipe,
    split_by_size,
)
from perfdb_git.calibration.selection import LATENCY, select_records
from perfdb_git.calibration.slice_fits import SliceFit, SliceRequest
from perfdb_git.calibration.slices import TrainingSlice, columns_of, training_slices
from perfdb_git.errors import UsageError
from perfdb_git.model.calibration import (
    BaseModel,
    Calibration,
    CalibrationSpec,
    IntervalCalibration,
    SpecBase,
    SpecPart,
)
from perfdb_git.model.pipeline import Work
from perfdb_git.model.splits import (
    Split,
)
from perfdb_git.model.timing_profile import Component, TimingProfile
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.providers.fitted_models import OneWidth, encode_interval, encode_scale_offset
from perfdb_git.simulation.documents import ReadDocument
from perfdb_git.simulation.service_time import DIMENSIONS, service_time
from perfdb_git.storage.snapshot import EvidenceSnapshot

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray: TypeAlias = NDArray[np.float64]

LEVEL = 0.9

_PS_PER_S = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleOffsetResult:
    """A fitted component and how well it does.

    ``line`` is in seconds over the modelled seconds; ``width`` the half-width of its interval on
    the natural logarithm, at ``level``; ``sizes`` the number of sizes that it was fitted to.
    """

    split: Split
    calibration: Calibration
    line: ScaleOffset
    width: float
    level: float
    sizes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    """Modelled seconds of a size: ``fixed + rate * size``, exactly what one visit takes."""

    fixed: float
    rate: float

    def seconds(self, sizes: FloatArray) -> FloatArray:
        return self.fixed + self.rate * sizes

    def over_size(self, line: ScaleOffset) -> ScaleOffset:
        """Return the line over the size itself."""
        found, covariance = line.covariance, None
        if found is not None:
            turn = np.array([[self.rate, 0.0], [self.fixed, 1.0]])
            covariance = turn @ found @ turn.T
        return ScaleOffset(
            alpha=line.alpha * self.rate,
            beta=line.alpha * self.fixed + line.beta,
            covariance=covariance,
        )


def fit_component(
    snapshot: EvidenceSnapshot,
    profile: ReadDocument[TimingProfile],
    request: ScaleOffsetRequest,
) -> ScaleOffsetResult:
    """Fit scale and offset of a component to the evidence of a snapshot; nothing is written.

    An earlier scale and offset of the component are replaced. The split is by size; the smallest
    and the largest size train, so that the held-out ones are interpolated.

    Raises
    ------
    UsageError
        'unknown-component', 'unknown-work', 'unknown-dimension', 'not-numeric', 'negative-time'
        or 'not-positive-scale'.
    NoEvidenceError
        'no-records', or 'too-few-samples' with all that is missing.
    InvalidInputError
        'missing-rate', 'unknown-input', 'varying-dimension' or 'no-response'.
    """
    vocabulary = snapshot.vocabulary()
    component = _component(profile.value, request, vocabulary)
    model = _model(component, request, profile.document)
    records = select_records(snapshot, size_recipe(request, 0).records)
    require_samples(records, request, profile.document)
    split, assignment = split_by_size(request, records)
    sha256 = document_file(split)[1]
    spec = _spec(request, profile, split, model)
    (rows,) = training_slices(
        spec.parts[0],
        assignment,
        operation=request.operation,
        inputs=spec.inputs,
        vocabulary=vocabulary,
        document=profile.document,
    )
    sizes, measured = rows.records.numbers(request.dimension), rows.records.metric(LATENCY)
    line = _fit(model, sizes, measured)
    _require_sound(line, model, sizes)
    interval = _interval(model, sizes, measured)
    fitted = encode_scale_offset(
        model.over_size(line), modelled=request.dimension, interval=interval.encoded()
    )
    prepared = _prepared(spec, sha256, rows, interval.level)
    calibration = assemble(
        snapshot, spec, None, [prepared], [SliceFit(inside=fitted, beyond=None, tried=())]
    )
    calibration = _with_base(calibration, profile, request, model, line)
    judged = judge(calibration, {sha256: assignment}, vocabulary, document=profile.document)
    return ScaleOffsetResult(
        split=split,
        calibration=replace(calibration, held_out_report=judged.report(LATENCY)),
        line=line,
        width=interval.width,
        level=interval.level,
        sizes=len(np.unique(sizes)),
    )


def _component(
    profile: TimingProfile, request: ScaleOffsetRequest, vocabulary: Vocabulary
) -> Component:
    """Return the component as it was before any calibration."""
    if request.component not in profile.components:
        raise UsageError(
            f"profile {profile.name} has no component {request.component!r}",
            code="unknown-component",
            remedy=f"it has: {', '.join(profile.components)}",
        )
    if request.work not in DIMENSIONS:
        raise UsageError(
            f"a visit does not ask for {request.work!r}",
            code="unknown-work",
            remedy=f"work is one of {', '.join(DIMENSIONS)}",
        )
    if request.dimension not in vocabulary.dimensions:
        raise UsageError(
            f"{request.dimension!r} is no dimension of the vocabulary",
            code="unknown-dimension",
            remedy=f"write --work {request.work}=DIMENSION",
        )
    found = profile.components[request.component]
    return replace(found, calibration_scale=Decimal(1), calibration_offset_ns=Decimal(0))


def _model(component: Component, request: ScaleOffsetRequest, document: str) -> _Model:
    """Return the unloaded service time as a line: one kind of work makes it one."""
    visit = service_time(
        component,
        Work(**{request.work: Decimal(1)}),
        component_name=request.component,
        stage="calibration",
        document=document,
    )
    return _Model(
        fixed=float(visit.fixed_ps / _PS_PER_S),
        rate=float(visit.terms_ps[request.work] / _PS_PER_S),
    )


def _spec(
    request: ScaleOffsetRequest,
    profile: ReadDocument[TimingProfile],
    split: Split,
    model: _Model,
) -> CalibrationSpec:
    """Return what the revision rests on, in the words of a spec."""
    part = SpecPart(
        split=split.recipe,
        terms={name: (value,) for name, value in request.terms.items()},
        forms=("scale-offset",),
    )
    return CalibrationSpec(
        schema="perfdb/calibration-spec/v1",
        name=split.recipe.name,
        description="Scale and offset of a timing component.",
        family="scale-offset",
        response=LATENCY,
        operation=request.operation,
        device=request.device,
        inputs=(request.dimension,),
        parts=(part,),
        base=SpecBase(
            kind="timing-profile",
            name=profile.value.name,
            component=request.component,
            numbers={"fixed_s": model.fixed, f"s_per_unit.{request.work}": model.rate},
        ),
        level=LEVEL,
    )


def _fit(model: _Model, sizes: FloatArray, measured: FloatArray) -> ScaleOffset:
    """Fit to the median of each size."""
    distinct = np.unique(sizes)
    medians = np.array([float(np.median(measured[sizes == size])) for size in distinct])
    return fit_scale_offset(model.seconds(distinct), medians)


def _require_sound(line: ScaleOffset, model: _Model, sizes: FloatArray) -> None:
    smallest, largest = model.seconds(np.array([sizes.min(), sizes.max()])).tolist()
    line.refuse_negative(smallest, largest)
    if not line.alpha > 0:
        raise UsageError(
            f"the scale would be {line.alpha:g}: latency does not grow with the modelled time",
            code="not-positive-scale",
            remedy="check that the records are visits to this component",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Interval:
    """Half-width on the natural logarithm, from so many scores."""

    width: float
    level: float
    scores: int

    def encoded(self) -> IntervalCalibration:
        width = OneWidth(level=self.level, width=self.width)
        return encode_interval(width, folds="sizes", residuals=self.scores)


def _interval(model: _Model, sizes: FloatArray, measured: FloatArray) -> _Interval:
    """Return the interval by lines that had not seen the size.

    The ends stay in: the line is not asked beyond them. Few scores carry a lower level only.
    """
    scores: list[float] = []
    for size in np.unique(sizes)[1:-1]:
        rest = sizes != size
        line = _fit(model, sizes[rest], measured[rest])
        predicted = line.predict(model.seconds(sizes[~rest]))
        scores += np.abs(np.log(predicted / measured[~rest])).tolist()
    level = min(LEVEL, math.floor(100 * len(scores) / (len(scores) + 1)) / 100)
    return _Interval(width=conformal_quantile(scores, level), level=level, scores=len(scores))


def _prepared(
    spec: CalibrationSpec, split: str, rows: TrainingSlice, level: float
) -> PreparedSlice:
    request = SliceRequest(
        name=spec.name,
        columns=columns_of(rows.records, spec.inputs, rows.terms, spec.operation),
        latency=rows.records.metric(LATENCY),
        inputs=spec.inputs,
        forms=("scale-offset",),
        features=None,
        hardware=None,
        level=level,
        seed=spec.seed,
    )
    return PreparedSlice(part=spec.parts[0], split=split, rows=rows, request=request)


def _with_base(
    calibration: Calibration,
    profile: ReadDocument[TimingProfile],
    request: ScaleOffsetRequest,
    model: _Model,
    line: ScaleOffset,
) -> Calibration:
    """Pin the profile's bytes, and state scale and offset beside the line over the size."""
    numbers = {
        "fixed_s": model.fixed,
        f"s_per_unit.{request.work}": model.rate,
        "scale": line.alpha,
        "offset_s": line.beta,
    }
    base = BaseModel(
        kind="timing-profile",
        name=profile.value.name,
        sha256=profile.sha256,
        component=request.component,
        numbers=dict(sorted(numbers.items())),
    )
    libraries = {**calibration.libraries, "scipy": version("scipy")}
    note = (
        f"{request.work} = {request.dimension}; the model's alpha and beta are over "
        f"{request.dimension}: scale * s_per_unit and scale * fixed_s + offset_s."
    )
    return replace(
        calibration,
        base=base,
        libraries=dict(sorted(libraries.items())),
        notes=(*calibration.notes, note),
    )
