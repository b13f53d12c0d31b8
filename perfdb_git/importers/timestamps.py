"""Times as tools print them: an instant where the zone is known, else the text alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from perfdb_git.errors import InvalidInputError, UsageError

_UTC_WORD = re.compile(r"\s(?:UTC|GMT)\b")
_LOCAL_FORMATS = ("%a %b %d %H:%M:%S %Y", "%Y%m%d-%H%M%S", "%Y/%m/%d %H:%M:%S")
_RFC_1123 = re.compile(r"[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{4} [\d:]{8} (GMT|UTC|[+-]\d{4})")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedTime:
    """A time as a tool stated it.

    Attributes
    ----------
    text : str
        Verbatim.
    utc : str or None
        The instant, ``2026-03-29T08:00:00Z``; None where nobody stated the zone.
    """

    text: str
    utc: str | None


def time_zone(name: str) -> ZoneInfo:
    """Return a time zone by its IANA name.

    Raises
    ------
    UsageError
        'unknown-zone'.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise UsageError(
            f"no time zone is called {name!r}",
            code="unknown-zone",
            remedy="give an IANA name, such as zone=Europe/Berlin or zone=UTC",
        ) from error


def stated_time(
    text: str, *, document: str, epoch_ms: float | None = None, zone: ZoneInfo | None = None
) -> StatedTime:
    """Read a time, never guessing its zone.

    Parameters
    ----------
    text : str
        As the tool printed it.
    document : str
        The file, for messages.
    epoch_ms : float or None
        Milliseconds since 1970-01-01T00:00Z, where the tool gives them beside the text.
    zone : ZoneInfo or None
        What the user states of a time without a zone.

    Raises
    ------
    InvalidInputError
        'no-such-time' or 'ambiguous-time': in that zone this local time does not exist, or
        occurred twice.
    """
    if epoch_ms is not None:
        seconds, rest = divmod(round(epoch_ms), 1000)
        moment = datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest * 1000)
        return StatedTime(text=text, utc=_written(moment))
    found = _parsed(text.strip())
    if found is None:
        return StatedTime(text=text, utc=None)
    if found.tzinfo is None:
        if zone is None:
            return StatedTime(text=text, utc=None)
        found = _local(found, zone, document)
    return StatedTime(text=text, utc=_written(found))


def _parsed(text: str) -> datetime | None:
    if _RFC_1123.fullmatch(text):
        return parsedate_to_datetime(text.replace("UTC", "GMT"))
    if _UTC_WORD.search(text):
        found = _parsed(_UTC_WORD.sub("", text))
        return None if found is None or found.tzinfo else found.replace(tzinfo=UTC)
    if text.endswith("z"):
        text = f"{text[:-1]}Z"
    is_iso = ("-" in text and len(text) > 15) or text[8:9] == "T"
    try:
        return datetime.fromisoformat(text) if is_iso else _by_format(text)
    except ValueError:
        return _by_format(text)


def _by_format(text: str) -> datetime | None:
    for form in _LOCAL_FORMATS:
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    return None


def _local(moment: datetime, zone: ZoneInfo, document: str) -> datetime:
    first, second = (moment.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    back = first.astimezone(UTC).astimezone(zone).replace(tzinfo=None)
    if back != moment:
        raise InvalidInputError(
            f"the local time {moment} does not exist in {zone.key}",
            code="no-such-time",
            document=document,
            remedy="give another zone, or the instant itself: --set measured_at=…Z",
        )
    if first.utcoffset() != second.utcoffset():
        raise InvalidInputError(
            f"the local time {moment} occurred twice in {zone.key}",
            code="ambiguous-time",
            document=document,
            remedy="give the instant itself: --set measured_at=…Z",
        )
    return first


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
