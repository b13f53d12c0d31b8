"""The content of a tool's file: text, JSON as tools write it, gzip with a size cap."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

from perfdb_git.errors import InvalidInputError

MAX_EXPANDED_BYTES = 2 * 1024 * 1024 * 1024

_GZIP = b"\x1f\x8b"
_HEAD = 65536
_CHUNK = 1 << 20
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True, kw_only=True)
class _NoJson:
    """Why a text is no JSON; kept so that sniffing parses a file once."""

    reason: str
    line: int | None


@dataclass(frozen=True, kw_only=True)
class SourceText:
    """One file, decoded lazily and once for all importers that look at it.

    Parameters
    ----------
    document : str
        Its name, for messages.
    data : bytes
        Its bytes as they lie on disk.
    """

    document: str
    data: bytes
    _cache: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def expanded(self) -> bytes:
        """The bytes, decompressed where they are gzip.

        Raises
        ------
        InvalidInputError
            'file-too-large' or 'broken-gzip'.
        """
        return b"".join(_expanded_chunks(self.data, self.document))

    def chunks(self) -> Iterator[str]:
        """Yield the text piece by piece, for files that are too long to hold at once.

        Raises
        ------
        InvalidInputError
            'file-too-large', 'broken-gzip' or 'not-utf8'.
        """
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        try:
            for part in _expanded_chunks(self.data, self.document):
                yield decoder.decode(part)
            yield decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            refuse(self.document, "is not UTF-8", "not-utf8", remedy="save it as UTF-8")

    @cached_property
    def text(self) -> str:
        """The text, without a byte order mark and with ``\\n`` line ends.

        Raises
        ------
        InvalidInputError
            'not-utf8'. UTF-16 with its mark, which Windows shells write, is read too.
        """
        data = self.expanded
        try:
            text = data.decode("utf-16" if data.startswith(_UTF16) else "utf-8-sig")
        except UnicodeDecodeError as error:
            raise InvalidInputError(
                f"byte 0x{data[error.start]:02x} at offset {error.start} is not UTF-8",
                code="not-utf8",
                document=self.document,
                remedy="save it as UTF-8",
            ) from error
        return text.replace("\r\n", "\n").replace("\r", "\n")

    @property
    def head(self) -> str:
        """The first 64 KiB of the text; empty for bytes that are no text."""
        try:
            if self.data.startswith(_GZIP):
                return next(self.chunks(), "")[:_HEAD]
            return self.text[:_HEAD]
        except InvalidInputError:
            return ""

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text."""
        return self.text.split("\n")

    @property
    def looks_like_json(self) -> bool:
        """Whether the text begins as a JSON document does."""
        return self.head.lstrip()[:1] in ("{", "[")

    @property
    def is_trace(self) -> bool:
        """Whether it is a trace of events, which may be too long to be read whole."""
        return '"traceEvents"' in self.head

    def json(self) -> Any:
        """Return the JSON document; NaN and infinities, which some tools write, become floats.

        Raises
        ------
        InvalidInputError
            'broken-json' or 'duplicate-key'.
        """
        found = self._json
        if isinstance(found, _NoJson):
            raise InvalidInputError(
                found.reason,
                code="duplicate-key" if "twice" in found.reason else "broken-json",
                document=self.document,
                line=found.line,
                remedy="export it again; a file that was cut off holds no complete run",
            )
        return found

    def json_object(self) -> Mapping[str, Any] | None:
        """Return the document if it is a JSON object, for sniffing; else None."""
        if not self.looks_like_json or self.is_trace:
            return None
        return self._json if isinstance(self._json, dict) else None

    def require_readable(self) -> None:
        """Refuse what no importer can take: broken gzip, no text, JSON that was cut off.

        Raises
        ------
        InvalidInputError
            'file-too-large', 'broken-gzip', 'not-utf8', 'broken-json' or 'duplicate-key'.
        """
        if not self.is_trace and self.text.lstrip()[:1] in ("{", "["):
            self.json()

    @cached_property
    def _json(self) -> Any:
        return _parsed(self.text)

    def csv_rows(self, first: int = 0) -> list[tuple[int, list[str]]]:
        """Return the rows of comma-separated text from line index ``first`` on.

        Returns
        -------
        list of (int, list of str)
            The 1-based line on which each row ends, and its cells; empty lines are left out.
        """
        reader = csv.reader(io.StringIO("\n".join(self.lines[first:])), skipinitialspace=True)
        try:
            return [(first + reader.line_num, row) for row in reader if any(row)]
        except csv.Error as error:
            refuse(self.document, f"broken quoting: {error}", "broken-table")


