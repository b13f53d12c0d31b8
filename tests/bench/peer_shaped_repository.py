"""A synthetic evidence repository in the shape of a published peer database, of any number of rows.

The published one has 12.59 million rows in 4,078 record sets once every string-valued dimension
stands in a header; sizes and numbers of files here follow its largest tables, the values follow
nothing. A smaller repository is the beginning of a larger one, so the same question can be asked
of all.
"""

from __future__ import annotations

import itertools
import math
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from perfdb_git.formats.canonical import canonical_record_set
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.storage.layout import manifest_path, record_set_path
from tests.bench.large_repository import (
    BASE_BRANCH,
    GIT_ENVIRONMENT,
    git,
    project_files,
    unknown_manifest,
)
from tests.record_headers import table_source, timed_protocol

FULL_ROWS = 12_590_000
BRANCH = BASE_BRANCH
QUESTION = (
    "operation=gemm",
    "device=h200_141g",
    "dtype=float16",
    "runtime=trtllm",
    "runtime_revision=1.0.0",
    "m=16",
    "n=640",
    "k=896",
)
"""A record of the first file, so every repository has it."""

_DEVICES = ("h200_141g", "h100_80g", "a100_80g", *(f"device_{number}" for number in range(4, 11)))
_DTYPES = ("float16", "bfloat16", "float8")
_RUNTIMES = ("trtllm", "sglang", "vllm")
_DIMENSIONS = {
    "gemm": {"m": 16, "n": 128, "k": 128},
    "rope": {"tokens": 1, "query_heads": 8, "kv_heads": 1, "head_size": 64},
    "attention_prefill": {"batch_size": 1, "query_heads": 8, "kv_heads": 1, "query_length": 128},
    "attention_decode": {"batch_size": 1, "query_heads": 8, "kv_heads": 1, "kv_cache_length": 64},
    "norm": {"tokens": 1, "hidden_size": 128},
    "all_reduce": {"message_bytes": 1024, "participants": 2},
}
"""The columns of each operation with the step of their values."""

