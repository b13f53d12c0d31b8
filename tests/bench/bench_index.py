"""How the costs of the index grow with the rows of a repository, beside what no index can undercut.

    python -m tests.bench.bench_index [--rows N ...] [--runs N] [--folder DIR]
                                      [--database REPOSITORY --question "KEY=VALUE ... m=N"]

Prints Markdown tables. Each repository is a beginning of the largest (`peer_shaped_repository`),
so all of them answer the same question; `--database` adds one of the user's, such as the database
that they follow, as `perfdb import aiconfigurator` makes it. Floors, measured in the same run on
the same bytes: reading a file of that size, reading the Git objects with their hashes checked, and
decoding the text as plain JSON; for a new process, an interpreter that imports click, numpy and
pygit2. Times are CPU seconds of all processes, medians; a build of more than two million rows runs
once.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfdb_git.formats import strict_json
from perfdb_git.storage import layout
from perfdb_git.storage.git import GitStore
from perfdb_git.storage.sources import GitSource, SourceFile
from tests.bench.large_repository import GIT_ENVIRONMENT
from tests.bench.peer_shaped_repository import (
    QUESTION,
    add_record_set,
    build_peer_shaped_repository,
)

ROWS = (10_000, 100_000, 300_000, 1_000_000, 10_000_000, 12_590_000)
MANY_ROWS = 2_000_000
WITHOUT_ORJSON = "import sys; sys.modules['orjson'] = None; "
MAIN = "from perfdb_git.cli.main import main; sys.exit(main(sys.argv[1:]))"
IMPORTS_ALONE = [sys.executable, "-c", "import click, numpy, pygit2"]
OPEN = """
import sys, time
from pathlib import Path
import numpy
from perfdb_git.database import PerformanceDatabase
start = time.process_time()
snapshot = PerformanceDatabase.open(sys.argv[1]).at()
snapshot.evidence.series()
print(time.process_time() - start, snapshot.evidence.index.segments_built)
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run of a command took; `peak` is the largest memory of one of its processes."""

    cpu: float
    wall: float
    peak: int
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Floors:
    """CPU seconds of what has to happen at least, on the text of all record sets."""

    text: int
    files: int
    read: float
    objects: float
    json: float
    orjson: float | None


class Bench:
    """One repository, a cache directory for it, and a question that one of its records answers."""

    def __init__(
        self,
        label: str,
        repository: Path,
        scratch: Path,
        *,
        runs: int,
        builds: int,
        question: Sequence[str] = QUESTION,
    ) -> None:
        self.label = label
        self.repository = repository
        self.cache = scratch / f"cache-{label}"
        self.runs = runs
        self.builds = builds
        self.question = question

    @property
    def miss(self) -> list[str]:
        """The question with an `m` that no record has."""
        return ["m=100003" if pair.startswith("m=") else pair for pair in self.question]

    def perfdb(self, *arguments: str, orjson: bool = True) -> Cost:
        """Run the command in a new process."""
        code = ("import sys; " if orjson else WITHOUT_ORJSON) + MAIN
        return self.python(code, *arguments, "--repo", str(self.repository))

    def python(self, code: str, *arguments: str) -> Cost:
        """Run a program in a new process."""
        return run([sys.executable, "-c", code, *arguments], {"PERFDB_CACHE_DIR": str(self.cache)})

    def build(self, jobs: int | None, *, orjson: bool = True) -> Cost:
        """Index the repository from nothing; the median of several runs by CPU time."""
        given = [] if jobs is None else ["--jobs", str(jobs)]
        costs = []
        for _ in range(self.builds):
            shutil.rmtree(self.cache, ignore_errors=True)
            costs.append(self.perfdb("index", "build", *given, orjson=orjson))
        return sorted(costs, key=lambda cost: cost.cpu)[len(costs) // 2]

    def cache_bytes(self) -> int:
        """Return the size of the cache directory's files."""
        return sum(path.stat().st_size for path in self.cache.rglob("*") if path.is_file())


def run(command: Sequence[str], variables: Mapping[str, str]) -> Cost:
    """Run a command and return what it took with all its children."""
    with tempfile.TemporaryFile("w+") as output:
        start = time.perf_counter()
        process = subprocess.Popen(command, env={**os.environ, **variables}, stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 4):
            raise RuntimeError(f"{command} ended with status {process.returncode}")
        output.seek(0)
        text = output.read()
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss * 1024, text)


