"""A small, clean evidence repository to break in one place, and its snapshots."""

import copy
import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pygit2
import pytest

from perfdb_git.checks.registry import run_checks
from perfdb_git.formats.canonical import canonical_document, canonical_record_set
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.model.findings import Finding
from perfdb_git.storage.git import GitStore
from perfdb_git.storage.layout import manifest_path, record_set_path, retraction_path
from perfdb_git.storage.sources import GitSource
from tests.record_headers import table_source, timed_protocol

ROOT = Path(__file__).parents[2]
POLICY = "evidence/policies/default.yaml"
PROFILE = "profiles/systems/small.json"
VOCABULARY = "evidence/vocabulary.yaml"

_ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "Ada Author",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Carl Committer",
    "GIT_COMMITTER_EMAIL": "carl@example.org",
}

_MANIFEST = {
    "schema": "perfdb/manifest/v1",
    "device": "a100_80g",
    "device_count": 8,
    "form_factor": "sxm",
    "driver": None,
    "firmware": None,
    "runtimes": {"cuda": None},
    "kernel": None,
    "operating_system": None,
    "processor": None,
    "clock_policy": None,
    "power_policy": None,
    "topology": None,
}

_HEADER = {
    "schema": "perfdb/record-set/v1",
    "kind": "measured",
    "session": "session-1",
    "source": table_source(),
    "environment": "",
    "protocol": timed_protocol(),
    "context": {"operation": "gemm", "device": "a100_80g", "dtype": "float16", "k": 4096},
    "columns": [
        {"name": "m", "role": "dimension", "unit": "1"},
        {"name": "n", "role": "dimension", "unit": "1"},
        {"name": "latency", "role": "metric", "statistic": "median", "unit": "ms"},
        {"name": "latency", "role": "metric", "statistic": "sample", "unit": "ms"},
        {"name": "latency", "role": "metric", "statistic": "count", "unit": "1"},
        {"name": "row", "role": "source"},
    ],
}

_POLICY = {
    "schema": "perfdb/policy/v1",
    "name": "default",
    "description": "Measured first.",
    "tiers": ["recorded-measured", "analytical"],
    "matching": {"query_unknown": "unanimous", "material": ["layout"], "immaterial": ["runtime"]},
    "conflict": {"threshold": 0.1, "action": "show"},
    "interval": {"level": 0.9},
    "on_ambiguity": "stop",
    "protocol_unknown": "accept",
    "fallback_allowed": True,
    "calibrations": [],
    "system_profiles": {"a100_80g": "small"},
}

_PROFILE = {
    "schema": "perfdb/system-profile/v1",
    "name": "small",
    "version": "1",
    "device": "a100_80g",
    "description": "A device.",
    "processing_mode": "roofline",
    "engines": {
        "matrix": {
            "float16": {
                "peak_tops": 312,
                "efficiency_by_gops": [
                    {"threshold": 128, "efficiency": 0.9},
                    {"threshold": 1, "efficiency": 0.5},
                    {"threshold": 0, "efficiency": 0.1},
                ],
            }
        }
    },
    "memories": {
        "mem1": {"capacity_gib": 80, "bandwidth_gbyte_per_s": 2039, "efficiency_by_mb": None}
    },
    "networks": [
        {
            "name": "nvlink",
            "link_class": "nvlink",
            "bandwidth_gbyte_per_s": 300,
            "efficiency": None,
            "size": 8,
            "latency_s": None,
            "operations": {"all_reduce": {"scalar": 2, "offset": -1}},
            "must_be_filled": False,
            "processor_usage": None,
        }
    ],
    "sources": [
        {"pointer": "/engines", "source": "data sheet"},
        {"pointer": "/memories/mem1", "source": "data sheet"},
        {"pointer": "/networks/0/bandwidth_gbyte_per_s", "source": "data sheet"},
        {"pointer": "/networks/0/size", "source": "data sheet"},
        {"pointer": "/networks/0/operations", "source": "nccl-tests"},
    ],
}


