"""Import of a whole aiconfigurator wheel: cost, size in Git, and every value compared.

    python tests/bench/bench_aiconfigurator.py aiconfigurator_core-0.12.0-….whl [REPOSITORY]
    python tests/bench/bench_aiconfigurator.py --growth aiconfigurator_core-0.12.0-….whl

Makes a repository (kept where a path is given), imports the wheel with the installed command,
compares every cell of every table with what the repository holds, bit by bit, and packs it with
``git gc``. The floors are measured in the same run: reading all tables with pyarrow, and writing
the same bytes to files. ``--growth`` imports the first tables of the wheel that have 10⁴, 10⁵, …
rows together.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow.parquet
from numpy.typing import NDArray

from perfdb_git.formats.strict_json import read_json_rows
from perfdb_git.importers.aiconfigurator.kinds import KINDS
from perfdb_git.importers.aiconfigurator.meaning import Operation

Bits: TypeAlias = NDArray[np.int64]
Labels: TypeAlias = tuple[tuple[str, Any], ...]
COMMAND = (sys.executable, "-m", "perfdb_git.cli.main")
FLOOR = """
import io, sys, zipfile
import pyarrow.parquet
with zipfile.ZipFile(sys.argv[1]) as wheel:
    for name in wheel.namelist():
        if name.endswith(".parquet"):
            pyarrow.parquet.read_table(io.BytesIO(wheel.read(name)), use_threads=False)
"""
COPY = """
import pathlib, sys, os
root = pathlib.Path(sys.argv[2])
for path in pathlib.Path(sys.argv[1]).rglob("*.json"):
    (root / path.name).write_bytes(path.read_bytes())
