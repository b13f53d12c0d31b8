"""What a folder's ``collection_meta.yaml`` states of its tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.redaction import REDACTED, Redactor
from perfdb_git.formats.strict_yaml import read_yaml
from perfdb_git.model.values import JsonValue

_DATE = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])")
_NODE_NAMES = "fabric_identit"
_RUNTIMES = ("cuda", "torch", "nvshmem", "deep_ep")


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """How one table was collected, as far as its sidecar says.

    Attributes
    ----------
    measured_at : str or None
        Date of the collection.
    driver : str or None
        Version of the device driver.
    runtimes : mapping
        Versions of libraries beside the framework.
    status : str or None
        What the sidecar says of the table: complete, partial, legacy.
    stated : mapping
        All of what it says, for ``observed``; without names of nodes, and images without the
        registry's path, which may name a user.
    """

    measured_at: str | None = None
    driver: str | None = None
    runtimes: Mapping[str, str] = field(default_factory=dict)
    status: str | None = None
    stated: Mapping[str, JsonValue] = field(default_factory=dict)


def collection_of(content: bytes | None, kind: str, *, document: str) -> Collection:
    """Read what a sidecar says of one table.

    Parameters
    ----------
    content : bytes or None
        The sidecar; None where the folder has none.
    kind : str
        Name of the table.
    document : str
        Name of the sidecar, for messages.

    Raises
    ------
    InvalidInputError
        The sidecar is not strict YAML.
    """
    if content is None:
        return Collection()
    value = read_yaml(content, document=document)
    if not isinstance(value, Mapping):
        return Collection()
    runtime, table = (
        _mapping(value.get("runtime")),
        _mapping(_mapping(value.get("tables")).get(kind)),
    )
    abi = _mapping(runtime.get("abi"))
    date = table.get("collected_at")
    is_date = isinstance(date, str) and _DATE.fullmatch(date) is not None
    driver = abi.get("driver")
    status = table.get("status")
    stated: dict[str, JsonValue] = {"sha256": sha256_hex(content)}
    if isinstance(value.get("provenance"), str):
        stated["provenance"] = value["provenance"]
    stated |= {"runtime": _redacted(runtime), "table": _redacted(table)}
    return Collection(
        measured_at=str(date) if is_date else None,
        driver=str(driver) if isinstance(driver, str) else None,
        runtimes={name: str(abi[name]) for name in _RUNTIMES if isinstance(abi.get(name), str)},
        status=status if isinstance(status, str) else None,
        stated=stated,
    )


def _mapping(value: object) -> Mapping[str, JsonValue]:
    return value if isinstance(value, Mapping) else {}


def _redacted(value: JsonValue, key: str = "") -> JsonValue:
    if key.startswith(_NODE_NAMES):
        return REDACTED
    if isinstance(value, Mapping):
        return {name: _redacted(item, name) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(item, key) for item in value]
    if isinstance(value, str):
        text = value.rpartition("/")[2] if key == "image" else value
        return Redactor().text(text)
    return value
