"""What one change does: to records, documents and settings."""

from perfdb_git.review.changes import ChangeReviewer
from tests.review.conftest import A100_GEMM, ASKED, POLICY, ROWS, Changes


def test_records_that_came(changes: Changes) -> None:
    rows = [[m, 10240, 8192, 2.1 * m / 128, 0.021] for m in (256, 512, 1024, 2048)]
    changes.add(rows, session="s2")
    changes.add([[8, 8, 8, 1.0, None]], session="s2", context={"dtype": "float32"})
    changes.commit()
    review = changes.review()
    assert [(item.kind, item.change) for item in review.documents] == [("record-set", "added")] * 2
    (series,) = review.series
    assert (series.kind, series.device, series.operation) == ("measured", "a100_80g", "gemm")
    assert (series.records.known, series.records.added, series.records.record_sets_added) == (
        3,
        5,
        2,
    )
    assert [(dict(c.terms), c.record_sets, c.records) for c in series.contexts] == [
        ({"dtype": "float16"}, 1, 4),
        ({"dtype": "float32"}, 1, 1),
    ]
    assert (series.new_shapes, series.known_shapes) == (3, 2)
    assert series.noise is not None
    assert series.noise.records == 4
    # 0.021 / (2.1 m / 128) for m = 256, 512, 1024, 2048: the middle of 0.0025 and 0.00125.
    assert abs(series.noise.median - 0.001875) < 1e-12
    ranges = {item.name: item for item in series.coverage}
    assert (ranges["m"].minimum, ranges["m"].maximum) == (8, 2048)
    assert (ranges["m"].known_minimum, ranges["m"].known_maximum) == (128, 512)
    assert series.conflict_count == 0


def test_a_conflict_names_both_sessions(changes: Changes) -> None:
    rows = [[128, 10240, 8192, 3.0, 0.02], [256, 10240, 8192, 4.1, 0.02]]
    changes.add(rows, session="slow")
    changes.commit()
    (series,) = changes.review().series
    (conflict,) = series.conflicts
    assert series.conflict_count == 1
    assert dict(conflict.context) == ASKED
    assert (conflict.session, conflict.known_session) == ("slow", "s1")
    assert (conflict.value, conflict.known_value, conflict.unit) == (3e-3, 2e-3, "s")
    assert abs(conflict.disagreement - 0.5) < 1e-12


def test_repeats_of_one_session_are_no_conflict(changes: Changes) -> None:
    changes.add([[128, 10240, 8192, 9.0, 0.02]], session="s1")
    changes.commit()
    assert changes.review().series[0].conflicts == ()


def test_what_was_profiled_can_contradict_what_was_measured(changes: Changes) -> None:
    changes.add([[128, 10240, 8192, 4.0, 0.02]], session="p", kind="profiled")
    changes.commit()
    (series,) = changes.review().series
    assert (series.kind, series.conflict_count, series.known_shapes) == ("profiled", 1, 1)
    assert series.records.known == 0


def test_raw_samples_have_a_spread(changes: Changes) -> None:
    metrics = [("latency", "sample", "us")]
    changes.add([[8, 8, 8, [1.0, 2.0, 3.0]], [9, 8, 8, 5.0]], session="raw", metrics=metrics)
    changes.commit()
    (series,) = changes.review().series
    assert series.noise is not None
    assert (series.noise.records, series.noise.median) == (1, 0.5)


def test_retractions(changes: Changes) -> None:
    changes.retract(f"{changes.first}#1")
    changes.commit()
    review = changes.review()
    (retraction,) = review.retractions
    assert (retraction.target, retraction.is_added) == (f"{changes.first}#1", True)
    assert retraction.reason == "the clock was wrong"
    assert (review.series[0].records.retracted, review.series[0].records.restored) == (1, 0)
    changes.base = changes.git("rev-parse", "HEAD")
    changes.git("rm", "-q", "-r", "evidence/retractions")
    changes.commit()
    review = changes.review()
    assert [item.is_added for item in review.retractions] == [False]
    assert (review.series[0].records.retracted, review.series[0].records.restored) == (0, 1)


