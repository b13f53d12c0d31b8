"""Rows found by their coordinates, against a comparison of every row with every question."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perfdb_git.analysis.coordinate_join import CoordinateJoin

VALUES = st.sampled_from([0.0, 1.0, 2.0, 3.5, 8.0, 1e6, 2.0**21, 1e300])


@given(
    width=st.integers(0, 4),
    rows=st.integers(0, 30),
    questions=st.integers(0, 30),
    data=st.data(),
)
def test_cells_hold_exactly_the_rows_with_equal_coordinates(
    width: int, rows: int, questions: int, data: st.DataObject
) -> None:
    known = [
        np.array(data.draw(st.lists(VALUES, min_size=rows, max_size=rows))) for _ in range(width)
    ]
    asked = [
        np.array(data.draw(st.lists(VALUES, min_size=questions, max_size=questions)))
        for _ in range(width)
    ]
    join = CoordinateJoin(known, rows)
    cells = join.cells(asked, questions)
    for question in range(questions):
        equal = [
            row
            for row in range(rows)
            if all(
                column[row] == values[question] for column, values in zip(known, asked, strict=True)
            )
        ]
        cell = int(cells[question])
        found = [] if cell < 0 else join.order[join.starts[cell] : join.starts[cell + 1]].tolist()
        assert found == equal
    assert sorted(join.order.tolist()) == list(range(rows))


def test_coordinates_too_many_to_number_are_still_told_apart() -> None:
    draws = np.random.default_rng(0)
    columns = [np.round(draws.uniform(0, 2**40, 4000)) for _ in range(6)]
    join = CoordinateJoin(columns, 4000)
    assert join.cells(columns, 4000)[join.order].tolist() == list(range(4000))
    moved = [columns[0] + 1, *columns[1:]]
    assert (join.cells(moved, 4000) == -1).all()
