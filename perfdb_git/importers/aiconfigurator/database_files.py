"""The files of an aiconfigurator database: in a wheel, read in place, or in a folder."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.importers.tables import MAX_FILE_BYTES

_TABLE = re.compile(
    r"(?:.*/)?(?P<package>[^/]+)/systems/data/(?P<system>[^/]+)/(?P<family>[^/]+)"
    r"/(?P<backend>[^/]+)/(?P<version>[^/]+)/(?P<kind>[^/]+)\.parquet"
)
_METADATA = re.compile(r"[^/]+\.dist-info/METADATA")
_FACT = re.compile(r"^(Name|Version): (\S+)\s*$", re.MULTILINE)
_MAX_FILES = 100_000
_MAX_TEXT_BYTES = 1024 * 1024
SIDECAR = "collection_meta.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    """One table by its place.

    Attributes
    ----------
    name : str
        What record sets call it: the path from the package's folder on.
    member : str
        How `DatabaseFiles.read` finds it.
    system, backend, version, kind : str
        Parts of the path: ``h200_sxm``, ``trtllm``, ``1.3.0rc20``, ``gemm_perf``.
    """

    name: str
    member: str
    system: str
    backend: str
    version: str
    kind: str

    @property
    def sidecar(self) -> str:
        """Where what was stated of the collection may stand."""
        return f"{self.member.rpartition('/')[0]}/{SIDECAR}"

    @property
    def specification(self) -> str:
        """Where the figures of the system's data sheet may stand."""
        head = self.member.partition(f"/systems/data/{self.system}/")[0]
        return f"{head}/systems/{self.system}.yaml"


class DatabaseFiles(Protocol):
    """Read-only files by name."""

    def names(self) -> Sequence[str]:
        """Return the names of all files, with ``/`` between folders."""

    def read(self, name: str, limit: int) -> bytes | None:
        """Return a file's content, or None where there is none of that name."""


class _Folder:
    def __init__(self, root: Path) -> None:
        # A package's own folder is part of the names.
        self._root = root.parent if (root / "systems" / "data").is_dir() else root

    def names(self) -> Sequence[str]:
        found: list[str] = []
        for pattern in ("**/systems/data/*/*/*/*/*.parquet", "*.dist-info/METADATA"):
            for path in self._root.glob(pattern):
                found.append(path.relative_to(self._root).as_posix())
                _limit_count(found, str(self._root))
        return found

    def read(self, name: str, limit: int) -> bytes | None:
        path = self._root / PurePosixPath(name)
        try:
            if path.stat().st_size > limit:
                raise _too_large(name, limit)
            return path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(path, str(error.strerror)) from error


class _Wheel:
    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    def names(self) -> Sequence[str]:
        found = self._archive.namelist()
        _limit_count(found, str(self._archive.filename))
        return found

    def read(self, name: str, limit: int) -> bytes | None:
        try:
            entry = self._archive.getinfo(name)
        except KeyError:
            return None
        if entry.file_size > limit:
            raise _too_large(name, limit)
        try:
            with self._archive.open(entry) as file:
                content = file.read(limit + 1)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError) as error:
            raise InvalidInputError(
                f"cannot be read from the wheel: {error}", code="broken-wheel", document=name
            ) from error
        if len(content) > limit:
            raise _too_large(name, limit)
        return content


@contextmanager
def open_database(path: Path) -> Iterator[DatabaseFiles]:
    """Open a wheel, or a folder that holds an unpacked one or a checkout.

    Nothing is unpacked to a path.

    Raises
    ------
    UsageError
        'unreadable-file' where it is neither.
    """
    if path.is_dir():
        yield _Folder(path.resolve())
        return
    try:
        archive = zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise _unreadable(path, str(error)) from error
    with archive:
        yield _Wheel(archive)


def tables_of(files: DatabaseFiles, path: Path) -> tuple[TableFile, ...]:
    """Return every table, sorted by name.

    Raises
    ------
    UsageError
        'no-files' where there is none.
    """
    found = []
    for member in files.names():
        match = _TABLE.fullmatch(member)
        if match is not None and member.isprintable():
            parts = match.groupdict()
            name = member[match.start("package") :]
            found.append(
                TableFile(
                    name=name,
                    member=member,
                    **{key: text for key, text in parts.items() if key not in _PATH_ONLY},
                )
            )
    if not found:
        raise UsageError(
            f"{path} holds no table of aiconfigurator",
            code="no-files",
            remedy="name a wheel of aiconfigurator-core, or a folder with 'systems/data' below it",
        )
    return tuple(sorted(found, key=lambda table: table.name))


_PATH_ONLY = ("package", "family")


def distribution_of(files: DatabaseFiles) -> str | None:
    """Return the distribution as ``name==version``, or None where nothing states it."""
    stated = [name for name in files.names() if _METADATA.fullmatch(name)]
    if len(stated) != 1:
        return None
    text = read_text(files, stated[0]) or ""
    facts = dict(reversed(_FACT.findall(text)))
    if "Name" not in facts or "Version" not in facts:
        return None
    return f"{facts['Name']}=={facts['Version']}"


def read_table_bytes(files: DatabaseFiles, table: TableFile) -> bytes:
    """Return the content of a table."""
    content = files.read(table.member, MAX_FILE_BYTES)
    if content is None:
        raise InvalidInputError("is gone", code="unreadable-file", document=table.name)
    return content


def read_text(files: DatabaseFiles, name: str) -> str | None:
    """Return a small text file, or None where there is none."""
    content = files.read(name, _MAX_TEXT_BYTES)
    return None if content is None else content.decode("utf-8", errors="replace")


def read_document(files: DatabaseFiles, name: str) -> bytes | None:
    """Return the bytes of a small document, or None where there is none."""
    return files.read(name, _MAX_TEXT_BYTES)


def _limit_count(names: Sequence[str], where: str) -> None:
    if len(names) > _MAX_FILES:
        raise InvalidInputError(
            f"has more than {_MAX_FILES} files", code="too-many-files", document=where
        )


def _too_large(name: str, limit: int) -> InvalidInputError:
    return InvalidInputError(f"has more than {limit} bytes", code="file-too-large", document=name)


def _unreadable(path: Path, reason: str) -> UsageError:
    return UsageError(
        f"{path} cannot be read: {reason}",
        code="unreadable-file",
        remedy="name a wheel of aiconfigurator-core, or a folder",
    )
