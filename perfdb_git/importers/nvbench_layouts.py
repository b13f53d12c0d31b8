"""The layouts of NVBench's output, each read into states with summaries by tag.

JSON of version 1 lists states, axis values and summaries with tags. Before it, summaries were known
by names; they and the states stood in objects by name, or in lists of values. The CSV has one row a
state; its columns ``Noise`` and ``Samples`` stand more than once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfdb_git.importers.layouts import number
from perfdb_git.importers.source_text import SourceText, refuse

JSON_MAJOR = 1
CSV_HEADER = ("Benchmark", "Device", "Device Name")

_OLD_NAMES = {
    "Number of Trials (Cold)": "nv/cold/sample_size",
    "Number of Samples (Cold)": "nv/cold/sample_size",
    "Average GPU Time (Cold)": "nv/cold/time/gpu/mean",
    "GPU Relative Standard Deviation (Cold)": "nv/cold/time/gpu/stdev/relative",
    "Average CPU Time (Cold)": "nv/cold/time/cpu/mean",
    "CPU Relative Standard Deviation (Cold)": "nv/cold/time/cpu/stdev/relative",
}
_CSV_TAGS = {
    "Samples": "nv/cold/sample_size",
    "CPU Time (sec)": "nv/cold/time/cpu/mean",
    "GPU Time (sec)": "nv/cold/time/gpu/mean",
    "Elem/s (elem/sec)": "nv/cold/bw/item_rate",
    "GlobalMem BW (bytes/sec)": "nv/cold/bw/global/bytes_per_second",
}
_CSV_UNREAD = frozenset(
    {
        *("Skipped", "Samples", "Noise", "Noise (%)", "BWUtil", "BWUtil (%)"),
        *("Batch", "Batch GPU (sec)"),
    }
)
_SKIPPED = "Skipped"
_POW2 = " (pow2)"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """One benchmark at one point of its axes, on one device.

    Attributes
    ----------
    place : str
        Where it stands.
    benchmark : str
        Name of the benchmark.
    axes : mapping of str to str
        Axis values, in their order.
    device : str or None
        Name of the device.
    device_id : str
        Its number.
    summaries : mapping of str to str
        The value of each summary as printed, by tag.
    files : frozenset of str
        Tags of summaries that name a file.
    skipped : str or None
        Why it was not measured.
    """

    place: str
    benchmark: str
    axes: Mapping[str, str]
    device: str | None
    device_id: str
    summaries: Mapping[str, str]
    skipped: str | None
    files: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The benchmark with its axis values, which tell its states apart."""
        return " ".join((self.benchmark, *(f"{axis}={value}" for axis, value in self.axes.items())))


def states_of_json(value: Mapping[str, Any], document: str) -> list[State]:
    """Read the states of a JSON document.

    Raises
    ------
    InvalidInputError
        'unknown-layout' for another major version.
    """
    version = value.get("meta", {}).get("version", {}).get("json", {})
    major = version.get("major", JSON_MAJOR)
    if major != JSON_MAJOR:
        refuse(
            document,
            f"is of version {version.get('string', major)} of NVBench's JSON",
            "unknown-layout",
            remedy=f"version {JSON_MAJOR} and the layouts before it are read",
        )
    names = {str(item.get("id")): item.get("name") for item in value.get("devices") or ()}
    return [
        _json_state(state, benchmark, names, f"/benchmarks/{number_}/states/{key}")
        for number_, benchmark in enumerate(value["benchmarks"])
        for key, state in _items(benchmark.get("states"))
    ]


def _items(found: Any) -> Iterator[tuple[str, Any]]:
    """Yield the items of a list by number, or of an object by name."""
    if isinstance(found, Mapping):
        yield from found.items()
    else:
        yield from ((str(place), item) for place, item in enumerate(found or ()))


