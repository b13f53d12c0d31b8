"""Lines of values in JSON and YAML text."""

from __future__ import annotations

import json

import pytest

from perfdb_git.formats.canonical import canonical_document, canonical_record_set
from perfdb_git.formats.pointer_lines import json_line, row_line, yaml_line

DOCUMENT = {
    "schema": "perfdb/x/v1",
    "a~b/c": {"list": [1, {"deep": 'x,:{}[]\\"'}, [2, 3]], "empty": {}},
    "z": None,
}


@pytest.mark.parametrize(
    "pointer",
    ["/a~0b~1c", "/a~0b~1c/list/1/deep", "/a~0b~1c/list/2", "/a~0b~1c/empty", "/z", "/schema"],
)
def test_json_lines_hold_what_the_pointer_names(pointer: str) -> None:
    content = canonical_document(DOCUMENT)
    line = content.decode().split("\n")[json_line(content, pointer) - 1]
    last = pointer.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
    assert (json.dumps(last) in line) if not last.isdigit() else line.strip() == "[2, 3]"


def test_a_pointer_that_leads_nowhere_means_the_innermost_value() -> None:
    content = canonical_document(DOCUMENT)
    empty = json_line(content, "/a~0b~1c/empty")
    assert json_line(content, "/a~0b~1c/empty/no/such") == empty
    assert json_line(content, "/z/0") == json_line(content, "/z")
    assert json_line(content, "") == 1
    assert json_line(b'{"a": [1]}', "/a/7") == 1


def test_rows_stand_on_lines_of_their_own() -> None:
    header = {"schema": "perfdb/record-set/v1", "columns": [{"name": "rows"}]}
    content = canonical_record_set(header, [[1, "a\n"], [2, "]"], [3, None]])
    lines = content.decode().split("\n")
    for row in range(3):
        line = row_line(content, row)
        assert line is not None and lines[line - 1].lstrip().startswith(f"[{row + 1}, ")
        assert json_line(content, f"/rows/{row}/1") == line
    assert row_line(content, 99) is None
    assert row_line(b'{"rows": [[1]]}', 0) is None
    assert json_line(b'{"x": 1,\n"rows": [\n[1],\n[2]]}', "/rows/1") == 4


def test_yaml_lines() -> None:
    content = b"# words\na:\n  - x\n  - {b: 1,\n     c: 2}\nd: e\n"
    assert yaml_line(content, "/a/1/c") == 5
    assert yaml_line(content, "/a/0") == 3
    assert yaml_line(content, "/d") == 6
    assert yaml_line(content, "/d/nothing") == 6
    assert yaml_line(content, "/nothing") == 2
    assert yaml_line(content, "") == 2
