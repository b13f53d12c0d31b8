"""A plan's file says what the plan says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.codec import decode
from perfdb_git.formats.strict_yaml import read_yaml
from perfdb_git.model.plan import Composition, Plan, PlanQuery
from perfdb_git.plans.writing import plan_text

PLAN = Plan(
    schema="perfdb/plan/v1",
    name="step-1",
    description=f"A: step # of {'many ' * 40}words; 'quoted' \"twice\" - and {{odd}}.".strip(),
    policy="null",
    queries=(
        PlanQuery(
            name="n",
            query={
                "operation": "gemm",
                "n": 1,
                "k": 0.5,
                "m": 3,
                "runtime": "1.3.0",
                "layout": "no",
            },
            multiplicity=7,
            required=False,
            notes="µs: yes, 'on'\nand more",
        ),
        PlanQuery(name="true", query={"operation": "rope", "implementation": "12:30"}),
    ),
    composition=Composition(kind="sum"),
)


def test_a_plan_is_read_back_as_it_was() -> None:
    value = read_yaml(plan_text(PLAN).encode(), document="step-1.yaml")
    assert decode(Plan, value, document="step-1.yaml") == PLAN


@pytest.mark.parametrize(
    "text", ["two  spaces", "a bell \a and\na line", " ends ", "naïve 🙂: #no"]
)
def test_every_description_is_kept(text: str) -> None:
    plan = replace(PLAN, description=text)
    value = read_yaml(plan_text(plan).encode(), document="step-1.yaml")
    assert decode(Plan, value, document="step-1.yaml") == plan


def test_common_names_are_not_quoted() -> None:
    text = plan_text(replace(PLAN, policy=None))
    assert (
        '  query: {operation: gemm, "n": 1, k: 0.5, m: 3, runtime: "1.3.0", layout: "no"}' in text
    )
    assert "name: step-1\n" in text
    assert "policy" not in text


def test_a_name_that_cannot_be_a_file_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="name"):
        plan_text(replace(PLAN, name="../step"))
