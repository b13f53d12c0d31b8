"""The main job through the installed command alone: import, check, commit, resolve at a commit.

Nothing of the project's checkout is used, so the same file tests a wheel in a fresh environment.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

MAPPING = """\
schema: perfdb/mapping/v1
name: bench-gemm
version: 1
description: GEMM timings of our own benchmark.
kind: measured
format: csv
source: {tool: bench, license: MIT}
session: "bench-{revision7}"
environment:
  device: a100_80g
  device_count: 1
  form_factor: sxm
  driver: "550.54"
  firmware: null
  runtimes: {cuda: "12.4"}
  kernel: null
  operating_system: null
  processor: null
  clock_policy: null
  power_policy: null
  topology: null
  notes: []
protocol:
  warmup: 3
  repetitions: 10
  synchronization: device events
  timer_resolution: {value: 1, unit: us}
  clock_state: null
  power_state: null
  measurement_error: null
dimensions:
  device: {value: a100_80g}
  form_factor: {value: sxm}
  dtype: {value: float16}
operations:
  - operation: gemm
    dimensions:
      m: {column: m}
      "n": {column: "n"}
      k: {column: k}
    metrics:
      - {column: median_us, metric: latency, statistic: median, unit: us}
      - {column: sd_us, metric: latency, statistic: std, unit: us}
"""
ROWS = ["m,n,k,median_us,sd_us", "128,4096,4096,41.5,0.8", "256,4096,4096,52,1.5"]
GEMM = ["operation=gemm", "device=a100", "dtype=fp16", "n=4096", "k=4096"]
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "Ada Author",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada Author",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "NO_COLOR": "1",
}


class Site:
    """An evidence repository of a user, worked with by commands only."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.repository = root / "evidence-repository"
        self.environment = {**ENVIRONMENT, "PERFDB_CACHE_DIR": str(root / "cache")}
        beside = shutil.which("perfdb", path=str(Path(sys.executable).parent))
        self.command = [beside] if beside else [sys.executable, "-m", "perfdb_git"]

    def run(self, *arguments: str, at: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.command, *arguments],
            cwd=at or self.repository,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def perfdb(self, *arguments: str, status: int = 0, at: Path | None = None) -> str:
        done = self.run(*arguments, at=at)
        assert done.returncode == status, (arguments, done.stdout, done.stderr)
        return done.stdout

    def data(self, *arguments: str, status: int = 0, at: Path | None = None) -> Any:
        return json.loads(self.perfdb(*arguments, "--json", status=status, at=at))["data"]

    def git(self, *arguments: str, at: Path | None = None) -> str:
        done = subprocess.run(
            ["git", "-c", "init.defaultBranch=main", *arguments],
            cwd=at or self.repository,
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "evidence")
        return self.git("rev-parse", "HEAD")

    def table(self, name: str, lines: list[str]) -> str:
        path = self.root / name
        path.write_text("\n".join(lines) + "\n")
        return str(path)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    site.perfdb("init", str(site.repository), at=tmp_path)
    site.table("mapping.yaml", [MAPPING])
    yield site


def import_table(site: Site, table: str, *options: str, status: int = 0) -> str:
    mapping = str(site.root / "mapping.yaml")
    revision = ["--source-revision", "0123456789abcdef"]
    return site.perfdb(
        "import", "table", "--mapping", mapping, *revision, *options, table, status=status
    )


def latency(answer: Any) -> float:
    return float(answer["estimate"]["metrics"]["latency"]["value"])


