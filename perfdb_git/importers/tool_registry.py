"""Which importers there are, and which of them a file belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.importers.source_text import SourceText
from perfdb_git.importers.tool_results import ToolImporter

GROUP = "perfdb.importers"
"""Entry-point group in which packages offer a `ToolImporter`."""

AUTO = "auto"

_HERE = "perfdb_git.importers"
SHIPPED: Mapping[str, str] = {
    "accel-sim": f"{_HERE}.simulators:ACCEL_SIM",
    "babelstream": f"{_HERE}.stream:BABELSTREAM",
    "fio": f"{_HERE}.fio:FIO",
    "gem5": f"{_HERE}.simulators:GEM5",
    "google-benchmark": f"{_HERE}.google_benchmark:GOOGLE_BENCHMARK",
    "hyperfine": f"{_HERE}.hyperfine:HYPERFINE",
    "iperf3": f"{_HERE}.iperf3:IPERF3",
    "kineto": f"{_HERE}.kineto:KINETO",
    "llama-bench": f"{_HERE}.llama_bench:LLAMA_BENCH",
    "llm-serving": f"{_HERE}.llm_serving:LLM_SERVING",
    "mlperf": f"{_HERE}.mlperf:MLPERF",
    "nccl-tests": f"{_HERE}.nccl_tests:NCCL_TESTS",
    "nsight-compute": f"{_HERE}.nsight_compute:NSIGHT_COMPUTE",
    "nsight-systems": f"{_HERE}.nsight_systems:NSIGHT_SYSTEMS",
    "nvbench": f"{_HERE}.nvbench:NVBENCH",
    "osu": f"{_HERE}.osu:OSU",
    "perftest": f"{_HERE}.perftest:PERFTEST",
    "pyperf": f"{_HERE}.pyperf:PYPERF",
    "pytest-benchmark": f"{_HERE}.pytest_benchmark:PYTEST_BENCHMARK",
    "rccl-tests": f"{_HERE}.nccl_tests:RCCL_TESTS",
    "rocprof": f"{_HERE}.rocprof:ROCPROF",
    "stream": f"{_HERE}.stream:STREAM",
}
"""Importers of this package by name: ``module:attribute``, as its entry points have them. A work
tree whose installed metadata is older has them all the same."""


@cache
def importer_names() -> tuple[str, ...]:
    """Return the names of all importers, sorted."""
    return tuple(sorted({*SHIPPED, *_foreign()}))


def importer(name: str) -> ToolImporter:
    """Return an importer by name.

    Raises
    ------
    UsageError
        'unknown-importer', or 'broken-importer' where an entry point names no importer.
    """
    place = SHIPPED.get(name)
    if place is not None:
        module, _, attribute = place.partition(":")
        found: object = getattr(import_module(module), attribute)
    else:
        entry = _foreign().get(name)
        if entry is None:
            raise UsageError(
                f"no importer is called {name!r}",
                code="unknown-importer",
                remedy=f"known: {', '.join(importer_names())}",
            )
        try:
            found = entry.load()
        except (ImportError, AttributeError) as error:
            raise UsageError(
                f"the importer {name!r} of {entry.value} cannot be loaded: {error}",
                code="broken-importer",
            ) from error
    if not isinstance(found, ToolImporter):
        raise UsageError(f"the entry point {name!r} names no ToolImporter", code="broken-importer")
    return found


def sniff(source: SourceText) -> ToolImporter:
    """Return the one importer that takes the file for its own.

    Raises
    ------
    InvalidInputError
        'unknown-format' where none does, 'ambiguous-format' where several do.
    """
    found = [item for item in map(importer, importer_names()) if item.recognises(source)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(item.name for item in found)
        raise InvalidInputError(
            f"could be a file of {names}",
            code="ambiguous-format",
            document=source.document,
            remedy="name the tool: perfdb import TOOL FILE",
        )
    source.require_readable()
    raise InvalidInputError(
        "is no file of a known tool",
        code="unknown-format",
        document=source.document,
        remedy="name the tool, or write a mapping: perfdb import table --mapping MAPPING FILE",
    )


@cache
def _foreign() -> Mapping[str, EntryPoint]:
    # A name of this package stays with it, whoever else claims it.
    found = entry_points(group=GROUP)
    return {entry.name: entry for entry in found if entry.name not in SHIPPED}
