"""Reading what tools and the kernel say: bounded in size and time, and XML without entities."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from perfdb_git.errors import InvalidInputError, UsageError

MAX_BYTES = 16 << 20
"""A GPU with all its supported clocks takes 50 kB of XML."""

TOOL_SECONDS = 30.0
MAX_DEPTH = 32
_FACT_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """What a tool printed, or why there is nothing: exactly one of both is not None."""

    content: bytes | None
    reason: str | None


def run_tool(words: Sequence[str], *, timeout: float = TOOL_SECONDS) -> ToolOutput:
    """Run a tool that describes the machine; a tool that is absent or fails is no error.

    Parameters
    ----------
    words : sequence of str
        The program, found on the path, and its arguments.
    timeout : float
        Seconds until it is stopped.
    """
    program = shutil.which(words[0])
    if program is None:
        return _nothing(f"{words[0]} is not installed")
    # Field names of lscpu and others are translated.
    environment = {**os.environ, "LC_ALL": "C", "LANGUAGE": "C"}
    with tempfile.TemporaryFile() as output:
        try:
            done = subprocess.run(
                [program, *words[1:]],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.DEVNULL,
                timeout=timeout,
                env=environment,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return _nothing(f"{words[0]} did not end within {timeout:g} s")
        except OSError as error:
            return _nothing(f"{words[0]} cannot be run: {error.strerror}")
        if done.returncode != 0:
            return _nothing(f"{words[0]} failed with status {done.returncode}")
        output.seek(0)
        content = output.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        return _nothing(f"{words[0]} printed more than {MAX_BYTES} bytes")
    return ToolOutput(content=content, reason=None)


def _nothing(reason: str) -> ToolOutput:
    return ToolOutput(content=None, reason=reason)


def read_fact(path: Path) -> str | None:
    """Return the text of a small file of the kernel, stripped; None where there is none."""
    try:
        with path.open("rb") as file:
            content = file.read(_FACT_BYTES)
    except OSError:
        return None
    return content.decode("utf-8", "replace").strip() or None


def read_input(path: Path) -> bytes:
    """Return the content of a file that the user named.

    Raises
    ------
    UsageError
        'unreadable-file'.
    InvalidInputError
        'file-too-large'.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}",
            code="unreadable-file",
            remedy="name an existing file",
        ) from error
    if len(content) > MAX_BYTES:
        raise InvalidInputError(
            f"has more than {MAX_BYTES} bytes",
            code="file-too-large",
            document=path.name,
            remedy="give the tool's own output",
        )
    return content


def read_xml(content: bytes, *, document: str) -> Element:
    """Parse XML that declares no entities, is not deep, and fetches nothing.

    A document type that only names an external file, as nvidia-smi writes it, is accepted, and
    that file is never read.

    Raises
    ------
    InvalidInputError
        'xml-too-large', 'xml-too-deep', 'xml-entities', or 'bad-xml' with the line.
    """
    if len(content) > MAX_BYTES:
        raise InvalidInputError(
            f"has more than {MAX_BYTES} bytes", code="xml-too-large", document=document
        )
    return _XmlReader(document).read(content)


class _XmlReader:
    def __init__(self, document: str) -> None:
        self._document = document
        self._builder = TreeBuilder()
        self._depth = 0
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._builder.data
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.EntityDeclHandler = self._entity
        self._parser.SkippedEntityHandler = self._entity

    def read(self, content: bytes) -> Element:
        try:
            self._parser.Parse(content, True)
        except expat.ExpatError as error:
            raise InvalidInputError(
                expat.ErrorString(error.code),
                code="bad-xml",
                document=self._document,
                line=error.lineno,
                remedy="give the whole output of 'nvidia-smi -q -x'",
            ) from error
        return self._builder.close()

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._refuse(f"elements nest more than {MAX_DEPTH} deep", "xml-too-deep")
        self._builder.start(name, attributes)

    def _end(self, name: str) -> None:
        self._depth -= 1
        self._builder.end(name)

    def _doctype(self, _name: str, _system: object, _public: object, has_subset: int) -> None:
        if has_subset:
            self._refuse("declares a document type of its own", "xml-entities")

    def _entity(self, name: str, *_: object) -> None:
        self._refuse(f"uses the entity {name!r}", "xml-entities")

    def _refuse(self, reason: str, code: str) -> NoReturn:
        raise InvalidInputError(
            reason,
            code=code,
            document=self._document,
            line=self._parser.CurrentLineNumber,
            remedy="give the tool's own output",
        )
