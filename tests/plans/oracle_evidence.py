"""Small Vidur tables, imported or held back, and a plan that asks about their shapes."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from perfdb_git.importers.requests import ImportRequest
from perfdb_git.importers.table import import_table
from tests.cli.evidence import Evidence
from tests.plans.plan_evidence import put_plan, query

STATISTICS = ("min", "max", "mean", "median", "std")
COMPONENTS = {
    "emb": 0.002,
    "input_layernorm": 0.008,
    "attn_pre_proj": 0.04,
    "attn_rope": 0.004,
    "attn_post_proj": 0.02,
    "mlp_up_proj": 0.05,
    "mlp_act": 0.006,
    "mlp_down_proj": 0.06,
    "add": 0.004,
}
"""Milliseconds of one token."""

PHI = {"n_head": 32, "n_kv_head": 32, "n_embd": 2560, "n_expanded_embd": 10240}
"""Heads and sizes of the oracle's model."""

LLAMA = {"n_head": 32, "n_kv_head": 32, "n_embd": 4096, "n_expanded_embd": 11008}
"""Another model, whose evidence may stay."""

SHARED = {"device": "a100_80g", "dtype": "float16"}
NORM = {"operation": "norm", **SHARED, "tokens": 8, "hidden_size": 2560, "norm_kind": "layer"}
UP = {"operation": "gemm", **SHARED, "m": 8, "n": 10240, "k": 2560}
DOWN = {"operation": "gemm", **SHARED, "m": 8, "n": 2560, "k": 10240}
GELU = {"operation": "elementwise", **SHARED, "elements": 81920, "elementwise_kind": "gelu"}
PLAN = {
    "schema": "perfdb/plan/v1",
    "name": "step",
    "description": "Parts of one layer.",
    "queries": [
        query("norm", NORM),
        query("up", UP, multiplicity=3),
        query("down", DOWN),
        query("act", GELU),
    ],
    "composition": {"kind": "sum"},
}


def milliseconds(component: str, tokens: int, *, scale: float = 1.0) -> float:
    """Return what the table states of a component."""
    return round(COMPONENTS[component] * (1 + tokens / 64) * scale, 6)


def mlp_csv(
    tokens: Sequence[int], model: dict[str, int] = PHI, *, scale: float = 1.0, only: str = ""
) -> bytes:
    """Return a table as Vidur writes it; ``only`` names the one statistic that is kept."""
    kept = (only,) if only else STATISTICS
    names = [f"time_stats.{name}.{statistic}" for name in COMPONENTS for statistic in kept]
    keys = {**model, "vocab_size": 51200, "use_gated_mlp": False}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*names, *keys, "num_tokens", "num_tensor_parallel_workers"])
    for count in tokens:
        cells: list[Any] = []
        for name in COMPONENTS:
            value = milliseconds(name, count, scale=scale)
            cells += [0.0001 if statistic == "std" else value for statistic in kept]
        writer.writerow([*cells, *keys.values(), count, 1])
    return out.getvalue().encode()


def import_mlp(evidence: Evidence, folder: Path, content: bytes, model: str = "phi-2") -> Path:
    """Import a table into the work tree from upstream's folders below ``folder``."""
    path = folder / "compute" / "a100" / "organisation" / model / "mlp.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    import_table(
        ImportRequest(
            repository=evidence.path,
            mapping="vidur-mlp",
            files=(path,),
            source_root=folder,
            source_revision="7d47513f0d3e1f8c4b6c2a9e5d7f8a1b2c3d4e5f",
        )
    )
    return path


def commit_step(evidence: Evidence) -> str:
    put_plan(evidence, PLAN)
    return evidence.commit("a plan")