_FILES_AND_ROWS = {
    "gemm": (150, 20_000),
    "rope": (1500, 2400),
    "attention_prefill": (560, 2470),
    "attention_decode": (560, 2433),
    "norm": (900, 2600),
    "all_reduce": (408, 2225),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """One record set to write: the how-manieth of its operation, and its rows."""

    operation: str
    number: int
    rows: int


def build_peer_shaped_repository(path: Path, *, rows: int) -> None:
    """Make a bare repository with the evidence on its main branch.

    Parameters
    ----------
    path : Path
        A folder that does not exist yet.
    rows : int
        Records in all.
    """
    git(path.parent, "init", "--quiet", "--bare", str(path))
    with subprocess.Popen(
        ["git", "fast-import", "--quiet", "--big-file-threshold=64m"],
        cwd=path,
        env=GIT_ENVIRONMENT,
        stdin=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        _write_commit(process.stdin, "evidence", _contents(rows), parent=None)
    if process.returncode:
        raise RuntimeError("git fast-import failed")
    git(path, "symbolic-ref", "HEAD", f"refs/heads/{BRANCH}")
    # As a host packs it: fast-import's own pack has chains of deltas that cost twice the time.
    git(path, "repack", "-a", "-d", "-f", "--quiet")


def add_record_set(path: Path, *, rows: int = 1000, seed: int = 0) -> None:
    """Commit one more session of the first file's series on top of the main branch."""
    name, content = _record_set(
        _File(operation="gemm", number=0, rows=rows), session=f"more-{seed}", seed=seed + 1_000_000
    )
    with subprocess.Popen(
        ["git", "fast-import", "--quiet"], cwd=path, env=GIT_ENVIRONMENT, stdin=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        parent = f"refs/heads/{BRANCH}^0"
        _write_commit(process.stdin, "one more session", iter([(name, content)]), parent=parent)
    if process.returncode:
        raise RuntimeError("git fast-import failed")


def _write_commit(
    stream: IO[bytes], message: str, files: Iterator[tuple[str, bytes]], *, parent: str | None
) -> None:
    text = message.encode()
    stream.write(
        b"commit refs/heads/%b\ncommitter Ada <ada@example.org> 1700000000 +0000\ndata %d\n%b\n"
        % (BRANCH.encode(), len(text), text)
    )
    if parent is not None:
        stream.write(b"from %b\n" % parent.encode())
    for path, content in files:
        stream.write(b"M 100644 inline %b\ndata %d\n" % (path.encode(), len(content)))
        stream.write(content)
        stream.write(b"\n")


def _contents(rows: int) -> Iterator[tuple[str, bytes]]:
    files = project_files()
    terms = "".join(f"      {device}: []\n" for device in _DEVICES[3:])
    known = b"      h200_141g: [h200]\n"
    files["evidence/vocabulary.yaml"] = files["evidence/vocabulary.yaml"].replace(
        known, known + terms.encode()
    )
    yield from files.items()
    for sha256, content in map(unknown_manifest, _DEVICES):
        yield manifest_path(sha256), content
    left = rows
    for file in _all_files():
        if left <= 0:
            return
        yield _record_set(
            _File(operation=file.operation, number=file.number, rows=min(left, file.rows)),
            session=f"session-{file.number}",
            seed=file.number,
        )
        left -= file.rows


def _all_files() -> list[_File]:
    """Return all files, each operation spread evenly over the sequence, GEMM first."""
    placed = [
        (
            (number + (operation != "gemm")) / count,
            _File(operation=operation, number=number, rows=rows),
        )
        for operation, (count, rows) in _FILES_AND_ROWS.items()
        for number in range(count)
    ]
    return [file for _, file in sorted(placed, key=lambda item: item[0])]


def _record_set(file: _File, *, session: str, seed: int) -> tuple[str, bytes]:
    device = _DEVICES[file.number % len(_DEVICES)]
    variant = file.number // len(_DEVICES)
    context = {
        "operation": file.operation,
        "device": device,
        "dtype": _DTYPES[variant % len(_DTYPES)],
        "runtime": _RUNTIMES[variant // len(_DTYPES) % len(_RUNTIMES)],
        "runtime_revision": f"1.{variant // len(_DTYPES) // len(_RUNTIMES)}.0",
        "form_factor": "sxm",
    }
    dimensions = _DIMENSIONS[file.operation]
    columns = [
        {"name": name, "role": "dimension", "unit": "B" if name == "message_bytes" else "1"}
        for name in dimensions
    ]
    columns.append({"name": "latency", "role": "metric", "statistic": "mean", "unit": "ms"})
    header = {
        "schema": "perfdb/record-set/v1",
        "kind": "measured",
        "session": session,
        "source": table_source(
            revision="0.12.0",
            file=f"data/{device}/{file.operation}/{variant}.parquet",
            sha256=sha256_hex(f"{device} {file.operation} {variant}".encode()),
            keys={"framework": context["runtime"], "kernel_source": "default", "op_name": "op"},
            labels={"directory_version": context["runtime_revision"]},
        ),
        "environment": unknown_manifest(device)[0],
        "protocol": timed_protocol(warmup=None, repetitions=None, timer_resolution=None),
        "context": context,
        "columns": columns,
    }
    content = _with_rows(header, _lines(dimensions, file.rows, seed))
    return record_set_path(device, file.operation, session, sha256_hex(content)), content


def _lines(dimensions: dict[str, int], rows: int, seed: int) -> list[str]:
    """Return the text of each row: a grid of shapes, sorted, with a latency of six digits."""
    length = max(8, math.ceil(rows ** (1 / len(dimensions))))
    axes = [[str(step * (place + 1)) for place in range(length)] for step in dimensions.values()]
    shapes = itertools.islice(itertools.product(*axes), rows)
    latencies = np.random.default_rng(seed).lognormal(-3, 2, rows) + 1e-6
    if seed % 2:  # some sources keep all digits of a float64, others six decimals
        latencies = latencies.round(6)
    return [
        f"    [{', '.join(shape)}, {latency!r}]"
        for shape, latency in zip(shapes, latencies.tolist(), strict=True)
    ]


def _with_rows(header: dict[str, Any], lines: list[str]) -> bytes:
    """Put the rows into the canonical text of a record set without any."""
    text = canonical_record_set(header, []).decode()
    return text.replace('"rows": []', '"rows": [\n' + ",\n".join(lines) + "\n  ]").encode()
