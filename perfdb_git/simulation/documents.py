"""Timing profiles and pipelines from the bytes of their documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.codec import decode
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.json_value import JsonValue
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.formats.strict_json import read_json
from perfdb_git.formats.strict_yaml import read_yaml
from perfdb_git.model.pipeline import MAX_LISTED_JOBS, MAX_STAGES, Pipeline
from perfdb_git.model.timing_profile import TimingProfile

T = TypeVar("T")

TIMING_PROFILE_KIND = "timing-profile"
PIPELINE_KIND = "pipeline"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadDocument(Generic[T]):
    """A document's value, its name for messages and the SHA-256 of its bytes."""

    document: str
    sha256: str
    value: T


def read_timing_profile(
    data: bytes, *, document: str, schemas: SchemaStore | None = None
) -> ReadDocument[TimingProfile]:
    """Read and judge a timing profile.

    Parameters
    ----------
    data : bytes
        The whole document.
    document : str
        Its path; ``.yaml`` and ``.yml`` are read as YAML, anything else as JSON.
    schemas : SchemaStore or None
        Where the schemas are; ``None`` takes the package's own.

    Raises
    ------
    InvalidInputError
        If it is not strict, or breaks its schema or the rules of its class.
    """
    return _read(TimingProfile, TIMING_PROFILE_KIND, data, document, schemas)


def read_pipeline(
    data: bytes, *, document: str, schemas: SchemaStore | None = None
) -> ReadDocument[Pipeline]:
    """Read and judge a pipeline.

    Parameters
    ----------
    data : bytes
        The whole document.
    document : str
        Its path; ``.yaml`` and ``.yml`` are read as YAML, anything else as JSON.
    schemas : SchemaStore or None
        Where the schemas are; ``None`` takes the package's own.

    Raises
    ------
    InvalidInputError
        If it is not strict, or breaks its schema or the rules of its class.
    """
    return _read(Pipeline, PIPELINE_KIND, data, document, schemas)


def _read(
    cls: type[T], kind: str, data: bytes, document: str, schemas: SchemaStore | None
) -> ReadDocument[T]:
    reader = read_yaml if document.endswith((".yaml", ".yml")) else read_json
    value = reader(data, document=document, decimal=True)
    _refuse_long_lists(value, document)
    # Documents of these two kinds may leave the schema out: their folder tells.
    (schemas or SchemaStore()).validate(
        value, document=document, expected_kind=kind, default=(kind, 1)
    )
    return ReadDocument(
        document=document, sha256=sha256_hex(data), value=decode(cls, value, document=document)
    )


def _refuse_long_lists(value: JsonValue, document: str) -> None:
    """Refuse before the schema is asked: it looks at every item before it says "too many"."""
    if not isinstance(value, dict):
        return
    jobs = value.get("jobs")
    jobs = jobs if isinstance(jobs, dict) else {}
    arrivals = jobs.get("arrivals")
    arrivals = arrivals if isinstance(arrivals, dict) else {}
    lists = (
        ("/stages", value.get("stages"), MAX_STAGES),
        ("/jobs/work", jobs.get("work"), MAX_LISTED_JOBS),
        ("/jobs/arrivals/times_ns", arrivals.get("times_ns"), MAX_LISTED_JOBS),
    )
    for pointer, items, limit in lists:
        if isinstance(items, list) and len(items) > limit:
            raise InvalidInputError(
                f"has {len(items)} items; at most {limit} are read",
                code="too-many-items",
                document=document,
                pointer=pointer,
            )
