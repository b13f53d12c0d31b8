"""CPU time of reading and writing record sets, beside the plain decoder and encoder.

    python tests/bench/bench_record_sets.py

The text is this checkout's own evidence. Medians over runs in turn; the floor is `json.loads` or
`json.dumps` on the same text in the same run.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perfdb_git.formats import strict_json
from perfdb_git.formats.canonical import canonical_record_set
from perfdb_git.formats.strict_json import read_json, read_json_rows

PROJECT = Path(__file__).parents[2]
RUNS = 5


def cpu_seconds(work: Callable[[], Any]) -> float:
    """Return the CPU seconds of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def standard_library(texts: list[bytes]) -> None:
    """Read rows as if orjson were not installed."""
    optional, strict_json._orjson = strict_json._orjson, None
    try:
        for text in texts:
            read_json_rows(text, document="d")
    finally:
        strict_json._orjson = optional


def main() -> None:
    """Run the benchmark and print medians and ratios."""
    texts = [path.read_bytes() for path in (PROJECT / "evidence" / "records").rglob("*.json")]
    documents = [json.loads(text) for text in texts]
    works: dict[str, Callable[[], Any]] = {
        "json.loads": lambda: [json.loads(text) for text in texts],
        "read_json": lambda: [read_json(text, document="d") for text in texts],
        "read_json_rows": lambda: standard_library(texts),
        "json.dumps": lambda: [json.dumps(document) for document in documents],
        "canonical_record_set": lambda: [
            canonical_record_set({k: v for k, v in item.items() if k != "rows"}, item["rows"])
            for item in documents
        ],
    }
    if strict_json._orjson is not None:
        works["read_json_rows, orjson"] = lambda: [read_json_rows(t, document="d") for t in texts]
    times: dict[str, list[float]] = {}
    for _ in range(RUNS):
        for name, work in works.items():
            times.setdefault(name, []).append(cpu_seconds(work))
    megabytes = sum(map(len, texts)) / 1e6
    print(f"{megabytes:.1f} MB in {len(texts)} record sets")
    for name, values in times.items():
        floor = "json.dumps" if "canonical" in name or name == "json.dumps" else "json.loads"
        median, base = statistics.median(values), statistics.median(times[floor])
        print(f"{name:24} {median:6.3f} s CPU, {median / base:5.2f} x {floor}")


if __name__ == "__main__":
    main()
