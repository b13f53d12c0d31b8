"""Facts that a file lacks and its user states: ``--set KEY=VALUE``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from zoneinfo import ZoneInfo

from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.importers.timestamps import stated_time, time_zone
from perfdb_git.importers.tool_results import ReadingFacts
from perfdb_git.model.records import MeasurementProtocol
from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.queries import parse_pairs
from perfdb_git.storage.layout import MANIFESTS, manifest_path

PROTOCOL_TEXTS = ("synchronization", "clock_state", "power_state")
PROTOCOL_COUNTS = ("warmup", "repetitions")
OTHER_KEYS = ("environment", "measured_at", "zone", "session", "license", "tool_version")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_DIGEST = re.compile(r"[0-9a-f]{6,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedFacts:
    """What the user states of the run.

    Attributes
    ----------
    dimensions : mapping
        Canonical values by dimension.
    protocol : mapping
        Fields of `MeasurementProtocol`.
    manifest : bytes or None
        The environment manifest, where one was named.
    """

    dimensions: Mapping[str, Scalar | None] = field(default_factory=dict)
    protocol: Mapping[str, str | int | None] = field(default_factory=dict)
    manifest: bytes | None = None
    measured_at: str | None = None
    zone: ZoneInfo | None = None
    session: str | None = None
    license: str | None = None
    tool_version: str | None = None

    @property
    def reading(self) -> ReadingFacts:
        """What importers may see of them."""
        return ReadingFacts(dimensions=self.dimensions, zone=self.zone)

    def protocol_with(self, read: MeasurementProtocol, *, place: str) -> MeasurementProtocol:
        """Return a protocol with the stated facts; the file's own stand.

        Raises
        ------
        InvalidInputError
            'contradicted-fact' where the file says otherwise.
        """
        changes: dict[str, str | int | None] = {}
        for name, value in self.protocol.items():
            own = getattr(read, name)
            if own is None:
                changes[name] = value
            elif own != value:
                raise contradiction(name, value, own, place)
        if not changes:
            return read
        values = {name: getattr(read, name) for name in MeasurementProtocol.__dataclass_fields__}
        return MeasurementProtocol(**{**values, **changes})


def contradiction(name: str, stated: object, own: object, document: str) -> InvalidInputError:
    """Return the refusal of a stated fact that the file contradicts."""
    return InvalidInputError(
        f"says {name} = {own!r}, --set says {stated!r}",
        code="contradicted-fact",
        document=document,
        remedy=f"leave {name} out: what the tool wrote is nearer to the measurement",
    )


def read_stated_facts(
    pairs: Iterable[str], vocabulary: Vocabulary, repository: Path
) -> StatedFacts:
    """Read ``KEY=VALUE`` texts.

    Parameters
    ----------
    pairs : iterable of str
        As typed. Keys are dimensions of the vocabulary, fields of the protocol, and
        `OTHER_KEYS`.
    vocabulary : Vocabulary
        Of the repository.
    repository : Path
        Where manifests are looked up.

    Raises
    ------
    UsageError
        An unknown key, term or zone, a fact given twice, a bad number, no such manifest.
    """
    own = (*PROTOCOL_TEXTS, *PROTOCOL_COUNTS, *OTHER_KEYS)
    texts: dict[str, str] = {}
    dimensions: list[str] = []
    for pair in pairs:
        key, separator, value = (part.strip() for part in pair.partition("="))
        if not separator or key not in own:
            dimensions.append(_known_key(pair, key, bool(separator), vocabulary, own))
        elif texts.setdefault(key, value) != value:
            raise UsageError(f"{key} is given twice", code="repeated-fact")
        elif not value:
            raise UsageError(f"{key} is empty", code="empty-value", remedy="leave it out")
    zone = time_zone(texts["zone"]) if "zone" in texts else None
    return StatedFacts(
        dimensions=parse_pairs(dimensions, vocabulary),
        protocol={
            **{name: texts[name] for name in PROTOCOL_TEXTS if name in texts},
            **{name: _count(name, texts[name]) for name in PROTOCOL_COUNTS if name in texts},
        },
        manifest=_manifest(texts["environment"], repository) if "environment" in texts else None,
        measured_at=_instant(texts["measured_at"], zone) if "measured_at" in texts else None,
        zone=zone,
        session=texts.get("session"),
        license=texts.get("license"),
        tool_version=texts.get("tool_version"),
    )


def _known_key(
    pair: str, key: str, separated: bool, vocabulary: Vocabulary, own: tuple[str, ...]
) -> str:
    # `parse_pairs` refuses the rest; its list of known keys would lack those of an import.
    if separated and key not in vocabulary.dimensions:
        raise UsageError(
            f"--set knows no {key!r}",
            code="unknown-fact",
            remedy=f"known: the vocabulary's dimensions, {', '.join(own)}",
        )
    return pair


def _count(name: str, text: str) -> int:
    if not text.isdigit() or (name == "repetitions" and int(text) == 0):
        raise UsageError(f"{name}={text} is no count", code="bad-number")
    return int(text)


def _instant(text: str, zone: ZoneInfo | None) -> str:
    if _DATE.fullmatch(text):
        return text
    found = stated_time(text, document="--set measured_at", zone=zone)
    if found.utc is None:
        raise UsageError(
            f"measured_at={text} is no date, and no time with a zone",
            code="bad-time",
            remedy="write 2026-01-31 or 2026-01-31T12:00:00+01:00, or state zone=Europe/Berlin too",
        )
    return found.utc


def _manifest(text: str, repository: Path) -> bytes:
    """Return a manifest's bytes by its digest, a prefix of it, or a path."""
    path = Path(text)
    if _DIGEST.fullmatch(text):
        folder = repository / MANIFESTS
        found = sorted(item for item in folder.glob(f"{text}*.json"))
        if len(found) > 1:
            raise UsageError(f"several manifests begin with {text}", code="ambiguous-id")
        path = found[0] if found else repository / manifest_path(text)
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"the manifest {text} cannot be read: {error.strerror}",
            code="unreadable-file",
            remedy=f"name a file, or the digest of one under {MANIFESTS}",
        ) from error
