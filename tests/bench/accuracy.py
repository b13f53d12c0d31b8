"""Held-out accuracy of learned forms on the published splits, beside a peer's.

    python -m tests.bench.accuracy [--only gemm,...] [--points]

Fits on training rows of the shipped H200 tables, predicts the held-out rows once, and prints
MAPE, median, p95 and worst error in percent, 90 % interval coverage with the median half-width,
and CPU seconds. Then how many GEMM queries a CPU second evaluates, interval included, and the
groups of Vidur's tables (``--only vidur``; see `tests.bench.vidur_groups`).
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

# One thread: CPU seconds of idle helpers would be counted, and small products gain nothing.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

from perfdb_git.calibration.fitting_trees import (
    RECIPES,
    TreeRecipe,
    fit_sliced_trees,
    rows_of,
    slices_of,
)
from perfdb_git.calibration.tree_intervals import fit_slice_with_interval
from perfdb_git.model.calibration import Form
from tests.bench.fitted_slices import fit_and_answer, request_of
from tests.bench.h200 import H200
from tests.bench.published_tables import PublishedTable, read_table
from tests.bench.vidur_groups import lines as vidur_lines

Booleans = NDArray[np.bool_]
Floats = NDArray[np.float64]

PEER = "aiconfigurator-core 0.12.0, SILICON mode, the same splits"
LINES: Mapping[str, tuple[str, ...]] = {
    "gemm": ("n", "k"),
    "attention_prefill": ("query_heads", "kv_heads", "head_size"),
    "attention_decode": ("query_heads", "kv_heads", "head_size"),
}
"""Dimensions that rows of one sweep share."""

LAST_TRAINED_M = 2049


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Predictions of the held-out rows in seconds, with half-widths on the logarithm."""

    predicted: Floats
    measured: Floats
    half_width: Floats | None = None


@dataclass(frozen=True, kw_only=True)
class Case:
    """One line of the table: the peer's (MAPE, p95), what is asked of us, and how to answer."""

    name: str
    peer: tuple[float, float | None]
    at_most: tuple[float, float | None]
    answer: Callable[[], Answer]


class Tables:
    """The published tables, each read when first asked for."""

    def __init__(self) -> None:
        self._read: dict[str, PublishedTable] = {}

    def __getitem__(self, name: str) -> PublishedTable:
        """Return a table by upstream name."""
        if name not in self._read:
            self._read[name] = read_table(name)
        return self._read[name]


def by_trees(table: PublishedTable, operation: str, train: Booleans, test: Booleans) -> Answer:
    """Answer by one model with its interval for each slice."""
    recipe = RECIPES[operation]
    predicted, widths = np.empty(len(train)), np.empty(len(train))
    for rows in slices_of(table.columns, recipe.slice_by).values():
        inside, asked = rows[train[rows]], rows[test[rows]]
        fitted = fit_slice_with_interval(
            recipe,
            rows_of(table.columns, inside),
            table.latency[inside],
            H200,
            line_by=LINES[operation],
        )
        predicted[asked], widths[asked] = fitted.predict(rows_of(table.columns, asked))
    return Answer(predicted=predicted[test], measured=table.latency[test], half_width=widths[test])


def by_points(table: PublishedTable, recipe: TreeRecipe, train: Booleans, test: Booleans) -> Answer:
    """Answer by trees without an interval."""
    inside, asked = np.flatnonzero(train), np.flatnonzero(test)
    fitted = fit_sliced_trees(recipe, rows_of(table.columns, inside), table.latency[inside], H200)
    return Answer(
        predicted=fitted.predict(rows_of(table.columns, asked)), measured=table.latency[asked]
    )


def by_revision(
    table: PublishedTable,
    train: Booleans,
    test: Booleans,
    *,
    features: str,
    inputs: tuple[str, ...],
    slice_by: tuple[str, ...],
    forms: tuple[Form, ...],
) -> Answer:
    """Answer by what a revision would hold of each slice; all repeats train, the first judges."""
    predicted, widths = np.full((2, len(train)), np.nan)
    for values, rows in slices_of(table.columns, slice_by).items():
        inside, asked = rows[train[rows]], rows[test[rows]]
        repeated = np.repeat(inside, [len(table.repeats[row]) for row in inside])
        latency = np.concatenate([table.repeats[row] for row in inside])
        predicted[asked], widths[asked] = fit_and_answer(
            request_of(
                rows_of(table.columns, repeated),
                latency,
                inputs=inputs,
                features=features,
                forms=forms,
            ),
            rows_of(table.columns, asked),
            {"operation": str(table.columns["operation"][rows[0]])}
            | dict(zip(slice_by, values, strict=True)),
        )
    return Answer(predicted=predicted[test], measured=table.latency[test], half_width=widths[test])


def by_processes(table: PublishedTable) -> Answer:
    """Answer for collectives, one model each; data types are pooled and told apart by a feature."""
    return by_revision(
        table,
        ~table.held_out,
        table.held_out,
        features="collective/1",
        inputs=("message_bytes", "participants"),
        slice_by=("operation",),
        forms=("log-log-curve", "gaussian-process"),
    )


