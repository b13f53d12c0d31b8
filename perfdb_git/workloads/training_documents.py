"""Reading models and executions from files, with the digest that an answer names them by."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from perfdb_git.errors import UsageError
from perfdb_git.formats.codec import decode
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.formats.strict_json import read_json
from perfdb_git.formats.strict_yaml import read_yaml
from perfdb_git.model.training import TrainingExecution, TrainingModel

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedDocument(Generic[T]):
    """A document with the digest of its file."""

    value: T
    sha256: str


def read_training_model(path: Path) -> StatedDocument[TrainingModel]:
    """Read a model, JSON or YAML.

    Raises
    ------
    UsageError
        'unreadable-file' where there is no such file.
    InvalidInputError
        Where it breaks its format.
    """
    return _read(path, TrainingModel, "training-model")


def read_training_execution(path: Path) -> StatedDocument[TrainingExecution]:
    """Read an execution, JSON or YAML; raises as `read_training_model` does."""
    return _read(path, TrainingExecution, "training-execution")


def _read(path: Path, cls: type[T], kind: str) -> StatedDocument[T]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}", code="unreadable-file"
        ) from error
    read = read_yaml if path.suffix in (".yaml", ".yml") else read_json
    value = read(content, document=str(path))
    SchemaStore().validate(value, document=str(path), expected_kind=kind)
    return StatedDocument(
        value=decode(cls, value, document=str(path)), sha256=f"sha256:{sha256_hex(content)}"
    )
