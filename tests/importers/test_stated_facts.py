"""Times without a zone, and facts that the user states."""

from __future__ import annotations

import json
from typing import Any

import pytest

from perfdb_git.errors import InvalidInputError, PerfdbError, UsageError
from perfdb_git.importers.timestamps import stated_time, time_zone
from tests.importers.tool_evidence import FILES, ToolEvidence

RECORDS = [json.loads(line) for line in (FILES / "timestamps.jsonl").read_text().splitlines()]
SAME_INSTANT = {"a", "b", "c", "h", "i"}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: str(record["tool"]))
def test_times_of_nine_tools(record: dict[str, Any]) -> None:
    epoch = record.get("timestamp_ms", 1000 * record["timesecs"] if "timesecs" in record else None)
    found = stated_time(record["raw"], document="x", epoch_ms=epoch)
    expected = "2026-03-29T08:00:00Z" if record["id"] in SAME_INSTANT else None
    assert found.utc == expected
    assert found.text == record["raw"]


def test_a_stated_zone_makes_an_instant_where_the_time_exists() -> None:
    berlin = time_zone("Europe/Berlin")
    by_id = {record["id"]: record["raw"] for record in RECORDS}
    for name in "fg":
        found = stated_time(by_id[name], document="x", zone=berlin)
        assert found.utc == "2026-03-29T08:00:00Z"
    with pytest.raises(InvalidInputError, match="does not exist in Europe/Berlin"):
        stated_time(by_id["d"], document="x", zone=berlin)
    with pytest.raises(InvalidInputError, match="occurred twice"):
        stated_time("2026-10-25 02:30:00", document="x", zone=berlin)
    with pytest.raises(UsageError, match="no time zone"):
        time_zone("Europe/Atlantis")


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-29 08:00:00 UTC",
        "2026-03-29T08:00:00z",
        "Sun Mar 29 08:00:00 UTC 2026",
        "2026-03-29T10:00:00+0200",
        "Sun, 29 Mar 2026 08:00:00 +0000",
        "20260329T080000Z",
        "20260329T100000+0200",
    ],
)
def test_other_spellings_of_an_instant(text: str) -> None:
    assert stated_time(text, document="x").utc == "2026-03-29T08:00:00Z"


def test_a_text_that_is_no_time_stays_a_text() -> None:
    assert stated_time("yesterday", document="x").utc is None


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (("device",), "is not KEY=VALUE"),
        (("colour=red",), "--set knows no 'colour'"),
        (("device=a101",), "unknown device"),
        (("device=a100", "warmup=many"), "is no count"),
        (("device=a100", "repetitions=0"), "is no count"),
        (("device=a100", "session=a", "session=b"), "session is given twice"),
        (("device=a100", "measured_at=2026-03-29T10:00:00"), "no time with a zone"),
        (("device=a100", "environment=abcdef"), "manifest abcdef cannot be read"),
        (("device=null",), "does not say device"),
        (("device=a100", "repetitions=7"), "says repetitions = 10"),
        (("device=a100", "m=4"), "operation benchmark has no such dimension"),
        (("device=a100", "operation=gemm"), "says operation = 'benchmark'"),
        (("device=a100", "benchmark=other"), "says benchmark"),
    ],
)
def test_facts_that_are_refused(tools: ToolEvidence, facts: tuple[str, ...], message: str) -> None:
    with pytest.raises(PerfdbError, match=message):
        tools.take("hyperfine_first_run_slow.json", *facts)
    assert tools.files() == []


def test_a_named_manifest(tools: ToolEvidence) -> None:
    first = tools.take("hyperfine_single_run.json", "device=a100_pcie_80g", "session=one")
    digest = first.sets[0].document["environment"]
    again = tools.take(
        "hyperfine_first_run_slow.json", "device=a100_pcie_80g", f"environment={digest[:12]}"
    )
    assert again.sets[0].document["environment"] == digest
    assert again.sets[0].context["form_factor"] == "pcie"
    assert first.sets[0].document["session"] == "one"
    with pytest.raises(InvalidInputError, match="says device = 'a100_80g'"):
        tools.take("hyperfine_single_run.json", "device=h100", f"environment={digest}")


def test_a_dry_run_writes_nothing_and_shows_the_records(tools: ToolEvidence) -> None:
    taken = tools.take("hyperfine_first_run_slow.json", "device=a100", dry_run=True)
    assert tools.files() == []
    (record,) = taken.file.records
    assert record.operation == "benchmark"
    assert "benchmark=./app --size 4096" in record.about
    assert "latency sample [0.5926, 0.2075, 0.2101, 0.2099, 0.2102, …] (10) s" in record.metrics
    assert len(taken.report.written) == 2
