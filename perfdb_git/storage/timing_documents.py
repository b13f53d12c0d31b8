"""Timing profiles and pipelines of a snapshot, by name or by path.

They are read from their bytes each time: a cache of parsed JSON would turn decimals into floats.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.formats.strict_json import read_json
from perfdb_git.formats.strict_yaml import read_yaml
from perfdb_git.model.pipeline import Pipeline
from perfdb_git.model.timing_profile import TimingProfile
from perfdb_git.simulation.documents import (
    PIPELINE_KIND,
    TIMING_PROFILE_KIND,
    ReadDocument,
    read_pipeline,
    read_timing_profile,
)
from perfdb_git.storage import layout
from perfdb_git.storage.raw_objects import check_path
from perfdb_git.storage.sources import ObjectSource, SourceFile

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of document with its folder."""

    name: str
    folder: str

    @property
    def words(self) -> str:
        return self.name.replace("-", " ")


_PROFILE = _Kind(TIMING_PROFILE_KIND, layout.PROFILES)
_PIPELINE = _Kind(PIPELINE_KIND, layout.PIPELINES)


class TimingDocuments:
    """Timing profiles and pipelines of one snapshot.

    A document is named by the stem of its file in ``profiles`` or ``pipelines``, or by its path in
    the repository, which has a slash or a suffix.

    Parameters
    ----------
    source : ObjectSource
        The snapshot's files.
    schemas : SchemaStore or None
        Judges documents; None takes the package's own schemas.
    """

    def __init__(self, source: ObjectSource, *, schemas: SchemaStore | None = None) -> None:
        self._source = source
        self._schemas = SchemaStore() if schemas is None else schemas

    def timing_profiles(self) -> tuple[str, ...]:
        """Return the names of all timing profiles, sorted."""
        return self._names(_PROFILE)

    def timing_profile(self, name: str) -> ReadDocument[TimingProfile]:
        """Return a timing profile.

        Raises
        ------
        InvalidInputError
            'unknown-timing-profile' with what there is, 'name-stands-twice' where it is JSON and
            YAML, or what `read_timing_profile` raises.
        """
        return self._read(_PROFILE, name, read_timing_profile)

    def pipelines(self) -> tuple[str, ...]:
        """Return the names of all pipelines, sorted."""
        return self._names(_PIPELINE)

    def pipeline(self, name: str) -> ReadDocument[Pipeline]:
        """Return a pipeline.

        Raises
        ------
        InvalidInputError
            'unknown-pipeline' with what there is, 'name-stands-twice' where it is JSON and YAML,
            or what `read_pipeline` raises.
        """
        return self._read(_PIPELINE, name, read_pipeline)

    def stated(self, path: str) -> dict[str, Any]:
        """Return a document as its author wrote it, numbers as plain ones; for showing only."""
        reader = read_json if path.endswith(layout.JSON_SUFFIX) else read_yaml
        content = self._content(path)
        assert content is not None
        value: Any = reader(content, document=path)
        assert isinstance(value, dict)
        return value

    def _read(
        self, kind: _Kind, name: str, read: Callable[..., ReadDocument[T]]
    ) -> ReadDocument[T]:
        path = self._path(kind, name)
        content = None if path is None else self._content(path)
        if path is None or content is None:
            raise self._unknown(kind, name)
        return read(content, document=path, schemas=self._schemas)

    def _path(self, kind: _Kind, name: str) -> str | None:
        """Return where a document stands, or None where there is none of that name."""
        if "/" in name:
            path = name.removeprefix("./")
            if path.startswith("/") or ".." in path.split("/"):
                raise InvalidInputError(
                    f"a {kind.words} is read from the snapshot, not from the disk",
                    code=f"unknown-{kind.name}",
                    document=name,
                    remedy="give its name, or its path from the top of the repository",
                )
            check_path(path)
            return path
        if name.endswith(layout.DOCUMENT_SUFFIXES):
            check_path(name)
            return f"{kind.folder}/{name}"
        places = [f"{kind.folder}/{name}{suffix}" for suffix in layout.DOCUMENT_SUFFIXES]
        found = [path for path in places if path in self._files(kind)]
        if len(found) > 1:
            raise InvalidInputError(
                f"stands beside {found[0]}",
                code="name-stands-twice",
                document=found[1],
                remedy="remove one of the two, or give the path",
            )
        return found[0] if found else None

    def _content(self, path: str) -> bytes | None:
        blob = self._source.object_id(path)
        if blob is None:
            return None
        try:
            return self._source.read(SourceFile(path, blob))
        except IsADirectoryError:
            return None

    def _files(self, kind: _Kind) -> tuple[str, ...]:
        depth = kind.folder.count("/") + 1
        return tuple(
            file.path for file in self._source.files(kind.folder) if file.path.count("/") == depth
        )

    def _names(self, kind: _Kind) -> tuple[str, ...]:
        names = {layout.document_name(path) for path in self._files(kind)}
        return tuple(sorted(name for name in names if name is not None))

    def _unknown(self, kind: _Kind, name: str) -> InvalidInputError:
        known = self._names(kind)
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        commit = self._source.commit
        where = "the work tree" if commit is None else f"commit {commit}"
        return InvalidInputError(
            f"{where} has no such {kind.words}",
            code=f"unknown-{kind.name}",
            document=name,
            remedy=f"{hint}it has: {', '.join(known) if known else 'none'}",
        )
