"""A table of questions has, in every field and bit, the answers that each question has alone."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfdb_git.database import DatabaseSnapshot
from perfdb_git.errors import UsageError
from perfdb_git.model.calibration import DomainRange, TrainingRecords
from perfdb_git.model.query import EvidencePolicy
from perfdb_git.providers.batch import recorded
from perfdb_git.resolution.batch_resolver import BatchResolver
from tests.resolution.batch_comparison import differences
from tests.resolution.conftest import EvidenceRepository
from tests.resolution.fitted import (
    SHA,
    calibration,
    curve_model,
    process_model,
    promote,
    sized_model,
    slice_of,
    trees_model,
)

PROJECT = Path(__file__).parents[2]
POLICY = "evidence/policies/default.yaml"
SIZES = (1, 2, 3, 8, 16, 20, 64, 100, 129, 1000, 4096, 5000, 10**6)
OLD, NEW = "2020-01-01", "2025-06-01T10:00:00Z"


def _measured(repository: EvidenceRepository) -> list[str]:
    """Record sets that know different things, in different layouts, with different statistics."""
    rows = [[m, 8, 64, 0.1 + m / 100, 0.01] for m in SIZES[:8]]
    added = [repository.add(rows, session="a", source={"measured_at": NEW})]
    # The same shapes again, some of them twice: one session, then another that disagrees.
    rows = [[m, 8, 64, 0.2 + m / 100 + again / 1000, 0.02] for m in (1, 2) for again in (0, 1)]
    added.append(repository.add(rows, session="a", source={"revision": None}))
    added.append(
        repository.add(
            [[3, 8, 64, 0.9, 0.01]],
            session="b",
            source={"measured_at": OLD},
            context={"layout": "t"},
        )
    )
    # Samples, a count of its own, a minimum only, no value at all, a time of zero.
    rows = [[m, 16, 64, [0.1, 0.12, 0.13 + m / 1000], None] for m in (1, 2, 8)]
    metrics = (("latency", "sample", "ms"), ("latency", "count", "1"))
    added.append(repository.add(rows, session="c", metrics=metrics))
    metrics = (("latency", "min", "us"), ("latency", "std", "us"), ("latency", "count", "1"))
    rows = [[16, 16, 64, 5.5, 0.5, 7], [20, 16, 64, 5.5, 0.5, 1], [64, 16, 64, None, None, None]]
    added.append(repository.add([*rows, [100, 16, 64, 0.0, 0.0, 9]], session="d", metrics=metrics))
    # Another metric beside the latency, and n and k stated once; some m is unknown.
    metrics = (("latency", "mean", "s"), ("energy", "mean", "J"))
    added.append(
        repository.add(
            [[129, 1e-4, 2.0], [None, 2e-4, None]],
            dimensions=("m",),
            metrics=metrics,
            context={"n": 8, "k": 64},
            protocol={"repetitions": None, "warmup": None, "timer_resolution": None},
        )
    )
    # An immaterial number that some rows know, and some do not.
    rows = [[8, 20, 64, 4, 0.3, 0.01], [8, 20, 64, None, 0.4, 0.01], [16, 20, 64, None, 0.5, 0.01]]
    added.append(repository.add(rows, dimensions=("m", "n", "k", "concurrency"), session="e"))
    # A clock that fell: some of the records of a shape, and all of another's.
    metrics = (("latency", "sample", "ms"), ("sm_clock", "sample", "MHz"))
    slow, fast = [0.1, 0.1, 0.11, 0.12, 0.13, 0.14], [0.1, 0.11, 0.1, 0.1, 0.1, 0.1]
    fallen, steady = [1965.0, 1965.0, 1800.0, 1700.0, 1650.0, 1600.0], [1965.0] * 6
    rows = [[20, 20, 64, slow, fallen], [20, 20, 64, fast, steady], [64, 20, 64, slow, fallen]]
    added.append(repository.add(rows, metrics=metrics, session="g"))
    # Retracted: one row, and one whole set.
    repository.retract(f"{added[0]}#4")
    repository.retract(repository.add([[1, 1, 1, 1.0, 0.1]], session="f"))
    rows = [[2.0**b, 1e-5 * b, 1e-7] for b in range(10, 20)]
    context = {"operation": "all_reduce", "participants": 8}
    metrics = (("latency", "median", "s"), ("latency", "std", "s"))
    repository.add(rows, dimensions=("message_bytes",), metrics=metrics, context=context)
    return added


def _calibrated(repository: EvidenceRepository, trained_on: list[str]) -> None:
    training = TrainingRecords(records=9, record_sets=tuple(trained_on), digest=SHA)
    wide = {name: DomainRange(minimum=4, maximum=4096) for name in ("m", "n", "k")}
    line = {"m": DomainRange(minimum=16, maximum=1024), "n": wide["n"], "k": wide["k"]}
    slices = (
        slice_of(
            inside=trees_model(), beyond=trees_model(rate=0.2), domain=wide, training=training
        ),
        slice_of(inside=curve_model(), domain=line, terms={"dtype": "bfloat16", "n": 8}),
        slice_of(inside=curve_model(width=0.5), domain=line, terms={"dtype": "bfloat16", "n": 16}),
        slice_of(inside=sized_model(), domain=line, terms={"dtype": "float32"}),
    )
    domain = {
        "message_bytes": DomainRange(minimum=256, maximum=2**28),
        "participants": DomainRange(minimum=2, maximum=16),
    }
    process = slice_of(inside=process_model(), domain=domain, terms={})
    promote(
        repository,
        calibration(device="a100_80g", slices=slices),
        calibration(
            device="a100_80g",
            operation="all_reduce",
            inputs=("message_bytes", "participants"),
            slices=(process,),
        ),
    )


@pytest.fixture(scope="module", autouse=True)
def _all_in_columns() -> Iterator[None]:
    """Look few questions up in tables too: most examples here have few."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorded, "_FEW", 0)
        yield


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> DatabaseSnapshot:
    folder = tmp_path_factory.mktemp("batch")
    (folder / "repository").mkdir()
    repository = EvidenceRepository(folder / "repository", folder / "cache")
    _calibrated(repository, _measured(repository))
    text = (repository.path / POLICY).read_text()
    nearer = "- {operation: gemm, device: a100_80g, dimensions: [m], max_octaves: 0.5}"
    text = text.replace("  extrapolation:\n", f"  extrapolation:\n    {nearer}\n")
    repository.write(POLICY, text.encode())
    strict = text.replace("query_unknown: unanimous", "query_unknown: refuse")
    strict = strict.replace("protocol_unknown: accept", "protocol_unknown: refuse")
    strict = strict.replace("on_ambiguity: stop", "on_ambiguity: next-tier")
    strict = strict.replace("action: show", "action: refuse").replace(
        "name: default", "name: strict"
    )
    repository.write("evidence/policies/strict.yaml", strict.encode())
    repository.commit()
    return repository.at()


