"""Segments: the same values as the strict reading, and no damage goes unnoticed."""

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.canonical import canonical_record_set
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.formats.strict_json import read_json
from perfdb_git.storage.block_file import BlockFile, DamagedFileError, pack_block_file
from perfdb_git.storage.record_sets import StatedRecordSet
from perfdb_git.storage.segments import Segment, build_segment, record_set_findings
from tests.storage.evidence_fixtures import METRICS, header, rows

SCHEMAS = SchemaStore()
SAMPLES = {"name": "latency", "role": "metric", "statistic": "sample", "unit": "ms"}
COUNT = {"name": "latency", "role": "metric", "statistic": "count", "unit": "1"}
HEADER = header(metrics=[*METRICS, SAMPLES, COUNT], source_columns=("row", "model"))

_positive = st.floats(min_value=0, max_value=1e300, allow_subnormal=False) | st.integers(
    0, 2**53 - 1
)
_dimension = st.none() | st.integers(-5, 2**53 - 1) | st.floats(-1e9, 1e9, allow_subnormal=False)
_source = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8)
_row = st.tuples(
    _dimension,
    _dimension,
    st.none() | _positive,
    st.none() | _positive,
    st.none() | _positive | st.lists(_positive, min_size=1, max_size=4),
    st.none() | st.integers(1, 99),
    _source,
    _source,
)


def build(cells: list[Any], head: dict[str, Any] | None = None) -> Segment:
    content = canonical_record_set(HEADER if head is None else head, cells)
    return Segment(build_segment(content, document="set.json", schemas=SCHEMAS))


def cell_of(segment: Segment, column: int, row: int) -> Any:
    values, offsets = segment.values(column), segment.offsets(column)
    if values is None:
        return "source"
    if offsets is not None:
        return values[offsets[row] : offsets[row + 1]].tolist()
    return None if math.isnan(values[row]) else values[row]


@settings(max_examples=60)
@given(st.lists(_row, max_size=6))
def test_a_segment_holds_what_the_strict_reader_reads(cells: list[Any]) -> None:
    content = canonical_record_set(HEADER, cells)
    strict: Any = read_json(content, document="set.json")
    segment = Segment(build_segment(content, document="set.json", schemas=SCHEMAS))

    assert segment.sha256 == sha256_hex(content)
    assert segment.row_count == len(cells)
    assert {**segment.header, "rows": strict["rows"]} == strict
    everything = [tuple(stated) for stated in strict["rows"]]
    assert segment.states(range(len(cells)), everything)
    for row, stated in enumerate(strict["rows"]):
        assert segment.states([row], [tuple(stated)])
        for column, cell in enumerate(stated[:6]):
            found = cell_of(segment, column, row)
            if isinstance(found, list):
                assert found == ([] if cell is None else cell if isinstance(cell, list) else [cell])
            else:
                assert found == cell

    some = range(0, len(cells), 2)
    lines = StatedRecordSet(content, document="set.json")
    assert lines.sha256 == segment.sha256
    assert lines.header == segment.header
    assert lines.row_count == len(cells)
    assert lines.rows(some) == {row: tuple(strict["rows"][row]) for row in some}
    assert lines.rows([-1, len(cells)]) == {}


@pytest.mark.parametrize(
    "body",
    [
        "[\n    [1, 2, 0.5, 0.1, 0],    [2, 2, 0.5, 0.1, 1],\n    [3, 2, 0.5, 0.1, 2]\n  ]",
        "[\n    [1, 2, 0.5,\n    0.1, 0],\n    [2, 2, 0.5, 0.1, 1]\n  ]",
        '[\n    [1, 2, 0.5, 0.1, "[ ]"],\n    [2, 2, 0.5, 0.1, 1]\n  ]',
        '[\n    [1, 2, 0.5, 0.1, "],"],\n    [2, 2, 0.5, 0.1, "["]\n  ]',
        "[[1, 2, 0.5, 0.1, 0]]",
        "[]",
    ],
)
def test_rows_are_found_in_any_layout(body: str) -> None:
    head = canonical_record_set(header(), []).decode()
    content = head.replace('"rows": []', f'"rows": {body}').encode()
    strict: Any = json.loads(content)
    count = len(strict["rows"])
    stated = StatedRecordSet(content, document="set.json")
    assert stated.row_count == count
    assert [list(cells) for cells in stated.rows(range(count)).values()] == strict["rows"]


def test_a_segment_is_not_equal_to_other_cells() -> None:
    segment = build([[1, None, 0.5, None, [1, 2.5], 3, 0, "x"]])
    good = (1, None, 0.5, None, [1, 2.5], 3, 0, "x")
    assert segment.states([0], [good])
    assert segment.states([0], [(*good[:6], 7, "source cells are not held")])
    for place, other in [
        (0, 2),
        (1, 0),
        (2, None),
        (3, 0),
        (4, [1]),
        (4, None),
        (5, 4),
        (0, "x"),
        (0, [1]),
    ]:
        assert not segment.states([0], [(*good[:place], other, *good[place + 1 :])])
    assert not segment.states([0], [good[:-1]])
    assert segment.states([0, 0], [good, good])
    assert not segment.states([0, 0], [good, (2, *good[1:])])
    assert segment.states([], [])


