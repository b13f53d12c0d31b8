"""Mappings that cannot mean anything are refused before a table is read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.importers.mapping_documents import load_mapping, shipped_mappings
from perfdb_git.model.vocabulary import Vocabulary


def test_unknown_name_lists_the_shipped_mappings(vocabulary: Vocabulary) -> None:
    with pytest.raises(UsageError, match="vidur-mlp"):
        load_mapping("no-such-mapping", vocabulary)
    assert len(shipped_mappings()) == 10


def test_reference_is_the_digest_of_the_file(
    bench_mapping: Callable[..., Path], vocabulary: Vocabulary
) -> None:
    path = bench_mapping()
    reference = load_mapping(str(path), vocabulary).reference
    assert reference.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("operation: gemm", "operation: gem", "unknown-operation"),
        ("m: {column: m}", "tokens: {column: m}", "missing-dimension"),
        ("m: {column: m}", "m: {column: m}\n      tokens: {column: m}", "foreign-dimension"),
        ("m: {column: m}", "m: {column: m}\n      mm: {column: m}", "unknown-dimension"),
        ("m: {column: m}", "m: {column: m, unit: B}", "wrong-unit"),
        ("m: {column: m}", "m: {value: 0}", "bad-value"),
        ("half: float16", "half: fp16", "bad-value"),
        ("unit: us", "unit: B", "wrong-unit"),
        ("device: {variable: device}", "device: {unknown: true}", "unknown-device"),
        ("device: {variable: device}", "device: {variable: gadget}", "unknown-variable"),
        ("session: bench-{system}-{run}", "session: bench-{planet}", "unknown-variable"),
        ("of: system", "of: planet", "unknown-variable"),
        ("variables:\n  device:", "variables:\n  system:", "repeated-name"),
        ("{system}/gemm.csv", "{system}/{ge mm.csv", "bad-pattern"),
        ("source_columns: [run]", "source_columns: [run, note]", "repeated-name"),
        ("source_columns: [run]", "source_columns: [run, row]", "reserved-name"),
        ("source_columns: [run]", "source_columns: [run, m]", "repeated-name"),
        ("ignored_columns: [note]", "ignored_columns: [note, latency]", "repeated-name"),
        ("kind: measured", "kind: guessed", None),
        ("version: 1", "version: 1\ncolour: red", None),
        (
            "source_columns:",
            "derived: [{name: x, formula: cube, arguments: [m]}]\nsource_columns:",
            "unknown-formula",
        ),
        (
            "source_columns:",
            "derived: [{name: x, formula: product, arguments: [m]}]\nsource_columns:",
            "bad-formula",
        ),
        (
            "source_columns:",
            "derived: [{name: x, formula: lookup, arguments: [m]}]\nsource_columns:",
            "bad-formula",
        ),
        (
            "source_columns:",
            "label_checks: [{column: m, variable: system}]\nsource_columns:",
            "unknown-column",
        ),
        (
            "source_columns:",
            "label_checks: [{column: run, variable: planet}]\nsource_columns:",
            "unknown-variable",
        ),
    ],
)
def test_refused_mappings(
    bench_mapping: Callable[..., Path],
    vocabulary: Vocabulary,
    old: str,
    new: str,
    code: str | None,
) -> None:
    path = bench_mapping(old, new)
    with pytest.raises(InvalidInputError) as caught:
        load_mapping(str(path), vocabulary)
    if code is not None:
        assert caught.value.code == code
    assert caught.value.pointer is not None