def _gemm(draw: Any) -> dict[str, Any]:
    numbers = st.sampled_from([*SIZES, None, None, 0, -1, 2.5, "7", "many", True, 2**60])
    sizes = st.sampled_from(SIZES)
    wrong = draw(st.integers(0, 9)) == 0
    question: dict[str, Any] = {
        "operation": "gemm",
        "device": draw(st.sampled_from(["a100_80g", "a100", "a100_sxm4_80g", "h100_80g", None])),
        "dtype": draw(st.sampled_from(["fp16", "float16", "bf16", "float32", "int8", None])),
        "m": draw(numbers if wrong else sizes),
        "n": draw(st.sampled_from([8, 8, 16, 20, 64, None])),
        "k": draw(st.sampled_from([64, 64, 64, 1024, None])),
    }
    extra = draw(st.integers(0, 11))
    if extra < 4:
        names: dict[str, Any] = {
            "layout": "t",
            "concurrency": 4,
            "form_factor": "pcie",
            "task": "x",
        }
        question |= dict([list(names.items())[extra]])
    if extra == 4:
        question |= (
            {"batch_size": 1} if wrong else {"operation": draw(st.sampled_from(["x", None]))}
        )
    return question


def _all_reduce(draw: Any) -> dict[str, Any]:
    return {
        "operation": "all_reduce",
        "device": draw(st.sampled_from(["a100_80g", "h100_80g"])),
        "dtype": draw(st.sampled_from(["float16", None])),
        "message_bytes": draw(st.sampled_from([1024, 2048, 3000, 2**19, 2**30, 2**40])),
        "participants": draw(st.sampled_from([2, 3, 8, 8, 16, 64, 5000, None])),
        "participants_per_node": draw(st.sampled_from([None, None, 4, 8])),
    }


