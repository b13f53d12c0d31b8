"""Fitted forms as the models of a calibration revision."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfdb_git.analysis.curves import AffineCurve, LogLogCurve, StepTable
from perfdb_git.analysis.gaussian_process import GaussianProcess
from perfdb_git.analysis.scale_offset import ScaleOffset
from perfdb_git.analysis.symmetric_trees import SymmetricTrees
from perfdb_git.formats.arrays import encode_parameters
from perfdb_git.model.calibration import FittedModel, Form, IntervalCalibration
from perfdb_git.operations.features.feature_set import SUM_OF_PARTS
from perfdb_git.operations.features.registry import FEATURE_SETS
from perfdb_git.providers.model_reads import ModelReads, feature_reference
from perfdb_git.providers.stored_parameters import FORM_VERSION, LATER_FORM_VERSION
from perfdb_git.providers.stored_trees import Arrays, Numbers, bins_arrays, same_bins, trees_parts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def encode_trees(
    models: Sequence[SymmetricTrees],
    *,
    features: str,
    bases: Sequence[str],
    part_weights: Mapping[str, float] | None = None,
    interval: IntervalCalibration | None = None,
) -> FittedModel:
    """Return trees over roofline efficiency as a document states them.

    Parameters
    ----------
    models : sequence of SymmetricTrees
        One for each base, with equal bins; they predict log(seconds / base).
    features : str
        Key of `FEATURE_SETS`; the trees read all its features in order.
    bases : sequence of str
        Of the feature set; the prediction is the geometric mean over them.
    part_weights : mapping of str to float or None
        Positive weights of the base `SUM_OF_PARTS`, where it is among the bases.
    interval : IntervalCalibration or None
        Its error scales share the bins of the models; see `encode_interval`.

    Raises
    ------
    ValueError
        For models that do not fit bases or bins.
    """
    if not models or len(models) != len(bases):
        raise ValueError(f"{len(models)} models for {len(bases)} bases")
    weights = part_weights or {}
    if (SUM_OF_PARTS in bases) != bool(weights):
        raise ValueError("weights of parts, and a sum of parts among the bases: both or none")
    _refuse_unknown_bases(features, [base for base in bases if base != SUM_OF_PARTS])
    bins = models[0].bins
    if not all(same_bins(model.bins, bins) for model in models):
        raise ValueError("all models of a form share their bins")
    numbers: Numbers = ModelReads(bases=tuple(bases), part_weights=weights).numbers()
    arrays: Arrays = bins_arrays(bins)
    for place, model in enumerate(models):
        more_numbers, more_arrays = trees_parts(f"trees.{place}", model)
        numbers, arrays = numbers | more_numbers, arrays | more_arrays
    version = LATER_FORM_VERSION if weights else FORM_VERSION
    return _model("boosted-trees", features, numbers, arrays, interval, version)


def encode_curve(
    curve: AffineCurve | StepTable | LogLogCurve,
    *,
    size: str,
    features: str | None = None,
    base: str | None = None,
    interval: IntervalCalibration | None = None,
) -> FittedModel:
    """Return a form of one size as a document states it.

    Parameters
    ----------
    curve : AffineCurve, StepTable or LogLogCurve
        Gives seconds, or the latency over ``base``.
    size : str
        A declared input, or a feature of the set: whichever has that name, inputs first.
    features : str or None
        Key of `FEATURE_SETS`, where the size is a feature or there is a base.
    base : str or None
        Base of that set.
    interval : IntervalCalibration or None
        ``split-conformal``.
    """
    arrays: Arrays = {}
    form: Form
    if isinstance(curve, AffineCurve):
        form, numbers = "affine", {"intercept": curve.intercept, "slope": curve.slope}
    elif isinstance(curve, StepTable):
        form, numbers = "step-table", {}
        arrays = {"starts": curve.starts, "values": curve.values}
    else:
        form = "log-log-curve"
        numbers = {"lower_slope": curve.lower_slope, "upper_slope": curve.upper_slope}
        arrays = {"sizes": curve.sizes, "values": curve.values}
    numbers = numbers | _reads((size,), features, base).numbers()
    return _model(form, features, numbers, arrays, interval)


def encode_gaussian_process(
    process: GaussianProcess,
    *,
    inputs: Sequence[str],
    features: str | None = None,
    base: str | None = None,
    interval: IntervalCalibration | None = None,
) -> FittedModel:
    """Return a process as a document states it.

    Parameters
    ----------
    process : GaussianProcess
        Predicts log(seconds), or log(seconds / base).
    inputs : sequence of str
        What it reads, in order: declared inputs, of which it reads log2, then features of the
        set, as they are.
    features, base, interval
        As `encode_curve`; the interval may be scaled by the process's own deviation.
    """
    names = ("input_centers", "input_spreads", "length_scales", "inputs", "weights")
    plain = ("signal_variance", "nugget", "target_center", "target_spread")
    arrays: Arrays = {name: np.asarray(getattr(process, name)) for name in names}
    if len(inputs) != arrays["length_scales"].shape[0]:
        raise ValueError(f"{len(inputs)} names for {arrays['length_scales'].shape[0]} inputs")
    numbers = {name: float(getattr(process, name)) for name in plain}
    numbers |= _reads(tuple(inputs), features, base).numbers()
    version = FORM_VERSION
    if process.noise_factors is not None:
        arrays["noise_factors"] = process.noise_factors
        version = LATER_FORM_VERSION
    return _model("gaussian-process", features, numbers, arrays, interval, version)


def encode_scale_offset(
    line: ScaleOffset,
    *,
    modelled: str,
    features: str | None = None,
    interval: IntervalCalibration | None = None,
) -> FittedModel:
    """Return ``alpha * modelled + beta`` as a document states it.

    Parameters
    ----------
    line : ScaleOffset
        In seconds.
    modelled : str
        Base of the feature set where one is given, else the declared input that states the
        modelled time.
    features : str or None
        Key of `FEATURE_SETS`.
    interval : IntervalCalibration or None
        ``split-conformal``.
    """
    numbers = {"alpha": line.alpha, "beta": line.beta}
    if line.covariance is not None:
        found = line.covariance
        numbers |= {"variance_alpha": float(found[0, 0]), "variance_beta": float(found[1, 1])}
        numbers |= {"covariance": float(found[0, 1])}
    if features is not None:
        _refuse_unknown_bases(features, (modelled,))
        numbers |= ModelReads(bases=(modelled,)).numbers()
    else:
        numbers |= ModelReads(inputs=(modelled,)).numbers()
    return _model("scale-offset", features, numbers, {}, interval)


def _reads(names: tuple[str, ...], features: str | None, base: str | None) -> ModelReads:
    """Split names into inputs and features; a name that is both is an input."""
    if features is None:
        if base is not None:
            raise ValueError("a base needs a feature set")
        return ModelReads(inputs=names)
    _refuse_unknown_bases(features, () if base is None else (base,))
    known = FEATURE_SETS[features].inputs
    inputs = tuple(name for name in names if name in known)
    others = tuple(name for name in names if name not in known)
    if inputs + others != names:
        raise ValueError("inputs stand before features")
    return ModelReads(inputs=inputs, features=others, bases=() if base is None else (base,))


def _refuse_unknown_bases(features: str, bases: Sequence[str]) -> None:
    if features not in FEATURE_SETS:
        raise ValueError(f"no feature set {features!r}")
    unknown = [base for base in bases if base not in FEATURE_SETS[features].bases]
    if unknown:
        raise ValueError(f"feature set {features} has no base {unknown[0]!r}")


def _model(
    form: Form,
    features: str | None,
    numbers: Numbers,
    arrays: Arrays,
    interval: IntervalCalibration | None,
    version: int = FORM_VERSION,
) -> FittedModel:
    return FittedModel(
        form=form,
        form_version=version,
        features=feature_reference(features),
        parameters=encode_parameters(numbers, arrays),
        interval=interval,
    )
