"""Typed input, query documents and the canonical form."""

from pathlib import Path
from typing import Any

import pytest

from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.formats.codec import decode, encode
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.formats.strict_yaml import read_yaml
from perfdb_git.model.query import CostQuery, EvidencePolicy, Workload
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.queries import (
    build_query,
    canonical_query,
    parse_pairs,
    query_digest,
    query_from_document,
)

VOCABULARY = Path(__file__).parents[2] / "evidence" / "vocabulary.yaml"


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    document = read_yaml(VOCABULARY.read_bytes(), document="vocabulary.yaml")
    SchemaStore().validate(document, document="vocabulary.yaml", expected_kind="vocabulary")
    return decode(Vocabulary, document, document="vocabulary.yaml")


def test_aliases_and_shorthands_become_canonical(vocabulary: Vocabulary) -> None:
    values = parse_pairs(["operation=gemm", "dtype=fp16", "device=a100_sxm4_80g"], vocabulary)
    assert values == {
        "operation": "gemm",
        "dtype": "float16",
        "device": "a100_80g",
        "form_factor": "sxm",
    }


def test_one_and_one_point_nought_are_one_value(vocabulary: Vocabulary) -> None:
    def digest(text: str) -> str:
        values = parse_pairs(["operation=gemm", f"occupancy={text}", "m=8"], vocabulary)
        return query_digest(build_query(values, vocabulary))

    assert digest("1") == digest("1.0")
    assert digest("1") != digest("0.5")


def test_an_explicit_unknown_equals_silence(vocabulary: Vocabulary) -> None:
    said = build_query(parse_pairs(["operation=gemm", "m=null"], vocabulary), vocabulary)
    silent = build_query({"operation": "gemm"}, vocabulary)
    assert query_digest(said) == query_digest(silent)


def test_the_canonical_form_writes_every_dimension(vocabulary: Vocabulary) -> None:
    form = canonical_query(build_query({"operation": "gemm", "m": 8}, vocabulary))
    assert isinstance(form, dict)
    assert form["workload"]["shape"] == {"m": 8, "n": None, "k": None}
    assert form["deployment"]["device"] is None
    assert form["schema"] == "perfdb/query/v1"
    SchemaStore().validate(form, document="query", expected_kind="query")


def test_limits_are_part_of_the_question(vocabulary: Vocabulary) -> None:
    plain = build_query({"operation": "gemm"}, vocabulary)
    limited = build_query({"operation": "gemm"}, vocabulary, limits=EvidencePolicy(max_age_days=30))
    assert query_digest(plain) != query_digest(limited)


@pytest.mark.parametrize(
    ("pairs", "code"),
    [
        (["operation"], "bad-pair"),
        (["operation=gem"], "unknown-operation"),
        (["operation=gemm", "mm=3"], "unknown-dimension"),
        (["operation=gemm", "dtype=fp17"], "unknown-term"),
        (["operation=gemm", "m=eight"], "bad-number"),
        (["operation=gemm", "m=0"], "bad-value"),
        (["operation=gemm", "m=-4"], "bad-value"),
        (["operation=gemm", "m=1.5"], "bad-value"),
        (["operation=gemm", "m=nan"], "bad-value"),
        (["operation=gemm", "m=1e400"], "bad-value"),
        (["operation=gemm", "m=9007199254740993"], "bad-value"),
        (["operation=gemm", "m=1", "m=2"], "repeated-dimension"),
        (["operation=gemm", "runtime="], "empty-value"),
        (["m=1"], "no-operation"),
        (["operation=gemm", "batch_size=2"], "foreign-dimension"),
    ],
)
def test_bad_input_is_refused_with_a_code(
    pairs: list[str], code: str, vocabulary: Vocabulary
) -> None:
    with pytest.raises(UsageError) as caught:
        build_query(parse_pairs(pairs, vocabulary), vocabulary)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"operation": "gemm", "dtype": "fp16"}, "bad-value"),
        ({"operation": "gemm", "device": "a100_sxm4_80g"}, "bad-value"),
        ({"operation": "gemm", "m": "128"}, "bad-value"),
        ({"operation": "gemm", "m": True}, "bad-value"),
        ({"operation": "gemm", "m": 1.5}, "bad-value"),
        ({"operation": "gemm", "devise": "a100_80g"}, "unknown-dimension"),
        ({"operation": "matmul"}, "unknown-operation"),
    ],
)
def test_the_library_takes_canonical_values_only(
    values: dict[str, Any], code: str, vocabulary: Vocabulary
) -> None:
    with pytest.raises(UsageError) as caught:
        build_query(values, vocabulary)
    assert caught.value.code == code


def test_a_misspelt_dimension_is_answered_with_the_right_one(vocabulary: Vocabulary) -> None:
    with pytest.raises(UsageError, match="did you mean kv_heads"):
        parse_pairs(["operation=attention_decode", "kv_head=8"], vocabulary)


def test_documents_round_trip_and_may_not_use_aliases(vocabulary: Vocabulary) -> None:
    query = build_query({"operation": "gemm", "dtype": "float16", "m": 8}, vocabulary)
    assert query_from_document(encode(query), vocabulary, document="q") == query
    aliased = CostQuery(workload=Workload(operation="gemm", dtype="fp16"))
    with pytest.raises(InvalidInputError, match="'fp16' is not a term"):
        query_from_document(encode(aliased), vocabulary, document="q")
    foreign = CostQuery(workload=Workload(operation="gemm", shape={"tokens": 3}))
    with pytest.raises(InvalidInputError, match="no dimension 'tokens'"):
        query_from_document(encode(foreign), vocabulary, document="q")
