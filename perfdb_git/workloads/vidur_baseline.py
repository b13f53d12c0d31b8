"""Vidur's measurements as an oracle: looked up once, after every estimate is made.

An oracle judges answers and gives none. It has no part of the `CostProvider` protocol, so no
resolver can ask it, and its file is not opened before it is handed finished estimates.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.model.result import Resolution
from perfdb_git.model.values import Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledRow:
    """One measurement of one component in a profile.

    ``dimensions`` are those that the file states, in canonical terms; ``seconds`` is the median.
    """

    file: str
    row: int
    component: str
    dimensions: Mapping[str, Scalar]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedEstimate:
    """One question with its outcome; an outcome without an answer is one too."""

    name: str
    resolution: Resolution


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedEstimates:
    """All that is to be judged. Each is a `Resolution`: nothing is left to be estimated."""

    estimates: tuple[FinishedEstimate, ...]

    def __post_init__(self) -> None:
        for estimate in self.estimates:
            if not isinstance(estimate.resolution, Resolution):
                raise TypeError(f"{estimate.name} is no finished estimate")


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleRead:
    """One row that was read for an estimate; a row that serves two estimates is two reads."""

    estimate: str
    file: str
    row: int
    component: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleAnswer:
    """What was measured for one estimate.

    ``seconds`` is the median over the rows; ``None`` where there is no row (``no-row``), or where
    rows differ in a dimension that the question leaves open (``ambiguous``, then in ``open``).
    """

    estimate: str
    seconds: float | None
    code: str
    rows: int
    components: tuple[str, ...]
    open: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleLookup:
    """The answers in the order of the estimates, and every row that was read for them."""

    answers: tuple[OracleAnswer, ...]
    reads: tuple[OracleRead, ...]


ReadProfile: TypeAlias = Callable[[bytes, Path], Sequence[ProfiledRow]]
"""Turns the content of the profile at a path into its measurements."""


class VidurProfileBaseline:
    """Lookup of Vidur's CSV profiles; no provider, and spent after one use.

    Parameters
    ----------
    files : mapping of Path to str
        The profiles, each with the SHA-256 that it had when evidence was excluded for it.
    read : callable
        See `ReadProfile`.
    """

    def __init__(self, files: Mapping[Path, str], read: ReadProfile) -> None:
        self._files = dict(files)
        self._read = read
        self._spent = False

    def look_up(self, finished: FinishedEstimates) -> OracleLookup:
        """Open the profiles and return what was measured for each finished estimate.

        Rows match by equality of every dimension that question and row both know, those first that
        know most of them; nothing is rounded and nothing interpolated.

        Parameters
        ----------
        finished : FinishedEstimates
            All of them: there is no second lookup.

        Raises
        ------
        UsageError
            'oracle-spent' for a second lookup, 'unreadable-file'.
        InvalidInputError
            'oracle-changed' where a file is another one than evidence was excluded for, or a
            profile that cannot be read.
        """
        if self._spent:
            raise UsageError(
                "the oracle was looked at already",
                code="oracle-spent",
                remedy="hand it all estimates at once",
            )
        self._spent = True
        rows = [row for path, sha256 in self._files.items() for row in self._rows(path, sha256)]
        found = [_look_up(estimate, rows) for estimate in finished.estimates]
        return OracleLookup(
            answers=tuple(answer for answer, _ in found),
            reads=tuple(read for _, reads in found for read in reads),
        )

    def _rows(self, path: Path, sha256: str) -> Sequence[ProfiledRow]:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise UsageError(
                f"{path} cannot be read: {error.strerror}", code="unreadable-file"
            ) from error
        if sha256_hex(content) != sha256:
            raise InvalidInputError(
                "has changed since evidence was excluded for it",
                code="oracle-changed",
                document=path.name,
                remedy="compare again",
            )
        return self._read(content, path)


def _look_up(
    estimate: FinishedEstimate, rows: Iterable[ProfiledRow]
) -> tuple[OracleAnswer, list[OracleRead]]:
    asked = estimate.resolution.query.coordinates()
    matching = _matching(asked, rows)
    reads = [
        OracleRead(
            estimate=estimate.name,
            file=row.file,
            row=row.row,
            component=row.component,
            seconds=row.seconds,
        )
        for row in matching
    ]
    open_names = _varying(asked, matching)
    seconds = statistics.median(row.seconds for row in matching) if matching else None
    code = "no-row" if not matching else "ambiguous" if open_names else "measured"
    answer = OracleAnswer(
        estimate=estimate.name,
        seconds=None if open_names else seconds,
        code=code,
        rows=len(matching),
        components=tuple(sorted({row.component for row in matching})),
        open=open_names,
    )
    return answer, reads


def _matching(asked: Mapping[str, Scalar], rows: Iterable[ProfiledRow]) -> list[ProfiledRow]:
    """Return the rows that agree with a question, those alone that agree in most dimensions.

    A component whose kind the file does not tell would else be taken for any other of its size.
    """
    found = [row for row in rows if _matches(asked, row.dimensions)]
    agreed = [len(asked.keys() & row.dimensions.keys()) for row in found]
    most = max(agreed, default=0)
    return [row for row, count in zip(found, agreed, strict=True) if count == most]


def _matches(asked: Mapping[str, Scalar], known: Mapping[str, Scalar]) -> bool:
    if asked.get("operation") != known["operation"]:
        return False
    return all(known[name] == value for name, value in asked.items() if name in known)


def _varying(asked: Mapping[str, Scalar], rows: Sequence[ProfiledRow]) -> tuple[str, ...]:
    """Return the dimensions that a question leaves open and that its rows differ in."""
    names = sorted({name for row in rows for name in row.dimensions} - asked.keys())
    return tuple(name for name in names if len({row.dimensions.get(name) for row in rows}) > 1)
