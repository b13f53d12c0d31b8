"""Models of a calibration revision, decoded and ready to predict with numpy alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from perfdb_git.analysis.conformal import DistanceWidening
from perfdb_git.analysis.curves import AffineCurve, LogLogCurve, StepTable
from perfdb_git.analysis.gaussian_process import GaussianProcess
from perfdb_git.analysis.scale_offset import ScaleOffset
from perfdb_git.analysis.sized_widths import SizedWidths
from perfdb_git.model.calibration import Calibration, FittedModel, Form
from perfdb_git.model.values import Scalar
from perfdb_git.operations.features.registry import FEATURE_SETS
from perfdb_git.providers.fitted_forms import (
    CurveEvaluator,
    Evaluator,
    ProcessEvaluator,
    TreesEvaluator,
)
from perfdb_git.providers.fitted_intervals import (
    Interval,
    OneWidth,
    decode_interval,
    widened,
)
from perfdb_git.providers.hardware_numbers import hardware_from_numbers
from perfdb_git.providers.model_reads import (
    Columns,
    InputReader,
    ModelReads,
    Seconds,
    read_reads,
)
from perfdb_git.providers.stored_parameters import (
    LATER_FORM_VERSION,
    ParameterReader,
    knows_form,
)
from perfdb_git.providers.stored_trees import read_bins, read_trees


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPredictor:
    """One model of a calibration: seconds and half-widths of many queries.

    Columns map declared inputs, and terms that the feature set reads, to arrays ``(n,)``, or
    ``(1,)`` where all queries share a value; terms that the calibration fixes may be left out.
    """

    form: Form
    evaluator: Evaluator
    reader: InputReader
    widening: DistanceWidening | None
    level: float | None
    rule: str | None

    def predict(self, columns: Columns) -> Seconds:
        """Return latencies in seconds, ``(n,)``; NaN where the form cannot read an input.

        Raises
        ------
        UsageError
            'missing-input' or 'unknown-term-of-features'.
        """
        return self.evaluator.seconds(self.reader.complete(columns))

    def up_to_factor(self, columns: Columns) -> Seconds:
        """Return latencies up to a positive finite factor, ``(n,)``; see `Evaluator`."""
        return self.evaluator.up_to_factor(self.reader.complete(columns))

    def half_width(self, columns: Columns, *, octaves: Seconds | None = None) -> Seconds:
        """Return half-widths on the natural logarithm, ``(n,)``.

        Parameters
        ----------
        columns : Mapping[str, ndarray]
            As `predict`.
        octaves : ndarray or None
            Distances from the domain, ``(n,)``; ``None`` is inside.

        Returns
        -------
        ndarray of float64
            NaN without an interval, or outside the domain where no widening is stored.
        """
        return self.predict_with_half_width(columns, octaves=octaves)[1]

    def predict_with_half_width(
        self, columns: Columns, *, octaves: Seconds | None = None
    ) -> tuple[Seconds, Seconds]:
        """Return both at the cost of little more than one."""
        seconds, widths = self.evaluator.with_half_width(self.reader.complete(columns))
        return seconds, widened(widths, octaves, self.widening)


def decode_model(
    model: FittedModel,
    calibration: Calibration,
    *,
    document: str,
    pointer: str,
    terms: Mapping[str, Scalar | None] | None = None,
) -> FittedPredictor:
    """Return a model of a calibration, ready to predict.

    Parameters
    ----------
    model : FittedModel
        ``inside`` or ``beyond`` of a slice.
    calibration : Calibration
        Gives hardware facts (``base.numbers``), operation and fixed terms.
    document, pointer : str
        Where the model stands, for messages.
    terms : Mapping or None
        Terms of the slice, fixed like those of the calibration.

    Raises
    ------
    InvalidInputError
        'unknown-form', 'unknown-feature-set', 'unknown-interval', 'bad-base-numbers',
        'bad-array' or 'bad-parameters'.
    """
    where = f"{pointer}/parameters"
    reader = ParameterReader(model.parameters, document=document, pointer=where)
    if not knows_form(model.form, model.form_version):
        raise reader.fault(f"no form {model.form} of version {model.form_version}", "unknown-form")
    inputs = _input_reader(model, calibration, reader, terms or {})
    reads = read_reads(reader, inputs.features)
    decode = _trees if model.form == "boosted-trees" else _small_form
    evaluator, interval, widening = decode(model, reader, inputs, reads, f"{pointer}/interval")
    reader.finish()
    return FittedPredictor(
        form=model.form,
        evaluator=evaluator,
        reader=inputs,
        widening=widening,
        level=None if interval is None else interval.level,
        rule=None if model.interval is None else model.interval.method,
    )


_Decoded = tuple[Evaluator, Interval | None, DistanceWidening | None]


def _input_reader(
    model: FittedModel,
    calibration: Calibration,
    reader: ParameterReader,
    terms: Mapping[str, Scalar | None],
) -> InputReader:
    known = {
        name: value for name, value in {**calibration.terms, **terms}.items() if value is not None
    }
    known["operation"] = calibration.operation
    if model.features is None:
        return InputReader(features=None, hardware=None, constants=known)
    name = f"{model.features.name}/{model.features.version}"
    if name not in FEATURE_SETS:
        raise reader.fault(f"no feature set {name}", "unknown-feature-set")
    numbers = {} if calibration.base is None else calibration.base.numbers
    hardware = hardware_from_numbers(numbers, device=calibration.device, document=reader.document)
    return InputReader(features=FEATURE_SETS[name], hardware=hardware, constants=known)


def _trees(
    model: FittedModel,
    reader: ParameterReader,
    inputs: InputReader,
    reads: ModelReads,
    pointer: str,
) -> _Decoded:
    if inputs.features is None or inputs.hardware is None or not reads.bases:
        raise reader.fault("boosted trees need a feature set and a base")
    if reads.inputs or reads.features:
        raise reader.fault("boosted trees read all features of their set")
    _refuse_unknown_parts(model, reader, inputs, reads)
    bins = read_bins(reader)
    wanted = len(inputs.features.names(inputs.hardware))
    if len(bins.edge_counts) != wanted:
        raise reader.fault(f"bins for {len(bins.edge_counts)} features, not {wanted}")
    places = range(len(reads.bases))
    models = tuple(read_trees(reader, f"trees.{place}", bins) for place in places)
    interval, widening = None, None
    if model.interval is not None:
        found, widening = decode_interval(
            model.interval, bins=bins, document=reader.document, pointer=pointer
        )
        if isinstance(found, SizedWidths):
            raise reader.fault("widths by size need a form of one size")
        interval = found
    evaluator = TreesEvaluator(reader=inputs, reads=reads, models=models, interval=interval)
    return evaluator, interval, widening


def _refuse_unknown_parts(
    model: FittedModel, reader: ParameterReader, inputs: InputReader, reads: ModelReads
) -> None:
    if bool(reads.part_weights) != (model.form_version == LATER_FORM_VERSION):
        raise reader.fault(
            f"trees of version {model.form_version} and a sum of parts", "unknown-form"
        )
    unknown = sorted(set(reads.part_weights) - inputs.part_names())
    if unknown:
        raise reader.fault(f"the feature set has no part {unknown[0]}")


def _small_form(
    model: FittedModel,
    reader: ParameterReader,
    inputs: InputReader,
    reads: ModelReads,
    pointer: str,
) -> _Decoded:
    _refuse_unknown_features(reader, inputs, reads)
    if reads.part_weights:
        raise reader.fault("only boosted trees read a sum of parts")
    interval, widening = None, None
    if model.interval is not None:
        found, widening = decode_interval(
            model.interval, bins=None, document=reader.document, pointer=pointer
        )
        assert isinstance(found, OneWidth | SizedWidths)
        interval = found
        is_by_deviation = isinstance(found, OneWidth) and found.by_deviation
        if is_by_deviation and model.form != "gaussian-process":
            raise reader.fault("only a Gaussian process states a deviation of its own")
    if model.form == "gaussian-process":
        if isinstance(interval, SizedWidths):
            raise reader.fault("widths by size need a form of one size")
        count = len(reads.inputs) + len(reads.features)
        process = _process(reader, count, model.form_version)
        return (
            ProcessEvaluator(reader=inputs, reads=reads, process=process, interval=interval),
            interval,
            widening,
        )
    of_base = model.form == "scale-offset" and inputs.features is not None
    if len(reads.inputs) + len(reads.features) != (0 if of_base else 1) or len(reads.bases) > 1:
        raise reader.fault(f"a form {model.form} reads one size")
    if of_base and not reads.bases:
        raise reader.fault("no base is named")
    curve = _CURVES[model.form](reader)
    return (
        CurveEvaluator(reader=inputs, reads=reads, curve=curve, interval=interval),
        interval,
        widening,
    )


def _refuse_unknown_features(
    reader: ParameterReader, inputs: InputReader, reads: ModelReads
) -> None:
    if not reads.features:
        return
    assert inputs.features is not None
    assert inputs.hardware is not None
    known = inputs.features.names(inputs.hardware)
    unknown = [name for name in reads.features if name not in known]
    if unknown:
        raise reader.fault(f"the feature set has no feature {unknown[0]}")


def _affine(reader: ParameterReader) -> AffineCurve:
    return AffineCurve(
        intercept=reader.number("intercept", least=0), slope=reader.number("slope", least=0)
    )


def _scale_offset(reader: ParameterReader) -> ScaleOffset:
    alpha, beta = reader.number("alpha"), reader.number("beta")
    variance = reader.optional("variance_alpha", least=0)
    if variance is None:
        return ScaleOffset(alpha=alpha, beta=beta, covariance=None)
    shared = reader.number("covariance")
    other = reader.number("variance_beta", least=0)
    found = np.array(((variance, shared), (shared, other)))
    return ScaleOffset(alpha=alpha, beta=beta, covariance=found)


def _step_table(reader: ParameterReader) -> StepTable:
    starts, values = reader.array("starts", "float64", 1), reader.array("values", "float64", 1)
    _refuse_bad_knots(reader, starts, values)
    return StepTable(starts=starts, values=values)


def _log_log(reader: ParameterReader) -> LogLogCurve:
    sizes, values = reader.array("sizes", "float64", 1), reader.array("values", "float64", 1)
    _refuse_bad_knots(reader, sizes, values)
    return LogLogCurve(
        sizes=sizes,
        values=values,
        lower_slope=reader.number("lower_slope"),
        upper_slope=reader.number("upper_slope"),
    )


def _refuse_bad_knots(reader: ParameterReader, sizes: Seconds, values: Seconds) -> None:
    if not len(sizes) or sizes.shape != values.shape or bool((np.diff(sizes) <= 0).any()):
        raise reader.fault("sizes must ascend, and each have a value")
    if not bool((sizes > 0).all() and (values > 0).all()):
        raise reader.fault("sizes and values must be positive")


_CURVES: Mapping[
    Form, Callable[[ParameterReader], AffineCurve | StepTable | LogLogCurve | ScaleOffset]
] = {
    "affine": _affine,
    "step-table": _step_table,
    "log-log-curve": _log_log,
    "scale-offset": _scale_offset,
}


def _process(reader: ParameterReader, wanted: int, version: int) -> GaussianProcess:
    names = ("input_centers", "input_spreads", "length_scales")
    by_input = {name: reader.array(name, "float64", 1) for name in names}
    table, weights = reader.array("inputs", "float64", 2), reader.array("weights", "float64", 1)
    if any(len(values) != wanted for values in by_input.values()) or not wanted:
        raise reader.fault(f"the process does not read {wanted} inputs")
    if table.shape != (len(weights), wanted) or not len(weights):
        raise reader.fault("training inputs and weights do not fit together")
    if not all(bool((by_input[name] > 0).all()) for name in names[1:]):
        raise reader.fault("spreads and length scales must be positive")
    factors = None
    if version == LATER_FORM_VERSION:
        factors = reader.array("noise_factors", "float64", 1)
        if factors.shape != weights.shape or not bool((factors > 0).all()):
            raise reader.fault("noise factors must be positive, one for each training row")
    return GaussianProcess(
        inputs=table,
        weights=weights,
        **by_input,
        signal_variance=reader.number("signal_variance", least=0),
        nugget=reader.number("nugget", least=0),
        target_center=reader.number("target_center"),
        target_spread=reader.number("target_spread", least=0),
        noise_factors=factors,
    )
