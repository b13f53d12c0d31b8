"""Captured environments and their differences, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from perfdb_git.environment.capture import CapturedEnvironment
from perfdb_git.environment.differences import FactComparison
from perfdb_git.model.records import Manifest
from perfdb_git.model.values import JsonValue
from perfdb_git.reports.envelope import encoded
from perfdb_git.reports.quantities import counted
from perfdb_git.reports.screen import Line, fact, facts, table, wrapped

_UNKNOWN = "unknown"
_MOST_NOTES = 60


def manifest_lines(sha256: str, manifest: Manifest) -> list[Line]:
    """Return one manifest: its facts by name, unknown ones too."""
    lines = [Line(f"manifest {sha256}", "strong")]
    rows = [
        [name.replace("_", " "), _UNKNOWN if value is None else str(value)]
        for name, value in encoded(manifest).items()
        if name not in ("schema", "runtimes", "notes")
    ]
    rows += [[name, text or _UNKNOWN] for name, text in sorted(manifest.runtimes.items())]
    lines += table(["fact", "value"], rows, wrap=True)
    return lines + facts("notes", manifest.notes, most=_MOST_NOTES)


def captured_lines(captured: CapturedEnvironment, path: str, *, dry_run: bool) -> list[Line]:
    """Return what was captured: identity, why facts are unknown, what passes, and where it is."""
    lines = manifest_lines(captured.sha256, captured.manifest)
    why = [f"{name}: {reason}" for name, reason in captured.unknown.items()]
    lines += facts("unknown", why, most=len(why) or 1) if why else []
    passing = [f"{name}: {_compact(value)}" for name, value in captured.observed.items()]
    lines += facts("observed", passing, most=len(passing))
    return lines + fact("not written" if dry_run else "written", path)


def _compact(value: JsonValue) -> str:
    if isinstance(value, Mapping) and set(value) == {"value", "unit"}:
        return f"{value['value']:g} {value['unit']}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def difference_lines(names: tuple[str, str], comparisons: Sequence[FactComparison]) -> list[Line]:
    """Return the facts of two manifests that differ, and how many are equal or unknown."""
    differing = [item for item in comparisons if item.agreement == "different"]
    lines = [Line(f"- {names[0]}", "strong"), Line(f"+ {names[1]}", "strong")]
    for item in differing:
        lines.append(Line(item.name))
        lines += wrapped(item.first or _UNKNOWN, head="  - ")
        lines += wrapped(item.second or _UNKNOWN, head="  + ")
    equal = sum(item.agreement == "equal" for item in comparisons)
    unknown = [item.name for item in comparisons if item.agreement == "unknown"]
    if unknown:
        lines += fact("unknown", f"in both: {', '.join(unknown)}")
    verdict = (
        f"{counted(len(differing), 'fact')} of {len(comparisons)} differ"
        if differing
        else "no fact differs"
    )
    lines.append(
        Line(
            f"{verdict}, {equal} equal, {len(unknown)} unknown in both",
            "bad" if differing else "good",
        )
    )
    return lines


def difference_data(
    ids: tuple[str, str], comparisons: Sequence[FactComparison]
) -> dict[str, JsonValue]:
    """Return the same for programs."""
    return {
        "first": ids[0],
        "second": ids[1],
        "facts": [{**encoded(item), "agreement": item.agreement} for item in comparisons],
        "different": sum(item.agreement == "different" for item in comparisons),
    }
