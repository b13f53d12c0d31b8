"""A lock made under one Python and numpy, verified under others: versions, threads, locales, SIMD.

Makes a virtual environment for each Python and numpy, locks a plan of this repository's evidence
with the first one, and verifies the lock with all of them. Not part of the suite: it installs
packages.

    python tests/bench/bench_plan_environments.py
    python tests/bench/bench_plan_environments.py --numpy 'numpy==2.0.*' --numpy numpy \\
        --python python3.11 --python python3.13
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
NAME = "environments"
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")

VARIANTS: Mapping[str, Mapping[str, str]] = {
    "as it is": {},
    "LC_ALL=C": {"LC_ALL": "C"},
    "LC_ALL=de_DE.UTF-8, TZ": {"LC_ALL": "de_DE.UTF-8", "TZ": "Pacific/Kiritimati"},
    "4 threads": {
        "OMP_NUM_THREADS": "4",
        "OPENBLAS_NUM_THREADS": "4",
        "MKL_NUM_THREADS": "4",
    },
    "PYTHONHASHSEED=7": {"PYTHONHASHSEED": "7"},
    "no SIMD": {"NPY_DISABLE_CPU_FEATURES": ""},
}
"""``no SIMD`` is filled in with what the installed numpy dispatches."""

_DISPATCHED = """
try:
    from numpy._core._multiarray_umath import __cpu_dispatch__ as names, __cpu_features__ as has
except ImportError:
    from numpy.core._multiarray_umath import __cpu_dispatch__ as names, __cpu_features__ as has
print(" ".join(name for name in names if has.get(name)))
"""


@dataclass(frozen=True)
class Environment:
    """A virtual environment with this package in it."""

    folder: Path
    python: str
    numpy: str

    def run(self, *arguments: str, cwd: Path, cache: Path, **variables: str) -> Any:
        done = subprocess.run(
            [self.folder / "bin/perfdb", *arguments],
            cwd=cwd,
            env={**clean_variables(), "PERFDB_CACHE_DIR": str(cache), **variables},
            capture_output=True,
            text=True,
        )
        if done.returncode not in (0, 1, 5):
            raise SystemExit(f"{arguments}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return json.loads(done.stdout)["data"]

    def dispatched(self) -> str:
        done = subprocess.run(
            [self.folder / "bin/python", "-c", _DISPATCHED],
            env=clean_variables(),
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()


def clean_variables() -> dict[str, str]:
    dropped = ("PYTHON", "GIT_", "LC_", "OMP_", "OPENBLAS_", "MKL_", "NPY_", "PERFDB_")
    return {name: text for name, text in os.environ.items() if not name.startswith(dropped)}


def runs(python: str) -> bool:
    """Tell whether a command is there and works, which a version manager's placeholder does not."""
    found = shutil.which(python)
    if found is None:
        return False
    return subprocess.run([found, "-c", ""], capture_output=True).returncode == 0


