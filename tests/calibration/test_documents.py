"""Documents as files: canonical, addressed by content, never overwritten, found by digest."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfdb_git.calibration.documents import document_file, write_documents
from perfdb_git.calibration.splits import build_split
from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.arrays import decode_parameters
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.storage.calibration_documents import CalibrationDocuments
from tests.calibration.revisions import calibration, report, slice_of, validation
from tests.calibration.test_splits import recipe, repeats


def test_written_documents_are_read_back(small: Any) -> None:
    repeats(small)
    split, _ = build_split(small.snapshot(), recipe())
    digest = document_file(split)[1]
    revision = calibration(slices=(slice_of(split=digest),))
    written = write_documents(small.path, split, revision, validation())
    assert sorted(written) == list(written) and len(written) == 3
    documents = CalibrationDocuments(small.snapshot())
    (found,) = documents.calibrations()
    assert found.value == revision
    assert found.path == f"evidence/calibrations/operation-size-efficiency/{found.sha256}.json"
    assert sha256_hex((small.path / found.path).read_bytes()) == found.sha256
    parameters = found.value.slices[0].inside.parameters
    assert decode_parameters(parameters, document="x")["size"].tolist() == [0, 1, 2, 3, 4]
    assert documents.split(found.value.slices[0].split).value == split
    assert [item.value for item in documents.splits()] == [split]
    (judged,) = documents.validations()
    assert judged.value == validation() and judged.value.is_within_limit
    assert documents.validation(judged.sha256) == judged


def test_a_refit_is_a_new_file(small: Any) -> None:
    first = write_documents(small.path, calibration(seed=0))
    assert write_documents(small.path, calibration(seed=0)) == ()
    second = write_documents(small.path, calibration(seed=1))
    assert second != first
    assert len(CalibrationDocuments(small.snapshot()).calibrations()) == 2


def test_a_changed_file_is_never_overwritten_nor_believed(small: Any) -> None:
    (path,) = write_documents(small.path, calibration())
    file: Path = small.path / path
    text = file.read_bytes()
    file.write_bytes(text.replace(b'"seed": 0', b'"seed": 1'))
    with pytest.raises(InvalidInputError) as refused:
        write_documents(small.path, calibration())
    assert refused.value.code == "file-exists"
    documents = CalibrationDocuments(small.snapshot())
    with pytest.raises(InvalidInputError) as caught:
        documents.calibration(sha256_hex(text))
    assert caught.value.code == "wrong-digest"


@pytest.mark.parametrize("kind", ["calibration", "split", "validation"])
def test_unknown_digests(kind: str, small: Any) -> None:
    documents = CalibrationDocuments(small.snapshot())
    with pytest.raises(InvalidInputError) as caught:
        getattr(documents, kind)("0" * 64)
    assert caught.value.code == f"unknown-{kind}"


def test_what_breaks_its_schema_is_not_written(small: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        write_documents(small.path, validation(), calibration(inputs=()))
    assert caught.value.pointer == "/inputs"
    assert not (small.path / "evidence/validations").exists()


def test_a_validation_knows_its_limit() -> None:
    judged = validation()
    limit = judged.limit
    assert judged.is_within_limit
    assert not replace(judged, limit=replace(limit, value=9)).is_within_limit
    nothing = report(predicted=np.full(3, np.nan))
    assert not replace(judged, held_out_report=nothing).is_within_limit
