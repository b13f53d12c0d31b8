"""What a check is: a named function with the rules that its findings may break."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from perfdb_git.checks.change import Change
from perfdb_git.checks.checked_snapshot import CheckedDocument, CheckedSnapshot
from perfdb_git.model.findings import Finding

Severity: TypeAlias = Literal["error", "warning", "note"]

_MAX_MESSAGE = 500
"""Messages quote documents, which may hold texts of any length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One thing that must hold; its code names every finding that says it does not."""

    code: str
    severity: Severity = "error"
    documentation: str
    remedy: str

    def broken(
        self,
        document: str,
        message: str,
        *,
        pointer: str | None = None,
        row: int | None = None,
        line: int | None = None,
        remedy: str | None = None,
    ) -> Finding:
        """Return the finding that `document` breaks this rule; a long message is cut."""
        if len(message) > _MAX_MESSAGE:
            message = f"{message[: _MAX_MESSAGE - 3]}..."
        return Finding(
            code=self.code,
            severity=self.severity,
            document=document,
            message=message,
            remedy=self.remedy if remedy is None else remedy,
            pointer=pointer,
            row=row,
            line=line,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A pure function over a snapshot, or over a change from one snapshot to another.

    ``judge_document`` looks at one document alone: all checks of one document run while it is in
    memory, so rows of large record sets are read once, and dropped before the next set is read.
    ``judge_snapshot`` looks at a whole snapshot. The other two run only where a base is known:
    ``judge_addition`` looks at one document whose content the head adds, in memory as above, and
    ``judge_change`` at the whole change, there in the place of ``judge_snapshot``.
    """

    id: str
    documentation: str
    rules: tuple[Rule, ...]
    judge_document: Callable[[CheckedSnapshot, CheckedDocument], Iterable[Finding]] | None = None
    judge_snapshot: Callable[[CheckedSnapshot], Iterable[Finding]] | None = None
    judge_addition: Callable[[Change, CheckedDocument], Iterable[Finding]] | None = None
    judge_change: Callable[[Change], Iterable[Finding]] | None = None

    @property
    def names(self) -> frozenset[str]:
        """Names by which a user may select or ignore this check or a part of it."""
        return frozenset((self.id, *(rule.code for rule in self.rules)))
