"""What the tools of GPU vendors say, in one form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from perfdb_git.model.values import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One device as its vendor's tool describes it; None is an explicit unknown.

    ``notes`` are further facts that two comparable runs share, by name; ``observed`` are those
    that change from one run to the next.
    """

    product: str | None
    firmware: str | None
    clock_policy: str | None
    power_policy: str | None
    notes: Mapping[str, str]
    observed: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorReport:
    """What one run of a vendor's tool said of one machine."""

    tool: str
    driver: str | None
    runtimes: Mapping[str, str | None]
    devices: tuple[Accelerator, ...]
    topology: str | None = None
    observed: Mapping[str, JsonValue] = field(default_factory=dict)


# What the tools print in the place of a fact that they do not have.
_NOTHING = frozenset(
    {
        "",
        "n/a",
        "[n/a]",
        "none",
        "not supported",
        "[not supported]",
        "unknown error",
        "[unknown error]",
        "err!",
        "unknown",
        "insufficient permissions",
        "requested functionality has been deprecated",
        "gpu is lost",
    }
)
_LONGEST = 200


def stated(text: str | None) -> str | None:
    """Return what a tool printed as one line, or None where it says that it does not know."""
    if text is None:
        return None
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return None if line.lower() in _NOTHING else line[:_LONGEST]
