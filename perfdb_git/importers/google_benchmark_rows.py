"""What the JSON and the CSV of Google Benchmark share."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from perfdb_git.importers.tool_results import Remark, finite

UNITS = ("ns", "us", "ms", "s")
AGGREGATES = {"mean": "mean", "median": "median", "stddev": "std"}
SCALING_REMARK = Remark(code="cpu-scaling", text="CPU frequency scaling was on")
NOT_FINITE = "the tool printed a value that is not finite, or a negative one"


def samples_of(values: Sequence[Any]) -> tuple[float, ...] | None:
    """Return samples, or None where one of them is no number that evidence can hold."""
    found = [finite(value) for value in values]
    known = [value for value in found if value is not None and value >= 0]
    return tuple(known) if len(known) == len(found) else None


def aggregate_in(name: str, names: Collection[str]) -> tuple[str, str | None]:
    """Split ``base_mean`` where the base stands beside it, or all of its aggregates do."""
    base, _, suffix = name.rpartition("_")
    siblings = [f"{base}_{other}" for other in AGGREGATES]
    if suffix in (*AGGREGATES, "cv") and (base in names or all(s in names for s in siblings)):
        return base, suffix
    return name, None


def debug_remark(build: str) -> Remark:
    """Return the remark about a library that was not built for speed."""
    return Remark(code="debug-build", text=f"the benchmark library was built as {build}")
