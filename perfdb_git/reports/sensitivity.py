"""What a plan depends on, for people: sources by their effect."""

from __future__ import annotations

from collections.abc import Sequence

from perfdb_git.plans.sensitivity import Dependence, Sensitivity
from perfdb_git.reports.quantities import percent, quantity
from perfdb_git.reports.screen import Line, fact, table

_SHORT = 8
_HEX_KINDS = ("record-set", "calibration")


def sensitivity_lines(found: Sensitivity) -> list[Line]:
    """Return the plan's number, and a line for each source, the largest effect first."""
    value = found.result.value
    assert value is not None
    name = "total" if found.way == "sum" else "makespan"
    lines = [Line(f"{found.plan}   {quantity(value, found.result.unit)} {name}", "strong"), Line()]
    titles = ["source", "what", f"+{percent(found.step)} adds", "of total", "queries"]
    rows = [_row(one, found.result.unit) for one in found.dependences]
    lines += table(titles, rows, right=titles[2:4])
    lines.append(Line())
    ways = {
        "sum": "each source changed alone, its records pooled again, and all added up",
        "simulation": "each source changed alone, and the pipeline simulated again",
    }
    lines += fact("how", ways[found.way])
    if any(one.kind == "calibration" for one in found.dependences):
        lines += fact("", "records that a calibration was fitted to are not followed")
    if found.left_out:
        lines += fact("left out", f"{', '.join(found.left_out)}: without an answer", "warn")
    commit = found.commit or "none: uncommitted files of the work tree"
    return lines + fact("commit", commit)


def _row(one: Dependence, unit: str) -> list[str]:
    name = one.name[:_SHORT] if one.kind in _HEX_KINDS else one.name
    return [
        f"{one.kind} {name}",
        one.label,
        quantity(one.change_s, unit),
        "-" if one.relative is None else percent(one.relative),
        _named(one.queries),
    ]


def _named(names: Sequence[str]) -> str:
    first, *others = names
    return f"{first} +{len(others)}" if others else first
