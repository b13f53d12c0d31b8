"""Kineto traces of PyTorch's profiler, read event by event, gzip or not.

``ts`` and ``dur`` are in us; ``displayTimeUnit`` is a hint for viewers. Only kernels become
records. User names, paths and everything else of the trace are not stored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from perfdb_git.importers.gpu_kernels import extent, kernel_point, overhead_remark
from perfdb_git.importers.layouts import number
from perfdb_git.importers.source_text import SourceText, refuse
from perfdb_git.importers.tool_results import (
    Environment,
    MetricColumn,
    Point,
    ReadingFacts,
    Remark,
    ToolImporter,
    ToolResult,
    finite,
)

_SAMPLES = MetricColumn("latency", "sample", "us")
_START = re.compile(r'(?<!\\)"traceEvents"\s*:\s*\[')
_GAP = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder()


def _recognises(source: SourceText) -> bool:
    head = source.head
    return source.is_trace and source.looks_like_json and '"schemaVersion"' in head


@dataclass(slots=True)
class _Kernels:
    """Launches by kernel, grid, block and device, and what was wrong with events."""

    launches: dict[tuple[Any, ...], list[tuple[float, float]]] = field(default_factory=dict)
    invalid: int = 0
    texts: int = 0

    def add(self, event: Mapping[str, Any]) -> None:
        """Take an event in, if it is a kernel."""
        if event.get("ph") != "X" or str(event.get("cat", "")).lower() != "kernel":
            return
        self.texts += isinstance(event.get("ts"), str) or isinstance(event.get("dur"), str)
        start, duration = _microseconds(event.get("ts")), _microseconds(event.get("dur"))
        if start is None or duration is None or duration <= 0:
            self.invalid += 1
            return
        arguments = event.get("args") or {}
        key = (
            str(event.get("name")),
            extent(arguments.get("grid") or ()),
            extent(arguments.get("block") or ()),
            arguments.get("device"),
        )
        self.launches.setdefault(key, []).append((start, duration))

    def points(self) -> list[Point]:
        """Return one record for each kernel, its samples in order of their start."""
        points = []
        for (name, grid, block, device), launches in self.launches.items():
            points.append(
                kernel_point(
                    f"kernel {name}",
                    name,
                    {_SAMPLES: tuple(duration for _, duration in sorted(launches))},
                    launch={"grid": grid, "block": block},
                    sources={"device_index": device if isinstance(device, int) else None},
                )
            )
        return points

    def remarks(self) -> Iterator[Remark]:
        """Yield what was left out or read with a reservation."""
        if self.invalid:
            text = f"left out {self.invalid} kernel events without a duration"
            yield Remark(code="invalid-events", text=text)
        if self.texts:
            text = f"{self.texts} kernel events have times as texts, read as numbers"
            yield Remark(code="text-times", text=text)


def _microseconds(value: object) -> float | None:
    return number(value) if isinstance(value, str) else finite(value)


def _read(source: SourceText, facts: ReadingFacts) -> ToolResult:
    if not _recognises(source):
        refuse(source.document, "is no Kineto trace", "unknown-layout")
    stream = _Stream(source)
    kernels = _Kernels()
    for event in stream.events():
        if isinstance(event, dict):
            kernels.add(event)
    rest = stream.rest()
    devices = rest.get("deviceProperties") or []
    user = rest.get("username")
    runtime = rest.get("cuda_runtime_version") or rest.get("hip_runtime_version")
    library = "cuda" if "cuda_runtime_version" in rest else "hip"
    return ToolResult(
        tool="kineto",
        revision=None,
        kind="profiled",
        points=kernels.points(),
        environment=Environment(
            device_names=tuple(
                dict.fromkeys(str(item["name"]) for item in devices if item.get("name"))
            ),
            device_count=len(devices) or None,
            driver=None,
            runtimes={} if runtime is None else {library: str(runtime)},
            users=() if not user else (str(user),),
        ),
        remarks=(*kernels.remarks(), *overhead_remark(summary=False)),
    )


class _Stream:
    """The events of a trace, of which only a piece of text is held at a time."""

    def __init__(self, source: SourceText) -> None:
        self._document = source.document
        self._chunks = source.chunks()
        self._buffer = ""
        self._before = ""

    def _more(self) -> bool:
        part = next(self._chunks, None)
        if part is None:
            return False
        self._buffer += part
        return True

    def events(self) -> Iterator[Any]:
        """Yield every event.

        Raises
        ------
        InvalidInputError
            'broken-json' for a trace that was cut off.
        """
        start = _START.search(self._buffer)
        while start is None:
            if not self._more():
                refuse(self._document, "has no list of events", "unknown-layout")
            start = _START.search(self._buffer)
        self._before, self._buffer = self._buffer[: start.start()], self._buffer[start.end() :]
        place = 0
        while True:
            gap = _GAP.match(self._buffer, place)
            place = gap.end() if gap else place
            if self._buffer.startswith("]", place):
                self._buffer = self._buffer[place:]
                return
            try:
                event, place = _DECODER.raw_decode(self._buffer, place)
            except ValueError:
                self._buffer, place = self._buffer[place:], 0
                if not self._more():
                    refuse(self._document, "is a trace that was cut off", "broken-json")
                continue
            yield event

    def rest(self) -> Mapping[str, Any]:
        """Return everything but the events, after they were all read."""
        while self._more():
            pass
        try:
            value = _DECODER.decode(f'{self._before}"traceEvents":[{self._buffer}')
        except ValueError:
            refuse(self._document, "is a trace that was cut off", "broken-json")
        return value if isinstance(value, dict) else {}


KINETO = ToolImporter(
    name="kineto",
    version=1,
    summary="Import the kernels of a PyTorch profiler (Kineto) trace, gzip or not.",
    recognises=_recognises,
    read=_read,
)
