"""The project's own A100 evidence in a small repository, for examples of the guides."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.cli.evidence import ROOT, Evidence, make_evidence

_FOLDERS = (
    "evidence/records/a100_80g",
    "evidence/calibrations",
    "evidence/manifests",
    "pipelines/plans",
)
POLICY = "evidence/policies/default.yaml"


def shipped_a100(folder: Path) -> Evidence:
    """Make a repository with one commit; its index is made by the first question."""
    made = make_evidence(folder / "evidence", folder / "cache")
    for name in _FOLDERS:
        shutil.copytree(ROOT / name, made.path / name)
    made.write(POLICY, (ROOT / POLICY).read_bytes())
    made.commit("shipped evidence")
    return made
