"""The versioned envelope around every ``--json`` output."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, cast

from perfdb_git import __version__
from perfdb_git.formats.codec import encode
from perfdb_git.model.result import RESULT_SCHEMA, Message, ResultEnvelope
from perfdb_git.model.values import JsonValue

Status: TypeAlias = Literal["ok", "findings", "no-evidence", "error"]


def encoded(value: object) -> dict[str, JsonValue]:
    """Return a dataclass object as the ``data`` of an envelope."""
    data = encode(value)
    assert isinstance(data, dict)
    return cast("dict[str, JsonValue]", data)


def envelope_text(
    command: str,
    status: Status,
    data: Mapping[str, JsonValue] | None,
    messages: Sequence[Message] = (),
) -> str:
    """Return the envelope as text that ends in a newline.

    It is plain ASCII: a control character in evidence text stays an escape wherever it is shown.
    """
    envelope = ResultEnvelope(
        schema=RESULT_SCHEMA,
        command=command,
        status=status,
        perfdb=__version__,
        data=data,
        messages=tuple(messages),
    )
    return json.dumps(encode(envelope), indent=2, allow_nan=False) + "\n"
