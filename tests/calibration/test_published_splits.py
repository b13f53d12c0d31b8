"""The published splits, worked out from this repository's evidence, have the published keys."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from perfdb_git.calibration.documents import document_file
from perfdb_git.calibration.splits import build_split, find_leaks, replay_split
from perfdb_git.model.splits import BucketRange
from tests.calibration.published import CASES, SERIES, h200_recipe, vidur_recipe


@pytest.mark.parametrize("name", SERIES)
def test_vidur(name: str, shipped: Any, vocabulary: Any) -> None:
    series = SERIES[name]
    split, assignment = build_split(shipped, vidur_recipe(series))
    found = split.membership
    assert found.held_out_digest == series["held_out_sha256"]
    assert found.held_out_keys == series["held_out_keys"]
    assert (found.train_records, found.held_out_records) == (series["train"], series["held_out"])
    assert find_leaks(assignment, vocabulary) == ()


def test_operations_apart_know_less_of_full_rows(shipped: Any) -> None:
    """Record sets hold one operation each: rows may agree there and differ in the whole table."""
    fewer = []
    for name, series in SERIES.items():
        recipe = replace(vidur_recipe(series), deduplicate="full-row")
        found = build_split(shipped, recipe)[0].membership
        assert found.held_out_digest == series["held_out_sha256"]
        if (found.train_records, found.held_out_records) != (series["train"], series["held_out"]):
            fewer.append((name, found.unused_records))
    assert fewer == [
        ("a100/70b/tp1/add", 1),
        ("a100_dgx/send_recv/d2", 1),
        ("h100_dgx/all_reduce/w8", 1),
    ]


def test_a_group_of_series_keeps_the_published_sides(shipped: Any, vocabulary: Any) -> None:
    """One split over the four matrix products at all tensor-parallel sizes of one table."""
    series = SERIES["a100/70b/tp1/attn_pre_proj"]
    recipe = vidur_recipe(series)
    wide = replace(recipe.records, where={"@git_blob": (series["blob"],)})
    split, assignment = build_split(shipped, replace(recipe, records=wide))
    assert split.membership.held_out_digest == series["held_out_sha256"]
    assert split.membership.records == 4 * 4 * 261
    assert len(split.membership.record_sets) == 4
    assert find_leaks(assignment, vocabulary) == ()


@pytest.mark.parametrize("name", CASES)
def test_aiconfigurator(name: str, shipped: Any, vocabulary: Any) -> None:
    case = CASES[name]
    split, assignment = build_split(shipped, h200_recipe(case))
    found = split.membership
    assert found.held_out_keys == case["held_out_keys"]
    assert found.held_out_digest.startswith(case["held_out_digest_begins"])
    # Every NCCL size was measured twice; the repeats stay together.
    repeats = 2 if case["table"] == "nccl" else 1
    assert found.held_out_records == repeats * found.held_out_keys
    assert find_leaks(assignment, vocabulary) == ()


@pytest.mark.parametrize(("first", "share"), [(800, 0.2), (950, 0.05)])
def test_fewer_training_rows_are_judged_by_the_same_rows(
    first: int, share: float, shipped: Any
) -> None:
    case = CASES["generation_attention-rand20"]
    recipe = h200_recipe(case, train=BucketRange(at_least=first, below=1000))
    found = build_split(shipped, recipe)[0].membership
    assert found.held_out_digest.startswith(case["held_out_digest_begins"])
    assert found.train_records == pytest.approx(share * found.records, rel=0.03)
    assert found.unused_records == found.records - found.train_records - found.held_out_records


def test_sites_are_held_out_whole(shipped: Any) -> None:
    _, assignment = build_split(shipped, h200_recipe(CASES["gemm-site20"]))
    records = assignment.records
    columns = [records.values("dtype"), records.values("n"), records.values("k")]
    sites = list(zip(*columns, strict=True))
    held_out = {site for site, out in zip(sites, assignment.held_out, strict=True) if out}
    train = {site for site, out in zip(sites, assignment.train, strict=True) if out}
    assert held_out and not held_out & train


def test_a_written_split_is_worked_out_again(shipped: Any) -> None:
    split, assignment = build_split(shipped, h200_recipe(CASES["nccl-rand20"]))
    path, digest, _ = document_file(split)
    assert path == f"evidence/splits/h200-nccl-rand20-{digest[:12]}.json"
    again = replay_split(shipped, split, document=path)
    assert again.keys == assignment.keys
    np.testing.assert_array_equal(again.sides, assignment.sides)


def test_latency_is_in_seconds_and_ids_are_single(shipped: Any) -> None:
    recipe = vidur_recipe(SERIES["a100/70b/tp2/attn_decode"])
    _, assignment = build_split(shipped, recipe)
    assert len(set(assignment.records.ids())) == len(assignment.records) == 10240
    latency = assignment.records.metric()
    assert latency.min() > 1e-6 and latency.max() < 1
