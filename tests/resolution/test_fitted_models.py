"""Fitted models as documents: the same bits back, in batches and one by one; strict."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfdb_git.analysis.conformal import (
    DistanceWidening,
    TwoRegimeWidths,
    fit_conformal_widths,
)
from perfdb_git.analysis.curves import AffineCurve, StepTable
from perfdb_git.analysis.error_scale import fit_error_scale
from perfdb_git.analysis.gaussian_process import fit_gaussian_process
from perfdb_git.analysis.scale_offset import ScaleOffset
from perfdb_git.analysis.sized_widths import SizedWidths
from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.model.calibration import FittedModel
from perfdb_git.operations.features.feature_set import SUM_OF_PARTS
from perfdb_git.operations.features.registry import FEATURE_SETS
from perfdb_git.providers.fitted_intervals import METHODS, line_codes
from perfdb_git.providers.fitted_models import (
    FittedPredictor,
    OneWidth,
    TwoRegimes,
    decode_model,
    encode_curve,
    encode_gaussian_process,
    encode_interval,
    encode_scale_offset,
    encode_trees,
    hardware_from_numbers,
    hardware_numbers,
)
from tests.resolution.fitted import (
    HARDWARE,
    calibration,
    curve_model,
    gemm_columns,
    gemm_process,
    gemm_trees,
    process_model,
    sized_model,
    trees_model,
)


def decoded(model: FittedModel, **changes: Any) -> FittedPredictor:
    return decode_model(model, calibration(**changes), document="x.json", pointer="/inside")


@cache
def two_regimes() -> FittedModel:
    trees, columns = gemm_trees(), gemm_columns()
    described = FEATURE_SETS["gemm/1"].compute(columns, HARDWARE)
    errors = 0.02 * np.sin(columns["m"])
    folds = np.arange(len(errors)) % 3
    on, seen = fit_error_scale(described, errors, folds, bins=trees.bins)
    widths = fit_conformal_widths(np.abs(errors) / seen, 0.9)
    interval = TwoRegimes(
        widths=TwoRegimeWidths(measured=widths, unmeasured=replace(widths, pooled=900.0)),
        on_line=on,
        off_line=on,
        line_by=("n", "k"),
        lines=np.unique(line_codes(columns, ("n", "k")))[::2],
    )
    stored = encode_interval(
        interval,
        folds="rows and lines",
        residuals=300,
        bins=trees.bins,
        widening=DistanceWidening(rate=0.5),
    )
    return encode_trees([trees], features="gemm/1", bases=["tiled"], interval=stored)


def collective_columns() -> dict[str, Any]:
    sizes = np.array([300.0, 5e4, 7e7] * 9)
    return {"message_bytes": sizes, "participants": np.repeat([2.0, 4.0, 8.0], 9)}


def test_hardware_comes_back() -> None:
    back = hardware_from_numbers(hardware_numbers(HARDWARE), device="a100", document="x")
    assert back == HARDWARE


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"l2_bytes": None}, "does not state"),
        ({"l2_bytes": -1.0}, "not positive"),
        ({"colour": 1.0}, "no fact"),
        ({"query_tile_rows.07": 64.0}, "gap"),
        ({"multiprocessors": 1.5}, "whole"),
    ],
)
def test_wrong_hardware_is_refused(changes: dict[str, float | None], message: str) -> None:
    numbers = {k: v for k, v in (hardware_numbers(HARDWARE) | changes).items() if v is not None}
    with pytest.raises(InvalidInputError, match=message):
        hardware_from_numbers(numbers, device="a100", document="x")


def test_decoded_trees_equal_the_fitted_ones() -> None:
    columns, features = gemm_columns(seed=5), FEATURE_SETS["gemm/1"]
    logs = gemm_trees().predict(features.compute(columns, HARDWARE))
    expected = features.base(columns, HARDWARE) * np.exp(logs)
    assert np.array_equal(decoded(trees_model()).predict(columns), expected)


def test_several_bases_give_a_geometric_mean() -> None:
    names = ["tiled", "roofline"]
    models = [gemm_trees(place, base) for place, base in enumerate(names)]
    predictor = decoded(encode_trees(models, features="gemm/1", bases=names))
    columns = gemm_columns(seed=5)
    parts = [
        decoded(encode_trees([model], features="gemm/1", bases=[base])).predict(columns)
        for model, base in zip(models, names, strict=True)
    ]
    assert np.allclose(predictor.predict(columns), np.sqrt(parts[0] * parts[1]), rtol=1e-13)
    assert np.isnan(predictor.half_width(columns)).all()


@pytest.mark.parametrize(
    ("model", "columns"),
    [
        (trees_model(rate=0.4), gemm_columns(seed=7)),
        (two_regimes(), gemm_columns(seed=7)),
        (curve_model(), gemm_columns(seed=7)),
        (curve_model(features="gemm/1", base="roofline"), gemm_columns(seed=7)),
        (sized_model(), {"m": np.geomspace(17, 8000, 300)}),
        (process_model(), collective_columns()),
    ],
    ids=["trees", "two-regimes", "curve", "curve-of-base", "sized", "process"],
)
def test_a_batch_equals_its_rows(model: FittedModel, columns: dict[str, Any]) -> None:
    predictor = decoded(model)
    count = max(len(values) for values in columns.values())
    octaves = np.linspace(0, 3, count) if predictor.widening else np.zeros(count)
    seconds, widths = predictor.predict_with_half_width(columns, octaves=octaves)
    assert np.isfinite(seconds).all()
    assert np.isfinite(widths).all()
    assert np.array_equal(seconds, predictor.predict(columns))
    for row in range(count):
        one = {k: v[row : row + 1] if len(v) > 1 else v for k, v in columns.items()}
        single = predictor.predict_with_half_width(one, octaves=octaves[row : row + 1])
        assert (single[0][0], single[1][0]) == (seconds[row], widths[row])


def test_widening_follows_the_distance() -> None:
    columns = gemm_columns(4)
    inside = decoded(trees_model(rate=0.5)).half_width(columns)
    away = np.array([0.0, 1.0, 4.0, 9.0])
    widened = decoded(trees_model(rate=0.5)).half_width(columns, octaves=away)
    assert np.allclose(widened / inside, [1, 1.5, 2, 2.5])
    unknown = decoded(trees_model()).half_width(columns, octaves=away)
    assert np.isnan(unknown).tolist() == [False, True, True, True]


def test_lines_choose_the_width() -> None:
    predictor = decoded(two_regimes())
    columns = gemm_columns()
    known = np.isin(line_codes(columns, ("n", "k")), predictor.evaluator.interval.lines)  # type: ignore[attr-defined]
    widths = predictor.half_width(columns)
    assert widths[known].max() < widths[~known].min()


def test_widths_by_size_come_back_and_reach_over_jumps() -> None:
    predictor = decoded(sized_model())
    sizes = np.array([16.0, 100.0, 129.0, 1024.0, 2048.0, 8.0])
    stored = predictor.evaluator.interval  # type: ignore[attr-defined]
    assert isinstance(stored, SizedWidths)
    seconds, widths = predictor.predict_with_half_width(
        {"m": sizes}, octaves=np.array([0, 0, 0, 0, 1.0, 1.0])
    )
    plain = stored.predict(sizes)
    assert np.array_equal(widths[[0, 1, 3, 4]], plain[[0, 1, 3, 4]])
    assert widths[2] > 3 * plain[2]
    assert seconds[2] * np.exp(-widths[2]) <= 3e-6 * (1 + 1e-12)
    assert seconds[2] * np.exp(widths[2]) >= 6e-6 * (1 - 1e-12)
    assert plain[4] == pytest.approx(plain[3] + 0.3)
    assert np.isnan(widths[5])


def test_every_way_to_make_intervals_is_documented() -> None:
    guide = Path(__file__).parents[2].joinpath("docs/cost-providers.md").read_text()
    assert [method for method in METHODS if f"`{method}`" not in guide] == []


def test_small_forms_come_back() -> None:
    columns = {"m": np.array([3.0, 40.0, 0.0])}
    affine = decoded(encode_curve(AffineCurve(intercept=1e-6, slope=2e-9), size="m"))
    assert affine.predict(columns).tolist() == [1e-6 + 3 * 2e-9, 1e-6 + 40 * 2e-9, 1e-6]
    table = StepTable(starts=np.array([1.0, 8.0]), values=np.array([2.0, 5.0]))
    assert decoded(encode_curve(table, size="m")).predict(columns).tolist() == [2.0, 5.0, 2.0]
    line = ScaleOffset(alpha=2.0, beta=-7.0, covariance=np.eye(2))
    predicted = decoded(encode_scale_offset(line, modelled="m")).predict(columns)
    assert np.isnan(predicted).tolist() == [True, False, True]
    of_base = decoded(encode_scale_offset(line, modelled="tiled", features="gemm/1"))
    assert np.isnan(of_base.predict(gemm_columns(3))).all()


def test_a_process_reads_inputs_features_and_a_base() -> None:
    columns = gemm_columns(20, seed=9)
    seconds = decoded(gemm_process()).predict(columns)
    single = [
        decoded(gemm_process()).predict(
            {k: v[row : row + 1] for k, v in columns.items() if k != "dtype"}
            | {"dtype": columns["dtype"]}
        )[0]
        for row in range(20)
    ]
    assert np.isfinite(seconds).all()
    assert seconds.tolist() == single


def parts_model(**changes: float) -> FittedModel:
    weights = {"launch": 1.5, "work": 2.0, "tiled_64x64": 0.25} | changes
    return encode_trees(
        [gemm_trees()], features="gemm/1", bases=[SUM_OF_PARTS], part_weights=weights
    )


def test_a_sum_of_parts_comes_back() -> None:
    model, columns = parts_model(), gemm_columns()
    assert model.form_version == 2
    times = FEATURE_SETS["gemm/1"].parts(columns, HARDWARE)  # type: ignore[misc]
    total = 1.5 * times["launch"] + 2 * times["work"] + 0.25 * times["tiled_64x64"]
    described = FEATURE_SETS["gemm/1"].compute(columns, HARDWARE)
    expected = np.maximum(total, HARDWARE.launch_floor_s) * np.exp(gemm_trees().predict(described))
    assert decoded(model).predict(columns) == pytest.approx(expected, rel=1e-12)


def test_noise_factors_come_back() -> None:
    draws = np.random.default_rng(8)
    sizes = 2.0 ** draws.integers(4, 12, 50)
    target = np.log(1e-6 * sizes) + 0.1 * draws.standard_t(2, 50)
    process = fit_gaussian_process(np.log2(sizes)[:, None], target, noise_degrees=4)
    interval = encode_interval(
        OneWidth(level=0.9, width=1.5, by_deviation=True), folds="rows", residuals=50
    )
    model = encode_gaussian_process(process, inputs=["m"], interval=interval)
    assert model.form_version == 2
    seconds, widths = decoded(model).predict_with_half_width({"m": np.array([20.0, 900.0])})
    logs, deviation = process.predict_with_deviation(np.log2([[20.0], [900.0]]))
    assert seconds.tolist() == np.exp(logs).tolist()
    assert widths.tolist() == (1.5 * deviation).tolist()


def test_a_missing_input_is_named() -> None:
    with pytest.raises(UsageError, match="reads k, dtype"):
        decoded(trees_model()).predict({"m": np.ones(1), "n": np.ones(1)})


def changed(model: FittedModel, **numbers: float) -> FittedModel:
    parameters = model.parameters
    renamed = {name.replace("__", "."): value for name, value in numbers.items()}
    return replace(model, parameters=replace(parameters, numbers={**parameters.numbers, **renamed}))


@pytest.mark.parametrize(
    ("model", "code", "message"),
    [
        (changed(curve_model(), colour=1), "bad-parameters", "no parameter colour"),
        (changed(curve_model(), input__n=1), "bad-parameters", "one size"),
        (changed(curve_model(), input__n=7), "bad-parameters", "count 0, 1, 2"),
        (changed(curve_model(), base__tiled=0), "bad-parameters", "need a feature set"),
        (changed(trees_model(), base__roofline=1), "bad-parameters", "trees.1"),
        (changed(trees_model(), base__other=1), "bad-parameters", "no base other"),
        (replace(curve_model(), form="affine"), "bad-parameters", "intercept is missing"),
        (replace(curve_model(), form_version=2), "unknown-form", "version 2"),
        (replace(gemm_process(), features=None), "bad-parameters", "need a feature set"),
        (
            replace(curve_model(), interval=replace(curve_model().interval, method="x")),  # type: ignore[type-var]
            "unknown-interval",
            "no interval x",
        ),
        (parts_model(colour=1.0), "bad-parameters", "no part colour"),
        (parts_model(work=-1.0), "bad-parameters", "part.work is -1"),
        (replace(parts_model(), form_version=1), "unknown-form", "version 1 and a sum"),
        (replace(trees_model(), form_version=2), "unknown-form", "version 2 and a sum"),
        (replace(process_model(), form_version=2), "bad-parameters", "noise_factors"),
        (replace(curve_model(), interval=two_regimes().interval), "bad-parameters", "trees"),
        (replace(trees_model(), interval=sized_model().interval), "bad-parameters", "one size"),
        (replace(process_model(), interval=sized_model().interval), "bad-parameters", "one size"),
        (sized_model(sizes=(64.0, 16.0)), "bad-parameters", "ascend"),
        (sized_model(widths=(0.1, 0.0)), "bad-parameters", "must be positive"),
        (sized_model(rate_above=-1.0), "bad-parameters", "rate_above is -1"),
    ],
)
def test_malformed_parameters_are_refused(model: FittedModel, code: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        decoded(model)
    assert caught.value.code == code


def test_encoding_refuses_what_cannot_come_back() -> None:
    trees = gemm_trees()
    with pytest.raises(ValueError, match="models for"):
        encode_trees([trees], features="gemm/1", bases=["tiled", "roofline"])
    with pytest.raises(ValueError, match="no base"):
        encode_trees([trees], features="gemm/1", bases=["other"])
    with pytest.raises(ValueError, match="both or none"):
        encode_trees([trees], features="gemm/1", bases=[SUM_OF_PARTS])
    with pytest.raises(ValueError, match="width is inf"):
        encode_interval(OneWidth(level=0.9, width=np.inf), folds="rows", residuals=1)
    sized = SizedWidths(level=0.9, sizes=np.ones(1), widths=np.ones(1))
    with pytest.raises(ValueError, match="own rates"):
        encode_interval(sized, folds="rows", residuals=1, widening=DistanceWidening(rate=1.0))
