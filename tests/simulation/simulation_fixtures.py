"""Small documents and random cases."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.model.pipeline import Pipeline
from perfdb_git.model.timing_profile import Component, TimingProfile
from perfdb_git.simulation.arrivals import ArrivalTimes, listed_arrivals
from perfdb_git.simulation.documents import ReadDocument, read_pipeline, read_timing_profile
from perfdb_git.simulation.tick_model import TickModel
from tests.simulation.slow_reference import Case

PROJECT = Path(__file__).parents[2]
SCHEMAS = SchemaStore(PROJECT / "schemas")

ANALYTIC: dict[str, Any] = {
    "fixed_latency_ns": 0,
    "lanes": 1,
    "resource_mode": "overlap",
    "evidence": "analytic",
    "notes": "Made for a test.",
}


def component(**changes: Any) -> Component:
    """A component that serves one instruction in one ns."""
    known: dict[str, Any] = {
        **ANALYTIC,
        "fixed_latency_ns": Decimal(0),
        "instruction_rate_mips": Decimal(1000),
    }
    return Component(**{**known, **changes})


def profile_of(components: dict[str, dict[str, Any]]) -> ReadDocument[TimingProfile]:
    value = {
        "name": "test",
        "version": "1",
        "components": {name: {**ANALYTIC, **one} for name, one in components.items()},
    }
    return read_timing_profile(text(value), document="profiles/test.json", schemas=SCHEMAS)


def pipeline_of(value: dict[str, Any]) -> ReadDocument[Pipeline]:
    return read_pipeline(text(value), document="pipelines/test.json", schemas=SCHEMAS)


def text(value: object) -> bytes:
    return json.dumps(value).encode("utf-8")


def simple(
    stages: Sequence[tuple[str, float]], jobs: dict[str, Any], lanes: dict[str, int] | None = None
) -> tuple[ReadDocument[TimingProfile], ReadDocument[Pipeline]]:
    """Stages as (component, ns); one instruction is one ns."""
    names = dict.fromkeys(name for name, _ in stages)
    profile = profile_of(
        {n: {"instruction_rate_mips": 1000, "lanes": (lanes or {}).get(n, 1)} for n in names}
    )
    pipeline = pipeline_of(
        {
            "stages": [
                {"name": f"s{i}", "component": name, "work": {"instructions": ns}}
                for i, (name, ns) in enumerate(stages)
            ],
            "jobs": jobs,
        }
    )
    return profile, pipeline


def model_of(case: Case) -> TickModel:
    """The same case as an engine takes it; a stage that all jobs share gets one service."""
    columns = list(zip(*case.services, strict=True))
    return TickModel(
        lanes=case.lanes,
        routes=case.routes,
        services=tuple(
            column[0] if len(set(column)) == 1 else np.array(column, dtype=np.int64)
            for column in columns
        ),
        arrivals=listed_arrivals(case.arrivals)
        if case.window is None
        else ArrivalTimes(n_jobs=len(case.services), window=case.window),
    )


SHAPES = ("tandem", "re-entrant", "closed", "work-per-job", "anything")


def random_case(generator: random.Random, shape: str, *, longest: int = 6) -> Case:
    """Small integers, so that ties and services of no time are common."""
    n_jobs, n_stages = generator.randint(1, 12), generator.randint(1, 5)
    n_components = n_stages if shape == "tandem" else generator.randint(1, n_stages)
    routes = list(range(n_components))
    routes += [generator.randrange(n_components) for _ in range(n_stages - n_components)]
    generator.shuffle(routes)
    alike = shape in ("tandem", "re-entrant", "closed") or generator.random() < 0.4
    row = tuple(generator.randint(0, longest) for _ in range(n_stages))
    services = tuple(
        row if alike else tuple(generator.randint(0, longest) for _ in range(n_stages))
        for _ in range(n_jobs)
    )
    closed = shape == "closed" or (shape == "anything" and generator.random() < 0.3)
    spread = generator.choice((0, 3, longest * n_jobs))
    arrivals = sorted(generator.randint(0, spread) for _ in range(n_jobs))
    return Case(
        lanes=tuple(generator.randint(1, 4) for _ in range(n_components)),
        routes=tuple(routes),
        services=services,
        arrivals=tuple(arrivals),
        window=generator.randint(1, 5) if closed else None,
    )


def random_cases(count: int, *, seed: int) -> Iterator[Case]:
    generator = random.Random(seed)
    for number in range(count):
        yield random_case(generator, SHAPES[number % len(SHAPES)])
