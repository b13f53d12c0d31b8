"""Errors by who must act on them; each carries fields, a stable code and an exit status.

A message says what is wrong and where; ``remedy`` says what to do about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

EXIT_FINE = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_INVALID = 3
EXIT_NO_EVIDENCE = 4
EXIT_UNAVAILABLE = 5
EXIT_INTERNAL = 70
EXIT_INTERRUPTED = 130


class PerfdbError(Exception):
    """Base of every error that this package raises on purpose.

    Parameters
    ----------
    message : str
        What is wrong, and where.
    code : str
        Stable, kebab-case; scripts may depend on it.
    remedy : str or None
        What the reader can do about it.
    """

    exit_status: ClassVar[int] = EXIT_INTERNAL

    def __init__(self, message: str, *, code: str, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.remedy = remedy

    def __reduce__(self) -> tuple[object, ...]:
        # An exception is made again from its arguments, and ours need more than a message.
        return _restored, (type(self), self.args, self.__dict__)

    def __str__(self) -> str:
        return self.message if self.remedy is None else f"{self.message} ({self.remedy})"


def _restored(
    cls: type[PerfdbError], arguments: tuple[object, ...], state: dict[str, object]
) -> PerfdbError:
    """Make an error again that comes from another process."""
    error = cls.__new__(cls, *arguments)
    error.args = arguments
    error.__dict__.update(state)
    return error


class UsageError(PerfdbError):
    """The request itself is wrong: the caller must change it."""

    exit_status = EXIT_USAGE


class InvalidInputError(PerfdbError):
    """A document, file or record breaks its format: its author must change it.

    Parameters
    ----------
    document : str
        File name or repository path of the offending document.
    line : int or None
        1-based line, where known.
    pointer : str or None
        JSON pointer (RFC 6901) into the document, where known.
    """

    exit_status = EXIT_INVALID

    def __init__(
        self,
        message: str,
        *,
        code: str,
        document: str,
        line: int | None = None,
        pointer: str | None = None,
        remedy: str | None = None,
    ) -> None:
        where = document
        if line is not None:
            where += f":{line}"
        if pointer is not None:
            where += f" at {pointer or '/'}"
        super().__init__(f"{where}: {message}", code=code, remedy=remedy)
        self.reason = message
        self.document = document
        self.line = line
        self.pointer = pointer


class InvalidRowsError(InvalidInputError):
    """Several rows of an input are wrong; all of them are named, nothing was written."""

    def __init__(
        self, message: str, *, code: str, document: str, rows: Sequence[str], remedy: str | None
    ) -> None:
        super().__init__(message, code=code, document=document, remedy=remedy)
        self.rows = tuple(rows)


class NoEvidenceError(PerfdbError):
    """There is no admissible evidence: none for the query, or not one sample in a tool's file."""

    exit_status = EXIT_NO_EVIDENCE


class RepositoryUnavailableError(PerfdbError):
    """The repository, the revision or an object of it cannot be read here."""

    exit_status = EXIT_UNAVAILABLE


class ClusterUnavailableError(PerfdbError):
    """A cluster, or what its workers need, is not there."""

    exit_status = EXIT_UNAVAILABLE


class MissingExtraError(UsageError):
    """An optional dependency is needed and absent."""

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the optional extra '{extra}'",
            code="missing-extra",
            remedy=f"pip install 'perfdb-git[{extra}]'",
        )
        self.extra = extra
