"""An evidence repository for files of tools, and the way to import one into it."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from perfdb_git.formats.codec import decode
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.formats.strict_yaml import read_yaml
from perfdb_git.importers.tool_import import (
    ImportedToolFile,
    ToolImportReport,
    ToolImportRequest,
    import_tool_files,
)
from perfdb_git.model.vocabulary import Vocabulary
from tests.importers.import_fixtures import Evidence, RecordSet

FILES = Path(__file__).parent / "tool_files"
SCHEMAS = SchemaStore()


@functools.cache
def _vocabulary(data: bytes) -> Vocabulary:
    return decode(Vocabulary, read_yaml(data, document="vocabulary"), document="vocabulary")


class ToolEvidence(Evidence):
    """An evidence repository whose vocabulary has a processor too."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        vocabulary = self.root / "evidence" / "vocabulary.yaml"
        text = vocabulary.read_text()
        old = "      a100_80g: [a100]\n"
        assert old in text
        vocabulary.write_text(text.replace(old, f"{old}      example_cpu: []\n"))
        # Shared by all tests of a process: only the vocabulary's text differs from the project's.
        self.vocabulary = _vocabulary(vocabulary.read_bytes())

    def take(self, path: Path | str, *stated: str, tool: str = "auto", **options: Any) -> Taken:
        """Import one file; a bare name is one of the files beside the tests."""
        if isinstance(path, str):
            path = FILES / path
        request = ToolImportRequest(
            repository=self.root, tool=tool, files=(path,), stated=stated, **options
        )
        report = import_tool_files(request, vocabulary=self.vocabulary, schemas=SCHEMAS)
        names = {Path(item.path) for item in report.files[0].record_sets}
        sets = [] if request.dry_run else [self._read(name) for name in sorted(names)]
        return Taken(report.files[0], sets, report)

    def put_json(self, name: str, value: Any) -> Path:
        """Write a JSON file as tools do, NaN included."""
        return self.put(name, json.dumps(value))

    def _read(self, name: Path) -> RecordSet:
        return RecordSet(json.loads((self.root / name).read_bytes()))


class Taken:
    """What became of one file."""

    def __init__(
        self, file: ImportedToolFile, sets: list[RecordSet], report: ToolImportReport
    ) -> None:
        self.file = file
        self.sets = sets
        self.report = report

    def one(self, **wanted: Any) -> RecordSet:
        """Return the one record set whose context has these values."""
        found = [s for s in self.sets if all(s.context.get(k) == v for k, v in wanted.items())]
        assert len(found) == 1, f"{len(found)} record sets for {wanted}"
        return found[0]

    def codes(self) -> set[str]:
        """Return the codes of the remarks."""
        return {remark.code for remark in self.file.remarks}

    def texts(self) -> str:
        """Return everything that was stored."""
        return "\n".join(json.dumps(item.document) for item in self.sets)