@st.composite
def questions(draw: Any) -> list[dict[str, Any]]:
    count = draw(st.integers(1, 12))
    return [draw(st.sampled_from([_gemm, _gemm, _all_reduce]))(draw) for _ in range(count)]


LIMITS = (
    None,
    EvidencePolicy(max_relative_uncertainty=0.1),
    EvidencePolicy(max_age_days=365, fallback_allowed=False),
    EvidencePolicy(max_extrapolation_octaves=0.5, methods=("calibrated", "analytical", "measured")),
    EvidencePolicy(providers=("calibrated", "fallback")),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(
    asked=questions(),
    limits=st.sampled_from(LIMITS),
    policy=st.sampled_from(["default", "default", "strict"]),
)
def test_a_table_says_what_each_question_is_answered_alone(
    snapshot: DatabaseSnapshot,
    asked: list[dict[str, Any]],
    limits: EvidencePolicy | None,
    policy: str,
) -> None:
    assert differences(snapshot, asked, limits=limits, policy=policy) == []


def test_every_combination_of_sizes_at_once(snapshot: DatabaseSnapshot) -> None:
    """Enough questions for the paths of many rows; each source answers some of them."""
    asked = [
        {"operation": "gemm", "device": "a100", "dtype": dtype, "m": m, "n": n, "k": k}
        for dtype, m, n, k in itertools.product(
            ("fp16", "bf16", "float32"), SIZES, (8, 16, 20, 5000), (64, 100)
        )
    ]
    assert differences(snapshot, asked) == []
    columns = {name: [item[name] for item in asked] for name in asked[0]}
    table = snapshot.resolve_table(columns)
    assert {row["code"] for row in table.rows()} >= {"resolved", "throttled"}
    kinds = {(row["provider"], row["validity"], row["interval_rule"]) for row in table.rows()}
    assert kinds >= {
        ("recorded", "exact", "log-normal-from-median-std"),
        ("recorded", "exact", "log-normal-over-repeats"),
        ("recorded", "exact", "order-statistics"),
        ("recorded", "exact", None),
        (None, None, None),
        ("calibrated", "interpolated", "split-conformal"),
        ("calibrated", "extrapolated", "split-conformal-widened"),
        ("calibrated", "interpolated", "sized-conformal-over-jump"),
        ("analytical", "modelled", None),
    }


def _shipped_questions(snapshot: DatabaseSnapshot, count: int) -> list[dict[str, Any]]:
    """Draw questions from the shipped records, most of them changed a little."""
    draws = random.Random(11)
    keys = [key for key in snapshot.evidence.series_keys() if key.kind == "measured"]
    found = []
    for _ in range(count):
        record_set = draws.choice(snapshot.evidence.record_sets(draws.choice(keys)))
        row = draws.randrange(record_set.row_count)
        question: dict[str, Any] = {
            k: v for k, v in record_set.header.context.items() if v is not None
        }
        for column in record_set.header.columns:
            values = record_set.dimension(column.name) if column.role == "dimension" else None
            if values is not None and not np.isnan(values[row]):
                question[column.name] = int(values[row])
        numeric = [name for name, value in question.items() if not isinstance(value, str)]
        for name in draws.sample(numeric, min(len(numeric), draws.choice([0, 0, 1, 2]))):
            question[name] = max(1, int(question[name] * 2 ** draws.uniform(-2, 2)))
        if draws.random() < 0.2:
            question.pop(draws.choice(list(question)))
        found.append(question)
    return found


@pytest.mark.parametrize("few", [0, 4])
def test_the_shipped_evidence_is_answered_alike(
    shipped: DatabaseSnapshot, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(recorded, "_FEW", few)
    asked = _shipped_questions(shipped, 100)
    assert differences(shipped, asked) == []


def test_a_batch_keeps_what_it_has_read(
    snapshot: DatabaseSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = snapshot.batch()
    columns: dict[str, Any] = {"operation": "gemm", "device": "a100", "dtype": "fp16"}
    columns |= {"m": np.array(SIZES[:3]), "n": 8, "k": 64}
    first = session.table(columns)
    monkeypatch.setattr(
        type(snapshot.evidence), "verified_rows", lambda *_: pytest.fail("read from Git again")
    )
    again = session.table(columns, first=3)
    assert [row["value"] for row in again.rows()] == [row["value"] for row in first.rows()]
    assert [row["query"] for row in again.rows()] == [3, 4, 5]


def test_an_index_that_lies_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "repository").mkdir()
    repository = EvidenceRepository(tmp_path / "repository", tmp_path / "cache")
    repository.add([[16, 8, 64, 0.5, 0.01], [32, 8, 64, 0.7, 0.01]])
    repository.commit()
    columns = {
        "operation": "gemm",
        "device": "a100",
        "dtype": "fp16",
        "m": [16, 32],
        "n": 8,
        "k": 64,
    }
    truth = [row["value"] for row in repository.at().resolve_table(columns).rows()]
    for file in repository.cache.rglob("*.segment"):
        blocks = file.read_bytes()
        changed = blocks.replace(np.array([0.5, 0.7]).tobytes(), np.array([0.4, 0.7]).tobytes())
        assert changed != blocks
        file.write_bytes(changed)
    assert [row["value"] for row in repository.at().resolve_table(columns).rows()] == truth


def test_columns_must_have_one_length(snapshot: DatabaseSnapshot) -> None:
    with pytest.raises(UsageError) as raised:
        snapshot.resolve_table({"operation": "gemm", "m": [1, 2], "n": [1, 2, 3]})
    assert raised.value.code == "uneven-columns"


def test_an_unknown_metric_or_provider_is_refused_at_once(snapshot: DatabaseSnapshot) -> None:
    with pytest.raises(UsageError) as raised:
        snapshot.batch(metric="speed")
    assert raised.value.code == "unknown-metric"
    with pytest.raises(UsageError) as raised:
        snapshot.resolve_table({"operation": "gemm"}, limits=EvidencePolicy(providers=("nobody",)))
    assert raised.value.code == "unknown-provider"


def test_other_metrics_have_tables_of_their_own(snapshot: DatabaseSnapshot) -> None:
    columns = {"operation": "gemm", "device": "a100", "dtype": "fp16", "m": 129, "n": 8, "k": 64}
    row = snapshot.resolve_table(columns, metric="energy").row(0)
    assert (row["value"], row["unit"], row["status"]) == (2.0, "J", "ok")


def test_no_questions_have_no_answers(snapshot: DatabaseSnapshot) -> None:
    assert len(snapshot.resolve_table({"operation": [], "m": []})) == 0


@pytest.mark.parametrize(("kept", "reads"), [(3, 3), (2**20, 2)])
def test_look_up_tables_of_other_questions_make_room(
    snapshot: DatabaseSnapshot, monkeypatch: pytest.MonkeyPatch, kept: int, reads: int
) -> None:
    monkeypatch.setattr(recorded, "_MOST_ROWS", kept)
    session = snapshot.batch()
    columns = {"operation": "gemm", "device": "a100", "dtype": "fp16", "m": [20], "n": 8, "k": 64}
    read: list[Any] = []
    plain = type(snapshot.evidence).verified_rows
    monkeypatch.setattr(
        type(snapshot.evidence),
        "verified_rows",
        lambda *asked: [read.append(asked), plain(*asked)][1],
    )
    first = list(session.table(columns).rows())
    other = list(session.table({**columns, "layout": "t"}).rows())
    assert list(session.table(columns).rows()) == first
    assert first[0]["status"] == other[0]["status"] == "ok"
    assert len(read) == reads


def test_labels_for_people_divide_no_group(
    snapshot: DatabaseSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups: list[Any] = []
    plain = BatchResolver.resolve
    monkeypatch.setattr(
        BatchResolver, "resolve", lambda *asked: [groups.append(asked), plain(*asked)][1]
    )
    columns = {"operation": "gemm", "device": "a100", "dtype": "fp16", "m": 20, "n": 8, "k": 64}
    table = snapshot.resolve_table({**columns, "task": [f"layer {n}" for n in range(50)]})
    assert table.statuses() == {"ok": 50}
    assert len(groups) == 1
