"""A synthetic evidence repository of any size, written in one `git fast-import`.

Record sets of four operations on three devices, every shape measured in two sessions of one
runtime, with times of a plausible efficiency and 2 % of noise. Schemas, vocabulary, profiles and
the policy are the project's own.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfdb_git.formats.canonical import canonical_document, canonical_record_set
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.storage.layout import manifest_path, record_set_path
from tests.record_headers import table_source

PROJECT = Path(__file__).parents[2]
OPERATIONS = ("gemm", "attention_decode", "norm", "all_reduce")
DEVICES = ("a100_80g", "h100_80g", "h200_141g")
BASE_BRANCH = "main"
HEAD_BRANCH = "proposal"

_SETS_OF_ONE_SHAPE = 2
_PEAK = {"a100_80g": (312e12, 2e12, 300e9), "h100_80g": (989e12, 3e12, 450e9)}
_PEAK["h200_141g"] = (989e12, 4.8e12, 450e9)
GIT_ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeRepository:
    """A repository with a base branch and a branch that adds one record set to it."""

    path: Path
    base: str
    head: str


def build_large_repository(path: Path, *, files: int = 1000, rows: int = 1000) -> LargeRepository:
    """Make a bare repository.

    Parameters
    ----------
    path : Path
        A folder that does not exist yet.
    files, rows : int
        Record sets of the base, and rows of each; the proposal adds one more.
    """
    git(path.parent, "init", "--quiet", "--bare", str(path))
    importer = FastImport()
    importer.commit(BASE_BRANCH, "evidence", {**project_files(), **dict(record_sets(files, rows))})
    importer.commit(
        HEAD_BRANCH, "one more session", dict([new_record_set(files, rows)]), BASE_BRANCH
    )
    git(path, "fast-import", "--quiet", data=importer.stream)
    git(path, "symbolic-ref", "HEAD", f"refs/heads/{BASE_BRANCH}")
    ends = (git(path, "rev-parse", name) for name in (BASE_BRANCH, HEAD_BRANCH))
    base, head = ends
    return LargeRepository(path=path, base=base, head=head)


class FastImport:
    """The stream of commits that `git fast-import` reads."""

    def __init__(self, *, clock: int = 1_700_000_000) -> None:
        self._parts: list[bytes] = []
        self._clock = clock

    @property
    def stream(self) -> bytes:
        """Everything so far."""
        return b"".join(self._parts)

    def commit(
        self, branch: str, message: str, files: Mapping[str, bytes], parent: str | None = None
    ) -> None:
        """Add files in one commit on a branch, which starts at `parent` where that is given."""
        self._clock += 60
        text = message.encode()
        self._parts.append(
            b"commit refs/heads/%b\ncommitter Ada <ada@example.org> %d +0000\ndata %d\n%b\n"
            % (branch.encode(), self._clock, len(text), text)
        )
        if parent is not None:
            self._parts.append(b"from refs/heads/%b\n" % parent.encode())
        for path, content in files.items():
            self._parts.append(
                b"M 100644 inline %b\ndata %d\n%b\n" % (path.encode(), len(content), content)
            )


def project_files() -> dict[str, bytes]:
    """Return the project's schemas, vocabulary, profiles and policy, which promotes nothing."""
    names = [
        "evidence/vocabulary.yaml",
        *(f"profiles/systems/{file.name}" for file in (PROJECT / "profiles/systems").iterdir()),
        *(f.relative_to(PROJECT).as_posix() for f in (PROJECT / "schemas").rglob("*.json")),
    ]
    files = {name: (PROJECT / name).read_bytes() for name in names}
    policy = (PROJECT / "evidence/policies/default.yaml").read_text()
    files["evidence/policies/default.yaml"] = (
        policy.partition("\ncalibrations:")[0].encode() + b"\n"
    )
    return files | {manifest_path(sha): content for sha, content in map(unknown_manifest, DEVICES)}


