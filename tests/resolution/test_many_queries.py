"""Many questions to one snapshot have the answers that each has when asked alone."""

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from perfdb_git.database import DatabaseSnapshot, PerformanceDatabase
from perfdb_git.model.values import Scalar
from perfdb_git.resolution.composition import ResolverParts, compose_resolver
from perfdb_git.storage.record_sets import StatedRecordSet
from perfdb_git.storage.shared_reads import SharedReads
from tests.resolution.conftest import EvidenceRepository


def filled(repository: EvidenceRepository) -> None:
    generator = random.Random(5)
    for number in range(9):
        rows = [
            [m, 8 * (1 + number % 2), 64, 0.5 + generator.random(), 0.01]
            for m in sorted(generator.sample(range(1, 12), 6))
        ]
        context = {"dtype": "float16" if number % 3 else "float32"}
        repository.add(rows, session=f"s{number}", context=context)
    for number in range(3):
        # Another layout: n and k are stated once, and some m is unknown.
        rows = [[2 + number, 0.7, 0.01], [None, 0.9, 0.01]]
        context = {"n": 8, "k": 64, "dtype": "float16"}
        repository.add(rows, session=f"t{number}", dimensions=("m",), context=context)
    repository.commit()


def questions() -> list[dict[str, Scalar | None]]:
    generator = random.Random(6)
    return [
        {
            "operation": "gemm",
            "device": generator.choice(["a100_80g", "a100_80g", "h100_80g"]),
            "dtype": generator.choice(["float16", "float32"]),
            "m": generator.choice([*range(1, 14), None]),
            "n": generator.choice([8, 16, None]),
            "k": generator.choice([64, 65]),
        }
        for _ in range(80)
    ]


def test_many_questions_to_one_snapshot(repository: EvidenceRepository) -> None:
    filled(repository)
    one = repository.at()
    codes = set()
    for values in questions():
        alone = repository.at().resolve(one.query(values))
        assert one.resolve(one.query(values)) == alone
        codes.add(alone.code)
    assert codes >= {"resolved", "ambiguous-context"}


def test_estimates_do_not_depend_on_near_misses(repository: EvidenceRepository) -> None:
    filled(repository)
    snapshot = repository.at()
    without = compose_resolver(bare_parts(snapshot))
    for values in questions():
        query = snapshot.query(values)
        with_help, outcome = snapshot.resolve(query), without.resolve(query)
        assert outcome.code == with_help.code
        assert outcome.reason == with_help.reason
        if outcome.estimate is not None and with_help.estimate is not None:
            assert outcome.estimate.metrics == with_help.estimate.metrics


def bare_parts(snapshot: DatabaseSnapshot) -> ResolverParts:
    return replace(snapshot.parts(snapshot.policy().policy), near_misses=False)


def test_snapshots_of_one_database_share_what_they_read(repository: EvidenceRepository) -> None:
    filled(repository)
    first = repository.git("rev-parse", "HEAD")
    repository.add([[50, 8, 64, 1.0, 0.01]], session="late")
    repository.commit()
    database = PerformanceDatabase.open(repository.path, cache_directory=repository.cache)
    values = {"operation": "gemm", "device": "a100_80g", "dtype": "float16", "n": 8, "k": 64}
    old, new = database.at(first), database.at()
    for m in (2, 3, 50):
        for snapshot in (old, new):
            query = snapshot.query({**values, "m": m})
            alone = repository.at(snapshot.commit or "").resolve(query)
            assert snapshot.resolve(query) == alone


def test_files_are_kept_up_to_a_bound() -> None:
    def stated(name: str) -> StatedRecordSet:
        return StatedRecordSet(f'{{"rows": [], "name": "{name}"}}'.encode(), document=name)

    reads: list[str] = []

    def ask(shared: SharedReads, name: str) -> None:
        def read() -> StatedRecordSet:
            reads.append(name)
            return stated(name)

        assert shared.stated(name, read).header == {"name": name}

    shared = SharedReads(most_bytes=2 * stated("a").size)
    for name in "abacab":
        ask(shared, name)
    # At the third file the one asked for longest ago goes: b, which is then read again.
    assert reads == ["a", "b", "c", "b"]
    tiny = SharedReads(most_bytes=1)
    ask(tiny, "x")
    ask(tiny, "x")
    assert reads[4:] == ["x"]


def test_threads_may_share_a_snapshot(repository: EvidenceRepository) -> None:
    filled(repository)
    snapshot = repository.at()
    queries = [snapshot.query(values) for values in questions()]
    expected = [repository.at().resolve(query) for query in queries[:20]]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(snapshot.resolve, queries[:20] * 5))
    assert found == expected * 5
