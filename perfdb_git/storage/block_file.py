"""The container of all index files: a checked JSON header and checked blocks of bytes.

Layout, little-endian::

    8 bytes   magic
    uint32    container version
    uint32    length of the header text
    uint64    length of the file
    uint32    CRC-32 of the 24 bytes above and of the header text
    header    JSON: {"content": ..., "blocks": [[offset, length, CRC-32], ...]}
    blocks    each at a multiple of 64 bytes from the start of the file's data area

The data area begins at the first multiple of 64 after the header; offsets count from there. A
block is checked when it is first asked for, so opening costs the same whatever the file's size.
"""

from __future__ import annotations

import json
import mmap
import struct
import zlib
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

Buffer: TypeAlias = "bytes | memoryview | mmap.mmap"

ALIGNMENT = 64
CONTAINER_VERSION = 1
_MAGIC_BYTES = 8

_PREFIX = struct.Struct("<8sIIQ")
_CHECKSUM = struct.Struct("<I")


Comparison: TypeAlias = Literal["equal", "truncated", "damaged", "differs"]


class DamagedFileError(Exception):
    """An index file is not what was written; it has to be made again."""


def _aligned(length: int) -> int:
    return -(-length // ALIGNMENT) * ALIGNMENT


def pack_block_file(magic: bytes, content: object, blocks: Sequence[bytes]) -> bytes:
    """Return the bytes of an index file.

    Parameters
    ----------
    magic : bytes
        8 bytes that tell the kind of file.
    content : JSON value
        What a reader needs at once.
    blocks : sequence of bytes
        What it may need later, each by itself.
    """
    directory = []
    end = 0
    for block in blocks:
        directory.append([end, len(block), zlib.crc32(block)])
        end = _aligned(end + len(block))
    text = json.dumps(
        {"content": content, "blocks": directory}, ensure_ascii=False, separators=(",", ":")
    ).encode("utf-8")
    start = _aligned(_PREFIX.size + _CHECKSUM.size + len(text))
    prefix = _PREFIX.pack(magic, CONTAINER_VERSION, len(text), start + end)
    checksum = _CHECKSUM.pack(zlib.crc32(text, zlib.crc32(prefix)))
    head = prefix + checksum + text
    parts = [head, bytes(start - len(head))]
    for block in blocks:
        parts += [block, bytes(_aligned(len(block)) - len(block))]
    return b"".join(parts)


class BlockFile:
    """Reader of one index file.

    Parameters
    ----------
    buffer : bytes, memoryview or mmap
        The whole file; blocks are views of it.
    magic : bytes
        What the file must begin with.

    Raises
    ------
    DamagedFileError
        If the header is not what was written, or the file is too short or too long.
    """

    def __init__(self, buffer: Buffer, *, magic: bytes) -> None:
        self._view = memoryview(buffer)
        head = _PREFIX.size + _CHECKSUM.size
        if len(self._view) < head:
            raise DamagedFileError("too short for a header")
        found, version, length, total = _PREFIX.unpack_from(self._view)
        if found != magic or version != CONTAINER_VERSION or total != len(self._view):
            raise DamagedFileError("wrong magic, version or length")
        (checksum,) = _CHECKSUM.unpack_from(self._view, _PREFIX.size)
        text = self._view[head : head + length]
        if zlib.crc32(text, zlib.crc32(self._view[: _PREFIX.size])) != checksum:
            raise DamagedFileError("wrong checksum of the header")
        header = json.loads(bytes(text))
        self._start = _aligned(head + length)
        self._directory: list[list[int]] = header["blocks"]
        self._checked = [False] * len(self._directory)
        self.content: Any = header["content"]

    def block(self, number: int) -> memoryview:
        """Return one block, checked the first time.

        Raises
        ------
        DamagedFileError
            If its bytes are not what was written.
        """
        offset, length, checksum = self._directory[number]
        offset += self._start
        view = self._view[offset : offset + length]
        if not self._checked[number]:
            if zlib.crc32(view) != checksum:
                raise DamagedFileError(f"wrong checksum of block {number}")
            self._checked[number] = True
        return view

    def check(self) -> None:
        """Check every block.

        Raises
        ------
        DamagedFileError
            If one's bytes are not what was written.
        """
        for number in range(len(self._directory)):
            self.block(number)

    def json_block(self, number: int) -> Any:
        """Return the value of a block that holds JSON.

        Raises
        ------
        DamagedFileError
            If its bytes are not what was written.
        """
        return json.loads(bytes(self.block(number)))


def compare_block_files(stored: Buffer, wanted: bytes) -> Comparison:
    """Tell how an index file relates to what it should be.

    Parameters
    ----------
    stored : bytes, memoryview or mmap
        The whole file as it is.
    wanted : bytes
        The whole file as it should be.

    Returns
    -------
    str
        ``equal``; ``truncated``, where it is only the beginning; ``damaged``, where its checksums
        say so; ``differs``, where they hold.
    """
    view = memoryview(stored)
    if len(view) < len(wanted) and wanted.startswith(view):
        return "truncated"
    if view == wanted:
        return "equal"
    try:
        BlockFile(stored, magic=wanted[:_MAGIC_BYTES]).check()
    except DamagedFileError:
        return "damaged"
    return "differs"


def json_bytes(value: object) -> bytes:
    """Return a value as the compact JSON that `BlockFile.json_block` reads."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