def cpu_seconds(work: Callable[[], Any]) -> float:
    """Return the CPU seconds of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def floors(repository: Path, scratch: Path) -> Floors:
    """Measure the floors, one record set after the other."""
    store = GitStore.open(repository)
    source = GitSource(store, store.resolve_revision("HEAD").commit)
    files = source.files(layout.RECORDS)
    copy = scratch / "text"
    times = dict.fromkeys(("objects", "json", "orjson"), 0.0)
    with copy.open("wb") as out:
        for file in files:
            text, took = _read(source, file)
            times["objects"] += took
            times["json"] += cpu_seconds(lambda text=text: json.loads(text))  # type: ignore[misc]
            if strict_json._orjson is not None:
                times["orjson"] += cpu_seconds(
                    lambda text=text: strict_json._orjson.loads(text)  # type: ignore[misc]
                )
            out.write(text)
    read = cpu_seconds(lambda: _read_through(copy))
    size = copy.stat().st_size
    copy.unlink()
    return Floors(
        text=size,
        files=len(files),
        read=read,
        objects=times["objects"],
        json=times["json"],
        orjson=times["orjson"] if strict_json._orjson is not None else None,
    )


def _read(source: GitSource, file: SourceFile) -> tuple[bytes, float]:
    start = time.process_time()
    text = source.read(file)
    return text, time.process_time() - start


def _read_through(path: Path) -> None:
    with path.open("rb", buffering=0) as file:
        while file.read(1 << 20):
            pass


def build_rows(benches: Sequence[Bench], scratch: Path) -> list[list[str]]:
    """Measure builds from nothing."""
    found = []
    for bench in benches:
        floor = floors(bench.repository, scratch)
        plain = bench.build(1, orjson=False)
        several = bench.build(2)
        alone = bench.build(1)
        fastest = floor.json if floor.orjson is None else floor.orjson
        found.append(
            [
                bench.label,
                f"{floor.files:,}",
                f"{floor.text / 1e6:.1f}",
                f"{bench.cache_bytes() / 1e6:.1f}",
                f"{floor.read:.3f}",
                f"{floor.objects:.2f}",
                f"{fastest:.2f} / {floor.json:.2f}",
                f"{alone.cpu:.2f} / {plain.cpu:.2f}",
                f"{several.cpu:.2f}",
                f"{several.wall:.2f}",
                f"{alone.cpu / (floor.objects + fastest):.1f}",
                f"{max(alone.peak, several.peak) / 1e6:.0f}",
            ]
        )
    return found


BUILD_TITLES = (
    "rows",
    "record sets",
    "text MB",
    "index MB",
    "read file",
    "read objects",
    "JSON orjson / json",
    "1 process, orjson / json",
    "2 processes",
    "2 processes, wall",
    "1 process / (objects + orjson)",
    "peak MB",
)


def use_rows(benches: Sequence[Bench], scratch: Path) -> list[list[str]]:
    """Measure what a command costs once the index is there, all sizes in turn."""
    times: dict[tuple[str, str], list[float]] = {}
    nothing: list[float] = []
    for bench in benches:
        bench.perfdb("resolve", *bench.question)
    for _ in range(bench.runs):
        nothing.append(run(IMPORTS_ALONE, {}).cpu)
        for bench in benches:
            works = {
                "hit": ("resolve", *bench.question),
                "miss": ("resolve", *bench.miss),
                "list": ("list",),
                "status": ("index", "status"),
            }
            for name, arguments in works.items():
                cost = bench.perfdb(*arguments)
                times.setdefault((bench.label, name), []).append(cost.cpu)
            opened = float(bench.python(OPEN, str(bench.repository)).output.split()[0])
            times.setdefault((bench.label, "open"), []).append(opened)
    base = statistics.median(nothing)
    print(f"A bare interpreter that imports click, numpy and pygit2: {base:.2f} s.\n")
    found = []
    for bench in benches:
        medians = {name: statistics.median(times[bench.label, name]) for name in (*works, "open")}
        more, built = added(bench, scratch)
        found.append(
            [
                bench.label,
                f"{medians['open'] * 1000:.1f}",
                f"{medians['hit']:.2f}",
                f"{medians['hit'] / base:.1f}",
                f"{medians['miss']:.2f}",
                f"{medians['list']:.2f}",
                f"{medians['status']:.2f}",
                f"{more * 1000:.0f}",
            ]
        )
        assert built == 1
    return found


USE_TITLES = (
    "rows",
    "open, ms",
    "`resolve`, a record",
    "/ bare interpreter",
    "`resolve`, no record",
    "`list`",
    "`index status`",
    "1,000 rows on top, ms",
)


def added(bench: Bench, scratch: Path) -> tuple[float, int]:
    """Return the CPU seconds that the index of one further record set takes, in a new process.

    Counted from the opening of the repository; the imports before it cost every command the same.
    """
    more = scratch / "more.git"
    command = ["git", "clone", "--quiet", "--bare", "--shared", str(bench.repository), str(more)]
    subprocess.run(command, env=GIT_ENVIRONMENT, check=True)
    times, built = [], 0
    for number in range(bench.runs):
        add_record_set(more, seed=number)
        seconds, made = bench.python(OPEN, str(more)).output.split()
        times.append(float(seconds))
        built = int(made)
    shutil.rmtree(more)
    return statistics.median(times), built


def markdown(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table."""
    lines = [titles, ["---:"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    """Run the benchmark and print its tables."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # no user compiles the package at each start
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="keep the repositories here, and find them")
    parser.add_argument("--database", type=Path, help="measure this repository too")
    parser.add_argument("--question", default="", help="what one of its records answers, with m")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        folder = options.folder or scratch
        benches = []
        for rows in options.rows:
            path = folder / f"{rows}.git"
            if not path.exists():
                build_peer_shaped_repository(path, rows=rows)
            builds = 1 if rows > MANY_ROWS else 3
            benches.append(Bench(f"{rows:,}", path, scratch, runs=options.runs, builds=builds))
        if options.database is not None:
            question = options.question.split()
            path = options.database.resolve()
            benches.append(
                Bench(path.name, path, scratch, runs=options.runs, builds=1, question=question)
            )
        print(markdown(BUILD_TITLES, build_rows(benches, scratch)) + "\n")
        print(markdown(USE_TITLES, use_rows(benches, scratch)))


if __name__ == "__main__":
    main()