def _json_state(
    state: Mapping[str, Any], benchmark: Mapping[str, Any], names: Mapping[str, Any], place: str
) -> State:
    device = str(state.get("device"))
    skipped = None
    if state.get("is_skipped"):
        skipped = str(state.get("skip_reason") or "no reason stated")
    return State(
        place=place,
        benchmark=str(benchmark["name"]),
        axes={
            str(axis.get("name", key)): str(axis["value"])
            for key, axis in _items(state.get("axis_values"))
        },
        device=None if names.get(device) is None else str(names[device]),
        device_id=device,
        summaries=dict(_json_fields(state, "value")),
        skipped=skipped,
        files=frozenset(tag for tag, _ in _json_fields(state, "filename")),
    )


def _json_fields(state: Mapping[str, Any], wanted: str) -> Iterator[tuple[str, str]]:
    """Yield one field of each summary, by tag."""
    for key, summary in _items(state.get("summaries")):
        tag = summary.get("tag") or _OLD_NAMES.get(key)
        fields = summary.get("data") or summary.get("values") or summary
        for name, item in _items(fields):
            if tag and isinstance(item, Mapping) and item.get("name", name) == wanted:
                yield str(tag), str(item.get("value"))


def states_of_csv(source: SourceText) -> list[State]:
    """Read the rows of a CSV.

    Raises
    ------
    InvalidInputError
        'unknown-layout', 'broken-table', 'unknown-units', or 'ambiguous-layout' for several
        benchmarks whose axes cannot be told from their summaries.
    """
    rows = source.csv_rows()
    header = rows[0][1]
    _require_titles(header, source.document)
    # Axes of the first benchmark stand before this column, and all summaries behind it.
    end = header.index(_SKIPPED)
    tags = _csv_columns(header, end)
    axes = [n for n in range(len(CSV_HEADER), end) if not header[n].endswith(_POW2)]
    others = [n for n in range(end, len(header)) if n not in tags and header[n] not in _CSV_UNREAD]
    found = []
    for line, cells in rows[1:]:
        if len(cells) != len(header):
            refuse(source.document, "has a row of another width", "broken-table", line=line)
        if cells[0] != rows[1][1][0] and any(cells[place] for place in others):
            refuse(
                source.document,
                f"{header[others[0]]!r} may be an axis or a summary of {cells[0]}",
                "ambiguous-layout",
                line=line,
                remedy="export one benchmark a file, or JSON: --json FILE",
            )
        found.append(_csv_state(header, cells, axes, tags, line))
    return found


def _csv_state(
    header: Sequence[str],
    cells: Sequence[str],
    axes: Sequence[int],
    tags: Mapping[int, str],
    line: int,
) -> State:
    is_skipped = cells[header.index(_SKIPPED)] != "No"
    return State(
        place=f"line {line}",
        benchmark=cells[0],
        axes={header[place]: cells[place] for place in axes if cells[place]},
        device=cells[2] or None,
        device_id=cells[1],
        summaries={tag: cells[place] for place, tag in tags.items() if cells[place]},
        skipped="no reason in the CSV" if is_skipped else None,
    )


def _csv_columns(header: Sequence[str], end: int) -> dict[int, str]:
    """Return the summaries that are read; of two with one title, the first is the isolated one."""
    found: dict[int, str] = {}
    for place in range(end, len(header)):
        tag = _CSV_TAGS.get(header[place])
        if tag is not None and tag not in found.values():
            found[place] = tag
    return found


def _require_titles(header: Sequence[str], document: str) -> None:
    if _SKIPPED not in header:
        refuse(document, f"has no column {_SKIPPED!r}", "unknown-layout", line=1)
    for title in header:
        if title.startswith(("CPU Time", "GPU Time")) and title not in _CSV_TAGS:
            text = f"states a time as {title!r}, not in seconds"
            refuse(document, text, "unknown-units", line=1)


def number_of(state: State, tag: str) -> float | None:
    """Return a summary's value, or None where it has none that is finite."""
    return number(state.summaries.get(tag, ""))
