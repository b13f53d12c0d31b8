"""Fits of specs over small evidence: honest, repeatable, and blind to what is held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
import pytest

from perfdb_git.analysis.tree_boosting import TreeSettings
from perfdb_git.calibration import fit_trees
from perfdb_git.calibration.choosing import choose, gains
from perfdb_git.calibration.documents import document_file, write_documents
from perfdb_git.calibration.fit import FitResult, fit_calibration
from perfdb_git.calibration.revision_checks import check_revisions, report_differences
from perfdb_git.calibration.slices import octaves_outside
from perfdb_git.errors import InvalidInputError, NoEvidenceError
from perfdb_git.model.calibration import (
    CalibrationSpec,
    DomainRange,
    FeatureSet,
    SpecBase,
    SpecPart,
    SpecReference,
)
from perfdb_git.model.splits import BucketRange, BucketRule, KeyText, RecordSelection, SplitRecipe
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.features.hardware import Hardware
from perfdb_git.providers.fitted_models import decode_model, hardware_numbers
from tests.calibration.conftest import SmallEvidence

HARDWARE = Hardware(
    device="a100_80g",
    multiprocessors=16,
    l2_bytes=1e7,
    memory_bytes_per_s=1e12,
    operations_per_s={"float16": 1e14, "bfloat16": 1e14},
    link_bytes_per_s=None,
    matrix_tiles=((64, 64), (128, 128)),
    query_tiles=(64,),
    launch_floor_s=4e-6,
)
SIZES = tuple(range(8, 8 * 101, 8))
SHAPE_COLUMNS = [
    *({"name": name, "role": "dimension", "unit": "1"} for name in ("m", "n")),
    {"name": "latency", "role": "metric", "statistic": "median", "unit": "ms"},
    {"name": "row", "role": "source"},
]


def recipe(*keys: str, **changes: Any) -> SplitRecipe:
    standard: dict[str, Any] = {
        "name": "shapes20",
        "description": "A fifth of the shapes.",
        "records": RecordSelection(device="a100_80g", operations=("gemm",)),
        "key": KeyText(columns=keys or ("m",)),
        "bucket": BucketRule(seed="7", hex_digits=8, held_out=BucketRange(at_least=0, below=0.2)),
    }
    return SplitRecipe(**(standard | changes))


def part(**changes: Any) -> SpecPart:
    standard: dict[str, Any] = {
        "split": recipe(),
        "slice_by": (),
        "forms": ("affine", "step-table", "log-log-curve"),
    }
    return SpecPart(**(standard | changes))


def spec(**changes: Any) -> CalibrationSpec:
    standard: dict[str, Any] = {
        "schema": "perfdb/calibration-spec/v1",
        "name": "small",
        "description": "Some products.",
        "family": "operation-size-efficiency",
        "response": "latency",
        "operation": "gemm",
        "device": "a100_80g",
        "inputs": ("m",),
        "parts": (part(),),
        "seed": 3,
    }
    return CalibrationSpec(**(standard | changes))


def noisy(curve: Callable[[float], float], seed: int = 1, spread: float = 0.02) -> list[list[Any]]:
    draws = np.random.Generator(np.random.PCG64(seed)).normal(0, spread, len(SIZES))
    return [
        [size, curve(size) * float(np.exp(draw)), row]
        for row, (size, draw) in enumerate(zip(SIZES, draws, strict=True))
    ]


def affine(size: float) -> float:
    return 0.2 + 0.01 * size


def bent(size: float) -> float:
    return float(0.1 * size ** (0.5 if size < 200 else 0.9))


def chosen(result: FitResult) -> list[str]:
    return [form.form for item in result.tried for form in item.forms if form.chosen]


@pytest.mark.parametrize(("curve", "form"), [(affine, "affine"), (bent, "log-log-curve")])
def test_the_simplest_form_that_is_as_good_is_chosen(
    small: SmallEvidence, curve: Callable[[float], float], form: str
) -> None:
    small.add(noisy(curve))
    result = fit_calibration(small.snapshot(), spec())
    assert chosen(result) == [form]
    report = result.calibration.held_out_report
    assert report.overall is not None
    assert report.overall.mape_pct < 4
    assert report.overall.coverage is not None
    assert report.overall.coverage > 0.75
    assert report.held_out == result.splits[0].membership.held_out_records


def test_many_sizes_get_widths_by_size(small: SmallEvidence) -> None:
    sizes = range(8, 8 * 301, 8)
    draws = np.random.Generator(np.random.PCG64(2)).normal(0, 1, len(sizes))
    rows = [
        [size, bent(size) * float(np.exp(draw * (0.2 if size < 800 else 0.01))), row]
        for row, (size, draw) in enumerate(zip(sizes, draws, strict=True))
    ]
    small.add(rows)
    result = fit_calibration(small.snapshot(), spec())
    model = result.calibration.slices[0].inside
    assert model.interval is not None
    assert model.interval.method == "sized-conformal"
    assert set(model.interval.parameters.numbers) == {"rate_above", "rate_below"}
    predictor = decode_model(model, result.calibration, document="x", pointer="/inside")
    noisy_part, quiet_part = (
        predictor.half_width({"m": np.arange(first, last, 3.0)})
        for first, last in ((100, 700), (1000, 2300))
    )
    assert np.median(noisy_part) > 6 * np.median(quiet_part)
    write_documents(small.path, *result.documents)
    assert check_revisions(small.snapshot()) == ()


def test_the_same_evidence_gives_the_same_bytes(small: SmallEvidence) -> None:
    small.add(noisy(bent))
    files = [
        [document_file(item) for item in fit_calibration(small.snapshot(), spec()).documents]
        for _ in range(2)
    ]
    assert files[0] == files[1]


def test_held_out_values_change_no_parameter(new_small: Callable[[str], SmallEvidence]) -> None:
    rows = noisy(bent)
    first = new_small("first")
    first.add(rows)
    before = fit_calibration(first.snapshot(), spec())
    held_out = _held_out_rows(before, rows)
    assert held_out
    other = new_small("other")
    other.add([[m, 5 * ms if row in held_out else ms, row] for m, ms, row in rows])
    after = fit_calibration(other.snapshot(), spec())
    ours, theirs = (result.calibration.slices[0] for result in (before, after))
    assert ours.inside == theirs.inside
    assert ours.domain == theirs.domain
    assert before.tried == tuple(replace(item, split=before.tried[0].split) for item in after.tried)
    errors = after.calibration.held_out_report.overall
    assert errors is not None
    assert errors.mape_pct > 70


def _held_out_rows(result: FitResult, rows: Sequence[Sequence[Any]]) -> set[int]:
    rule = result.splits[0].recipe.bucket
    assert rule is not None
    digests = {row: sha256(f"{rule.seed}|{m}".encode()).hexdigest()[:8] for m, _, row in rows}
    return {row for row, digest in digests.items() if int(digest, 16) / 16**8 < 0.2}


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        (("latency",), "metric"),
        (("m", "case_id"), "id"),
        (("model_name",), "model"),
        (("m", "oracle_total"), "answer"),
    ],
)
def test_forbidden_inputs_are_refused(
    small: SmallEvidence, inputs: tuple[str, ...], reason: str
) -> None:
    small.add(noisy(bent))
    with pytest.raises(InvalidInputError, match=reason) as caught:
        fit_calibration(small.snapshot(), spec(inputs=inputs))
    assert caught.value.code == "forbidden-input"


def test_a_point_on_both_sides_is_a_leak(small: SmallEvidence) -> None:
    columns = [
        {"name": "m", "role": "dimension", "unit": "1"},
        {"name": "latency", "role": "metric", "statistic": "median", "unit": "ms"},
        {"name": "tag", "role": "source"},
    ]
    small.add([[row[0], row[1], f"t{row[2]}"] for row in noisy(bent)], columns=columns)
    again = [[row[0], row[1], f"u{row[2]}"] for row in noisy(bent, seed=2)]
    small.add(again, columns=columns, session="session-2")
    with pytest.raises(InvalidInputError) as caught:
        fit_calibration(small.snapshot(), spec(parts=(part(split=recipe("tag")),)))
    assert caught.value.code == "leak"


def test_dimensions_that_differ_have_to_be_named(small: SmallEvidence) -> None:
    for dtype in ("float16", "bfloat16"):
        small.add(noisy(bent), context={"dtype": dtype}, session=dtype)
    split = recipe("m", "dtype")
    with pytest.raises(InvalidInputError) as caught:
        fit_calibration(small.snapshot(), spec(parts=(part(split=split),)))
    assert caught.value.code == "varying-dimension"
    sliced = fit_calibration(
        small.snapshot(), spec(parts=(part(split=split, slice_by=("dtype",)),))
    )
    assert [item.terms for item in sliced.calibration.slices] == [
        {"dtype": "bfloat16"},
        {"dtype": "float16"},
    ]
    assert {group.by for group in sliced.calibration.held_out_report.groups} == {
        "dtype",
        "size_decade",
    }


def test_pooled_slices_share_model_and_records(small: SmallEvidence) -> None:
    for dtype in ("float16", "bfloat16"):
        small.add(noisy(bent), context={"dtype": dtype}, session=dtype)
    pooled = part(split=recipe("m"), terms={"dtype": ("float16", "bfloat16")})
    result = fit_calibration(small.snapshot(), spec(parts=(pooled,)))
    first, second = result.calibration.slices
    assert first.inside == second.inside
    assert first.training == second.training
    assert first.terms != second.terms
    assert "one model for 2 combinations of dtype" in result.calibration.notes[0]
    write_documents(small.path, *result.documents)
    assert check_revisions(small.snapshot()) == ()


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"parts": (part(slice_by=("m",)),)}, "input-slices"),
        ({"parts": (part(forms=("scale-offset",)),)}, "no-form"),
        ({"parts": (part(features=FeatureSet(name="unheard", version=1)),)}, "unknown-feature-set"),
        ({"parts": (part(features=FeatureSet(name="gemm", version=1)),)}, "bad-base-numbers"),
        ({"parts": (part(), part())}, "ambiguous-slice"),
    ],
)
def test_specs_that_cannot_be_fitted(
    small: SmallEvidence, changes: dict[str, Any], code: str
) -> None:
    small.add(noisy(bent))
    with pytest.raises(InvalidInputError) as caught:
        fit_calibration(small.snapshot(), spec(**changes))
    assert caught.value.code == code


def test_too_few_records_and_empty_sides(new_small: Callable[[str], SmallEvidence]) -> None:
    few = new_small("few")
    few.add(noisy(bent)[:10])
    with pytest.raises(InvalidInputError) as caught:
        fit_calibration(few.snapshot(), spec())
    assert caught.value.code == "too-few-records"
    assert "at least 11 sizes beside those held out, or ask a lower level" in str(caught.value)
    nothing = BucketRule(seed="7", hex_digits=8, held_out=BucketRange(at_least=0, below=1e-9))
    with pytest.raises(NoEvidenceError) as none:
        fit_calibration(few.snapshot(), spec(parts=(part(split=recipe(bucket=nothing)),)))
    assert none.value.code == "empty-side"


def products() -> list[list[Any]]:
    draws = np.random.Generator(np.random.PCG64(5)).normal(0, 0.02, 400)
    shapes = [(m, n) for m in (*range(16, 321, 16), 512, 1024) for n in (64, 128, 256, 512, 1024)]
    return [
        [m, n, (0.01 + 1e-6 * m * n) * float(np.exp(draw)), row]
        for row, ((m, n), draw) in enumerate(zip(shapes, draws, strict=False))
    ]


def test_a_process_reads_several_inputs(small: SmallEvidence) -> None:
    small.add(products(), columns=SHAPE_COLUMNS)
    wanted = spec(
        inputs=("m", "n"),
        parts=(part(split=recipe("m", "n"), forms=("log-log-curve", "gaussian-process")),),
    )
    steps: list[tuple[int, int, str]] = []
    result = fit_calibration(small.snapshot(), wanted, progress=lambda *step: steps.append(step))
    assert chosen(result) == ["gaussian-process"]
    assert result.tried[0].forms[0].note == "2 inputs, a curve has one"
    assert steps[-1][0] == steps[-1][1]
    errors = result.calibration.held_out_report.overall
    assert errors is not None
    assert errors.mape_pct < 6
    write_documents(small.path, *result.documents)
    assert check_revisions(small.snapshot()) == ()


def test_trees_answer_inside_and_beyond(
    small: SmallEvidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = TreeSettings(rounds=30, depth=4, learning_rate=0.2)
    recipes = {
        name: replace(recipe, settings=quick, fold_settings=quick)
        for name, recipe in fit_trees.RECIPES.items()
    }
    monkeypatch.setattr(fit_trees, "RECIPES", recipes)
    monkeypatch.setattr(fit_trees, "LEAST_ROWS", 40)
    monkeypatch.setattr(fit_trees, "_LEAST_TAIL_ROWS", 5)
    small.add(products(), columns=SHAPE_COLUMNS)
    wanted = spec(
        inputs=("m", "n"),
        base=SpecBase(kind="stated", name="facts", numbers=hardware_numbers(HARDWARE)),
        parts=(
            part(
                split=recipe("m", "n"),
                forms=("boosted-trees",),
                features=FeatureSet(name="gemm", version=1),
            ),
        ),
    )
    result = fit_calibration(
        small.snapshot(), wanted, reference=SpecReference(name="x", sha256="0" * 64)
    )
    item = result.calibration.slices[0]
    assert item.inside.form == "boosted-trees"
    (tried,) = result.tried[0].forms
    assert tried.error_pct is not None
    assert (tried.rows, 0.1 < tried.error_pct < 30) == (item.training.records, True)
    assert item.beyond is not None
    assert item.beyond.interval is not None
    assert "widening_rate" in item.beyond.interval.parameters.numbers
    write_documents(small.path, *result.documents)
    assert check_revisions(small.snapshot()) == ()


def test_choosing_keeps_the_simpler_form_within_two_standard_errors() -> None:
    groups = np.arange(100.0)
    draws = np.random.Generator(np.random.PCG64(0)).normal(0, 0.05, 100)
    assert choose({"affine": draws, "log-log-curve": draws * 0.999}, groups) == "log-log-curve"
    jitter = np.where(groups % 2 == 0, 1.1, 0.89)
    assert choose({"affine": draws, "log-log-curve": draws * jitter}, groups) == "affine"
    assert choose({"affine": draws * 4, "gaussian-process": draws}, groups) == "gaussian-process"


def test_a_rival_has_to_gain_more_than_two_standard_errors() -> None:
    groups = np.arange(100.0)
    draws = np.random.Generator(np.random.PCG64(0)).normal(0, 0.05, 100)
    jitter = np.where(groups % 2 == 0, 1.1, 0.89)
    assert gains(draws, draws * 0.5, groups)
    assert not gains(draws, draws * jitter, groups)
    assert not gains(draws, draws * 2, groups)


def test_distances_count_zero_where_it_is_legal(vocabulary: Vocabulary) -> None:
    columns = {"m": np.array([1.0, 8.0, 32.0]), "kv_cache_length": np.array([0.0, 3.0, 31.0])}
    domain = {
        "m": DomainRange(minimum=4, maximum=16),
        "kv_cache_length": DomainRange(minimum=0, maximum=7),
    }
    assert octaves_outside(columns, domain, vocabulary).tolist() == [2, 0, 2]


def test_reports_that_differ_say_where(small: SmallEvidence) -> None:
    small.add(noisy(bent))
    report = fit_calibration(small.snapshot(), spec()).calibration.held_out_report
    assert list(report_differences(report, report)) == []
    assert report.overall is not None
    other = replace(report, overall=replace(report.overall, mape_pct=9.0), groups=())
    assert [pointer for pointer, _ in report_differences(other, report)] == [
        "/overall/mape_pct",
        *(["/groups"] * len(report.groups)),
    ]
