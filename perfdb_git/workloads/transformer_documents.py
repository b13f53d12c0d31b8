"""Reading transformers from files: our own document, or a Hugging Face ``config.json``."""

from __future__ import annotations

from pathlib import Path

from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.formats.codec import decode
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.json_value import JsonValue
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.formats.strict_json import read_json
from perfdb_git.formats.strict_yaml import read_yaml
from perfdb_git.model.transformer import TransformerModel
from perfdb_git.workloads.hugging_face_config import model_of_config
from perfdb_git.workloads.training_documents import StatedDocument

_KIND = "transformer-model"


def read_transformer_model(path: Path) -> StatedDocument[TransformerModel]:
    """Read a transformer, JSON or YAML.

    Parameters
    ----------
    path : Path
        A ``perfdb/transformer-model/v1`` document, or a ``config.json`` with a ``model_type``.

    Raises
    ------
    UsageError
        'unreadable-file' where there is no such file.
    InvalidInputError
        Where it breaks its format, or what `model_of_config` raises.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}", code="unreadable-file"
        ) from error
    read = read_yaml if path.suffix in (".yaml", ".yml") else read_json
    model = _model(read(content, document=str(path)), str(path))
    return StatedDocument(value=model, sha256=f"sha256:{sha256_hex(content)}")


def _model(value: JsonValue, document: str) -> TransformerModel:
    if not isinstance(value, dict) or not ("schema" in value or "model_type" in value):
        raise InvalidInputError(
            "neither a schema nor a model_type is stated",
            code="no-model",
            document=document,
            remedy="give a perfdb/transformer-model/v1 document, or a Hugging Face config.json",
        )
    if "schema" not in value:
        return model_of_config(value, document=document)
    SchemaStore().validate(value, document=document, expected_kind=_KIND)
    return decode(TransformerModel, value, document=document)
