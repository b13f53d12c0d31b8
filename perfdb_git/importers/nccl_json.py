"""The JSON that nccl-tests write with ``-J``; numbers and booleans may be texts there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from perfdb_git.importers.collectives import (
    CollectiveRow,
    CollectiveRun,
    collective_point,
    collective_protocol,
    library_version,
    nodes_of,
    operation_of_run,
    row_fault,
)
from perfdb_git.importers.source_text import SourceText, refuse
from perfdb_git.importers.timestamps import stated_time
from perfdb_git.importers.tool_results import (
    Environment,
    ReadingFacts,
    Remark,
    ToolResult,
    finite,
)
from perfdb_git.model.records import MeasurementProtocol

_HALVES = ("out_of_place", "in_place")


def looks_like_nccl_json(source: SourceText) -> bool:
    """Say whether a file has the keys of nccl-tests' JSON."""
    value = source.json_object()
    return value is not None and {"nccl_version", "config", "results", "args"} <= value.keys()


def read_nccl_json(source: SourceText, facts: ReadingFacts) -> ToolResult:
    """Read one run; its ``env``, which holds every environment variable, is never looked at.

    Raises
    ------
    InvalidInputError
        For another layout, or an unknown collective.
    """
    value = source.json()
    if not looks_like_nccl_json(source):
        refuse(source.document, "is no JSON of nccl-tests", "unknown-layout")
    config = value["config"]
    devices = config.get("devices", value.get("devices")) or []
    ranks = _count_ranks(devices, config)
    arguments = value["args"]
    program = PurePosixPath(str(arguments[0])).name if arguments else None
    rows, skipped = _rows(value["results"], source.document)
    hosts = [str(device.get("hostname")) for device in devices]
    run = CollectiveRun(
        document=source.document,
        operation=operation_of_run(program, facts, rows, ranks, source.document),
        ranks=ranks,
        ranks_per_node=_per_node(hosts, ranks),
        protocol=_protocol(config),
    )
    faults = {row.place: row_fault(row, run) for row in rows}
    code = value["nccl_version"]
    start = value.get("start_time")
    return ToolResult(
        tool="nccl-tests",
        revision=None,
        points=[collective_point(row, run) for row in rows if faults[row.place] is None],
        time=None
        if start is None
        else stated_time(str(start), document=source.document, zone=facts.zone),
        environment=Environment(
            device_names=tuple(dict.fromkeys(str(d.get("device_info")) for d in devices)),
            device_count=ranks,
            runtimes={"nccl": library_version(code) if isinstance(code, int) else None},
            hosts=tuple(dict.fromkeys(hosts)),
        ),
        bad_rows=tuple(f"{place}: {fault}" for place, fault in faults.items() if fault),
        remarks=(
            *(
                Remark(code="failed-check", text=f"{row.place}: wrong results, without a time")
                for row in rows
                if row.wrong
            ),
            *skipped,
        ),
    )


def _rows(results: Any, document: str) -> tuple[list[CollectiveRow], list[Remark]]:
    rows: list[CollectiveRow] = []
    remarks: list[Remark] = []
    for index, item in enumerate(results):
        for half in _HALVES:
            body = item.get(half)
            place = f"/results/{index}/{half}"
            if body is None:
                remarks.append(Remark(code="absent-half", text=f"{place} was not run"))
                continue
            if not isinstance(item.get("size"), int):
                refuse(document, "has no size", "unknown-layout", pointer=f"/results/{index}")
            reduction = item.get("redop")
            per_iteration = item.get(f"{half}_per_iter") or {}
            samples = [finite(time) for time in per_iteration.get("times_us", ())]
            rows.append(
                CollectiveRow(
                    place=place,
                    size=item["size"],
                    element_type=str(item.get("type")),
                    reduction=None if reduction in (None, "none") else str(reduction),
                    root=None if item.get("root") is None else str(item["root"]).strip(),
                    in_place=half == "in_place",
                    time=finite(body.get("cpu_time", body.get("time"))),
                    is_cpu_time="cpu_time" in body,
                    algorithm_bandwidth=finite(body.get("alg_bw")),
                    bus_bandwidth=finite(body.get("bus_bw")),
                    wrong=finite(body.get("nwrong")),
                    samples=tuple(time for time in samples if time is not None),
                )
            )
    return rows, remarks


def _count_ranks(devices: list[Mapping[str, Any]], config: Mapping[str, Any]) -> int | None:
    """Return the number of ranks; a list with one entry a process holds its first rank only."""
    each = config.get("nthreads"), config.get("ngpus")
    numbers = sorted(device["rank"] for device in devices if isinstance(device.get("rank"), int))
    groups = {device.get("group") for device in devices}
    if not numbers or len(numbers) != len(devices) or len(groups) > 1:
        return None
    if not all(isinstance(count, int) for count in each):
        return None
    per_process = each[0] * each[1]  # type: ignore[operator]
    if numbers == [per_process * place for place in range(len(numbers))]:
        return len(numbers) * int(per_process)
    return len(numbers) if numbers == list(range(len(numbers))) else None


def _per_node(hosts: list[str], ranks: int | None) -> int | None:
    entries = nodes_of(hosts)
    if ranks is None or entries is None:
        return None
    return entries * ranks // len(hosts)


def _protocol(config: Mapping[str, Any]) -> MeasurementProtocol:
    notes = []
    if (config.get("aggregated_iterations") or 1) > 1:
        notes.append(f"{config['aggregated_iterations']} operations in each iteration")
    if config.get("graph"):
        notes.append(f"launched {config['graph']} times as a CUDA graph")
    if config.get("blocking_collectives") in (True, "true"):
        notes.append("waited after each collective")
    return collective_protocol(config.get("warmup_iters"), config.get("iterations"), notes)
