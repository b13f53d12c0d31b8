"""A large evidence repository with a long history, for the benchmark of ``diff`` and ``log``.

1,000 record sets of 1,000 GEMM rows in five series: each session measures 1,000 of the 20,000
shapes of its series, so a shape stands in about ten sessions. One more record set follows, and a
thousand commits of which twenty add evidence and the others a line to a README.
"""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perfdb_git.formats.canonical import canonical_document, canonical_record_set
from tests.record_headers import table_source, timed_protocol

PROJECT = Path(__file__).parents[2]
SERIES = (
    ("a100_80g", "float16"),
    ("a100_80g", "float32"),
    ("h100_80g", "float16"),
    ("h100_80g", "float8"),
    ("h200_141g", "float16"),
)
SHAPES = 20_000
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


def build(path: Path, *, record_sets: int = 1000, rows: int = 1000, commits: int = 1000) -> None:
    """Write the repository to a new bare directory; its tags are ``base``, ``head``, ``long``.

    Parameters
    ----------
    path : Path
        Where it is made.
    record_sets, rows : int
        Files at ``base`` and rows of each; ``head`` has one file of 1,000 rows more.
    commits : int
        Commits from ``head`` to ``long``; every fiftieth adds a record set of 50 rows.
    """
    path.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "--bare", path], env=ENVIRONMENT, check=True)
    stream = _Stream()
    files = [*_documents(), *_record_sets(record_sets, rows)]
    stream.commit("base", files, tag="base")
    stream.commit("head", [_record_set(record_sets, 1000)], tag="head")
    for number in range(commits):
        if number % 50 == 25:
            files = [_record_set(record_sets + 1 + number, 50)]
        else:
            files = [("README.md", f"{number}\n".encode())]
        stream.commit(f"commit {number}", files)
    stream.commit("last", [("README.md", b"last\n")], tag="long")
    text = stream.finished()
    subprocess.run(
        ["git", "fast-import", "--quiet"], cwd=path, env=ENVIRONMENT, input=text, check=True
    )


class _Stream:
    """Writes commits in the format of ``git fast-import``."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._clock = 1_700_000_000

    def commit(
        self, message: str, files: list[tuple[str, bytes]], *, tag: str | None = None
    ) -> None:
        self._clock += 60
        person = f"Ada Author <ada@example.org> {self._clock} +0000"
        self._parts.append(
            f"commit refs/heads/main\nauthor {person}\ncommitter {person}\n"
            f"data {len(message)}\n{message}\n".encode()
        )
        for name, content in files:
            self._parts.append(f"M 100644 inline {name}\ndata {len(content)}\n".encode())
            self._parts.append(content + b"\n")
        if tag is not None:
            self._parts.append(f"reset refs/tags/{tag}\nfrom refs/heads/main\n\n".encode())

    def finished(self) -> bytes:
        return b"".join(self._parts)


def _documents() -> Iterator[tuple[str, bytes]]:
    names = [
        "evidence/vocabulary.yaml",
        "evidence/policies/default.yaml",
        *(f"profiles/systems/{file.name}" for file in (PROJECT / "profiles/systems").iterdir()),
        *(
            file.relative_to(PROJECT).as_posix()
            for file in (PROJECT / "evidence/calibrations").rglob("*.json")
        ),
    ]
    for name in sorted(names):
        yield name, (PROJECT / name).read_bytes()
    yield f"evidence/manifests/{_MANIFEST_SHA256}.json", _MANIFEST


def _record_sets(count: int, rows: int) -> Iterator[tuple[str, bytes]]:
    return (_record_set(number, rows) for number in range(count))


def _record_set(number: int, count: int) -> tuple[str, bytes]:
    device, dtype = SERIES[number % len(SERIES)]
    generator = random.Random(number)
    rows = sorted(_row(shape, generator) for shape in generator.sample(range(SHAPES), count))
    header = _header(f"session-{number:05}", device, dtype)
    content = canonical_record_set(header, [[*row, place] for place, row in enumerate(rows)])
    sha256 = hashlib.sha256(content).hexdigest()
    return f"evidence/records/{device}/gemm/session-{number:05}-{sha256[:12]}.json", content


def _row(shape: int, generator: random.Random) -> list[Any]:
    m = 16 * (1 + shape % 100)
    n = 128 * (1 + shape // 100 % 20)
    k = 256 * (1 + shape // 2000)
    exact = 0.004 + 2 * m * n * k / 2e11
    return [m, n, k, round(exact * generator.lognormvariate(0, 0.03), 6), round(exact * 0.02, 6)]


def _header(session: str, device: str, dtype: str) -> dict[str, Any]:
    return {
        "schema": "perfdb/record-set/v1",
        "kind": "measured",
        "session": session,
        "source": table_source(revision="7d47513", file=f"{session}.csv"),
        "environment": _MANIFEST_SHA256,
        "protocol": timed_protocol(synchronization="profiler kernel time", timer_resolution=None),
        "context": {"operation": "gemm", "device": device, "dtype": dtype},
        "columns": [
            {"name": "m", "role": "dimension", "unit": "1"},
            {"name": "n", "role": "dimension", "unit": "1"},
            {"name": "k", "role": "dimension", "unit": "1"},
            {"name": "latency", "role": "metric", "unit": "ms", "statistic": "median"},
            {"name": "latency", "role": "metric", "unit": "ms", "statistic": "std"},
            {"name": "row", "role": "source"},
        ],
    }


_MANIFEST = canonical_document(
    {
        "schema": "perfdb/manifest/v1",
        "device": None,
        "device_count": 1,
        "form_factor": None,
        "driver": None,
        "firmware": None,
        "runtimes": {},
        "kernel": None,
        "operating_system": None,
        "processor": None,
        "clock_policy": None,
        "power_policy": None,
        "topology": None,
    }
)
_MANIFEST_SHA256 = hashlib.sha256(_MANIFEST).hexdigest()
