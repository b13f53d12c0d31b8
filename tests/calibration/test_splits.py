"""Rules of splits: grouping, cuts, leaks, faults, and what later evidence does to them."""

import hashlib
from dataclasses import replace
from typing import Any

import pytest

from perfdb_git.calibration.selection import select_records
from perfdb_git.calibration.splits import (
    assign,
    build_split,
    find_leaks,
    recipe_faults,
    replay_split,
)
from perfdb_git.errors import InvalidInputError
from perfdb_git.model.splits import (
    BucketRange,
    BucketRule,
    CutRule,
    KeyText,
    RecordSelection,
    SplitRecipe,
)

GEMM = RecordSelection(device="a100_80g", operations=("gemm",))
HALF = BucketRange(at_least=0, below=0.5)


def bucket(*parts: KeyText, **changes: Any) -> BucketRule:
    return BucketRule(**{"seed": "s", "parts": parts, "hex_digits": 16, "held_out": HALF} | changes)


def recipe(**changes: Any) -> SplitRecipe:
    standard = {
        "name": "half",
        "description": "A half.",
        "records": GEMM,
        "key": KeyText(columns=("m",)),
        "bucket": bucket(),
    }
    return SplitRecipe(**(standard | changes))


def repeats(small: Any) -> None:
    """Forty sizes, each measured three times by two sessions."""
    for session in ("session-1", "session-2"):
        rows = [[m, 1 + row / 100, 3 * m + row] for m in range(1, 41) for row in range(3)]
        small.add(rows, session=session)


def test_the_hashed_text_is_seed_and_key(small: Any) -> None:
    repeats(small)
    assignment = assign(recipe(), select_records(small.snapshot(), GEMM))
    for key, out in zip(assignment.keys, assignment.held_out, strict=True):
        number = int(hashlib.sha256(f"s|{key}".encode()).hexdigest()[:16], 16)
        assert out == (number / 2**64 < 0.5)
    keys = {key for key, out in zip(assignment.keys, assignment.held_out, strict=True) if out}
    digest = hashlib.sha256("\n".join(sorted(keys)).encode()).hexdigest()
    assert assignment.membership().held_out_digest == digest


def test_repeats_and_sessions_stay_together(small: Any, vocabulary: Any) -> None:
    repeats(small)
    split, assignment = build_split(small.snapshot(), recipe())
    assert split.membership.held_out_records == 6 * split.membership.held_out_keys
    assert 10 < split.membership.held_out_keys < 30
    assert find_leaks(assignment, vocabulary) == ()


def test_a_split_by_session_leaks_its_points(small: Any, vocabulary: Any) -> None:
    repeats(small)
    by_session = KeyText(columns=("@session", "m"))
    torn = recipe(key=by_session, bucket=bucket(by_session))
    _, assignment = build_split(small.snapshot(), torn)
    leaks = find_leaks(assignment, vocabulary)
    assert leaks
    ids = dict(zip(assignment.records.ids(), assignment.sides.tolist(), strict=True))
    assert all((ids[leak.train], ids[leak.held_out]) == (1, 2) for leak in leaks)
    assert "device=a100_80g" in leaks[0].point


def test_tasks_do_not_tell_points_apart(small: Any, vocabulary: Any) -> None:
    small.add([[1, 1, 0]], context={"task": "up"}, session="session-1")
    small.add([[1, 1, 0]], context={"task": "down"}, session="session-2")
    torn = recipe(key=KeyText(columns=("@session",)), bucket=bucket())
    snapshot = small.snapshot()
    sides = {}
    for seed in map(str, range(20)):
        assignment = build_split(snapshot, replace(torn, bucket=bucket(seed=seed)))[1]
        sides[len(set(assignment.sides.tolist()))] = find_leaks(assignment, vocabulary)
    assert sides[1] == () and len(sides[2]) == 1


def test_groups_are_held_out_whole(small: Any) -> None:
    for n in (64, 128, 256, 512):
        small.add([[m, 1, m] for m in range(1, 9)], context={"n": n}, session=f"session-{n}")
    grouped = recipe(
        key=KeyText(columns=("m", "n")), bucket=bucket(KeyText(columns=("n",)), seed="b")
    )
    _, assignment = build_split(small.snapshot(), grouped)
    by_n: dict[object, set[int]] = {}
    for n, side in zip(assignment.records.values("n"), assignment.sides.tolist(), strict=True):
        by_n.setdefault(n, set()).add(side)
    assert all(len(sides) == 1 for sides in by_n.values())
    assert {side for sides in by_n.values() for side in sides} == {1, 2}