def refuse(
    document: str,
    message: str,
    code: str,
    *,
    line: int | None = None,
    pointer: str | None = None,
    remedy: str | None = None,
) -> NoReturn:
    """Refuse a file.

    Raises
    ------
    InvalidInputError
        Always.
    """
    raise InvalidInputError(
        message, code=code, document=document, line=line, pointer=pointer, remedy=remedy
    )


def leading_json(text: str) -> Any:
    """Return the JSON object that begins on the first line that is ``{``, or None.

    Some tools write warnings before their JSON, and other text after it.
    """
    match = re.search(r"(?m)^\{", text)
    if match is None:
        return None
    try:
        value, _ = _DECODER.raw_decode(text, match.start())
    except ValueError:
        return None
    return value


def json_lines(text: str) -> Sequence[Any] | None:
    """Return the values of JSON Lines, or None where some line is no JSON."""
    values = []
    for line in text.split("\n"):
        if line.strip():
            value = _parsed(line)
            if isinstance(value, _NoJson):
                return None
            values.append(value)
    return values


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return result


_NOT_FINITE = r"[-+]?\b(?:nan|inf|infinity)\b"
_BARE_TOKEN = re.compile(rf"[:,\[]\s*{_NOT_FINITE}\s*[,\]}}]", re.IGNORECASE)
_STRING_OR_TOKEN = re.compile(rf'"(?:[^"\\]|\\.)*"|{_NOT_FINITE}', re.IGNORECASE)
_DECODER = json.JSONDecoder(object_pairs_hook=_pairs)


def _with_json_tokens(text: str) -> str:
    """Spell numbers that are not finite as the decoder knows them; printf writes nan and inf."""
    if not _BARE_TOKEN.search(text):
        return text

    def spelled(match: re.Match[str]) -> str:
        token = match[0]
        if token.startswith('"'):
            return token
        if "nan" in token.lower():
            return "NaN"
        return "-Infinity" if token.startswith("-") else "Infinity"

    return _STRING_OR_TOKEN.sub(spelled, text)


def _parsed(text: str) -> Any:
    try:
        return _DECODER.decode(_with_json_tokens(text))
    except json.JSONDecodeError as error:
        return _NoJson(reason=f"is not JSON: {error.msg}", line=error.lineno)
    except (ValueError, RecursionError) as error:
        return _NoJson(reason=str(error) or "is nested too deeply", line=None)


def _expanded_chunks(data: bytes, document: str) -> Iterator[bytes]:
    """Yield a file's bytes piece by piece, decompressed where they are gzip."""
    if not data.startswith(_GZIP):
        yield from (data[start : start + _CHUNK] for start in range(0, len(data), _CHUNK))
        return
    size = 0
    while data:
        reader = zlib.decompressobj(wbits=31)
        try:
            while not reader.eof:
                part = reader.decompress(data, _CHUNK)
                data = reader.unconsumed_tail
                size += len(part)
                if size > MAX_EXPANDED_BYTES:
                    message = f"expands to more than {MAX_EXPANDED_BYTES} bytes"
                    refuse(document, message, "file-too-large")
                if not part and not data and not reader.eof:
                    refuse(document, "is gzip that was cut off", "broken-gzip")
                yield part
        except zlib.error as error:
            refuse(document, f"is broken gzip: {error}", "broken-gzip")
        data = reader.unused_data
