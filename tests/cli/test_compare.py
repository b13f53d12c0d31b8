"""`perfdb compare`: verdicts, gates and refusals, by the command itself on real repositories."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from perfdb_git.cli.main import main
from tests.cli.evidence import Evidence, Result, envelope
from tests.comparison.sampled_evidence import BASE, SHAPE, SLOWER, add_records, manifest

FAR = [value * 1.5 for value in BASE]


@pytest.fixture
def repository(new_evidence: Callable[[], Evidence]) -> Evidence:
    return new_evidence()


def two_sets(
    evidence: Evidence, base: list[Any], new: list[Any], **options: Any
) -> tuple[str, str]:
    """Commit two sessions of one context and return their ids."""
    ids = (
        add_records(evidence, "old", [[*SHAPE, *base]], **options),
        add_records(evidence, "new", [[*SHAPE, *new]], **options),
    )
    evidence.commit("both")
    return ids


def data(result: Result) -> dict[str, Any]:
    value: dict[str, Any] = envelope(result)["data"]
    return value


def compared(evidence: Evidence, *arguments: str) -> Result:
    """Run the command in this process, which saves its start."""
    out, err = io.StringIO(), io.StringIO()
    hook = sys.excepthook
    with (
        mock.patch.dict(os.environ, {"PERFDB_CACHE_DIR": str(evidence.cache)}),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        status = main(["compare", "--repo", str(evidence.path), *arguments])
    sys.excepthook = hook
    return Result(status, out.getvalue(), err.getvalue())


def only_pair(evidence: Evidence, *arguments: str) -> dict[str, Any]:
    found = data(compared(evidence, *arguments, "--json"))
    (pair,) = found["pairs"]
    assert isinstance(pair, dict)
    return pair


def test_a_slower_record_is_worse_and_only_the_gate_fails(repository: Evidence) -> None:
    old, new = two_sets(repository, [BASE], [SLOWER])
    sides = (f"{old[:8]}#0", f"{new[:8]}#0")
    result = repository.perfdb("compare", *sides)
    assert (result.status, result.err) == (0, "")
    assert result.out.startswith("1 worse, 0 better, 0 same, 0 cannot tell\n")
    (row,) = [line for line in result.out.splitlines() if line.startswith("worse")]
    assert " ".join(row.split()) == (
        "worse +2.99 % [+2.59, +3.31 %] 0.0022 100.0 ms 103.0 ms latency"
    )
    assert repository.perfdb("compare", *sides, "--fail-on", "worse").status == 1
    lax = repository.perfdb("compare", *sides, "--fail-on", "worse:5%")
    assert lax.status == 0
    assert "holds: 0 contexts worse by more than 0.05" in lax.out
    value = envelope(repository.perfdb("compare", *sides, "--fail-on", "worse", "--json"))
    assert value["status"] == "findings"
    assert value["data"]["gate"] == {"verdict": "worse", "threshold": 0.02, "failed": 1}
    pair = value["data"]["pairs"][0]
    assert pair["p_value"] == pytest.approx(2 / 924)
    assert pair["ratio"]["value"] == pytest.approx(1.0299401491)
    assert pair["ratio"]["lower"] == pytest.approx(1.0259222333)
    assert pair["ratio"]["level"] == pytest.approx(0.9588744589)
    assert (pair["method"], pair["sample_unit"]) == ("mann-whitney-exact", "sample")
    assert pair["new"]["record_ids"] == [f"{new}#0"]
    other = only_pair(repository, *reversed(sides))
    assert other["verdict"] == "better"
    assert repository.perfdb("compare", *reversed(sides), "--fail-on", "worse").status == 0


def test_the_threshold_decides_what_is_the_same(repository: Evidence) -> None:
    old, new = two_sets(repository, [BASE], [SLOWER])
    for threshold, verdict, code in (
        ("5%", "same", "within-threshold"),
        ("0.03", "cannot-tell", "interval-across-threshold"),
        ("2%", "worse", "beyond-threshold"),
    ):
        pair = only_pair(repository, old, new, "--threshold", threshold)
        assert (pair["verdict"], pair["code"]) == (verdict, code)


def test_less_throughput_is_worse_and_the_same_as_more_time(repository: Evidence) -> None:
    rates = [100.0, 100.4, 99.6, 100.2, 99.8, 100.1]
    lower = [80.0, 80.4, 79.6, 80.2, 79.8, 80.1]
    metrics = [("throughput", "tokens/s", "sample"), ("latency", "s", "sample")]
    times = [[128 / value for value in side] for side in (rates, lower)]
    old, new = two_sets(repository, [rates, times[0]], [lower, times[1]], metrics=metrics)
    pairs = {
        pair["metric"]: pair
        for pair in data(repository.perfdb("compare", old, new, "--json"))["pairs"]
    }
    assert pairs["throughput"]["direction"] == "higher"
    assert pairs["throughput"]["ratio"]["value"] == pytest.approx(0.8, rel=1e-3)
    assert pairs["latency"]["ratio"]["value"] == pytest.approx(1.25, rel=1e-3)
    for bound in ("value", "lower", "upper"):
        seen = [pairs[metric]["cost_ratio"][bound] for metric in ("throughput", "latency")]
        assert seen[0] == pytest.approx(seen[1], rel=1e-12)
    assert {pair["verdict"] for pair in pairs.values()} == {"worse"}
    only = data(repository.perfdb("compare", old, new, "--metric", "throughput", "--json"))
    assert [pair["metric"] for pair in only["pairs"]] == ["throughput"]


def test_another_unit_is_no_speed_up_and_one_sample_is_no_proof(repository: Evidence) -> None:
    old = add_records(repository, "old", [[*SHAPE, [990.0]]], metrics=[("latency", "ns", "sample")])
    new = add_records(repository, "new", [[*SHAPE, [1.1]]], metrics=[("latency", "us", "sample")])
    repository.commit("both")
    pair = only_pair(repository, old, new)
    assert pair["ratio"]["value"] == pytest.approx(1.111111, rel=1e-6)
    assert (pair["base"]["value"], pair["new"]["value"]) == pytest.approx((9.9e-7, 1.1e-6))
    assert (pair["verdict"], pair["code"]) == ("cannot-tell", "too-few-samples")
    assert (pair["p_value"], pair["ratio"]["lower"], pair["base"]["interval"]) == (None,) * 3
    assert "1 sample a side has no spread" in repository.perfdb("compare", old, new).out


def test_three_samples_a_side_cannot_tell(repository: Evidence) -> None:
    old, new = two_sets(repository, [BASE[:3]], [FAR[:3]])
    pair = only_pair(repository, old, new)
    assert (pair["verdict"], pair["code"]) == ("cannot-tell", "too-few-samples")


def test_a_metric_without_a_direction_is_not_judged(repository: Evidence) -> None:
    old, new = two_sets(repository, [BASE], [SLOWER], metrics=[("power", "W", "sample")])
    pair = only_pair(repository, old, new)
    assert (pair["verdict"], pair["code"]) == ("cannot-tell", "unknown-direction")
    assert pair["cost_ratio"] is None
    assert repository.perfdb("compare", old, new, "--fail-on", "worse").status == 0
    stated = only_pair(repository, old, new, "--direction", "power=lower")
    assert stated["verdict"] == "worse"
    assert only_pair(repository, old, new, "--direction", "power=higher")["verdict"] == "better"


def test_a_branch_is_compared_by_what_it_adds(repository: Evidence) -> None:
    other_shape = (256, 1024, 4096)
    third_shape = (512, 1024, 4096)
    add_records(repository, "old", [[*SHAPE, BASE], [*other_shape, BASE]])
    repository.commit("base")
    repository.git("checkout", "--quiet", "-b", "topic")
    empty = repository.perfdb("compare", "main..topic", "--fail-on", "worse")
    assert (empty.status, "side B has no records" in empty.err) == (0, True)
    new = add_records(repository, "new", [[*SHAPE, SLOWER], [*third_shape, SLOWER]])
    repository.commit("measured again")
    result = repository.perfdb("compare", "main..topic", "--fail-on", "worse", "--json")
    assert result.status == 1
    found = data(result)
    (pair,) = found["pairs"]
    assert (pair["context"]["m"], pair["verdict"]) == (128, "worse")
    assert found["base"]["commit"] == repository.git("rev-parse", "main")
    assert found["new"] == {
        "text": "topic",
        "commit": repository.git("rev-parse", "topic"),
        "records": 2,
    }
    # What the branch does not measure again is not missing from it.
    (alone,) = found["unmatched"]
    assert (alone["side"], alone["context"]["m"]) == ("B", 512)
    assert repository.perfdb("compare", "main..topic", "--at", "main").status == 2
    repository.retract(f"{new}#0")
    repository.commit("the slow record was wrong")
    gone = repository.perfdb("compare", "main..topic", "--fail-on", "worse")
    assert gone.status == 4
    assert "no context is on both sides" in gone.err


def test_a_record_that_the_branch_retracts_is_no_base(repository: Evidence) -> None:
    wrong = add_records(repository, "wrong", [[*SHAPE, FAR]])
    repository.commit("base")
    repository.git("checkout", "--quiet", "-b", "topic")
    repository.retract(wrong)
    add_records(repository, "new", [[*SHAPE, BASE]])
    repository.commit("retract and measure again")
    assert repository.perfdb("compare", "main..topic").status == 4


def test_selections_differ_in_what_they_say(repository: Evidence) -> None:
    add_records(repository, "a", [[*SHAPE, BASE]], context={"runtime": "vllm"})
    add_records(repository, "b", [[*SHAPE, FAR]], context={"runtime": "sglang"})
    add_records(
        repository,
        "c",
        [[*SHAPE, SLOWER]],
        context={"device": "h100_80g", "runtime": "vllm"},
        environment=manifest(device="h100_80g", driver="570"),
    )
    repository.commit("three")
    pair = only_pair(repository, "runtime=vllm,device=a100", "runtime=sglang,device=a100")
    assert pair["verdict"] == "worse"
    assert pair["base"]["across"] == {"runtime": ["vllm"]}
    assert pair["context"]["device"] == "a100_80g"
    # Another device is another machine: its manifest need not be equal.
    devices = repository.perfdb(
        "compare", "device=a100", "device=h100", "--where", "runtime=vllm", "--json"
    )
    (pair,) = data(devices)["pairs"]
    assert (pair["verdict"], data(devices)["across"]) == ("worse", ["device"])
    named = only_pair(repository, "session=a", "session=b", "--across", "runtime")
    assert named["new"]["value"] == pytest.approx(0.150075)


def test_other_machines_are_never_compared_silently(repository: Evidence) -> None:
    cpus = [manifest(processor=f"Example CPU {name}") for name in "AB"]
    for session, samples, cpu in (("old", BASE, cpus[0]), ("new", FAR, cpus[1])):
        add_records(repository, session, [[*SHAPE, samples]], environment=cpu)
    repository.commit("two machines")
    result = repository.perfdb("compare", "session=old", "session=new", "--fail-on", "worse")
    assert result.status == 4
    assert "--across environment would compare 1 context more" in result.out
    pair = only_pair(repository, "session=old", "session=new", "--across", "environment")
    assert pair["verdict"] == "worse"


def test_a_differing_dimension_is_named(repository: Evidence) -> None:
    add_records(repository, "old", [[*SHAPE, BASE]], context={"implementation_revision": "1.0"})
    add_records(repository, "new", [[*SHAPE, SLOWER]], context={"implementation_revision": "1.1"})
    repository.commit("two revisions")
    sides = ("session=old", "session=new")
    result = repository.perfdb("compare", *sides)
    assert result.status == 4
    assert "--across implementation_revision would compare 1 context more" in result.out
    pair = only_pair(repository, *sides, "--across", "implementation_revision")
    assert (pair["verdict"], pair["new"]["across"]) == (
        "worse",
        {"implementation_revision": ["1.1"]},
    )


def test_sessions_are_the_unit_where_there_are_several(repository: Evidence) -> None:
    for name, samples in (("a1", BASE), ("a2", BASE), ("b1", SLOWER), ("b2", SLOWER)):
        revision = {"implementation_revision": name[0]}
        add_records(repository, name, [[*SHAPE, samples]], context=revision)
    repository.commit("two sessions a side")
    sides = ("implementation_revision=a", "implementation_revision=b")
    pair = only_pair(repository, *sides)
    assert (pair["sample_unit"], pair["code"]) == ("session", "too-few-samples")
    assert (pair["base"]["sessions"], pair["base"]["samples"]) == (2, 12)
    forced = only_pair(repository, *sides, "--unit", "sample")
    assert forced["verdict"] == "worse"
    assert "samples of several sessions are taken as independent, as asked for" in forced["notes"]
    for number in range(3, 7):
        for name, factor in (("a", 1.0), ("b", 1.1)):
            samples = [value * (factor + number / 1000) for value in BASE]
            add_records(
                repository,
                f"{name}{number}",
                [[*SHAPE, samples]],
                context={"implementation_revision": name},
            )
    repository.commit("six sessions a side")
    assert only_pair(repository, *sides)["sample_unit"] == "session"
    assert only_pair(repository, *sides)["verdict"] == "worse"


def test_summaries_are_judged_as_such(repository: Evidence) -> None:
    metrics = [("latency", "ms", "median"), ("latency", "ms", "std"), ("latency", "1", "count")]
    old, new = two_sets(repository, [100.0, 1.0, 20], [110.0, 1.0, 20], metrics=metrics)
    pair = only_pair(repository, old, new)
    assert (pair["verdict"], pair["method"]) == ("worse", "welch-on-logs")
    assert pair["sample_unit"] == "summary"
    assert any(note.startswith("summary only") for note in pair["notes"])
    assert (pair["base"]["samples"], pair["base"]["interval"]) == (0, None)
    close = add_records(repository, "close", [[*SHAPE, 100.4, 1.0, 20]], metrics=metrics)
    lone = add_records(
        repository, "lone", [[*SHAPE, 150.0]], metrics=metrics[:1], protocol={"repetitions": None}
    )
    mean = add_records(
        repository,
        "mean",
        [[*SHAPE, 150.0, 1.0, 20]],
        metrics=[("latency", "ms", "mean"), *metrics[1:]],
    )
    repository.commit("more")
    assert only_pair(repository, old, close)["verdict"] == "same"
    assert only_pair(repository, old, lone)["code"] == "no-spread"
    assert only_pair(repository, old, mean)["code"] == "different-statistics"
    assert only_pair(repository, old, new, "--unit", "sample")["code"] == "no-samples"


def test_many_tests_are_corrected_for(repository: Evidence) -> None:
    shapes = [(m, 1024, 4096) for m in range(1, 31)]
    old = add_records(repository, "old", [[*shape, BASE] for shape in shapes])
    new = add_records(repository, "new", [[*shape, SLOWER] for shape in shapes])
    repository.commit("thirty")
    found = data(repository.perfdb("compare", old, new, "--json"))
    assert found["verdicts"] == {"worse": 0, "better": 0, "cannot-tell": 30, "same": 0}
    assert {pair["code"] for pair in found["pairs"]} == {"not-significant-among-many"}
    assert found["pairs"][0]["adjusted_p_value"] == pytest.approx(30 * 2 / 924)
    one = only_pair(repository, old, new, "--where", "m=7")
    assert one["verdict"] == "worse"
    shown = repository.perfdb("compare", old, new, "--limit", "2").out
    assert "and 28 more; --limit shows more" in shown
    assert "latency: geometric mean 1.03 over the 30 contexts of both sides" in shown


def test_odd_samples_are_flagged_and_kept(repository: Evidence) -> None:
    cold = [150.0, *BASE]
    old, new = two_sets(repository, [cold], [SLOWER])
    pair = only_pair(repository, old, new)
    assert pair["base"]["samples"] == 7
    assert pair["base"]["flags"] == ["only the first sample is an outlier: was there a warm-up?"]
    assert "A: only the first sample is an outlier" in repository.perfdb("compare", old, new).out


def test_samples_under_a_lowered_clock_do_not_stand_for_the_usual_one(
    repository: Evidence,
) -> None:
    metrics = [("latency", "ms", "sample"), ("sm_clock", "MHz", "sample")]
    steady, fallen = [1965.0] * 6, [1965.0, 1965.0, 1800.0, 1700.0, 1650.0, 1600.0]
    old, new = two_sets(repository, [BASE, steady], [FAR, fallen], metrics=metrics)
    sides = (old, new, "--metric", "latency")
    pair = only_pair(repository, *sides)
    assert (pair["verdict"], pair["code"]) == ("cannot-tell", "throttled")
    assert pair["new"]["flags"][0].startswith("throttled from sample 2 on: clock")
    assert only_pair(repository, *sides, "--accept-throttled")["verdict"] == "worse"


V4 = [[10.0, 10.1, 10.2], [10.6, 10.5, 10.7], [9.8, 9.9, 10.0], [10.3, 10.4, 10.2]]


def test_samples_of_processes_have_a_mean_over_processes(repository: Evidence) -> None:
    """Vector V4: an interval over all twelve values would be 45 % as wide."""
    old = add_records(repository, "old", [[*SHAPE, run] for run in V4])
    slower = [[value * 1.5 for value in run] for run in V4]
    new = add_records(repository, "new", [[*SHAPE, run] for run in slower])
    repository.commit("processes")
    pair = only_pair(repository, old, new)
    assert pair["sample_unit"] == "record"
    levels = pair["base"]["levels"]
    assert levels["mean"] == pytest.approx(10.225e-3)
    assert levels["interval"]["rule"] == "student-t-over-run-means"
    assert levels["interval"]["sample_count"] == 4
    assert levels["interval"]["lower"] == pytest.approx(9.749848226e-3)
    assert levels["interval"]["upper"] == pytest.approx(10.700151774e-3)
    assert levels["within_variance"] == pytest.approx(0.01e-6)
    assert levels["between_variance"] == pytest.approx(0.0858333333e-6)
    assert pair["new"]["levels"]["mean"] == pytest.approx(15.3375e-3)
    text = " ".join(compared(repository, old, new).out.split())
    assert "A: mean 10.22 ms, 95% [9.750, 10.70] ms over 4 records" in text
    assert "spread between them 2.87%, within them 0.98%" in text
    markdown = compared(repository, old, new, "--format", "markdown").out
    assert "A levels: `latency: mean 10.22 ms" in markdown


def test_one_level_has_no_mean_over_another(repository: Evidence) -> None:
    old, new = two_sets(repository, [BASE], [SLOWER])
    assert only_pair(repository, old, new)["base"]["levels"] is None


def test_whole_processes_are_resampled_where_that_is_asked_for(repository: Evidence) -> None:
    runs = [[100.0 + run, 100.5 + run, 101.0 + run] for run in range(12)]
    old = add_records(repository, "old", [[*SHAPE, run] for run in runs])
    new = add_records(repository, "new", [[*SHAPE, run] for run in runs[:9]])
    repository.commit("processes")
    assert only_pair(repository, old, new)["base"]["bootstrap"] is None
    found = data(compared(repository, old, new, "--bootstrap", "7", "--json"))
    (pair,) = found["pairs"]
    drawn = pair["base"]["bootstrap"]
    assert found["bootstrap_seed"] == 7
    assert (drawn["rule"], drawn["sample_count"]) == ("percentile-bootstrap", 12)
    assert 0.1 < drawn["lower"] < 0.106 < drawn["upper"] < 0.112
    again = only_pair(repository, old, new, "--bootstrap", "7")
    assert again["base"]["bootstrap"] == drawn
    # Nine are too few: their resamples are too alike.
    assert pair["new"]["bootstrap"] is None
    text = " ".join(compared(repository, old, new, "--bootstrap", "7").out.split())
    assert "by resampling whole records" in text


def test_processes_in_two_modes_are_flagged(repository: Evidence) -> None:
    centers = [40.19, 40.34, 84.94, 40.12, 84.95, 39.77, 40.21, 84.42]
    runs = [[center - 0.1, center, center + 0.1] for center in centers]
    old = add_records(repository, "old", [[*SHAPE, run] for run in runs])
    new = add_records(repository, "new", [[*SHAPE, run] for run in runs[:2] * 3])
    repository.commit("processes")
    pair = only_pair(repository, old, new)
    assert pair["sample_unit"] == "record"
    assert pair["base"]["flags"] == [
        "8 records of one context disagree by 114%",
        "two modes: 5 records around 0.04019 s, 3 around 0.08494 s",
    ]
    assert pair["verdict"] == "cannot-tell"


def test_zero_stands_in_no_ratio(repository: Evidence) -> None:
    old, new = two_sets(repository, [[0.0] * 6], [BASE])
    pair = only_pair(repository, old, new)
    assert (pair["verdict"], pair["code"], pair["ratio"]) == ("cannot-tell", "zero-value", None)


def test_a_coarse_timer_widens_the_interval(repository: Evidence) -> None:
    protocol = {"timer_resolution": {"value": 2, "unit": "ms"}}
    old, new = two_sets(repository, [BASE], [SLOWER], protocol=protocol)
    pair = only_pair(repository, old, new)
    assert pair["ratio"]["lower"] == pytest.approx(1.0259222333 / 1.0197, rel=1e-3)
    assert pair["code"] == "interval-across-threshold"


def test_protocols_that_differ_are_shown(repository: Evidence) -> None:
    old = add_records(repository, "old", [[*SHAPE, BASE]], protocol={"warmup": 0})
    new = add_records(repository, "new", [[*SHAPE, SLOWER]])
    repository.commit("both")
    assert "protocol differs, warmup: A 0; B 1" in only_pair(repository, old, new)["notes"]


def test_markdown_keeps_evidence_text_in_code(repository: Evidence) -> None:
    for session, samples, name in (("old", BASE, "a|b `@team`"), ("new", SLOWER, "<script>")):
        add_records(repository, session, [[*SHAPE, samples]], context={"implementation": name})
    repository.commit("hostile names")
    result = repository.perfdb(
        "compare",
        "session=old",
        "session=new",
        "--across",
        "implementation",
        "--format",
        "markdown",
        "--fail-on",
        "worse",
    )
    assert result.status == 1
    assert result.out.startswith("### 1 worse, 0 better, 0 same, 0 cannot tell\n")
    assert "| verdict | change | interval | p (Holm) | A | B | context |" in result.out
    assert "| worse | +2.99 % | [+2.59, +3.31 %] | 0.0022 |" in result.out
    (a_side,) = [line for line in result.out.splitlines() if line.startswith("- A: ")]
    assert a_side.startswith("- A: ``session=old at ")
    assert "fails: 1 context worse by more than 0.02" in result.out


def test_uncommitted_files_can_be_compared(repository: Evidence) -> None:
    old = add_records(repository, "old", [[*SHAPE, BASE]])
    repository.commit("one")
    new = add_records(repository, "new", [[*SHAPE, SLOWER]])
    assert repository.perfdb("compare", old, new).status == 2
    found = data(repository.perfdb("compare", old, new, "--worktree", "--json"))
    assert (found["base"]["commit"], found["verdicts"]["worse"]) == (None, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("device=a100",), "two sides are compared"),
        (("a", "b", "c"), "two sides are compared"),
        (("main...topic",), "is no range of commits"),
        (("..topic",), "is no range of commits"),
        (("zzzz", "device=a100"), "names no records"),
        (("device=a100", "device=b9999"), "unknown device"),
        (("kind=guessed", "kind=measured"), "is no kind of record"),
        (("device=a100", "device=h100", "--across", "colour"), "unknown dimension"),
        (("device=a100", "device=h100", "--threshold", "150%"), "is no share"),
        (("device=a100", "device=h100", "--fail-on", "better"), "is no gate"),
        (("device=a100", "device=h100", "--fail-on", "worse:x"), "is no share"),
        (("device=a100", "device=h100", "--direction", "latency"), "is no direction"),
        (("0123abcd#99", "device=a100"), "no record set"),
        (("device=a100", "dtype=fp16,session=one"), "2 records are on both sides"),
    ],
)
def test_wrong_usage(evidence: Evidence, arguments: tuple[str, ...], message: str) -> None:
    result = compared(evidence, *arguments)
    assert result.status == 2
    assert message in result.err