@pytest.mark.parametrize(("side", "held_out"), [("above", [31, 40]), ("below", [1, 29])])
def test_a_cut_keeps_its_value_for_training(side: Any, held_out: list[int], small: Any) -> None:
    repeats(small)
    cut = CutRule(dimension="m", at=30, held_out=side)
    _, assignment = build_split(small.snapshot(), recipe(bucket=None, cut=cut))
    out = assignment.records.numbers("m")[assignment.held_out]
    assert [out.min(), out.max()] == held_out


def test_full_row_duplicates_are_dropped_within_a_set(small: Any) -> None:
    small.add([[1, 1, 0], [1, 1, 1], [1, 2, 2]])
    small.add([[1, 1, 0]], session="session-2")
    _, assignment = build_split(small.snapshot(), recipe(deduplicate="full-row"))
    assert sorted(assignment.sides.tolist())[0] == 0
    assert assignment.membership().unused_records == 1


FAULTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "row in the key": (
        {"key": KeyText(columns=("m", "row"))},
        "split-by-repeat",
        "/key/columns/1",
    ),
    "answer in the hash": (
        {"bucket": bucket(KeyText(columns=("m",)), KeyText(columns=("latency",)))},
        "split-by-repeat",
        "/bucket/parts/1/columns/0",
    ),
    "empty range": (
        {"bucket": bucket(held_out=BucketRange(at_least=0.5, below=0.5))},
        "bad-bucket-range",
        "/bucket/held_out",
    ),
    "range beyond the modulus": (
        {"bucket": bucket(modulus=10, held_out=BucketRange(at_least=0, below=11))},
        "bad-bucket-range",
        "/bucket/held_out",
    ),
    "overlap": (
        {"bucket": bucket(train=BucketRange(at_least=0.4, below=1))},
        "bad-bucket-range",
        "/bucket/train",
    ),
    "unknown key": ({"key": KeyText(columns=("layer",))}, "unknown-key", ""),
    "unknown cut": (
        {"bucket": None, "cut": CutRule(dimension="layer", at=1, held_out="above")},
        "unknown-key",
        "/cut/dimension",
    ),
    "key on two sides": (
        {"key": KeyText(columns=("n",)), "bucket": bucket(KeyText(columns=("m",)))},
        "key-on-two-sides",
        "/key",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_bad_recipe_is_refused(name: str, small: Any) -> None:
    changes, code, pointer = FAULTS[name]
    repeats(small)
    with pytest.raises(InvalidInputError) as caught:
        build_split(small.snapshot(), recipe(**changes))
    assert (caught.value.code, caught.value.pointer or "") == (code, pointer)


def test_a_good_recipe_has_no_faults() -> None:
    assert list(recipe_faults(recipe())) == []


def test_later_evidence_does_not_move_a_split(small: Any) -> None:
    repeats(small)
    digest = small.add([[50, 1, 0], [51, 1, 1]], session="session-3")
    small.retract(f"{digest}#0")
    split, before = build_split(small.snapshot(), recipe())
    assert split.membership.retracted == (f"{digest}#0",)
    small.retract(f"{digest}#1")
    small.add([[60, 1, 0]], session="session-4")
    after = replay_split(small.snapshot(), split, document="split")
    assert after.records.ids() == before.records.ids()
    assert build_split(small.snapshot(), recipe())[0].membership != split.membership


def test_a_split_that_says_otherwise_is_refused(small: Any) -> None:
    repeats(small)
    split, _ = build_split(small.snapshot(), recipe())
    lie = replace(split, membership=replace(split.membership, held_out_digest="0" * 64))
    with pytest.raises(InvalidInputError) as caught:
        replay_split(small.snapshot(), lie, document="evidence/splits/lie.json")
    assert caught.value.code == "split-not-reproduced"
    assert caught.value.document == "evidence/splits/lie.json"


def test_key_texts(small: Any) -> None:
    columns = [
        {"name": "latency", "role": "metric", "statistic": "median", "unit": "ms"},
        *({"name": name, "role": "source"} for name in ("whole", "part", "flag", "text")),
    ]
    small.add([[1, 2.0, 0.5, True, "a|b"]], columns=columns, context={"m": 1})
    records = select_records(small.snapshot(), GEMM)
    names = ("whole", "part", "flag", "text")
    named = KeyText(columns=names, literals=("t",), form="named", separator=";")
    found = assign(recipe(key=named), records).keys
    assert found == ("t;whole=2;part=0.5;flag=true;text=a|b",)
    assert assign(recipe(key=KeyText(columns=names)), records).keys == ("2|0.5|true|a|b",)
