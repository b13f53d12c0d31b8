"""Records as columns: what is selected, in which units, from which statistic."""

import math
from typing import Any

import numpy as np
import pytest

from perfdb_git.calibration.selection import select_records
from perfdb_git.errors import NoEvidenceError, UsageError
from perfdb_git.model.splits import RecordSelection

GEMM = RecordSelection(device="a100_80g", operations=("gemm",))


def selection(**changes: Any) -> RecordSelection:
    return RecordSelection(**{"device": "a100_80g", "operations": ("gemm",), **changes})


def test_typical_value_in_seconds_by_the_providers_preference(small: Any) -> None:
    latency = {"name": "latency", "role": "metric"}
    columns = [
        {"name": "m", "role": "dimension", "unit": "1"},
        {**latency, "statistic": "sample", "unit": "us"},
        {**latency, "statistic": "mean", "unit": "ms"},
        {**latency, "statistic": "median", "unit": "us"},
    ]
    rows = [[1, [5, 1, 3], 9, 9], [2, None, 4, 7], [3, None, 0.3, None], [4, None, None, None]]
    small.add(rows, columns=columns)
    records = select_records(small.snapshot(), GEMM)
    values = records.metric()
    assert values[:3].tolist() == [3 / 10**6, 7 / 10**6, 0.3 / 10**3]
    assert math.isnan(values[3])
    assert np.isnan(records.metric("energy")).all()


def test_columns_by_role(small: Any) -> None:
    columns = [
        {"name": "m", "role": "dimension", "unit": "1"},
        {"name": "latency", "role": "metric", "statistic": "median", "unit": "ms"},
        {"name": "m", "role": "source"},
    ]
    digest = small.add([[None, 1, "one"], [2, 1, "two"]], columns=columns, keys={"dtype": "half"})
    records = select_records(small.snapshot(), GEMM)
    assert records.ids() == [f"{digest}#0", f"{digest}#1"]
    assert records.record_sets == (digest,)
    assert records.sessions() == ["session-1"] * 2
    assert records.upstream("m") == ["one", "two"]
    assert records.upstream("dtype") == ["half", "half"]
    assert records.upstream("n") == [64, 64]
    assert records.upstream("@session") == ["session-1"] * 2
    assert records.upstream("nothing") == [None, None]
    assert records.values("dtype") == ["float16", "float16"]
    np.testing.assert_array_equal(records.numbers("m"), [np.nan, 2])
    np.testing.assert_array_equal(records.numbers("k"), [64, 64])
    with pytest.raises(UsageError) as caught:
        records.numbers("dtype")
    assert caught.value.code == "not-numeric"


def test_terms_and_where_select_rows(small: Any) -> None:
    first = small.add([[1, 1, 0], [2, 1, 1]], keys={"op": "up"})
    small.add([[1, 1, 0]], keys={"op": "down"}, session="session-2")
    small.add([[1, 1, 0]], context={"dtype": "float32"}, session="session-3")
    small.add([[1, 1, 0]], kind="simulated", session="session-4")
    snapshot = small.snapshot()

    def ids(**changes: Any) -> list[str]:
        return select_records(snapshot, selection(**changes)).ids()

    assert len(ids()) == 4
    assert len(ids(kinds=("simulated",))) == 1
    assert len(ids(terms={"dtype": ("float32", "float64")})) == 1
    assert ids(where={"op": ("up",), "m": (2, 3)}) == [f"{first}#1"]
    assert ids(where={"op": ("up",), "row": (0,)}) == [f"{first}#0"]
    for absent in ({"terms": {"layout": ("row",)}}, {"where": {"op": ("sideways",)}}):
        with pytest.raises(NoEvidenceError) as caught:
            ids(**absent)
        assert caught.value.code == "no-records"
    with pytest.raises(UsageError) as refused:
        ids(where={"@name": ("x",)})
    assert refused.value.code == "unknown-fact"


def test_retracted_records_are_left_out_and_named(small: Any) -> None:
    digest = small.add([[1, 1, 0], [2, 1, 1], [3, 1, 2]])
    whole = small.add([[9, 1, 0]], session="session-2")
    small.retract(f"{digest}#1")
    small.retract(whole)
    records = select_records(small.snapshot(), GEMM)
    assert records.ids() == [f"{digest}#0", f"{digest}#2"]
    assert records.retracted == (f"{digest}#1",)
    pinned = select_records(small.snapshot(), GEMM, record_sets=[digest], left_out=[f"{digest}#2"])
    assert pinned.ids() == [f"{digest}#0", f"{digest}#1"]
    with pytest.raises(NoEvidenceError) as caught:
        select_records(small.snapshot(), GEMM, record_sets=[digest, "1" * 64])
    assert caught.value.code == "missing-record-set"


def test_subset_keeps_rows_and_ids_together(small: Any) -> None:
    small.add([[1, 1, 0], [2, 2, 1]])
    small.add([[3, 3, 0]], session="session-2")
    records = select_records(small.snapshot(), GEMM)
    odd = records.subset(records.numbers("m") != 2)
    assert sorted(odd.numbers("m")) == [1, 3]
    assert set(odd.ids()) < set(records.ids())
    np.testing.assert_array_equal(odd.metric() * 1000, odd.numbers("m"))
    assert len(records.subset(np.zeros(3, dtype=bool)).metric()) == 0
