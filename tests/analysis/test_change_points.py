"""Change points: lasting shifts in both directions are found, noise and other machines are not.

``ci_noise_history.csv`` holds made-up numbers of this project (Apache-2.0): one series that is
noise with its last run on another processor, and one that shifts for good at run 18.
"""

import csv
import random
from pathlib import Path

import pytest

from perfdb_git.analysis.change_points import fewest_values, find_change_points

HISTORY = Path(__file__).with_name("ci_noise_history.csv")


def history(series: str) -> tuple[list[float], list[str]]:
    with HISTORY.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["series"] == series]
    return [float(row["value"]) for row in rows], [row["cpu_model"] for row in rows]


def test_noise_and_a_run_on_another_machine_raise_no_alarm() -> None:
    found = find_change_points(*history("noisy"))
    assert found.changes == ()
    assert found.not_comparable == (24,)


def test_one_lasting_shift_is_found_where_it_happened() -> None:
    values, machines = history("shifted")
    found = find_change_points(values, machines)
    (change,) = found.changes
    assert change.index == 18
    assert 0.07 <= change.relative_change <= 0.11
    assert change.lower is not None
    assert change.upper is not None
    assert 1.07 < change.lower < change.ratio < change.upper < 1.11
    assert found.not_comparable == ()


def test_an_improvement_is_found_too() -> None:
    values, _ = history("shifted")
    (change,) = find_change_points(values[::-1]).changes
    assert change.index == 12
    assert change.relative_change == pytest.approx(-0.08, abs=0.01)
    assert change.before > change.after


def test_up_and_down_again_are_two_changes() -> None:
    draw = random.Random(1)
    levels = [100.0] * 20 + [110.0] * 20 + [97.0] * 20
    found = find_change_points([level * draw.lognormvariate(0, 0.01) for level in levels])
    assert [change.index for change in found.changes] == [20, 40]
    assert [change.relative_change > 0 for change in found.changes] == [True, False]


def test_single_outliers_are_no_change() -> None:
    draw = random.Random(6)
    values = [100 * draw.lognormvariate(0, 0.01) for _ in range(40)]
    values[7], values[30] = 180.0, 20.0
    assert find_change_points(values).changes == ()


def test_a_shift_below_the_threshold_does_not_matter() -> None:
    draw = random.Random(2)
    values = [level * draw.lognormvariate(0, 0.001) for level in [100.0] * 20 + [101.0] * 20]
    assert find_change_points(values).changes == ()
    (change,) = find_change_points(values, threshold=0.005).changes
    assert change.index == 20


def test_each_machine_is_a_series_of_its_own() -> None:
    """Machines that take turns: one is 30 % slower, and no run of either changed."""
    draw = random.Random(3)
    machines = ["a", "b"] * 20
    values = [
        (100 if machine == "a" else 130) * draw.lognormvariate(0, 0.01) for machine in machines
    ]
    assert find_change_points(values, machines).changes == ()
    slower = [
        v * 1.1 if m == "b" and i >= 20 else v
        for i, (v, m) in enumerate(zip(values, machines, strict=True))
    ]
    (change,) = find_change_points(slower, machines).changes
    assert change.index == 21


def test_false_alarms_are_as_rare_as_asked_for() -> None:
    draw = random.Random(12)
    alarms = sum(
        bool(find_change_points([draw.lognormvariate(0, 0.05) for _ in range(24)]).changes)
        for _ in range(150)
    )
    assert alarms <= 5


def test_the_same_series_has_the_same_changes() -> None:
    values, machines = history("shifted")
    assert find_change_points(values, machines) == find_change_points(values, machines)
    assert find_change_points([]).changes == ()
    assert find_change_points([5.0] * 30).changes == ()


def test_values_must_be_positive_and_conditions_as_many() -> None:
    with pytest.raises(ValueError, match="positive"):
        find_change_points([1.0, 0.0])
    with pytest.raises(ValueError, match="conditions"):
        find_change_points([1.0, 2.0], ["a"])


def test_the_fewest_values_are_those_that_a_clear_change_needs() -> None:
    assert [fewest_values(alpha) for alpha in (0.05, 0.01, 0.001)] == [8, 10, 14]
    for count, found in ((9, 0), (10, 1)):
        values = [100.0 + 30 * (place >= count // 2) + place / 10 for place in range(count)]
        assert len(find_change_points(values).changes) == found
