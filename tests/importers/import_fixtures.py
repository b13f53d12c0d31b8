"""An empty evidence repository, upstream files made by hand, and readers of the result."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.importers.requests import ImportReport, ImportRequest
from perfdb_git.importers.table import import_table

PROJECT = Path(__file__).parents[2]
STATISTICS = ("min", "max", "mean", "median", "std")


@dataclass
class RecordSet:
    """A written record set, with its cells by column."""

    document: dict[str, Any]

    @property
    def context(self) -> dict[str, Any]:
        return self.document["context"]

    @property
    def source(self) -> dict[str, Any]:
        return self.document["source"]

    def column(self, name: str, statistic: str | None = None) -> list[Any]:
        for index, column in enumerate(self.document["columns"]):
            if column["name"] == name and column.get("statistic") == statistic:
                return [row[index] for row in self.document["rows"]]
        raise KeyError(name)


class Evidence:
    """An evidence repository without Git, and the folder that upstream files lie in."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "evidence-repository"
        self.upstream = folder / "upstream"
        (self.root / "evidence").mkdir(parents=True)
        self.upstream.mkdir()
        shutil.copy(PROJECT / "evidence" / "vocabulary.yaml", self.root / "evidence")

    def put(self, name: str, content: str | bytes) -> Path:
        path = self.upstream / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def put_parquet(self, name: str, columns: Mapping[str, Sequence[Any]]) -> Path:
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        path = self.upstream / name
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pyarrow.table(dict(columns)), path)
        return path

    def run(self, mapping: str | Path, *files: Path, **options: Any) -> ImportReport:
        options.setdefault("source_root", self.upstream)
        options.setdefault("source_revision", "0123456789abcdef0123456789abcdef01234567")
        request = ImportRequest(repository=self.root, mapping=str(mapping), files=files, **options)
        return import_table(request)

    def record_sets(self) -> list[RecordSet]:
        schemas = SchemaStore()
        found = []
        for path in sorted((self.root / "evidence" / "records").rglob("*.json")):
            document = json.loads(path.read_bytes())
            schemas.validate(document, document=path.name, expected_kind="record-set")
            manifest = self.root / "evidence" / "manifests" / f"{document['environment']}.json"
            schemas.validate(
                json.loads(manifest.read_bytes()), document="m", expected_kind="manifest"
            )
            found.append(RecordSet(document))
        return found

    def one(self, **wanted: Any) -> RecordSet:
        """Return the one record set whose context or upstream keys have these values."""
        found = [
            item
            for item in self.record_sets()
            if all({**item.source["keys"], **item.context}.get(k) == v for k, v in wanted.items())
        ]
        assert len(found) == 1, f"{len(found)} record sets for {wanted}"
        return found[0]

    def files(self) -> list[str]:
        return sorted(p.relative_to(self.root).as_posix() for p in self.root.rglob("*.json"))


def csv_text(rows: Sequence[Mapping[str, object]]) -> str:
    header = list(rows[0])
    lines = [",".join(header)]
    lines += [",".join(str(row[name]) for name in header) for row in rows]
    return "\n".join(lines) + "\n"


def timings(operation: str, *values: object) -> dict[str, object]:
    """Cells of one timed operation: min, max, mean, median, std."""
    return {
        f"time_stats.{operation}.{name}": value
        for name, value in zip(STATISTICS, values, strict=True)
    }


MLP_OPERATIONS = (
    "emb",
    "input_layernorm",
    "attn_pre_proj",
    "attn_rope",
    "attn_post_proj",
    "post_attention_layernorm",
    "mlp_up_proj",
    "mlp_act",
    "mlp_down_proj",
    "add",
)


def mlp_row(
    tokens: int, ranks: int, *, gated: bool = True, without: Sequence[str] = (), scale: float = 1.0
) -> dict[str, object]:
    """One row of a made-up model: 8 heads of 16, 2 of them key-value heads, feed-forward 480."""
    row: dict[str, object] = {}
    for index, name in enumerate(MLP_OPERATIONS):
        if name not in without:
            base = round((index + 1) * scale, 3)
            row |= timings(name, base, base + 0.5, base + 0.25, base + 0.125, 0.0625)
    return row | {
        "n_head": 8,
        "n_kv_head": 2 if gated else 8,
        "n_embd": 128,
        "n_expanded_embd": 480,
        "vocab_size": 1000,
        "use_gated_mlp": gated,
        "num_tokens": tokens,
        "num_tensor_parallel_workers": ranks,
    }


def attention_row(
    prefill: bool, batch: int, chunk: int, cached: int, *values: object
) -> dict[str, object]:
    empty = ("",) * 5
    times = values or (0.015, 0.017, 0.016, 0.016, 0.001)
    return {
        **timings("attn_input_reshape", 0.0, 0.0, 0.0, 0.0, 0.0),
        **timings("attn_decode", *(empty if prefill else times)),
        **timings("attn_output_reshape", 0.001, 0.002, 0.001, 0.001, 0.0),
        **timings("attn_prefill", *(times if prefill else empty)),
        "n_embd": 128,
        "n_q_head": 8,
        "n_kv_head": 2,
        "block_size": 16,
        "num_tensor_parallel_workers": 2,
        "max_model_len": 4096,
        "batch_size": batch,
        "prefill_chunk_size": chunk,
        "kv_cache_size": cached,
        "is_prefill": prefill,
        "attention_backend": "AttentionBackend.FLASH_ATTENTION",
    }


def network_row(
    index: int, collective: str, workers: int, per_node: int, size: int, *values: object
) -> dict[str, object]:
    times = values or (0.007, 0.038, 0.017, 0.009, 0.0146)
    return {
        "": index,
        **timings(collective, *times),
        "rank": 0,
        "num_workers": workers,
        "size": size,
        "collective": collective,
        "devices_per_node": per_node,
        "max_devices_per_node": 8,
    }


MLP_PATH = "data/profiling/compute/a100/meta-llama/Llama-2-70b-hf/mlp.csv"
PHI_PATH = "data/profiling/compute/a100/microsoft/phi-2/mlp.csv"

MAPPING = """
schema: perfdb/mapping/v1
name: bench
version: 1
description: A small table of matrix products.
kind: measured
format: csv
source: {tool: bench, license: MIT, path: "{system}/gemm.csv"}
session: bench-{system}-{run}
environment:
  device: "{device}"
  device_count: 1
  form_factor: null
  driver: null
  firmware: null
  runtimes: {bench: "{run}"}
  kernel: null
  operating_system: null
  processor: null
  clock_policy: null
  power_policy: null
  topology: null
protocol:
  warmup: null
  repetitions: null
  synchronization: null
  timer_resolution: null
  clock_state: null
  power_state: null
  measurement_error: null
variables:
  device: {of: system, table: {a100: a100_80g, h100: h100_80g}}
dimensions:
  device: {variable: device}
source_columns: [run]
ignored_columns: [note]
operations:
  - operation: gemm
    dimensions:
      dtype: {column: kind, table: {half: float16, single: float32}}
      m: {column: m}
      "n": {column: "n"}
      k: {column: k}
    metrics:
      - {column: latency, metric: latency, statistic: median, unit: us}
"""


BENCH_HEADER = "run,kind,m,n,k,latency,note\n"
