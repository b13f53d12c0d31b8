"""The typed way into a Vidur checkout."""

from __future__ import annotations

import pytest

from perfdb_git.errors import InvalidRowsError, UsageError
from perfdb_git.importers.vidur import VidurProfileImporter
from tests.importers.import_fixtures import (
    MLP_PATH,
    Evidence,
    attention_row,
    csv_text,
    mlp_row,
    network_row,
)

ROOT = "data/profiling"


def fill(evidence: Evidence, *, latency: object = 0.007) -> None:
    evidence.put(MLP_PATH, csv_text([mlp_row(8, 1)]))
    name = f"{ROOT}/compute/a100/meta-llama/Llama-2-70b-hf/attention.csv"
    evidence.put(name, csv_text([attention_row(False, 1, 0, 32)]))
    times = (latency, 0.038, 0.017, 0.009, 0.0146)
    for collective in ("all_reduce", "send_recv"):
        row = network_row(0, collective, 2, 2, 2048, *times)
        evidence.put(f"{ROOT}/network/a100_dgx/{collective}.csv", csv_text([row]))


def importer(evidence: Evidence) -> VidurProfileImporter:
    return VidurProfileImporter(
        profiling_root=evidence.upstream / ROOT,
        source_root=evidence.upstream,
        source_revision="7d47513",
    )


def test_imports_every_table_with_its_mapping(evidence: Evidence) -> None:
    fill(evidence)
    result = importer(evidence).import_into(evidence.root)
    assert [report.mapping for report in result.reports] == [
        "vidur-mlp",
        "vidur-attention",
        "vidur-all-reduce",
        "vidur-send-recv",
    ]
    assert result.records == 13
    assert {item.source["tool"] for item in evidence.record_sets()} == {"vidur"}
    assert evidence.one(op="attn_decode").source["file"].startswith(f"{ROOT}/compute/a100/")
    again = importer(evidence).import_into(evidence.root)
    assert (again.records, again.known) == (0, 13)


def test_one_bad_row_stops_all_tables(evidence: Evidence) -> None:
    fill(evidence, latency=0)
    with pytest.raises(InvalidRowsError) as caught:
        importer(evidence).import_into(evidence.root)
    assert len(caught.value.rows) == 2
    assert evidence.files() == []


def test_folder_without_profiles(evidence: Evidence) -> None:
    with pytest.raises(UsageError, match="no Vidur profile"):
        importer(evidence).import_into(evidence.root)
