"""A plan as the text of its file: YAML as people write it, one line for each query."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping

from perfdb_git.formats.codec import encode
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.model.plan import Plan, PlanQuery
from perfdb_git.model.values import Scalar
from perfdb_git.storage import layout
from perfdb_git.storage.plan_documents import PLAN_KIND

_WIDTH = 98
_PLAIN = re.compile(r"[a-z][a-z0-9_-]{2,}")
_WORDS = frozenset(["null", "true", "false", "yes", "off"])
"""Words that a reader of YAML may take for something else than a text."""


def plan_text(plan: Plan, *, schemas: SchemaStore | None = None) -> str:
    """Return the text of a sum plan's file, judged by its schema.

    Parameters
    ----------
    plan : Plan
        With the composition ``sum``.
    schemas : SchemaStore or None
        Where the schemas are; ``None`` takes the package's own.

    Raises
    ------
    InvalidInputError
        Where the plan breaks its schema, such as by its name.
    """
    assert plan.composition.kind == "sum"
    path = layout.plan_paths(plan.name)[-1]
    (schemas or SchemaStore()).validate(encode(plan), document=path, expected_kind=PLAN_KIND)
    lines = [f"schema: {plan.schema}", f"name: {_text(plan.name)}"]
    lines += _description_lines(plan.description)
    if plan.policy is not None:
        lines.append(f"policy: {_text(plan.policy)}")
    lines.append("queries:")
    for query in plan.queries:
        lines += _query_lines(query)
    return "\n".join([*lines, "composition: {kind: sum}", ""])


def _description_lines(text: str) -> list[str]:
    """Fold a text of single spaces; any other is quoted, so that nothing of it is lost."""
    if not text.isprintable() or text != " ".join(text.split()):
        return [f"description: {json.dumps(text, ensure_ascii=False)}"]
    folded = textwrap.wrap(
        text,
        _WIDTH,
        initial_indent="  ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return ["description: >-", *folded]


def _query_lines(query: PlanQuery) -> list[str]:
    lines = [
        f"- name: {_text(query.name)}",
        f"  multiplicity: {query.multiplicity}",
        f"  query: {_flow(query.query)}",
    ]
    if not query.required:
        lines.append("  required: false")
    if query.notes is not None:
        lines.append(f"  notes: {json.dumps(query.notes, ensure_ascii=False)}")
    return lines


def _flow(values: Mapping[str, Scalar]) -> str:
    pairs = (f"{_text(name)}: {_scalar(value)}" for name, value in values.items())
    return f"{{{', '.join(pairs)}}}"


def _scalar(value: Scalar) -> str:
    return _text(value) if isinstance(value, str) else json.dumps(value)


def _text(text: str) -> str:
    plain = (_PLAIN.fullmatch(text) and text not in _WORDS) or text in ("m", "k")
    return text if plain else json.dumps(text, ensure_ascii=False)
