"""Work on Dask workers: in order, the same as here, and to the end though a worker is lost."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perfdb_git.analysis.tree_boosting import TreeSettings
from perfdb_git.calibration.tree_intervals import fit_slice_with_interval
from perfdb_git.distribution import cluster as cluster_module
from perfdb_git.distribution.worker_facts import facts_here
from perfdb_git.errors import (
    ClusterUnavailableError,
    InvalidInputError,
    InvalidRowsError,
    MissingExtraError,
    PerfdbError,
)
from tests.calibration.test_fitting_trees import RECIPE, SMALL, rows
from tests.cli.evidence import ROOT, Evidence, envelope, make_evidence
from tests.distribution.dask_processes import DaskProcesses, dask_processes, slow_square

pytest.importorskip("distributed")

from perfdb_git.distribution.cluster import Cluster, ClusterChoice, open_cluster

QUICK = TreeSettings(rounds=20, depth=4, learning_rate=0.2)
SWEEP = (
    "simulate", "submit-nic-gpu", "--profile", "cnuas-analytic-v0", "--json",
    "--sweep", "guest-cpu-icount-shift0.instruction_rate_mips=1000,2000,3000",
)  # fmt: skip


@pytest.fixture(scope="module")
def cluster(processes: DaskProcesses) -> Iterator[Cluster]:
    with open_cluster(ClusterChoice(address=processes.address)) as opened:
        yield opened


@pytest.fixture
def pipelines(tmp_path: Path) -> Evidence:
    made = make_evidence(tmp_path / "evidence", tmp_path / "cache")
    for path in ("profiles/cnuas-analytic-v0.json", "pipelines/submit-nic-gpu.json"):
        made.write(path, (ROOT / path).read_bytes())
    made.commit("profile and pipeline")
    return made


def fail(number: int) -> int:
    if number == 2:
        raise InvalidInputError("is wrong", code="wrong", document="two.json", line=3)
    return number


def test_results_come_in_order_from_both_workers(cluster: Cluster) -> None:
    found = list(cluster.map(slow_square, range(30)))
    assert [square for square, _ in found] == [number**2 for number in range(30)]
    assert len({process for _, process in found}) == 2


def test_what_waits_is_bounded(cluster: Cluster) -> None:
    """A stream of a million items is never all in memory."""
    numbers = itertools.count()
    results = cluster.map(slow_square, numbers)
    assert [next(results)[0] for _ in range(3)] == [0, 1, 4]
    assert next(numbers) < 20
    results.close()  # type: ignore[attr-defined]


def test_an_error_of_the_work_comes_back_as_it_was(cluster: Cluster) -> None:
    results = cluster.map(fail, range(4))
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(InvalidInputError) as raised:
        next(results)
    assert (raised.value.code, raised.value.document, raised.value.line) == ("wrong", "two.json", 3)
    assert str(raised.value) == "two.json:3: is wrong"


def test_cross_validation_gives_the_same_bits(cluster: Cluster) -> None:
    columns, latency = rows(600, noise=0.05)
    quick = replace(RECIPE, settings=QUICK, fold_settings=QUICK)
    here, there = (
        fit_slice_with_interval(quick, columns, latency, SMALL, line_by=("n", "k"), spread=spread)
        for spread in (map, cluster.map)
    )
    assert np.array_equal(here.row_errors, there.row_errors)
    for ours, theirs in zip(here.predict(columns), there.predict(columns), strict=True):
        assert ours.tobytes() == theirs.tobytes()


def test_a_sweep_prints_the_same(processes: DaskProcesses, pipelines: Evidence) -> None:
    here = pipelines.perfdb(*SWEEP)
    there = pipelines.perfdb(*SWEEP, "--dask", processes.address)
    own = pipelines.perfdb(*SWEEP, "--workers", "2")
    assert (here.status, here.err) == (0, "")
    assert here == there == own


def test_other_versions_are_refused(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = replace(facts_here(), numpy="1.0")
    monkeypatch.setattr(cluster_module, "facts_here", lambda: ours)
    with pytest.raises(ClusterUnavailableError, match=r"a worker has numpy .*, and this") as raised:
        list(cluster.map(slow_square, [1]))
    assert raised.value.code == "worker-versions"


def test_other_instructions_are_told(
    processes: DaskProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_cluster(ClusterChoice(address=processes.address)) as opened:
        assert list(opened.map(fail, [1])) == [1]
        assert opened.messages == ()
        ours = replace(facts_here(), instructions="abacus")
        monkeypatch.setattr(cluster_module, "facts_here", lambda: ours)
        assert list(opened.map(fail, [1])) == [1]
        assert [message.code for message in opened.messages] == ["worker-instructions"]


def test_a_lost_worker_is_survived_and_the_loss_of_all_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dask_processes(tmp_path) as started:
        lost, kept = started.add_worker("lost"), started.add_worker("kept")
        with open_cluster(ClusterChoice(address=started.address)) as opened:
            results = opened.map(slow_square, range(40))
            found = [next(results)]
            while len({process for _, process in found}) < 2:
                found.append(next(results))
            assert len(found) < 20
            lost.kill()
            found += results
            assert [square for square, _ in found] == [number**2 for number in range(40)]
            assert found[-1][1] == kept.pid

            monkeypatch.setattr(cluster_module, "_PATIENCE_S", 0.5)
            results = opened.map(slow_square, range(40))
            next(results)
            kept.kill()
            with pytest.raises(ClusterUnavailableError, match="no worker is left"):
                list(results)


@pytest.mark.parametrize(
    ("command", "address"),
    [
        (SWEEP, "tcp://someone:secret@127.0.0.1:1"),
        (("calibrate", "fit", "some", "--dry-run", "--json"), "secret://host:1"),
    ],
)
def test_nobody_at_an_address_is_told_without_it(
    pipelines: Evidence, command: tuple[str, ...], address: str
) -> None:
    result = pipelines.perfdb(*command, "--dask", address)
    assert result.status == 5
    assert envelope(result)["messages"][0]["code"] == "cluster-unavailable"
    assert "secret" not in result.out + result.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*SWEEP[:4], "--workers", "2"), "about the runs of a sweep"),
        ((*SWEEP, "--workers", "2", "--dask", "tcp://127.0.0.1:1"), "exclude each other"),
    ],
)
def test_wrong_usage_is_refused(
    pipelines: Evidence, arguments: tuple[str, ...], words: str
) -> None:
    result = pipelines.perfdb(*arguments)
    assert (result.status, words in result.err + result.out) == (2, True), result


def test_without_dask_the_extra_is_named(pipelines: Evidence, tmp_path: Path) -> None:
    (tmp_path / "distributed.py").write_text("raise ImportError('not here')\n")
    path = f"{tmp_path}:{pipelines.environment()['PYTHONPATH']}"
    result = pipelines.perfdb(*SWEEP, "--workers", "2", PYTHONPATH=path)
    assert result.status == 2
    assert "perfdb-git[distributed]" in result.out


@pytest.mark.parametrize(
    "error",
    [
        PerfdbError("wrong", code="a", remedy="b"),
        InvalidRowsError("wrong", code="a", document="d", rows=["1", "2"], remedy=None),
        MissingExtraError("tables", "reading"),
    ],
)
def test_errors_survive_the_way_between_processes(error: PerfdbError) -> None:
    other = pickle.loads(pickle.dumps(error))
    assert type(other) is type(error)
    assert (str(other), vars(other)) == (str(error), vars(error))