class Evidence:
    """The files of a clean evidence repository, and ways to change them."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {
            VOCABULARY: (ROOT / VOCABULARY).read_bytes(),
            "evidence/README.md": b"Evidence.\n",
            "evidence/splits/.gitkeep": b"",
            "schemas/policy.v1.schema.json": (ROOT / "schemas/policy.v1.schema.json").read_bytes(),
            "schemas/extensions/collective-tuning.v1.schema.json": (
                ROOT / "schemas/extensions/collective-tuning.v1.schema.json"
            ).read_bytes(),
            # Not evidence, and therefore nobody's business here.
            "Source Code/odd name.txt": b"x",
        }
        self.header = copy.deepcopy(_HEADER)
        self.policy = copy.deepcopy(_POLICY)
        self.profile = copy.deepcopy(_PROFILE)
        self.rows: list[list[Any]] = [
            [1, 512, 0.25, [0.25, 0.5], 20, 7],
            [2, 512, None, 0.75, 20, 8],
            [3, None, 0.5, None, None, 9],
        ]
        self.manifest = self.add_manifest()
        self.header["environment"] = self.manifest
        self.header["extensions"] = {
            "perfdb/extension/collective-tuning/v1": {
                "algorithm": "ring",
                "protocol": None,
                "channels": 16,
                "chunk_bytes": None,
            }
        }
        self.header["null_reasons"] = {"latency": "timed out"}
        self.other = self.add_set({"session": "session-2"}, [[9, 9, 0.5, None, None, 1]])
        self.retraction = self.add_retraction(f"{self.sha(self.other)}#0")
        self.path = ""
        self.keep()

    def keep(self) -> str:
        """Write header, rows, policy and profile as they are now; return the set's path."""
        self.files.pop(self.path, None)
        self.path = self.add_set({}, self.rows)
        # JSON is YAML too.
        self.files[POLICY] = json.dumps(self.policy, indent=2).encode()
        self.files[PROFILE] = canonical_document(self.profile)
        return self.path

    def replace(self, content: bytes) -> str:
        """Put other bytes in the place of the record set, under their own digest."""
        del self.files[self.path]
        context = self.header["context"]
        self.path = record_set_path(
            context["device"], context["operation"], self.header["session"], sha256_hex(content)
        )
        self.files[self.path] = content
        return self.path

    def add_set(self, changes: Mapping[str, Any], rows: Sequence[Sequence[Any]]) -> str:
        head = {**self.header, **changes}
        content = canonical_record_set(head, rows)
        context = head["context"]
        path = record_set_path(
            context["device"], context["operation"], head["session"], sha256_hex(content)
        )
        self.files[path] = content
        return path

    def add_manifest(self, **changes: Any) -> str:
        content = canonical_document({**_MANIFEST, **changes})
        self.files[manifest_path(sha256_hex(content))] = content
        return sha256_hex(content)

    def add_retraction(self, target: str, *, replacement: str | None = None) -> str:
        value = {
            "schema": "perfdb/retraction/v1",
            "target": target,
            "reason": f"wrong clock, {len(self.files)}",
            "replacement": replacement,
            "retracted_on": None,
        }
        content = canonical_document(value)
        path = retraction_path(sha256_hex(content))
        self.files[path] = content
        return path

    def sha(self, path: str) -> str:
        return sha256_hex(self.files[path])

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace a text that stands once in a file."""
        text = self.files[path].decode()
        assert text.count(old) == 1, (path, old, text.count(old))
        self.files[path] = text.replace(old, new).encode()


class Repository:
    """A real repository on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run("init", "--quiet")

    def run(self, *arguments: str, data: bytes = b"") -> bytes:
        command = ["git", "-c", "init.defaultBranch=main", *arguments]
        done = subprocess.run(
            command, cwd=self.path, input=data, env=_ENVIRONMENT, capture_output=True
        )
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    def git(self, *arguments: str, data: bytes = b"") -> str:
        return self.run(*arguments, data=data).decode().strip()

    def commit(self, files: Mapping[str, bytes]) -> str:
        """Commit files without a work tree, whose file system may not hold all names."""
        stream = bytearray(
            b"commit refs/heads/main\ncommitter Ada <ada@example.org> 1700000000 +0000\ndata 0\n"
        )
        for path, content in files.items():
            stream += b"M 100644 inline %b\ndata %d\n%b\n" % (
                path.encode(),
                len(content),
                content,
            )
        self.git("fast-import", "--quiet", "--force", data=bytes(stream))
        return self.git("rev-parse", "main")

    def commit_raw_tree(self, folder: str, change: Callable[[bytes], bytes]) -> str:
        """Commit again with the raw bytes of one directory's tree object changed."""
        raw = change(self.run("cat-file", "tree", f"main:{folder}"))
        tree = self._object("tree", raw)
        while folder:
            folder, _, name = folder.rpartition("/")
            listed = self.git("ls-tree", f"main:{folder}").splitlines()
            lines = [
                f"040000 tree {tree}\t{name}" if line.endswith(f"\t{name}") else line
                for line in listed
            ]
            tree = self.git("mktree", "--missing", data="\n".join([*lines, ""]).encode())
        return self.git("commit-tree", tree, "-m", "built by hand")

    def _object(self, kind: str, raw: bytes) -> str:
        return self.git("hash-object", "-t", kind, "--literally", "-w", "--stdin", data=raw)

    def source(self, commit: str, **options: Any) -> GitSource:
        return GitSource(GitStore.open(self.path), commit, **options)

    def check(self, commit: str, **options: Any) -> tuple[Finding, ...]:
        return run_checks(self.source(commit), **options)


@pytest.fixture(autouse=True)
def _no_user_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Point libgit2 at an empty home, so that no setting of this machine has a part."""
    home = str(tmp_path_factory.mktemp("home"))
    names = ("GLOBAL", "XDG", "SYSTEM")
    levels = [getattr(pygit2.enums.ConfigLevel, name) for name in names]
    before = [pygit2.settings.search_path[level] for level in levels]
    for level in levels:
        pygit2.settings.search_path[level] = home
    yield
    for level, value in zip(levels, before, strict=True):
        pygit2.settings.search_path[level] = value


@pytest.fixture
def evidence() -> Evidence:
    return Evidence()


@pytest.fixture
def new_evidence() -> Callable[[], Evidence]:
    return Evidence


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    path = tmp_path / "repository"
    path.mkdir()
    return Repository(path)