def record_sets(files: int, rows: int) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of every record set of the base."""
    for number in range(files):
        yield record_set(number, rows)


def new_record_set(files: int, rows: int) -> tuple[str, bytes]:
    """Return a further session of the shapes that the first record sets have."""
    return record_set(0, rows, session=f"session-{files:05d}", seed=files)


def record_set(
    number: int, rows: int, *, session: str | None = None, seed: int | None = None
) -> tuple[str, bytes]:
    """Return path and content of one record set; `seed` changes the noise and nothing else."""
    series = len(OPERATIONS) * len(DEVICES)
    operation = OPERATIONS[number % len(OPERATIONS)]
    device = DEVICES[number // len(OPERATIONS) % len(DEVICES)]
    shape_number = number // series // _SETS_OF_ONE_SHAPE
    shapes = random.Random(f"{operation} {shape_number}")
    noise = random.Random(number if seed is None else seed)
    name = session or f"session-{number:05d}"
    header = _header(operation, device, name, runtime=f"1.{shape_number}.0")
    cells = sorted({_shape(operation, shapes) for _ in range(3 * rows)})[:rows]
    content = canonical_record_set(
        header,
        [[*shape, *_latency(operation, device, shape, noise), n] for n, shape in enumerate(cells)],
    )
    return record_set_path(device, operation, name, sha256_hex(content)), content


_SHAPES: Mapping[str, tuple[str, ...]] = {
    "gemm": ("m", "n", "k"),
    "attention_decode": ("batch_size", "kv_cache_length", "query_heads"),
    "norm": ("tokens", "hidden_size"),
    "all_reduce": ("message_bytes", "participants"),
}


def _shape(operation: str, chosen: random.Random) -> tuple[int, ...]:
    if operation == "gemm":
        return chosen.randrange(1, 8193), *(128 * chosen.randrange(8, 129) for _ in "nk")
    if operation == "attention_decode":
        return chosen.randrange(1, 257), chosen.randrange(1, 32768), 8 * chosen.randrange(1, 9)
    if operation == "norm":
        return chosen.randrange(1, 16385), 128 * chosen.randrange(8, 129)
    return 1024 * chosen.randrange(1, 1 << 20), chosen.choice((2, 4, 8))


def _latency(
    operation: str, device: str, shape: Sequence[int], noise: random.Random
) -> tuple[float, float]:
    """Return median and standard deviation in microseconds."""
    peak, memory, link = _PEAK[device]
    if operation == "gemm":
        m, n, k = shape
        seconds = max(2 * m * n * k / peak, 2 * (m * k + k * n + m * n) / memory)
    elif operation == "attention_decode":
        batch, cached, heads = shape
        seconds = 4 * batch * (cached + 1) * heads * 128 / memory
    elif operation == "norm":
        seconds = 4 * shape[0] * shape[1] / memory
    else:
        seconds = 2 * shape[0] * (1 - 1 / shape[1]) / link
    median = (seconds / 0.6 + 4e-6) * 1e6 * (1 + 0.02 * noise.random())
    return round(median, 3), round(0.02 * median, 3)


def _header(operation: str, device: str, session: str, *, runtime: str) -> dict[str, Any]:
    context = {"operation": operation, "device": device, "dtype": "bfloat16"}
    if operation == "attention_decode":
        context |= {"kv_heads": 8, "head_size": 128}
    if operation == "norm":
        context |= {"norm_kind": "rms"}
    if operation == "all_reduce":
        context |= {"participants_per_node": 8}
    null_facts = ("clock_state", "power_state", "measurement_error", "synchronization")
    return {
        "schema": "perfdb/record-set/v1",
        "kind": "measured",
        "session": session,
        "source": table_source(
            revision="7d47513", file=f"{session}.csv", sha256=sha256_hex(session.encode())
        ),
        "environment": unknown_manifest(device)[0],
        "protocol": {
            "warmup": 3,
            "repetitions": 20,
            "timer_resolution": {"value": 1, "unit": "ns"},
            **dict.fromkeys(null_facts),
        },
        "context": {**context, "runtime": "bench", "runtime_revision": runtime},
        "columns": [
            *({"name": d, "role": "dimension", "unit": _unit(d)} for d in _SHAPES[operation]),
            {"name": "latency", "role": "metric", "statistic": "median", "unit": "us"},
            {"name": "latency", "role": "metric", "statistic": "std", "unit": "us"},
            {"name": "row", "role": "source"},
        ],
    }


def _unit(dimension: str) -> str:
    return "B" if dimension.endswith("_bytes") else "1"


def unknown_manifest(device: str) -> tuple[str, bytes]:
    unknown = ("form_factor", "driver", "firmware", "kernel", "operating_system", "processor")
    unknown += ("clock_policy", "power_policy", "topology")
    content = canonical_document(
        {
            "schema": "perfdb/manifest/v1",
            "device": device,
            "device_count": 8,
            "runtimes": {},
            **dict.fromkeys(unknown),
        }
    )
    return sha256_hex(content), content


def git(folder: Path, *arguments: str, data: bytes = b"") -> str:
    """Run git in a folder and return what it prints."""
    done = subprocess.run(
        ["git", "-c", f"init.defaultBranch={BASE_BRANCH}", *arguments],
        cwd=folder,
        env=GIT_ENVIRONMENT,
        input=data,
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().strip()
