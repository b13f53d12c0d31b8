"""A small repository to export, and what its records say, read from the files alone."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from tests.cli.evidence import Evidence, make_evidence
from tests.comparison.sampled_evidence import add_records

FORMULA = "=HYPERLINK(evil)"
TEXT = 'line\nbreak, "quoted"'
TO_SI = {"ms": 1000, "us": 1_000_000, "s": 1}


def exported_evidence(folder: Path) -> Evidence:
    """Make three record sets: medians in ms, samples in us, and one that is simulated."""
    made = make_evidence(folder / "evidence", folder / "cache")
    rows = [(128, 10240, 8192, 2.872, 0.1, 20), (256, 10240, 8192, 1 / 3, None, 20)]
    first = made.add_gemm(
        "one", rows, context={"runtime": None, "implementation": FORMULA}, measured_at="2024-05-06"
    )
    made.commit("one session")
    made.git("tag", "first")
    add_records(
        made,
        "two",
        [(128, 1024, 4096, [1.5, 1e-7, 3]), (256, 1024, 4096, 0.1), (512, 1024, None, None)],
        metrics=(("latency", "us", "sample"),),
        context={"runtime": TEXT},
        measured_at="2024-05-06T07:08:09.123456789+02:00",
    )
    add_records(made, "three", [(128, 1024, 4096, 7)], metrics=(("cycles", "1", "mean"),),
                context={"device": "h100_80g"}, kind="simulated")  # fmt: skip
    made.retract(f"{first}#1")
    made.commit("two more, and a retraction")
    return made


def stated_records(evidence: Evidence) -> dict[str, dict[str, Any]]:
    """Return the known values of every record in columns of the table, by record id."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted((evidence.path / "evidence/records").rglob("*.json")):
        content = path.read_bytes()
        sha256 = hashlib.sha256(content).hexdigest()
        document = json.loads(content)
        for number, row in enumerate(document["rows"]):
            record = {
                "record_set": sha256,
                "row": number,
                "path": path.relative_to(evidence.path).as_posix(),
                "kind": document["kind"],
                "session": document["session"],
                "environment": document["environment"],
                "measured_at": document["source"]["measured_at"],
                "tool": document["source"]["tool"],
                **document["context"],
            }
            for column, cell in zip(document["columns"], row, strict=True):
                name, value = _in_table(column, cell)
                record[name] = value
            found[f"{sha256}#{number}"] = record
    return found


def _in_table(column: dict[str, Any], cell: Any) -> tuple[str, Any]:
    if column["role"] == "source":
        return "source_keys", {"op": "attn_pre_proj", column["name"]: cell}
    if column["role"] == "dimension" or column["statistic"] == "count":
        name = column["name"] if column["role"] == "dimension" else f"{column['name']}_count"
        return name, cell
    if column["name"] == "cycles":
        return "cycles_mean", cell
    factor = TO_SI[column["unit"]]
    if column["statistic"] != "sample":
        return f"latency_{column['statistic']}_s", None if cell is None else cell / factor
    cells = cell if isinstance(cell, list) else [cell]
    return "latency_samples_s", None if cell is None else [one / factor for one in cells]
