"""Texts of options about verdicts, with one meaning in every command that judges values."""

from __future__ import annotations

from perfdb_git.errors import UsageError
from perfdb_git.operations.directions import Direction


def parse_share(option: str, text: str) -> float:
    """Read a share such as ``5%`` or ``0.05``.

    Raises
    ------
    UsageError
        'bad-share' for another text.
    """
    number, percent = (text[:-1], True) if text.endswith("%") else (text, False)
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise UsageError(
            f"{option}: {text!r} is no share",
            code="bad-share",
            remedy="write 5% or 0.05, from 0 to less than 100%",
        )
    return value


def parse_directions(texts: tuple[str, ...]) -> dict[str, Direction]:
    """Read texts such as ``power=lower``.

    Raises
    ------
    UsageError
        'bad-direction' for another text.
    """
    found: dict[str, Direction] = {}
    for text in texts:
        name, _, direction = text.partition("=")
        if not name or direction not in ("lower", "higher"):
            raise UsageError(
                f"--direction {text!r} is no direction",
                code="bad-direction",
                remedy="write METRIC=lower or METRIC=higher, whichever is better",
            )
        found[name] = "lower" if direction == "lower" else "higher"
    return found
