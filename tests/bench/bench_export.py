"""What an export costs by rows and format: CPU seconds, peak memory and file size.

python tests/bench/bench_export.py [ROWS ...]
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.cli.evidence import Evidence, make_evidence

SET_ROWS = 50_000


def repository(folder: Path, rows: int) -> Evidence:
    made = make_evidence(folder / "evidence", folder / "cache")
    draw = random.Random(1)
    for number in range(rows // SET_ROWS):
        made.add_gemm(
            f"session-{number:04}",
            [
                (m, 1024, 4096, round(draw.lognormvariate(0, 1), 4), round(draw.random(), 4), 20)
                for m in range(1, SET_ROWS + 1)
            ],
        )
    made.commit("records")
    made.perfdb("index", "build")
    return made


def measured(made: Evidence, form: str) -> tuple[float, float, float]:
    """CPU seconds, peak MB, and file size in MB of one export."""
    output = made.path.parent / "table"
    arguments = ["export", "--format", form, "--output", str(output)]
    child = os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "perfdb_git", *arguments, "--repo", str(made.path)],
        made.environment(),
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )
    _, status, used = os.wait4(child, 0)
    assert status == 0
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, output.stat().st_size / 1e6


def main() -> None:
    print("| rows | format | CPU s | CPU s per 10⁶ rows | peak memory, MB | file, MB |")
    print("|---|---|---|---|---|---|")
    for rows in [int(text) for text in sys.argv[1:]] or [100_000, 1_000_000]:
        with tempfile.TemporaryDirectory() as folder:
            made = repository(Path(folder), rows)
            for form in ("csv", "parquet", "arrow"):
                seconds, memory, size = measured(made, form)
                per = seconds / rows * 1e6
                cells = f"{rows:,} | {form} | {seconds:.1f} | {per:.1f} | {memory:.0f} | {size:.0f}"
                print(f"| {cells} |", flush=True)


if __name__ == "__main__":
    main()
