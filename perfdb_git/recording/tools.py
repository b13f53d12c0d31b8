"""Readers of a command's output by name: this package's importers and registered ones."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from perfdb_git.errors import UsageError
from perfdb_git.importers.requests import ImportRequest
from perfdb_git.importers.table import import_table
from perfdb_git.importers.tool_import import ToolImportRequest, import_tool_files
from perfdb_git.importers.tool_registry import AUTO, importer, importer_names

TABLE = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRequest:
    """One output to read.

    Parameters
    ----------
    repository : Path
        A folder with the vocabulary and nothing else, which the record sets go to.
    file : Path
        What the command printed.
    mapping : str or None
        Mapping of the importer, where it takes one.
    stated : tuple of str
        ``KEY=VALUE`` facts that the output lacks.
    """

    repository: Path
    file: Path
    mapping: str | None
    stated: tuple[str, ...]


OutputReader: TypeAlias = Callable[[OutputRequest], object]
"""Writes the record sets of an output into the request's repository."""


def find_reader(name: str, *, mapping: str | None, stated: tuple[str, ...]) -> OutputReader:
    """Return the reader of a tool's output.

    Parameters
    ----------
    name : str
        ``table``, or an importer of the entry-point group ``perfdb.importers``.
    mapping, stated
        As in `OutputRequest`: a reader that cannot use them is refused before anything runs.

    Raises
    ------
    UsageError
        'unknown-tool', 'broken-importer', 'no-mapping' or 'conflicting-options'.
    """
    if name == TABLE:
        return _table_reader(mapping, stated)
    if mapping is not None:
        raise UsageError(
            f"--mapping is of --tool {TABLE}, not of {name}", code="conflicting-options"
        )
    if name == AUTO or name not in importer_names():
        raise UsageError(
            f"no importer is named {name!r}",
            code="unknown-tool",
            remedy=f"known: {', '.join((*importer_names(), TABLE))}",
        )
    importer(name)
    return functools.partial(_read_tool, name)


def _read_tool(name: str, request: OutputRequest) -> object:
    return import_tool_files(
        ToolImportRequest(
            repository=request.repository,
            tool=name,
            files=(request.file,),
            stated=request.stated,
        )
    )


def _table_reader(mapping: str | None, stated: tuple[str, ...]) -> OutputReader:
    if mapping is None:
        raise UsageError(
            "--tool table needs a mapping",
            code="no-mapping",
            remedy="--mapping with a document that says what the columns mean",
        )
    if stated:
        raise UsageError(
            "a mapping states every dimension; KEY=VALUE states it again",
            code="conflicting-options",
            remedy="write it into the mapping",
        )
    return _read_table


def _read_table(request: OutputRequest) -> object:
    assert request.mapping is not None
    return import_table(
        ImportRequest(repository=request.repository, mapping=request.mapping, files=(request.file,))
    )