def make_environment(folder: Path, python: str, requirement: str) -> Environment | None:
    """Make one, or return None where this numpy is not there for this Python."""
    subprocess.run([python, "-m", "venv", folder], check=True)
    install = [folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        [*install, "--only-binary", "numpy,scipy", str(ROOT), requirement],
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        print(f"{python} with {requirement}: {done.stderr.strip().splitlines()[-1]}")
        return None
    versions = "import platform, numpy; print(platform.python_version(), numpy.__version__)"
    shown = subprocess.run(
        [folder / "bin/python", "-c", versions], capture_output=True, text=True, check=True
    )
    return Environment(folder, *shown.stdout.split())


def queries() -> Iterator[dict[str, Any]]:
    """Yield questions between measured sizes: curves, boosted trees, the roofline; and records."""
    a100 = {"device": "a100_80g", "dtype": "float16"}
    h200 = {"device": "h200_141g", "dtype": "bfloat16", "kv_cache_dtype": "bfloat16"}
    for m in (3, 64, *range(100, 4000, 101)):
        yield {"operation": "gemm", **a100, "m": m, "n": 5120, "k": 8192}
        yield {
            "operation": "gemm",
            "device": "h200_141g",
            "dtype": "bfloat16",
            "m": m,
            "n": 5000,
            "k": 8000,
        }
        yield {"operation": "norm", **a100, "tokens": m, "hidden_size": 8192, "norm_kind": "rms"}
        heads = {"batch_size": 3, "query_heads": 32, "kv_heads": 4, "head_size": 128}
        yield {"operation": "attention_decode", **h200, **heads, "kv_cache_length": 5 * m}
        yield {
            "operation": "attention_prefill",
            **h200,
            **heads,
            "query_length": m,
            "kv_cache_length": 0,
        }
        yield {
            "operation": "all_reduce",
            "device": "a100_80g",
            "topology": "dgx_a100",
            "link_class": "nvlink",
            "participants": 2,
            "participants_per_node": 2,
            "message_bytes": 10007 * m,
        }


def put_plan(repository: Path) -> None:
    """Commit the plan; JSON is YAML. A query may lack an answer: both sides must then say so."""
    plan = {
        "schema": "perfdb/plan/v1",
        "name": NAME,
        "description": "Answers of every method.",
        "queries": [
            {"name": f"query-{number}", "query": query, "multiplicity": 7, "required": False}
            for number, query in enumerate(queries())
        ],
        "composition": {"kind": "sum"},
    }
    path = repository / f"pipelines/plans/{NAME}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(plan), encoding="utf-8")
    identity = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
    for arguments in (["add", "-A"], [*identity, "commit", "--quiet", "-m", "A plan"]):
        subprocess.run(["git", "-C", repository, *arguments], check=True)


def environments(work: Path, pythons: list[str], numpys: list[str]) -> list[Environment]:
    found = []
    for place, python in enumerate(pythons):
        for number, requirement in enumerate(numpys):
            made = make_environment(work / f"environment-{place}-{number}", python, requirement)
            if made is not None:
                found.append(made)
    return found


def verify_everywhere(made: list[Environment], repository: Path, work: Path) -> bool:
    """Lock with the first, verify with all; print one line each, and say whether all are equal."""
    lock = work / "lock.json"
    first = made[0]
    locked = first.run(
        "plan", "lock", NAME, "--output", str(lock), "--json", cwd=repository, cache=work / "first"
    )["lock"]
    methods: dict[str, int] = {}
    for query in locked["queries"]:
        method = query["code"] if query["answer"] is None else query["answer"]["method"]
        methods[method] = methods.get(method, 0) + 1
    print(f"locked by Python {first.python}, numpy {first.numpy}: {methods}\n")
    print(f"{'python':<9} {'numpy':<8} {'variant':<24} {'verdict':<12} largest difference")
    equal = True
    for number, environment in enumerate(made):
        for name, variables in VARIANTS.items():
            given = dict(variables)
            if "NPY_DISABLE_CPU_FEATURES" in given:
                given["NPY_DISABLE_CPU_FEATURES"] = environment.dispatched()
            found = environment.run(
                "plan",
                "verify",
                str(lock),
                "--json",
                cwd=repository,
                cache=work / f"cache-{number}",
                **given,
            )
            equal &= found["verdict"] == "equal"
            print(
                f"{environment.python:<9} {environment.numpy:<8} {name:<24} "
                f"{found['verdict']:<12} {found['largest_difference']:.1e}"
            )
    return equal


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--numpy", action="append", metavar="REQUIREMENT")
    parser.add_argument("--python", action="append", metavar="COMMAND")
    options = parser.parse_args()
    present = [name for name in PYTHONS if runs(name)] or [sys.executable]
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        repository = work / "repository"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(repository)], check=True)
        put_plan(repository)
        made = environments(
            work, options.python or present, options.numpy or ["numpy==2.0.*", "numpy"]
        )
        if not made:
            raise SystemExit("no environment could be made")
        return 0 if verify_everywhere(made, repository, work) else 1


if __name__ == "__main__":
    sys.exit(main())
