"""Gates of a snapshot as entries and a table: the limits in force by series."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from perfdb_git.database import DatabaseSnapshot
from perfdb_git.model.gates import ErrorLimits, GateLimits, Gates
from perfdb_git.reports.screen import Line, table
from perfdb_git.storage import layout

_ANY = "any other"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateEntry:
    """The limits in force for one series, defaults filled in.

    ``response``, ``operation`` and ``device`` are ``None`` for all series that are not named.
    """

    response: str | None
    operation: str | None
    device: str | None
    limits: GateLimits


def gate_entries(snapshot: DatabaseSnapshot) -> list[GateEntry]:
    """Return the gates of a snapshot, the defaults last; none where there is no gates document."""
    document = snapshot.evidence.document(layout.GATES, Gates, "gates")
    if document is None:
        return []
    gates = document.value
    entries = [
        GateEntry(
            response=item.response,
            operation=item.operation,
            device=item.device,
            limits=gates.limits_for(item.response, item.operation, item.device),
        )
        for item in gates.series
    ]
    rest = GateEntry(response=None, operation=None, device=None, limits=gates.defaults)
    return [*entries, rest]


def gates_table(entries: Sequence[object]) -> list[Line]:
    """Return gates for people: of each series the limits that differ from those of any other."""
    gates = [entry for entry in entries if isinstance(entry, GateEntry)]
    general = dict(stated_limits(gates[-1].limits)) if gates else {}
    rows = [
        [
            entry.operation or _ANY,
            entry.device or _ANY,
            entry.response or _ANY,
            _limits_text(entry, {} if entry.operation is None else general),
        ]
        for entry in gates
    ]
    return table(["operation", "device", "response", "limits of its own"], rows, wrap=True)


def _limits_text(entry: GateEntry, known: Mapping[str, float]) -> str:
    own = (item for item in stated_limits(entry.limits) if known.get(item[0]) != item[1])
    return ", ".join(f"{name} {value:g}" for name, value in own) or "none"


def stated_limits(
    limits: ErrorLimits | GateLimits, prefix: str = ""
) -> Iterator[tuple[str, float]]:
    """Yield name and value of each limit that is there."""
    for item in fields(limits):
        value = getattr(limits, item.name)
        if isinstance(value, ErrorLimits):
            yield from stated_limits(value, f"{prefix}{item.name}.")
        elif value is not None:
            yield f"{prefix}{item.name}", value
