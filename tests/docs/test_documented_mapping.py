"""The mapping that the documentation shows is one that works."""

import re
import subprocess
from pathlib import Path

from perfdb_git.importers.mapping_documents import shipped_mappings
from perfdb_git.importers.requests import ImportRequest
from perfdb_git.importers.table import import_table

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs" / "performance-data-imports.md").read_text()


def test_the_documented_mapping_imports_a_table(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    (repository / "evidence").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    vocabulary = (PROJECT / "evidence" / "vocabulary.yaml").read_bytes()
    (repository / "evidence" / "vocabulary.yaml").write_bytes(vocabulary)
    mapping = tmp_path / "mapping.yaml"
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
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