"""


@dataclass(frozen=True)
class Cost:
    """CPU seconds of a process and its children, wall seconds, and its peak memory in MB."""

    cpu: float
    wall: float
    megabytes: float


def cost_of(command: Sequence[str | Path]) -> Cost:
    """Run a command and return its cost."""
    start = time.monotonic()
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]} ended with {process.returncode}")
    cpu = usage.ru_utime + usage.ru_stime
    return Cost(cpu=cpu, wall=time.monotonic() - start, megabytes=usage.ru_maxrss / 1024)


def git(repository: Path, *arguments: str) -> str:
    """Run Git and return what it printed."""
    settings = ("-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "gc.auto=0")
    command = ["git", "-C", str(repository), *settings, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def bits(columns: Sequence[NDArray[Any]], rows: int) -> Bits:
    """Return float64 columns as sorted rows of bits, so that equal arrays mean equal multisets."""
    table = np.empty((rows, len(columns)), dtype=np.float64)
    for place, column in enumerate(columns):
        table[:, place] = column
    table += 0.0
    found = table.view(np.int64)
    return found[np.lexsort(found.T)] if columns else found


def upstream(table: Any, operation: Operation, names: Sequence[str]) -> dict[Labels, Bits]:
    """Return the rows of an operation by their labels, from the Parquet file itself."""
    frame = table.to_pandas()
    if operation.op_names:
        frame = frame[frame["op_name"].isin(operation.op_names)]
    if operation.where is not None:
        frame = frame[frame[operation.where[0]] == operation.where[1]]
    texts = [name for name in table.column_names if is_label(table, name)]
    return {
        tuple(zip(texts, key, strict=True)): bits([part[n].to_numpy() for n in names], len(part))
        for key, part in frame.groupby(texts, sort=False)
    }


def is_label(table: Any, name: str) -> bool:
    """Tell columns of texts and booleans from numbers."""
    kind = table.schema.field(name).type
    return not (pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind))


def recorded(
    sets: Sequence[Mapping[str, Any]], operation: Operation, names: Sequence[str]
) -> dict[Labels, Bits]:
    """Return the same from the record sets of a table."""
    found: dict[Labels, Bits] = {}
    metrics = {name: metric.name for name, metric in operation.metrics.items()}
    for document in sets:
        if document["context"]["operation"] != operation.name:
            continue
        keys, rows = document["source"]["keys"], document["rows"]
        cells = list(zip(*rows, strict=True))
        columns = {column["name"]: cells[n] for n, column in enumerate(document["columns"])}
        values = []
        for name in names:
            stated = {**operation.numbers, **metrics}.get(name)
            if stated in columns:
                # A time of 0 is null, with the reason in the header.
                values.append(np.array([0.0 if c is None else c for c in columns[stated]]))
            elif stated in document["context"]:
                values.append(np.full(len(rows), document["context"][stated], dtype=np.float64))
            elif name in columns:
                values.append(np.array(columns[name], dtype=np.float64))
            else:
                values.append(np.full(len(rows), keys[name], dtype=np.float64))
        numeric = set(names)
        labels = tuple((n, v) for n, v in keys.items() if n not in numeric)
        found[tuple(sorted(labels))] = bits(values, len(rows))
    return found


def compare(wheel: zipfile.ZipFile, repository: Path) -> tuple[int, int]:
    """Compare every cell of every table; return the tables and the rows compared."""
    by_table: dict[str, list[Path]] = {}
    for path in (repository / "evidence/records").rglob("*.json"):
        head = path.read_bytes().partition(b'\n  "rows": [')[0] + b"\n}"
        name = json.loads(head.replace(b",\n}", b"\n}"))["source"]["file"]
        by_table.setdefault(name, []).append(path)
    tables = rows = 0
    for name in wheel.namelist():
        if name.endswith(".parquet"):
            table = pyarrow.parquet.read_table(io.BytesIO(wheel.read(name)))
            sets: list[Any] = [
                read_json_rows(path.read_bytes(), document=path.name) for path in by_table.pop(name)
            ]
            for operation, numbers in operations_of(name, table):
                wanted = {
                    tuple(sorted(k)): v for k, v in upstream(table, operation, numbers).items()
                }
                got = recorded(sets, operation, numbers)
                if wanted.keys() != got.keys() or any(
                    not np.array_equal(wanted[key], got[key]) for key in wanted
                ):
                    raise SystemExit(f"{name}: {operation.name} differs")
            tables, rows = tables + 1, rows + table.num_rows
    if by_table:
        raise SystemExit(f"record sets of no table: {sorted(by_table)[:3]}")
    return tables, rows


def operations_of(name: str, table: Any) -> Iterator[tuple[Operation, list[str]]]:
    """Yield the operations of a table, each with the numeric columns that its records keep."""
    kind = KINDS[Path(name).stem]
    numbers = [n for n in table.column_names if not is_label(table, n)]
    everything = {n for one in kind.operations for n in (*one.numbers, *one.metrics)}
    for operation in kind.operations:
        own = {*operation.numbers, *operation.metrics}
        yield operation, [n for n in numbers if n in own or n not in everything]


def measure(path: Path, repository: Path) -> None:
    """Import, compare, pack, and print all figures."""
    read = cost_of([sys.executable, "-c", FLOOR, path])
    cost_of([*COMMAND, "init", repository])
    imported = cost_of([*COMMAND, "import", "aiconfigurator", "--repo", repository, path])
    records = repository / "evidence/records"
    sizes = [file.stat().st_size for file in records.rglob("*.json")]
    with tempfile.TemporaryDirectory(dir=repository.parent) as folder:
        written = cost_of([sys.executable, "-c", COPY, records, folder])
    start = time.process_time()
    with zipfile.ZipFile(path) as wheel:
        tables, rows = compare(wheel, repository)
    compared = time.process_time() - start
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "Import a database")
    git(repository, "gc", "--quiet")
    counts = dict(line.split(": ") for line in git(repository, "count-objects", "-v").splitlines())
    floor = read.cpu + written.cpu
    print(f"tables {tables}, rows {rows:,}, record sets {len(sizes):,}")
    print(f"equal: every cell of every table ({compared:.0f} s CPU to compare)")
    print(f"text {sum(sizes) / 1e6:.1f} MB, packed {int(counts['size-pack']) * 1024 / 1e6:.1f} MB")
    print(f"import {imported.cpu:.1f} s CPU, {imported.wall:.1f} s, {imported.megabytes:.0f} MB")
    print(f"floor {floor:.1f} s CPU: read {read.cpu:.1f} s, write {written.cpu:.1f} s")
    print(f"ratio {imported.cpu / floor:.1f}; {imported.cpu / rows * 1e6:.2f} us a row")


def first_tables(wheel: zipfile.ZipFile, path: Path, wanted: int) -> int:
    """Write a wheel of the first tables that have so many rows together, and return how many."""
    rows = 0
    with zipfile.ZipFile(path, "w") as part:
        for name in wheel.namelist():
            content = wheel.read(name) if "/systems/" in name or "dist-info" in name else b""
            if name.endswith(".parquet"):
                if rows >= wanted:
                    continue
                rows += pyarrow.parquet.ParquetFile(io.BytesIO(content)).metadata.num_rows
            part.writestr(name, content)
    return rows


def growth(path: Path) -> None:
    """Print what an import costs for growing parts of a wheel."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(path) as wheel:
        for wanted in (10**4, 10**5, 10**6, 10**7):
            part = Path(folder) / f"{wanted}.whl"
            rows = first_tables(wheel, part, wanted)
            read = cost_of([sys.executable, "-c", FLOOR, part])
            repository = Path(folder) / str(wanted)
            cost_of([*COMMAND, "init", repository])
            done = cost_of([*COMMAND, "import", "aiconfigurator", "--repo", repository, part])
            print(
                f"{rows:>12,} rows  import {done.cpu:6.2f} s CPU, {done.megabytes:.0f} MB  "
                f"pyarrow reads them in {read.cpu:.2f} s"
            )
            shutil.rmtree(repository)


def main() -> None:
    """Run with a repository that is kept, or in a temporary folder."""
    if sys.argv[1] == "--growth":
        growth(Path(sys.argv[2]))
        return
    wheel = Path(sys.argv[1])
    if len(sys.argv) > 2:
        measure(wheel, Path(sys.argv[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        measure(wheel, Path(folder) / "repository")


if __name__ == "__main__":
    main()
