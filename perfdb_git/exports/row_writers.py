"""What turns rows into the bytes of a file, and what puts them there.

The two are apart because rows may be encoded by another process than the one that has the file.
"""

from __future__ import annotations

from typing import Any, BinaryIO, Protocol

from perfdb_git.exports.record_rows import RowBlock


class RowEncoder(Protocol):
    """Encodes blocks of rows of one table; it can be sent to another process."""

    def encode(self, block: RowBlock) -> Any:
        """Return some rows as the writer of the same format appends them."""


class RowWriter(Protocol):
    """Writes a table to a file."""

    def append(self, encoded: Any) -> None:
        """Append rows that the encoder of the table has encoded."""

    def close(self) -> None:
        """Finish the file."""


class TextEncoder(RowEncoder, Protocol):
    """Encodes rows as bytes that follow each other in the file."""

    def header(self) -> bytes:
        """Return what the file begins with."""


class TextWriter:
    """Writes a table of lines.

    Parameters
    ----------
    stream : BinaryIO
        Where the bytes go; it stays open.
    encoder : TextEncoder
        Says what the file begins with.
    """

    def __init__(self, stream: BinaryIO, encoder: TextEncoder) -> None:
        self._stream = stream
        self._stream.write(encoder.header())

    def append(self, encoded: bytes) -> None:
        """Append encoded rows."""
        self._stream.write(encoded)

    def close(self) -> None:
        """Finish the table: a file of lines has no end to write."""