@pytest.mark.parametrize(
    ("place", "cell", "code"),
    [
        (0, "128", "cell-type"),
        (0, True, "cell-type"),
        (0, [1], "cell-type"),
        (2, -0.5, "negative-metric"),
        (2, False, "cell-type"),
        (2, [0.5], "cell-type"),
        (4, [], "no-samples"),
        (4, [1, None], "cell-type"),
        (4, [1, True], "cell-type"),
        (4, [1, -1], "negative-metric"),
        (4, -1, "negative-metric"),
        (5, 0, "wrong-count"),
        (5, 1.5, "wrong-count"),
        (6, [1], "cell-type"),
    ],
)
def test_every_bad_cell_is_found(place: int, cell: Any, code: str) -> None:
    good = [1, 2, 0.5, 0.1, [0.5], 3, 0, "x"]
    bad = [*good[:place], cell, *good[place + 1 :]]
    cells = [good, bad, good, bad]
    document = {**HEADER, "rows": cells}
    with pytest.raises(InvalidInputError, match="row 1, column") as caught:
        build_segment(json.dumps(document).encode(), document="set.json", schemas=SCHEMAS)
    assert caught.value.code == code
    assert caught.value.pointer == f"/rows/1/{place}"
    found = record_set_findings(HEADER, cells, document="set.json")
    assert [(finding.row, finding.code) for finding in found] == [(1, code), (3, code)]


@pytest.mark.parametrize("row", [[1, 2], [1, 2, 0.5, 0.1, 0, 0], None, 5, {"m": 1}])
def test_a_row_must_fit_the_columns(row: Any) -> None:
    document = {**header(), "rows": [*rows(2), row]}
    with pytest.raises(InvalidInputError, match="row 2") as caught:
        build_segment(json.dumps(document).encode(), document="set.json", schemas=SCHEMAS)
    assert caught.value.code == "row-length"


@pytest.mark.parametrize(
    ("head", "code"),
    [
        (header(dimensions=("m", "m")), "duplicate-column"),
        (header(metrics=[METRICS[0], METRICS[0]]), "duplicate-column"),
        (header(context={"m": 3}), "dimension-stated-twice"),
        (header(metrics=[{**METRICS[0], "unit": "GB/s"}]), "wrong-unit"),
        (header(metrics=[{**COUNT, "unit": "ms"}]), "wrong-unit"),
    ],
)
def test_columns_that_the_schema_cannot_judge(head: dict[str, Any], code: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        build([], head)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "guessed"},
        {"protocol": {}},
        {"rows": None},
        {"rows": {}},
        {"columns": [{"name": "m", "role": "dimension", "unit": "1"}]},
        {"schema": "perfdb/record-set/v99"},
    ],
)
def test_a_header_is_judged_by_its_schema(change: dict[str, Any]) -> None:
    document = {**header(), "rows": rows(2), **change}
    with pytest.raises(InvalidInputError):
        build_segment(json.dumps(document).encode(), document="set.json", schemas=SCHEMAS)


def test_a_document_that_is_no_object_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        build_segment(b"[]", document="set.json", schemas=SCHEMAS)


def test_any_flipped_byte_is_noticed_or_harmless() -> None:
    good = build_segment(
        canonical_record_set(header(), rows(3)), document="set.json", schemas=SCHEMAS
    )
    wanted = [Segment(good).values(column) for column in range(4)]
    noticed = 0
    for place in range(len(good)):
        damaged = bytearray(good)
        damaged[place] ^= 0x10
        try:
            segment = Segment(bytes(damaged))
            found = [segment.values(column) for column in range(4)]
        except DamagedFileError:
            noticed += 1
        else:  # padding, which nobody reads
            assert all((a == b).all() for a, b in zip(found, wanted, strict=True))
    assert noticed > len(good) * 0.8


@pytest.mark.parametrize("cut", [0, 1, 20, 100, -64, -1])
def test_a_truncated_file_is_noticed(cut: int) -> None:
    good = build_segment(
        canonical_record_set(header(), rows(3)), document="set.json", schemas=SCHEMAS
    )
    with pytest.raises(DamagedFileError):
        Segment(good[:cut] if cut else b"")
    with pytest.raises(DamagedFileError):
        Segment(good + b"\0")


def test_columns_are_aligned_and_read_only() -> None:
    content = pack_block_file(b"PERFTEST", {"a": 1}, [b"x" * 5, b"", b"y" * 100])
    file = BlockFile(content, magic=b"PERFTEST")
    assert file.content == {"a": 1}
    assert [bytes(file.block(number)) for number in range(3)] == [b"x" * 5, b"", b"y" * 100]
    assert content.index(b"xxxxx") % 64 == 0
    assert content.index(b"yyyyy") % 64 == 0
    segment = build([[1, 2, 0.5, 0.1, None, 1, 0, "x"]])
    values = segment.values(0)
    assert values is not None
    assert not values.flags.writeable
