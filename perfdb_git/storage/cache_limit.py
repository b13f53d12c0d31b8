"""How large a cache directory may grow."""

from __future__ import annotations

import os
import re

from perfdb_git.errors import UsageError

LIMIT_VARIABLE = "PERFDB_CACHE_LIMIT"
DEFAULT_LIMIT = 4 * 1024**3
"""4 GiB: columns of about a hundred million rows with four numbers each."""

NO_LIMIT = "none"

_SIZE = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?) ?(?P<prefix>[kKMGT]?)(?P<binary>i?)B?")
_PREFIXES = ("", "k", "M", "G", "T")


def parse_size(text: str) -> int | None:
    """Return a size in bytes; None for ``none``.

    Parameters
    ----------
    text : str
        A number with a unit: ``500MB``, ``4GiB``, ``1.5 GB``, or bytes without one.

    Raises
    ------
    UsageError
        'wrong-size' for anything else.
    """
    if text == NO_LIMIT:
        return None
    match = _SIZE.fullmatch(text)
    if match is None:
        raise UsageError(
            f"{text!r} is no size",
            code="wrong-size",
            remedy="write it like 500MB or 4GiB, or none for no limit",
        )
    power = _PREFIXES.index("k" if match["prefix"] == "K" else match["prefix"])
    return int(float(match["number"]) * (1024 if match["binary"] else 1000) ** power)


def cache_limit() -> int | None:
    """Return ``$PERFDB_CACHE_LIMIT`` in bytes, else `DEFAULT_LIMIT`; None for no limit.

    Raises
    ------
    UsageError
        'wrong-size'.
    """
    stated = os.environ.get(LIMIT_VARIABLE)
    return parse_size(stated) if stated else DEFAULT_LIMIT
