"""Ways to break the plans and locks of a clean repository."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perfdb_git.formats.canonical import canonical_document
from perfdb_git.formats.digests import canonical_digest
from perfdb_git.formats.strict_yaml import read_yaml
from perfdb_git.storage.plan_documents import lock_digest

Expected = list[tuple[str, str, str | None, int | None]]

PLAN = "pipelines/plans/decode-64.yaml"
LOCK = "pipelines/plans/decode-64.lock.json"
EXAMPLE = Path(__file__).parents[1] / "schemas/examples/plan-lock.yaml"

PLAN_BREAKS: dict[str, Callable[[Any], Expected]] = {}


def breaks(function: Callable[[Any], Expected]) -> Callable[[Any], Expected]:
    PLAN_BREAKS[function.__name__] = function
    return function


def example_lock(**changes: Any) -> dict[str, Any]:
    """A lock whose digests are right, of a plan that sums one query."""
    value: Any = read_yaml(EXAMPLE.read_bytes(), document="example")
    value["plan"]["composition"] = {"kind": "sum", "pipeline": None, "profile": None, "jobs": None}
    value["plan"] |= changes
    value["source"]["digest"] = canonical_digest(value["plan"])
    value["digest"] = lock_digest(value)
    lock: dict[str, Any] = value
    return lock


def put_plan(e: Any, path: str = PLAN, **changes: Any) -> str:
    e.files[path] = json.dumps({**example_lock()["plan"], **changes}).encode()
    return path


def put_lock(e: Any, value: dict[str, Any], path: str = LOCK) -> str:
    e.files[path] = canonical_document(value)
    return path


def clean_plan(e: Any) -> None:
    put_plan(e)
    put_lock(e, example_lock())


def one(code: str, document: str, pointer: str | None = None) -> Expected:
    return [(code, document, pointer, None)]


@breaks
def plan_in_a_folder(e: Any) -> Expected:
    return one("unknown-file", put_plan(e, "pipelines/plans/old/decode-64.yaml"))


@breaks
def plan_with_two_queries_of_a_name(e: Any) -> Expected:
    queries = example_lock()["plan"]["queries"]
    return one("unsound-plan", put_plan(e, queries=queries * 2), "")


@breaks
def plan_of_another_name(e: Any) -> Expected:
    return one("plan-name", put_plan(e, name="decode-65"), "/name")


@breaks
def plan_twice(e: Any) -> Expected:
    put_plan(e, PLAN.replace(".yaml", ".json"))
    return one("name-stands-twice", put_plan(e))


@breaks
def plan_that_asks_in_other_words(e: Any) -> Expected:
    query = {"operation": "gemm", "dtype": "fp16", "rows": 3}
    path = put_plan(e, queries=[{"name": "a", "query": query}])
    return [
        ("bad-plan-query", path, "/queries/0/query/dtype", None),
        ("bad-plan-query", path, "/queries/0/query/rows", None),
    ]


@breaks
def plan_of_unknown_names(e: Any) -> Expected:
    composition = {"kind": "pipeline", "pipeline": "submit", "profile": "small"}
    path = put_plan(e, composition=composition, policy="strict")
    return [
        ("unknown-pipeline", path, "/composition/pipeline", None),
        ("unknown-policy", path, "/policy", None),
        ("unknown-timing-profile", path, "/composition/profile", None),
    ]


@breaks
def lock_edited_by_hand(e: Any) -> Expected:
    put_plan(e)
    value = example_lock()
    value["queries"][0]["answer"]["value"] = 0.00005
    return one("lock-digest", put_lock(e, value), "/digest")


@breaks
def lock_with_another_plan_inside(e: Any) -> Expected:
    put_plan(e)
    value = example_lock()
    value["plan"]["description"] = "Another."
    value["digest"] = lock_digest(value)
    return one("lock-digest", put_lock(e, value), "/digest")


@breaks
def lock_that_contradicts_itself(e: Any) -> Expected:
    put_plan(e)
    queries = example_lock()["plan"]["queries"]
    return one("lock-digest", put_lock(e, example_lock(queries=queries * 2)), "/plan")


@breaks
def lock_in_other_bytes(e: Any) -> Expected:
    put_plan(e)
    e.files[LOCK] = json.dumps(example_lock()).encode()
    return one("not-canonical", LOCK)


@breaks
def lock_of_another_name(e: Any) -> Expected:
    path = put_lock(e, example_lock(), "pipelines/plans/decode-65.lock.json")
    return one("plan-name", path, "/plan/name")


@breaks
def lock_without_a_plan(e: Any) -> Expected:
    return one("unknown-plan", put_lock(e, example_lock()), "/plan/name")


@breaks
def lock_of_an_earlier_plan(e: Any) -> Expected:
    put_plan(e, description="Another.")
    return one("outdated-lock", put_lock(e, example_lock()), "/source/digest")
