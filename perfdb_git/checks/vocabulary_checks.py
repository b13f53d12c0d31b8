"""The vocabulary: every name defined, and every typed text with one meaning."""

from __future__ import annotations

from collections.abc import Iterator

from perfdb_git.checks.checked_snapshot import CheckedSnapshot
from perfdb_git.checks.rules import Check, Rule
from perfdb_git.checks.terms import UNKNOWN_DIMENSION, hint, pointer, term_fault
from perfdb_git.model.findings import Finding
from perfdb_git.model.query import GROUP_FIELDS
from perfdb_git.model.vocabulary import Dimension, Vocabulary
from perfdb_git.operations.queries import value_fault
from perfdb_git.operations.work import WORK_FORMULAS
from perfdb_git.storage.layout import VOCABULARY

NO_VOCABULARY = Rule(
    code="no-vocabulary",
    documentation="An evidence repository has a vocabulary.",
    remedy="make one with 'perfdb init', or name another repository",
)
UNKNOWN_FORMULA = Rule(
    code="unknown-formula",
    documentation="Work formulas are ones that this perfdb has.",
    remedy="use one of the known formulas, or a newer perfdb",
)
AMBIGUOUS_TERM = Rule(
    code="ambiguous-term",
    documentation="A term, alias or shorthand means one thing in its dimension.",
    remedy="keep it in one place",
)
BAD_SHORTHAND = Rule(
    code="bad-shorthand",
    documentation="Shorthands stand for legal values of dimensions.",
    remedy="write canonical values of dimensions of the vocabulary",
)
QUERY_FIELD = Rule(
    code="no-query-field",
    documentation="A dimension outside shape is a query field of the same group.",
    remedy="put it into the group shape, or use a perfdb whose queries have the field",
)
UNDEFINED_FIELD = Rule(
    code="undefined-query-field",
    documentation="Every query field is a dimension of the vocabulary.",
    remedy="define it as perfdb's own vocabulary does",
)

_RESERVED = "null"
"""What people type for an explicit unknown."""


def judge_vocabulary(snapshot: CheckedSnapshot) -> Iterator[Finding]:
    """Yield what is wrong with the vocabulary."""
    if VOCABULARY not in snapshot.paths and snapshot.is_walked(VOCABULARY):
        yield NO_VOCABULARY.broken(VOCABULARY, "there is no vocabulary")
    vocabulary = snapshot.vocabulary
    if vocabulary is None:
        return
    for name, dimension in vocabulary.dimensions.items():
        yield from _terms(name, dimension)
        yield from _shorthands(name, dimension, vocabulary)
    yield from _query_fields(vocabulary)
    yield from _operations(vocabulary)


def _terms(name: str, dimension: Dimension) -> Iterator[Finding]:
    seen = {**dict.fromkeys(dimension.terms, "a term"), _RESERVED: "an explicit unknown"}
    places: list[tuple[str, str, str]] = []
    if _RESERVED in dimension.terms:
        yield _ambiguous(name, _RESERVED, seen, pointer("dimensions", name, "terms", _RESERVED))
    for term, aliases in dimension.terms.items():
        for number, alias in enumerate(aliases):
            where = pointer("dimensions", name, "terms", term, number)
            places.append((alias, f"an alias of {term!r}", where))
    for shorthand in dimension.shorthands:
        where = pointer("dimensions", name, "shorthands", shorthand)
        places.append((shorthand, "a shorthand", where))
    for text, meaning, where in places:
        if text in seen:
            yield _ambiguous(name, text, seen, where)
        seen.setdefault(text, meaning)


def _ambiguous(name: str, text: str, seen: dict[str, str], where: str) -> Finding:
    return AMBIGUOUS_TERM.broken(
        VOCABULARY, f"{name}: {text!r} is already {seen[text]}", pointer=where
    )


def _shorthands(name: str, dimension: Dimension, vocabulary: Vocabulary) -> Iterator[Finding]:
    for shorthand, values in dimension.shorthands.items():
        for key, value in values.items():
            meant = vocabulary.dimensions.get(key)
            if meant is None:
                fault = f"unknown dimension {key!r}{hint(key, vocabulary.dimensions)}"
            else:
                fault = term_fault(meant, value) or value_fault(meant, value) or ""
            if fault:
                yield BAD_SHORTHAND.broken(
                    VOCABULARY,
                    f"{shorthand}: {fault}",
                    pointer=pointer("dimensions", name, "shorthands", shorthand, key),
                )


def _query_fields(vocabulary: Vocabulary) -> Iterator[Finding]:
    groups = {field: group for group, fields in GROUP_FIELDS.items() for field in fields}
    for name, dimension in vocabulary.dimensions.items():
        # A shape dimension of a field's name would hide the field.
        if groups.get(name, "shape") != dimension.group:
            has = f"in {groups[name]}" if name in groups else "in no group but shape"
            yield QUERY_FIELD.broken(
                VOCABULARY,
                f"{name} is in group {dimension.group}, queries have it {has}",
                pointer=pointer("dimensions", name, "group"),
            )
    for field, group in groups.items():
        if field not in vocabulary.dimensions:
            yield UNDEFINED_FIELD.broken(
                VOCABULARY, f"{group} field {field} is not defined", pointer="/dimensions"
            )


def _operations(vocabulary: Vocabulary) -> Iterator[Finding]:
    for name, operation in vocabulary.operations.items():
        if operation.work not in WORK_FORMULAS:
            yield UNKNOWN_FORMULA.broken(
                VOCABULARY,
                f"no work formula is called {operation.work!r}"
                + hint(operation.work, WORK_FORMULAS),
                pointer=pointer("operations", name, "work"),
            )
        for key, dimensions in (("shape", operation.shape), ("optional", operation.optional)):
            for number, dimension in enumerate(dimensions):
                if dimension not in vocabulary.dimensions:
                    yield UNKNOWN_DIMENSION.broken(
                        VOCABULARY,
                        f"operation {name}: unknown dimension {dimension!r}"
                        + hint(dimension, vocabulary.dimensions),
                        pointer=pointer("operations", name, key, number),
                    )


VOCABULARY_CHECK = Check(
    id="vocabulary",
    documentation="Dimensions, terms, shorthands and formulas are defined and unambiguous.",
    rules=(
        NO_VOCABULARY,
        UNKNOWN_FORMULA,
        UNKNOWN_DIMENSION,
        AMBIGUOUS_TERM,
        BAD_SHORTHAND,
        QUERY_FIELD,
        UNDEFINED_FIELD,
    ),
    judge_snapshot=judge_vocabulary,
)
