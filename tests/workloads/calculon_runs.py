"""Calculon's runs as documents of this project, with what Calculon computes from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from perfdb_git.formats.codec import decode
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.importers.calculon_system import ProfileLabels, profile_of_calculon_system
from perfdb_git.model.system_profile import SystemProfile
from perfdb_git.model.training import TrainingExecution, TrainingModel
from perfdb_git.workloads.training import TrainingPlan, plan_training

HERE = Path(__file__).parent
SYSTEMS = HERE / "systems"
_DOCUMENTS: Mapping[str, Any] = json.loads((HERE / "calculon_runs.json").read_text())
FIELDS: tuple[str, ...] = tuple(_DOCUMENTS["fields"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run: three documents, and Calculon's result by field, or our code of its refusal."""

    name: str
    model: TrainingModel
    execution: TrainingExecution
    profile: SystemProfile
    expected: Mapping[str, float | None]
    refused: str | None
    selene_s: float | None

    def plan(self) -> TrainingPlan:
        """Return a plan that has asked nothing yet."""
        return plan_training(self.model, self.execution, self.profile)


@cache
def system(name: str) -> SystemProfile:
    """Return a system that Calculon ships, imported."""
    path = SYSTEMS / f"{name}.json"
    labels = ProfileLabels(
        name=name.replace("_", "-"),
        version="1",
        device=name,
        description="a system that Calculon ships",
        link_classes=("nvlink", "infiniband"),
        source="Calculon",
        license="Apache-2.0",
    )
    return profile_of_calculon_system(path.read_bytes(), labels, document=path.name)


def _document(kind: str, cls: type[Any], name: str) -> Any:
    value = _DOCUMENTS[f"{kind}s"][name]
    SchemaStore().validate(value, document=name, expected_kind=f"training-{kind}")
    return decode(cls, value, document=name)


@cache
def model(name: str) -> TrainingModel:
    """Return one of Calculon's models."""
    found: TrainingModel = _document("model", TrainingModel, name)
    return found


@cache
def execution(name: str) -> TrainingExecution:
    """Return one of the executions."""
    found: TrainingExecution = _document("execution", TrainingExecution, name)
    return found


def _run(value: Mapping[str, Any]) -> Run:
    profile = system(value["system"])
    if "processing_mode" in value:
        profile = replace(profile, processing_mode=value["processing_mode"])
    expected = value.get("expected", ())
    return Run(
        name=value["name"],
        model=model(value["model"]),
        execution=execution(value["execution"]),
        profile=profile,
        expected=dict(zip(FIELDS, expected, strict=True)) if expected else {},
        refused=value.get("refused"),
        selene_s=value.get("selene_s"),
    )


RUNS = tuple(_run(value) for value in _DOCUMENTS["runs"])
ESTIMATED = tuple(run for run in RUNS if run.refused is None)
BY_NAME = {run.name: run for run in RUNS}