def cases(tables: Tables, *, points: bool) -> list[Case]:
    """Return every line of the table, with the peer's figures; ``points`` leaves intervals out."""

    def inside(name: str, operation: str, out: Booleans) -> Answer:
        if points:
            return by_points(tables[name], RECIPES[operation], ~out, out)
        return by_trees(tables[name], operation, ~out, out)

    def rand(name: str, operation: str) -> Answer:
        return inside(name, operation, tables[name].held_out)

    def few(name: str, operation: str) -> Answer:
        table = tables[name]
        return by_points(table, RECIPES[operation], table.bucket >= 800, table.held_out)

    def site() -> Answer:
        return inside("gemm", "gemm", tables["gemm"].site_held_out)

    def tail() -> Answer:
        far = np.asarray(tables["gemm"].columns["m"], dtype=np.float64) > LAST_TRAINED_M
        if points:
            return by_points(tables["gemm"], RECIPES["gemm-beyond"], ~far, far)
        return by_revision(
            tables["gemm"],
            ~far,
            far,
            features="gemm/1",
            inputs=("m", "n", "k"),
            slice_by=("dtype",),
            forms=("boosted-trees",),
        )

    context, generation = "context_attention", "generation_attention"
    prefill, decode = "attention_prefill", "attention_decode"
    return [
        Case(
            name="gemm rand20",
            peer=(5.21, 19.5),
            at_most=(1.9, 6.0),
            answer=lambda: rand("gemm", "gemm"),
        ),
        Case(name="gemm site20", peer=(6.12, 19.2), at_most=(2.4, 7.3), answer=site),
        Case(name="gemm mtail", peer=(18.2, 61), at_most=(5.1, 15), answer=tail),
        Case(
            name="context",
            peer=(4.53, 17.8),
            at_most=(1.1, 3.2),
            answer=lambda: rand(context, prefill),
        ),
        Case(
            name="generation",
            peer=(9.04, 33.6),
            at_most=(2.0, 5.9),
            answer=lambda: rand(generation, decode),
        ),
        Case(
            name="nccl",
            peer=(7.26, 26.2),
            at_most=(4.8, 14),
            answer=lambda: by_processes(tables["nccl"]),
        ),
        Case(
            name="allreduce",
            peer=(2.84, 8.6),
            at_most=(1.8, 5),
            answer=lambda: by_processes(tables["custom_allreduce"]),
        ),
        Case(
            name="gemm train20",
            peer=(6.80, None),
            at_most=(2.6, None),
            answer=lambda: few("gemm", "gemm"),
        ),
        Case(
            name="context train20",
            peer=(20.4, None),
            at_most=(1.7, None),
            answer=lambda: few(context, prefill),
        ),
        Case(
            name="generation train20",
            peer=(22.3, None),
            at_most=(4.3, None),
            answer=lambda: few(generation, decode),
        ),
    ]


def report(case: Case) -> str:
    """Answer a case and return its line."""
    began = time.process_time()
    found = case.answer()
    spent = time.process_time() - began
    answered = np.isfinite(found.predicted)
    if found.half_width is not None:
        answered &= np.isfinite(found.half_width)
    error = 100 * np.abs(found.predicted / found.measured - 1)[answered]
    mape, p95 = float(error.mean()), float(np.percentile(error, 95))
    limits = zip((mape, p95), case.at_most, strict=True)
    met = all(most is None or value <= most for value, most in limits)
    verdict = "met" if met else "MISSED"
    interval = ""
    if found.half_width is not None:
        width = found.half_width[answered]
        covered = np.abs(np.log(found.predicted / found.measured)[answered]) <= width
        half = 100 * float(np.median(np.expm1(width)))
        interval = f"{100 * covered.mean():.1f} % ±{half:.1f}"
    peer, most = (
        "/".join("-" if value is None else f"{value:g}" for value in pair)
        for pair in (case.peer, case.at_most)
    )
    ours = f"{mape:.2f}/{np.median(error):.2f}/{p95:.2f}/{error.max():.0f}"
    return (
        f"{case.name:19} {len(error):6} {100 * answered.mean():5.1f} {peer:>11} {most:>9} "
        f"{ours:>20} {verdict:7}{interval:>14} {spent:7.1f}"
    )


def rates(table: PublishedTable) -> str:
    """Return queries per CPU second with features and interval, in a batch and one by one."""
    # The settings' rounds are what costs; few rows fit quickly and grow trees as deep.
    rows = np.flatnonzero(table.columns["dtype"] == "bfloat16")
    fitted = fit_slice_with_interval(
        replace(RECIPES["gemm"], bases=("tiled",)),
        rows_of(table.columns, rows[::12]),
        table.latency[rows[::12]],
        H200,
        line_by=LINES["gemm"],
    )
    columns = rows_of(table.columns, rows)
    columns["dtype"] = columns["dtype"][:1]
    one = {name: values[:1] for name, values in columns.items()}
    fitted.predict(one)
    began = time.process_time()
    for _ in range(5):
        fitted.predict(columns)
    batch = 5 * len(rows) / (time.process_time() - began)
    began = time.process_time()
    for _ in range(200):
        fitted.predict(one)
    single = (time.process_time() - began) / 200
    return f"{batch:,.0f} GEMM queries per CPU second in a batch, {1e6 * single:.0f} us for one"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="comma-separated beginnings of names, or 'rates'")
    parser.add_argument("--points", action="store_true", help="no intervals: a fifth of the time")
    options = parser.parse_args()
    only = tuple(options.only.split(",")) if options.only else ("",)
    tables = Tables()
    print(f"peer: {PEER}; errors in percent")
    print(
        f"{'split':19} {'n':>6} {'% of':>5} {'peer':>11} {'at most':>9} "
        f"{'MAPE/median/p95/max':>20} {'':7}{'90 % interval':>14} {'CPU s':>7}"
    )
    for case in cases(tables, points=options.points):
        if case.name.startswith(only):
            print(report(case), flush=True)
    if "rates".startswith(only):
        print(rates(tables["gemm"]))
    for line in vidur_lines(only):
        print(line, flush=True)


if __name__ == "__main__":
    main()
