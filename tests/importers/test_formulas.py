"""Named formulas: exact, and with a reason where there is no result."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from perfdb_git.importers.cells import Fault
from perfdb_git.importers.formulas import FORMULAS, FormulaFaultError
from perfdb_git.importers.frames import Frame
from perfdb_git.importers.patterns import fill, fill_name, match_path, revision_variables
from perfdb_git.importers.tables import read_table
from perfdb_git.model.mapping import Derivation


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("product", (3, 4, 5), 60),
        ("sum", (3, 4, 5), 12),
        ("difference", (3, 4), -1),
        ("exact_quotient", (12, 4), 3),
        ("ceil_quotient", (13, 4), 4),
        ("value_if_at_most", (2, 2, "nvlink"), "nvlink"),
        ("value_if_at_most", (3, 2, "nvlink"), None),
    ],
)
def test_results(name: str, arguments: tuple[object, ...], result: object) -> None:
    found = FORMULAS[name].function(*arguments)
    assert found == result
    assert type(found) is type(result)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("exact_quotient", (13, 4)),
        ("exact_quotient", (13, 0)),
        ("exact_quotient", (13.0, 1)),
        ("ceil_quotient", (1, 0)),
        ("product", (2**30, 2**30)),
        ("sum", (1e308, 1e308)),
    ],
)
def test_no_result(name: str, arguments: tuple[object, ...]) -> None:
    with pytest.raises(FormulaFaultError):
        FORMULAS[name].function(*arguments)


def frame(text: str, **variables: object) -> Frame:
    return Frame(read_table(text.encode(), "csv", document="t"), variables)  # type: ignore[arg-type]


def test_faults_pass_through_derivations() -> None:
    derivations = [
        Derivation(name="x", formula="product", arguments=("a", 2)),
        Derivation(name="y", formula="sum", arguments=("x", "b")),
    ]
    found = frame("a,b\n1,2\n?,2\n1,\n").with_derived(derivations).numbers("y")
    assert found[0] == 4
    assert [cell.column for cell in found[1:] if isinstance(cell, Fault)] == ["a", "b"]


def test_lookup_and_variables() -> None:
    derivations = [
        Derivation(name="size", formula="lookup", arguments=("kind",), table={"half": 2}),
        Derivation(name="total", formula="product", arguments=("size", "ranks")),
    ]
    found = frame("kind\nhalf\nodd\n", ranks="4").with_derived(derivations).numbers("total")
    assert found[0] == 8
    assert isinstance(found[1], Fault)
    assert "'odd' is not listed" in found[1].reason


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("{a}/x.csv", "/q/p/x.csv", {"a": "p"}),
        ("{a}/x.csv", "p/x.csv", {"a": "p"}),
        ("{a}/x.csv", "/q/p/yx.csv", None),
        ("data/{a}/x.csv", "/mydata/p/x.csv", None),
        ("{a}/{b}/{a}.csv", "/1/2/1.csv", {"a": "1", "b": "2"}),
        ("{a}/{b}/{a}.csv", "/1/2/3.csv", None),
        ("{a}.v{b}/x.c", "/m.v2/x.c", {"a": "m", "b": "2"}),
        ("{a}.csv", "/1/2.csv.bak", None),
    ],
)
def test_path_patterns(pattern: str, path: str, found: dict[str, str] | None) -> None:
    assert match_path(pattern, PurePosixPath(path)) == found


def test_texts_with_variables() -> None:
    variables = {"a": None, "b": "x/y"}
    assert fill("{a}", variables) is None
    assert fill("{a}-{b}", variables) == "unknown-x/y"
    assert fill_name("s {b}", variables) == "s-x-y"
    assert revision_variables("0123456789abcdef")["revision7"] == "0123456"
    assert revision_variables("core==0.12.0")["revision7"] == "core==0.12.0"
