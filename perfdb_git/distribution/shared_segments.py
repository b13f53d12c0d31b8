"""Index files that machines share: a folder of all of them, or an object store.

Names are content ids, so whatever is there may be used by any clone at any commit. Files are
checked when they are opened; one that is damaged, and one that cannot be fetched, is made from the
own clone instead. As with the cache directory, whoever may write there is trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

from perfdb_git.errors import MissingExtraError, UsageError
from perfdb_git.model.result import Message
from perfdb_git.storage.block_file import Buffer
from perfdb_git.storage.cache_directory import CacheDirectory
from perfdb_git.storage.record_folders import files_of, record_folders
from perfdb_git.storage.segment_store import (
    INDEX_FOLDER,
    catalogue_name,
    directory_name,
    segment_name,
)
from perfdb_git.storage.snapshot import EvidenceSnapshot

Progress: TypeAlias = Callable[[int, int, str], None]


class SharedSegments:
    """A `SegmentStore` of two places: the cache directory, and behind it a shared one.

    Parameters
    ----------
    url : str
        Folder of any kind that fsspec knows: ``/mnt/perfdb``, ``s3://bucket/perfdb``.
    cache_directory : Path or None
        Where files are kept on this machine; None takes the default.

    Attributes
    ----------
    fetched : int
        How many files came from the shared place.

    Raises
    ------
    MissingExtraError
        Without fsspec, or what it needs for the kind of URL.
    UsageError
        'bad-url'.
    """

    def __init__(self, url: str, cache_directory: Path | None = None) -> None:
        self._files, self._root = _file_system(url)
        self._cache = CacheDirectory(cache_directory)
        self._refused: set[str] = set()
        self._failed = False
        self.fetched = 0

    @property
    def warnings(self) -> tuple[Message, ...]:
        """What the user should know: empty, or that the shared place cannot be reached."""
        if not self._failed:
            return ()
        text = "the place of shared index files cannot be used, so the index is made from the clone"
        return (Message(level="warning", code="segments-unavailable", text=text),)

    @property
    def local_root(self) -> Path | None:
        """The cache directory."""
        return self._cache.local_root

    def has(self, name: str) -> bool:
        """Tell whether there is a file of that name in either place."""
        if self._cache.has(name):
            return True
        return name not in self._refused and bool(self._try(self._files.exists, self._place(name)))

    def load(self, name: str) -> Buffer | None:
        """Return a whole file, fetched into the cache directory where it is not there yet."""
        content = self._cache.load(name)
        if content is not None or name in self._refused:
            return content
        fetched: bytes | None = self._try(self._fetched, self._place(name))
        if fetched is None:
            return None
        self.fetched += 1
        self._cache.store(name, fetched)
        return self._cache.load(name)

    def store(self, name: str, content: bytes) -> None:
        """Keep a file in the cache directory; `publish` is what fills the shared place."""
        self._cache.store(name, content)

    def discard(self, name: str) -> None:
        """Forget a file here, and never fetch it again; others find out for themselves."""
        self._cache.discard(name)
        self._refused.add(name)

    def publish(self, evidence: EvidenceSnapshot, progress: Progress | None = None) -> int:
        """Write every index file of a snapshot that the shared place lacks.

        Parameters
        ----------
        evidence : EvidenceSnapshot
            Its index is made where it is absent.
        progress : callable or None
            Called with files done, their number, and the name of the last one.

        Returns
        -------
        int
            How many files were written.
        """
        evidence.index.build()
        names = list(index_names(evidence))
        there = self._try(self._files.find, self._place(INDEX_FOLDER)) or []
        known = {path.removeprefix(f"{self._root}/") for path in there}
        missing = [name for name in names if name not in known]
        for done, name in enumerate(missing, start=1):
            content = self._cache.load(name)
            if content is not None:
                self._try(self._write, self._place(name), bytes(content))
            if progress is not None:
                progress(done, len(missing), name)
        return len(missing)

    def _place(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _fetched(self, place: str) -> bytes | None:
        try:
            content: bytes = self._files.cat_file(place)
        except FileNotFoundError:
            return None
        return content

    def _write(self, place: str, content: bytes) -> None:
        from fsspec.implementations.local import LocalFileSystem

        self._files.makedirs(place.rpartition("/")[0], exist_ok=True)
        if not isinstance(self._files, LocalFileSystem):
            self._files.pipe_file(place, content)  # an object is there whole or not at all
            return
        temporary = f"{place}.{uuid4().hex}.part"
        self._files.pipe_file(temporary, content)
        self._files.mv(temporary, place)

    def _try(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Ask the shared place; one that fails is asked no more."""
        if self._failed:
            return None
        try:
            return function(*arguments)
        except OSError:
            self._failed = True
            return None


def index_names(evidence: EvidenceSnapshot) -> Iterator[str]:
    """Yield the names of all index files of a snapshot, the catalogue last.

    So whoever finds the catalogue in a place that is filled in this order finds the rest.
    """
    folders = record_folders(evidence.source)
    blobs = {file.id for folder in folders for file in files_of(evidence.source, folder)}
    yield from map(segment_name, sorted(blobs))
    yield from (directory_name(folder.identity) for folder in folders)
    yield catalogue_name(evidence.records_digest)


def _file_system(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise MissingExtraError("distributed", "sharing index files") from error
    try:
        files, root = url_to_fs(url)
    except ImportError as error:
        kind = url.partition("://")[0]
        raise UsageError(
            f"{kind}:// needs a package that is not installed",
            code="bad-url",
            remedy="install the fsspec implementation of that kind, such as s3fs or gcsfs",
        ) from error
    except (TypeError, ValueError) as error:  # a URL that lacks some part is a TypeError
        raise UsageError(
            "the place of shared index files is no URL that fsspec knows",
            code="bad-url",
            remedy="give a folder, or a URL such as s3://bucket/folder",
        ) from error
    return files, root.rstrip("/")
