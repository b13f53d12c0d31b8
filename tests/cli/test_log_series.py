"""`perfdb log --series` on real repositories: lasting changes are shown, and noise is not."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import os
import random
import sys
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import pytest

from perfdb_git.cli.main import main
from tests.cli.evidence import ROOT, Evidence, Result, envelope
from tests.comparison.sampled_evidence import SHAPE, add_records, manifest

GEMM = ("operation=gemm", "m=128")
OTHER = (256, 1024, 4096)
HISTORY = ROOT / "tests" / "analysis" / "ci_noise_history.csv"


@pytest.fixture
def repository(new_evidence: Callable[[], Evidence]) -> Evidence:
    return new_evidence()


def levels(*parts: tuple[float, int], seed: int = 7) -> list[float]:
    """Return values in ms around one level after the other, with 1 % of noise."""
    draw = random.Random(seed)
    return [level * draw.lognormvariate(0, 0.01) for level, count in parts for _ in range(count)]


def name_of(number: int) -> str:
    return f"s{number:02}"


def date_of(number: int) -> str:
    return f"2026-03-{number + 1:02}T06:00:00Z"


def add_sessions(
    evidence: Evidence,
    values: Sequence[float],
    *,
    dated: bool = False,
    one_commit: bool = False,
    **options: Any,
) -> None:
    """Commit one session after the other, each with three samples around its value."""
    for number, value in enumerate(values):
        add_records(
            evidence,
            name_of(number),
            [[*SHAPE, [value * 0.998, value, value * 1.003]]],
            measured_at=date_of(number) if dated else None,
            **options,
        )
        if not one_commit:
            evidence.commit(f"nightly {number}")
    if one_commit:
        evidence.commit("all of them")


def logged(evidence: Evidence, *arguments: str) -> Result:
    """Run the command in this process, which saves its start."""
    out, err = io.StringIO(), io.StringIO()
    hook = sys.excepthook
    with (
        mock.patch.dict(os.environ, {"PERFDB_CACHE_DIR": str(evidence.cache)}),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        status = main(["log", "--repo", str(evidence.path), *arguments])
    sys.excepthook = hook
    return Result(status, out.getvalue(), err.getvalue())


def report_of(evidence: Evidence, *arguments: str) -> dict[str, Any]:
    result = logged(evidence, "--series", *arguments, "--json")
    assert result.status == 0, result.err
    found: dict[str, Any] = envelope(result)["data"]
    return found


def only_series(evidence: Evidence, *arguments: str) -> dict[str, Any]:
    (series,) = report_of(evidence, *arguments)["series"]
    assert isinstance(series, dict)
    return series


def test_a_step_up_of_a_latency_is_worse(repository: Evidence) -> None:
    add_sessions(repository, levels((100, 8), (109, 8)))
    report = report_of(repository, *GEMM)
    assert report["commit"] == repository.git("rev-parse", "HEAD")
    assert report["verdicts"] == {"worse": 1, "better": 0, "no-direction": 0}
    (series,) = report["series"]
    assert (series["outcome"], series["order"], series["tied"]) == ("changed", "commit", 0)
    assert [point["session"] for point in series["points"]] == [name_of(i) for i in range(16)]
    (change,) = series["changes"]
    assert (change["index"], change["previous"], change["verdict"]) == (8, 7, "worse")
    assert change["before"] == pytest.approx(0.1, rel=0.02)
    ratio = change["ratio"]
    assert 1.07 < ratio["lower"] < ratio["value"] < ratio["upper"] < 1.11
    first = series["points"][8]
    assert first["commit"] == repository.git("rev-parse", "HEAD~7")
    assert (first["summary"], first["samples"]) == ("nightly 8", 3)
    assert [path.rpartition("/")[2][:4] for path in first["paths"]] == ["s08-"]


def test_text_names_levels_session_commit_and_file(repository: Evidence) -> None:
    add_sessions(repository, levels((100, 8), (109, 8)), dated=True)
    result = repository.perfdb("log", "--series", *GEMM)
    assert (result.status, result.err) == (0, "")
    assert result.out.startswith("1 change in 1 of 1 context: 1 worse\n")
    text = " ".join(result.out.split())
    assert "worse +9." in text
    assert "ms -> 1" in text
    short = repository.git("rev-parse", "HEAD~7")[:12]
    assert f"since session s08, measured 2026-03-09T06:00:00Z, commit {short}: nightly 8" in text
    assert "file evidence/records/a100_80g/gemm/s08-" in text
    assert "until then session s07," in text
    assert "8 before and 8 after, by date" in text


def test_exit_code_is_asked_for_and_for_the_worse_only(repository: Evidence) -> None:
    add_sessions(repository, levels((109, 8), (100, 8)))
    (change,) = only_series(repository, *GEMM)["changes"]
    assert (change["index"], change["verdict"]) == (8, "better")
    assert logged(repository, "--series", *GEMM, "--exit-code").status == 0
    stated = ("--direction", "latency=higher")
    assert logged(repository, "--series", *GEMM, "--exit-code", *stated).status == 1
    assert logged(repository, "--series", *GEMM, *stated).status == 0


def test_the_direction_is_that_of_the_metric(repository: Evidence) -> None:
    values = levels((100, 8), (91, 8))
    add_sessions(repository, values, metrics=[("throughput", "tokens/s", "sample")])
    (change,) = only_series(repository, *GEMM, "--metric", "throughput")["changes"]
    assert change["verdict"] == "worse"
    assert report_of(repository, "--at", "HEAD~15", *GEMM)["outcomes"]["too-few-sessions"] == 1
    assert logged(repository, "--series", *GEMM, "--metric", "latency").status == 4


def test_a_metric_without_a_direction_has_changes_and_no_verdict(repository: Evidence) -> None:
    add_sessions(repository, levels((100, 8), (120, 8)), metrics=[("power", "W", "sample")])
    (change,) = only_series(repository, *GEMM)["changes"]
    assert change["verdict"] == "no-direction"
    result = logged(repository, "--series", *GEMM, "--exit-code")
    assert (result.status, "changed, without a direction" in result.out) == (0, True)


def test_up_and_down_again_are_two_changes(repository: Evidence) -> None:
    add_sessions(repository, levels((100, 12), (110, 12), (97, 12)))
    changes = only_series(repository, *GEMM)["changes"]
    assert [(item["index"], item["verdict"]) for item in changes] == [(12, "worse"), (24, "better")]
    text = logged(repository, "--series", *GEMM, "--limit", "1").out
    assert "12 before and 12 after" in text
    assert "and 1 more; --limit shows more" in text


def test_noise_raises_no_alarm(repository: Evidence) -> None:
    draw = random.Random(11)
    for number in range(24):
        rows = [[m, 1024, 4096, [100 * draw.lognormvariate(0, 0.05)]] for m in range(1, 31)]
        add_records(repository, name_of(number), rows)
        repository.commit(f"nightly {number}")
    report = report_of(repository, "operation=gemm")
    assert report["verdicts"] == {"worse": 0, "better": 0, "no-direction": 0}
    result = logged(repository, "--series", "operation=gemm", "--exit-code")
    assert result.status == 0
    assert result.out.startswith("no change in 30 of 30 contexts\n")


def test_one_session_says_that_it_is_too_few(repository: Evidence) -> None:
    add_sessions(repository, [100.0])
    series = only_series(repository, *GEMM)
    assert (series["outcome"], series["changes"]) == ("too-few-sessions", [])
    text = " ".join(logged(repository, "--series", *GEMM).out.split())
    assert text.startswith("nothing to judge in 1 context ")
    assert "1 context: fewer than 10 sessions under equal conditions" in text
    add_sessions(repository, levels((100, 4), (150, 5)))
    assert only_series(repository, *GEMM)["outcome"] == "too-few-sessions"


def test_by_date_and_by_commit_are_two_orders(repository: Evidence) -> None:
    """Sessions that were measured in one order and committed in another."""
    values = levels((100, 6), (115, 6))
    for number in [*range(0, 12, 2), *range(1, 12, 2)]:
        add_records(
            repository,
            name_of(number),
            [[*SHAPE, [values[number]]]],
            measured_at=date_of(number),
        )
        repository.commit(f"import {number}")
    by_date = only_series(repository, *GEMM)
    assert (by_date["order"], [item["index"] for item in by_date["changes"]]) == ("date", [6])
    assert by_date == only_series(repository, *GEMM, "--by", "date")
    by_commit = only_series(repository, *GEMM, "--by", "commit")
    assert (by_commit["order"], by_commit["changes"]) == ("commit", [])
    sessions = [point["session"] for point in by_commit["points"]]
    assert sessions[:3] == ["s00", "s02", "s04"]
    add_records(repository, "undated", [[*SHAPE, [115.0]]])
    repository.commit("without a time")
    assert only_series(repository, *GEMM)["order"] == "commit"
    assert only_series(repository, *GEMM, "--by", "date")["outcome"] == "no-order"


def test_sessions_of_one_commit_have_no_order_unless_they_have_dates(repository: Evidence) -> None:
    values = levels((100, 8), (109, 8))
    add_sessions(repository, values, one_commit=True)
    assert only_series(repository, *GEMM)["outcome"] == "no-order"
    assert "[no-order]" in logged(repository, "--series", *GEMM).out
    late = levels((109, 3), seed=8)
    for number, value in enumerate(late):
        add_records(repository, f"t{number}", [[*SHAPE, [value]]])
        repository.commit(f"later {number}")
    series = only_series(repository, *GEMM)
    assert (series["order"], series["tied"]) == ("commit", 16)
    text = " ".join(logged(repository, "--series", *GEMM).out.split())
    assert "16 sessions came with the same commit" in text


def test_dates_order_what_one_commit_brought(repository: Evidence) -> None:
    add_sessions(repository, levels((100, 8), (109, 8)), dated=True, one_commit=True)
    for order in ("date", "commit"):
        series = only_series(repository, *GEMM, "--by", order)
        assert [change["index"] for change in series["changes"]] == [8]
        assert series["tied"] == 0


def test_a_merge_brings_what_its_branch_added(repository: Evidence) -> None:
    add_sessions(repository, levels((100, 12)))
    repository.git("checkout", "-q", "-b", "topic")
    add_records(repository, "merged", [[*SHAPE, [100.0]]])
    repository.commit("on the branch")
    repository.git("checkout", "-q", "main")
    repository.commit("meanwhile")
    repository.clock += 60
    repository.git("merge", "-q", "--no-ff", "-m", "Merge topic", "topic")
    points = only_series(repository, *GEMM)["points"]
    assert (points[-1]["session"], points[-1]["summary"]) == ("merged", "Merge topic")


def test_a_shallow_clone_says_what_it_does_not_know(repository: Evidence, tmp_path: Any) -> None:
    add_sessions(repository, levels((100, 8), (109, 8)))
    clone = tmp_path / "shallow"
    repository.git("clone", "-q", "--depth", "5", f"file://{repository.path}", str(clone))
    result = repository.perfdb("log", "--series", *GEMM, "--repo", str(clone), "--json")
    value = envelope(result)
    assert value["messages"][0]["code"] == "shallow-history"
    (series,) = value["data"]["series"]
    assert value["data"]["complete_history"] is False
    commits = [point["commit"] for point in series["points"]]
    assert commits[:12] == [None] * 12
    assert None not in commits[12:]


def test_the_public_history_of_noise_and_of_a_shift(repository: Evidence) -> None:
    """Made-up values of this project: noise with a run on another processor, and one shift."""
    with HISTORY.open(encoding="utf-8", newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: int(row["run"]))
    shapes = {"noisy": SHAPE, "shifted": OTHER}
    for _, run in itertools.groupby(rows, key=lambda row: row["commit"]):
        for row in run:
            add_records(
                repository,
                f"run{int(row['run']):02}",
                [[*shapes[row["series"]], [float(row["value"])]]],
                environment=manifest(processor=row["cpu_model"]),
            )
        repository.commit(row["commit"])
    noisy = only_series(repository, "operation=gemm", "m=128")
    (apart,) = noisy["not_comparable"]
    assert noisy["points"][apart]["session"] == "run24"
    assert noisy["changes"] == []
    assert noisy["conditions"] == [{"processor": f"Example CPU {name}"} for name in "AB"]
    text = " ".join(logged(repository, "--series", *GEMM).out.split())
    assert "session run24 is not comparable in 1 context: processor=Example CPU B" in text
    shifted = only_series(repository, "operation=gemm", "m=256")
    (change,) = shifted["changes"]
    assert (shifted["points"][change["index"]]["session"], change["verdict"]) == ("run18", "worse")
    assert 1.07 <= change["ratio"]["value"] <= 1.11
    (pooled,) = report_of(repository, *GEMM, "--across", "environment")["series"]
    assert pooled["not_comparable"] == []


def test_every_machine_with_too_few_sessions_stands_apart(repository: Evidence) -> None:
    """Eight sessions of another processor, which would be a change point if they were pooled."""
    for number, value in enumerate(levels((100, 12), (130, 8))):
        add_records(
            repository,
            name_of(number),
            [[*SHAPE, [value]]],
            environment=manifest(processor="Example CPU A" if number < 12 else "Example CPU B"),
        )
        repository.commit(f"nightly {number}")
    series = only_series(repository, *GEMM)
    assert (series["outcome"], series["changes"]) == ("no-change", [])
    assert series["not_comparable"] == list(range(12, 20))
    (change,) = only_series(repository, *GEMM, "--across", "environment")["changes"]
    assert change["index"] == 12


def test_a_revision_is_a_series_of_its_own_unless_it_may_change(repository: Evidence) -> None:
    for number, value in enumerate(levels((100, 8), (109, 8))):
        add_records(
            repository,
            name_of(number),
            [[*SHAPE, [value]]],
            context={"implementation_revision": f"1.{number // 8}"},
        )
        repository.commit(f"nightly {number}")
    assert report_of(repository, *GEMM)["outcomes"]["too-few-sessions"] == 2
    across = ("--across", "implementation_revision")
    (change,) = only_series(repository, *GEMM, *across)["changes"]
    assert change["index"] == 8


def test_means_and_medians_are_not_held_against_each_other(repository: Evidence) -> None:
    values = levels((100, 8), (109, 8))
    for number, value in enumerate(values):
        statistic = "median" if number < 8 else "mean"
        add_records(
            repository, name_of(number), [[*SHAPE, value]], metrics=[("latency", "ms", statistic)]
        )
        repository.commit(f"nightly {number}")
    series = only_series(repository, *GEMM)
    assert series["conditions"] == [{"statistic": "median"}, {"statistic": "mean"}]
    assert series["outcome"] == "too-few-sessions"


def test_retracted_sessions_are_not_followed(repository: Evidence) -> None:
    add_sessions(repository, levels((100, 12)))
    slow = add_records(repository, "slow", [[*SHAPE, [500.0]]])
    repository.commit("slow")
    assert len(only_series(repository, *GEMM)["points"]) == 13
    repository.retract(slow)
    repository.commit("it was throttled")
    assert len(only_series(repository, *GEMM)["points"]) == 12


def test_sessions_under_a_lowered_clock_are_flagged(repository: Evidence) -> None:
    metrics = [("latency", "ms", "sample"), ("sm_clock", "MHz", "sample")]
    clocks = {False: [1965.0] * 6, True: [1965.0, 1965.0, 1800.0, 1700.0, 1650.0, 1600.0]}
    for number, value in enumerate(levels((100, 8), (109, 8))):
        samples = [value + place / 100 for place in range(6)]
        add_records(
            repository, name_of(number), [[*SHAPE, samples, clocks[number >= 8]]], metrics=metrics
        )
        repository.commit(f"nightly {number}")
    series = only_series(repository, *GEMM, "--metric", "latency")
    assert [point["throttled"] for point in series["points"]] == [False] * 8 + [True] * 8
    text = logged(repository, "--series", *GEMM, "--metric", "latency").out
    assert "flagged      8 sessions under a lowered clock" in text


def test_zero_stands_in_no_ratio(repository: Evidence) -> None:
    add_sessions(repository, [0.0, *levels((100, 12))])
    assert only_series(repository, *GEMM)["outcome"] == "zero-value"


def test_one_clear_change_among_many_stands_and_a_doubtful_one_does_not(
    repository: Evidence,
) -> None:
    """Ten sessions reach p = 0.008 at best: enough for one context, not for thirty."""
    steps = levels((100, 5), (120, 5))
    for number, value in enumerate(steps):
        rows = [[*SHAPE, [value]]]
        rows += [[m, 1024, 4096, [100.0 + (number * m) % 7]] for m in range(200, 229)]
        add_records(repository, name_of(number), rows)
        repository.commit(f"nightly {number}")
    assert only_series(repository, *GEMM)["outcome"] == "changed"
    report = report_of(repository, "operation=gemm")
    assert report["outcomes"]["not-significant-among-many"] == 1
    assert report["outcomes"]["no-change"] == 29
    assert report["verdicts"]["worse"] == 0


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (("--series", "colour=red"), 2, "unknown-dimension"),
        (("--series", *GEMM, "--across", "colour"), 2, "unknown-dimension"),
        (("--series", *GEMM, "--threshold", "150%"), 2, "bad-share"),
        (("--series", *GEMM, "--direction", "latency"), 2, "bad-direction"),
        (("--series", *GEMM, "--sources"), 2, "conflicting-options"),
        (("--series", *GEMM, "--provider", "recorded"), 2, "conflicting-options"),
        (("--series", *GEMM, "--policy", "default"), 2, "conflicting-options"),
        ((*GEMM, "--by", "date"), 2, "conflicting-options"),
        ((*GEMM, "--exit-code"), 2, "conflicting-options"),
        (("--series", *GEMM, "--at", "nowhere"), 5, "unknown-revision"),
        (("--series", "operation=gemm", "m=4"), 4, "nothing-selected"),
    ],
)
def test_errors(evidence: Evidence, arguments: tuple[str, ...], status: int, code: str) -> None:
    result = logged(evidence, *arguments, "--json")
    assert (result.status, envelope(result)["messages"][0]["code"]) == (status, code)