def test_settings(changes: Changes) -> None:
    changes.edit(POLICY, (r"threshold: 0.2", "threshold: 0.1"))
    changes.bring_calibration()
    changes.promote()
    changes.commit()
    review = changes.review()
    assert [(item.kind, item.change) for item in review.documents] == [
        ("calibration", "added"),
        ("policy", "changed"),
    ]
    found = {item.place: (item.before, item.after) for item in review.settings}
    assert found.pop("conflict/threshold") == (0.2, 0.1)
    assert list(found) == ["calibrations"]
    changes.base = changes.git("rev-parse", "HEAD")
    changes.edit(POLICY, (A100_GEMM, "a" * 64))
    changes.commit()
    (promoted,) = changes.review().settings
    assert promoted.place == "calibrations/latency gemm a100_80g"
    assert (promoted.before, promoted.after) == (A100_GEMM, "a" * 64)


def test_documents_of_every_kind(changes: Changes) -> None:
    names = {
        "evidence/manifests/1.json": "manifest",
        "evidence/splits/s.json": "split",
        "evidence/calibrations/specs/s.yaml": "calibration-spec",
        "evidence/validations/1.json": "validation",
        "profiles/systems/x.yaml": "system-profile",
        "profiles/x.yaml": "timing-profile",
        "pipelines/p.yaml": "pipeline",
        "pipelines/plans/p.yaml": "plan",
        "schemas/x.v1.schema.json": "schema",
        "evidence/notes.txt": "other",
    }
    for name in [*names, "README.md"]:
        changes.write(name, b"{}\n")
    changes.commit()
    found = {item.path: item.kind for item in changes.review().documents}
    assert found == names


def test_against_the_merge_base(changes: Changes) -> None:
    changes.git("checkout", "-q", "-b", "topic")
    changes.add([[1024, 10240, 8192, 16.0, 0.02]], session="topic")
    topic = changes.commit()
    changes.git("checkout", "-q", "main")
    changes.add([[2048, 10240, 8192, 32.0, 0.02]], session="main")
    main = changes.commit()
    changes.git("checkout", "-q", "topic")
    review = changes.review(base=main, from_merge_base=True)
    assert (review.base, review.head, review.is_merge_base) == (changes.base, topic, True)
    assert [item.change for item in review.documents] == ["added"]
    review = changes.review(base=main)
    assert (review.base, review.is_merge_base) == (main, False)
    assert sorted(item.change for item in review.documents) == ["added", "removed"]


def test_the_base_may_hold_no_evidence(changes: Changes) -> None:
    changes.git("checkout", "-q", "--orphan", "new")
    changes.git("rm", "-r", "-q", "--cached", ".")
    changes.git("commit", "-q", "--allow-empty", "-m", "nothing")
    empty = changes.git("rev-parse", "HEAD")
    changes.commit("all of it")
    review = changes.review(ASKED, base=empty, queries=10)
    assert review.series[0].records.added == len(ROWS)
    assert {change.before.code for change in review.impact.changes} == {"no-vocabulary"}
    (reason,) = review.impact.changes[0].reasons
    assert reason.text == "there was no vocabulary before"


def test_the_same_commits_give_the_same_review(changes: Changes) -> None:
    changes.add([[m, 10240, 8192, 2.0 * m / 100, 0.02] for m in (128, 300, 700)], session="s2")
    changes.commit()
    first = changes.review(queries=30)
    assert first == changes.review(queries=30)
    assert first.impact.asked <= 30


def test_a_change_of_nothing(changes: Changes) -> None:
    changes.write("README.md", b"hello\n")
    changes.commit()
    review = changes.review(ASKED, queries=50)
    assert (review.documents, review.series, review.impact.changes) == ((), (), ())
    assert (review.impact.asked, review.impact.from_plans) == (1, 1)


def test_what_was_touched_is_sampled(changes: Changes) -> None:
    changes.add([[3, 5, 7, 1.0, 0.02]], session="h", context={"device": "h100_80g"})
    changes.commit()
    reviewer = ChangeReviewer(changes.database(), changes.base, "HEAD")
    review = reviewer.review(queries=40)
    assert {change.query["device"] for change in review.impact.changes} == {"h100_80g"}
    assert [series.key.device for series in reviewer.touched()] == ["h100_80g"]