def test_evidence_in_git_imported_checked_and_resolved_at_a_commit(site: Site) -> None:
    site.commit()
    table = site.table("gemm.csv", ROWS)
    import_table(site, table, "--dry-run")
    assert site.git("status", "--porcelain") == ""
    import_table(site, table)
    assert site.git("diff", "--cached", "--name-only") == ""
    site.perfdb("check", "--worktree")
    first = site.commit()
    site.perfdb("check")

    answer = site.data("resolve", *GEMM, "m=128", "--at", "HEAD")
    assert answer["snapshot"]["commit"] == first
    assert latency(answer) == 41.5e-6
    assert answer["estimate"]["method"] == "measured"
    (record,) = answer["estimate"]["provenance"]["record_ids"]
    sha256, row = record.split("#")
    (path,) = (site.repository / "evidence" / "records").rglob("*.json")
    assert hashlib.sha256(path.read_bytes()).hexdigest() == sha256
    assert json.loads(path.read_bytes())["rows"][int(row)][:4] == [128, 4096, 4096, 41.5]

    # The same file adds nothing; a longer one adds its new row and leaves the old file alone.
    import_table(site, table)
    assert site.git("status", "--porcelain") == ""
    import_table(site, site.table("gemm.csv", [*ROWS, "512,4096,4096,80,2"]))
    second = site.commit()
    assert site.git("show", "--name-status", "--format=", "HEAD").startswith("A\tevidence/records")
    assert latency(site.data("resolve", *GEMM, "m=512")) == 80e-6
    assert site.data("resolve", *GEMM, "m=512", "--at", first, status=4)["estimate"] is None
    assert latency(site.data("resolve", *GEMM, "m=128", "--at", second[:8])) == 41.5e-6

    # A bare clone, a work tree beside it and an empty cache tell the same.
    everywhere = [site.data("resolve", *GEMM, "m=128")]
    site.git("clone", "-q", "--bare", str(site.repository), str(site.root / "bare"))
    site.git("worktree", "add", "-q", str(site.root / "beside"), "HEAD")
    for place in ("bare", "beside"):
        everywhere.append(site.data("resolve", *GEMM, "m=128", at=site.root / place))
    shutil.rmtree(site.root / "cache")
    everywhere.append(site.data("resolve", *GEMM, "m=128"))
    assert all(answer == everywhere[0] for answer in everywhere)

    site.perfdb("retract", record, "--reason", "the clock was throttled", "--commit")
    assert site.git("status", "--porcelain") == ""
    after = site.data("resolve", *GEMM, "m=128", "--at", second)
    assert latency(after) == 41.5e-6
    missed = site.run("resolve", *GEMM, "m=128", "--method", "measured")
    assert missed.returncode == 4, missed
    assert "no-record" in missed.stdout


def test_bad_input_gives_one_clear_error_and_changes_nothing(site: Site) -> None:
    site.commit()
    broken = [*ROWS, "0,4096,4096,3,1", "64,4096,4096,,1", "32,4096,4096,nan,1"]
    done = site.run(
        "import", "table", "--mapping", str(site.root / "mapping.yaml"),
        site.table("broken.csv", broken),
    )  # fmt: skip
    assert done.returncode == 3
    for line in (4, 5, 6):
        assert f"broken.csv: line {line}: column" in done.stderr
    assert site.git("status", "--porcelain") == ""
    import_table(site, site.table("broken.csv", broken), "--skip-bad-rows")
    (path,) = (site.repository / "evidence" / "records").rglob("*.json")
    header = json.loads(path.read_bytes())
    assert (len(header["rows"]), len(header["source"]["skipped"])) == (2, 3)
    site.perfdb("check", "--worktree")
    path.write_bytes(path.read_bytes().replace(b"41.5", b"41.50"))
    assert "canonical" in site.perfdb("check", "--worktree", status=1)


def test_exit_statuses_tell_who_must_act(site: Site) -> None:
    site.commit()
    site.perfdb("resolve", *GEMM, "m=eight", status=2)
    site.perfdb("resolve", "--query", site.table("query.json", ["{}"]), status=3)
    site.perfdb("resolve", *GEMM, "m=128", status=4)
    site.perfdb("resolve", *GEMM, "m=128", "--at", "HEAD@{1}", status=5)
    site.perfdb("resolve", *GEMM, "m=128", status=5, at=site.root)
    site.perfdb("check")
    assert "gemm" in site.perfdb("show", "gemm")


def test_a_shipped_mapping_imports_an_upstream_table(site: Site) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = site.root / "wheel/systems/data/h200_sxm/gemm/trtllm/1.0"
    folder.mkdir(parents=True)
    row = {
        "framework": "TRTLLM",
        "version": "1.0",
        "device": "NVIDIA H200",
        "op_name": "gemm",
        "kernel_source": "torch_flow",
        "gemm_dtype": "bfloat16",
        "m": 16,
        "n": 4096,
        "k": 4096,
        "latency": 0.0113,
    }
    parquet.write_table(pyarrow.Table.from_pylist([row]), folder / "gemm_perf.parquet")
    site.perfdb(
        "import", "table", "--mapping", "aiconfigurator-gemm", "--source-root",
        str(site.root / "wheel"), str(folder / "gemm_perf.parquet"),
    )  # fmt: skip
    site.commit()
    answer = site.data(
        "resolve", "operation=gemm", "device=h200", "dtype=bf16", "m=16", "n=4096", "k=4096"
    )
    assert latency(answer) == 0.0113 / 1000
    assert answer["estimate"]["diagnostics"]["protocol"] == "protocol-unknown"
