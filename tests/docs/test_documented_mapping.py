"""The mapping that the documentation shows is one that works."""

import re
import subprocess
from pathlib import Path

from perfdb_git.importers.mapping_documents import shipped_mappings
from perfdb_git.importers.requests import ImportRequest
from perfdb_git.importers.table import import_table
from tests.cases.test_public_cases import FILES, HEADER, take_table
from tests.cli.evidence import make_evidence

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs" / "performance-data-imports.md").read_text()
SHOWN = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_the_documented_mapping_imports_a_table(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    (repository / "evidence").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    vocabulary = (PROJECT / "evidence" / "vocabulary.yaml").read_bytes()
    (repository / "evidence" / "vocabulary.yaml").write_bytes(vocabulary)
    mapping = tmp_path / "mapping.yaml"
    text = SHOWN[0]
    mapping.write_text(text)
    table = tmp_path / "results" / "a100" / "gemm.csv"
    table.parent.mkdir(parents=True)
    table.write_text(
        "tokens,width,hidden,tp,type,median_us,sd_us,comment\n16,512,4096,2,half,11.5,0.25,fine\n"
    )
    report = import_table(
        ImportRequest(
            repository=repository,
            mapping=str(mapping),
            files=(table,),
            source_root=tmp_path,
            source_revision="0123456789",
        )
    )
    assert report.records == 1
    (written,) = (repository / "evidence" / "records").rglob("*.json")
    assert "[16, 512, 2048, 11.5, 0.25," in written.read_text()


def test_every_shipped_mapping_is_documented() -> None:
    for name in shipped_mappings():
        assert f"`{name}`" in PAGE


def test_the_documented_columns_of_clocks_are_those_that_are_understood(tmp_path: Path) -> None:
    _, columns = SHOWN
    mapping = HEADER + "dimensions: {device: {value: a100_80g}}\n" + columns
    evidence = make_evidence(tmp_path / "evidence", tmp_path / "cache")
    done = take_table(evidence, mapping, FILES / "throttled.csv")
    assert done.status == 3
    assert "power_w" in done.err
    done = take_table(evidence, mapping + "ignored_columns: [power_w]\n", FILES / "throttled.csv")
    assert done.status == 0, done.err
    assert "throttled from sample 20 on" in done.err
