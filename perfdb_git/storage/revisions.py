"""From what a user types to one commit: a small grammar that means one thing everywhere.

Git itself also takes reflog entries, message searches, dates and ranges. Those depend on the clone
or name no single commit, so they are refused by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pygit2

from perfdb_git.errors import RepositoryUnavailableError
from perfdb_git.storage.objects import GIT_FAILURES, ObjectReader
from perfdb_git.storage.raw_objects import Commit, is_object_id, printable

MIN_ABBREVIATION = 7
_STEPS = re.compile(r"(?:~[0-9]{0,6}|\^[0-9]{0,6})*")
_STEP = re.compile(r"([~^])([0-9]*)")
_HEX = re.compile(r"[0-9a-fA-F]{4,40}")
_PSEUDO_REF = re.compile(r"[A-Z]+_HEAD")
_NAMESPACES = ("refs/", "refs/tags/", "refs/heads/", "refs/remotes/")
"""Git's own order of precedence."""

_ACCEPTED = (
    "use HEAD, a branch, a tag, refs/..., a full commit hash or at least "
    f"{MIN_ABBREVIATION} digits of one, followed by any ~n or ^n"
)
_REFUSED = (
    (re.compile(r"\A\Z"), "is empty"),
    (re.compile(r"\A-"), "starts with '-' and looks like an option"),
    (re.compile(r"@\{"), "depends on this clone's reflog, upstream settings or the date"),
    (re.compile(r"\A:/|\A:"), "is a message search or an index path"),
    (re.compile(r"\^\{"), "uses '^{...}'"),
    (re.compile(r"\.\."), "is a range of commits"),
    (re.compile(r":"), "names a path, not a commit"),
    (re.compile(r"\A\^"), "excludes commits instead of naming one"),
    (re.compile(r"\^[@!-]"), "names several commits"),
    (re.compile(r"\A@(?:\Z|[~^])"), "is a shorthand; write HEAD"),
    (re.compile(r"[^\x21-\x7e\u00a1-\U0010ffff]"), "holds a space or a control character"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedRevision:
    """The commit that a revision named.

    Attributes
    ----------
    commit : str
        Full commit id, 40 hexadecimal digits.
    text : str
        What was asked for.
    warnings : tuple of str
        Why another reader might have understood something else.
    """

    commit: str
    text: str
    warnings: tuple[str, ...] = ()


class RevisionResolver:
    """Resolves revisions in one repository."""

    def __init__(self, repository: pygit2.Repository, objects: ObjectReader) -> None:
        self._repository = repository
        self._objects = objects

    def resolve(self, text: str) -> ResolvedRevision:
        """Return the commit that `text` names.

        Raises
        ------
        RepositoryUnavailableError
            'revision-refused', 'unknown-revision', 'ambiguous-revision', 'not-a-commit',
            'shallow-history', or the code of an object that cannot be read.
        """
        for pattern, reason in _REFUSED:
            if pattern.search(text):
                raise _refusal(text, reason)
        end = min((i for i in (text.find("~"), text.find("^")) if i >= 0), default=len(text))
        base, steps = text[:end], text[end:]
        if _STEPS.fullmatch(steps) is None:
            raise _refusal(text, f"ends in {steps!r}, which is not a series of ~n and ^n")
        target, warnings = self._base(base, text)
        commit = self._objects.peel(target, what=f"revision '{_shown(base)}'")
        self._objects.commit(commit)  # a hash that cannot be read is no answer
        for operator, count in _STEP.findall(steps):
            commit = self._step(commit, operator, int(count) if count else 1, text)
        return ResolvedRevision(commit=commit, text=text, warnings=warnings)

    def _base(self, base: str, text: str) -> tuple[str, tuple[str, ...]]:
        if base == "HEAD":
            return self._head(), ()
        if _PSEUDO_REF.fullmatch(base):
            raise _refusal(text, f"starts at {base}, which Git's own commands move")
        if base.startswith("refs/"):
            target = self._reference(base, text)
            if target is None:
                raise self._unknown(text, f"there is no reference {_shown(base)}")
            return target, ()
        names = [prefix + base for prefix in _NAMESPACES]
        found = [(name, target) for name in names if (target := self._reference(name, text))]
        lowered = base.lower()
        if is_object_id(lowered):
            warnings = tuple(f"{name} looks like a hash; the object was taken" for name, _ in found)
            return self._full_id(lowered, text), warnings
        if found:
            return found[0][1], _name_warnings(base, [name for name, _ in found])
        if _HEX.fullmatch(base):
            return self._abbreviation(lowered, text), ()
        raise self._unknown(text, f"there is no branch, tag or remote branch '{_shown(base)}'")

    def _head(self) -> str:
        try:
            return str(self._repository.lookup_reference("HEAD").resolve().target)
        except KeyError as error:
            raise self._unknown("HEAD", "the branch has no commit yet") from error
        except GIT_FAILURES as error:
            raise _damaged("HEAD", error) from error

    def _reference(self, name: str, text: str) -> str | None:
        try:
            return str(self._repository.lookup_reference(name).resolve().target)
        except KeyError:
            return None
        except ValueError as error:  # not a legal reference name
            raise _refusal(text, "is not a legal name of a branch or tag") from error
        except GIT_FAILURES as error:
            raise _damaged(name, error) from error

    def _full_id(self, object_id: str, text: str) -> str:
        try:
            self._objects.kind_and_size(object_id, what="revision")
        except RepositoryUnavailableError as error:
            if error.code != "object-missing":
                raise
            raise RepositoryUnavailableError(
                f"revision '{_shown(text)}' is unknown: this clone has no such object",
                code="unknown-revision",
                remedy=error.remedy,
            ) from error
        return object_id

    def _abbreviation(self, digits: str, text: str) -> str:
        if len(digits) < MIN_ABBREVIATION:
            raise _refusal(text, f"abbreviates a hash to fewer than {MIN_ABBREVIATION} digits")
        try:
            return str(self._repository.expand_id(digits))
        except KeyError as error:
            raise self._unknown(text, "no branch, tag or object starts so") from error
        except ValueError as error:
            raise RepositoryUnavailableError(
                f"revision '{_shown(text)}' is ambiguous: several objects start with {digits}",
                code="ambiguous-revision",
                remedy="give more digits, best all 40",
            ) from error
        except GIT_FAILURES as error:
            raise _damaged(digits, error) from error

    def _step(self, commit: str, operator: str, count: int, text: str) -> str:
        if operator == "^":
            return commit if count == 0 else self._parent(commit, count, text)
        for _ in range(count):
            commit = self._parent(commit, 1, text)
        return commit

    def _parent(self, commit: str, number: int, text: str) -> str:
        parents = self._objects.commit(commit).parents
        if number > len(parents):
            have = f"{len(parents)} parents" if len(parents) != 1 else "1 parent"
            raise self._unknown(text, f"commit {commit} has {have}, not {number}")
        return parent_commit(self._objects, parents[number - 1], of=commit).id

    def _unknown(self, text: str, reason: str) -> RepositoryUnavailableError:
        remedy = "list the names with 'git branch --all' and 'git tag', or fetch the missing one"
        if self._objects.is_shallow:
            remedy += "; this clone is shallow: 'git fetch --unshallow' brings the rest"
        return RepositoryUnavailableError(
            f"revision '{_shown(text)}' is unknown: {reason}",
            code="unknown-revision",
            remedy=remedy,
        )


def parent_commit(objects: ObjectReader, parent: str, *, of: str) -> Commit:
    """Return a parent of the commit `of`, which a shallow clone may lack.

    Raises
    ------
    RepositoryUnavailableError
        'shallow-history' at the boundary of a shallow clone.
    """
    try:
        return objects.commit(parent)
    except RepositoryUnavailableError as error:
        if error.code == "object-missing" and objects.is_shallow:
            raise RepositoryUnavailableError(
                f"history is cut at commit {of}: its parent {parent} is not in this shallow clone",
                code="shallow-history",
                remedy="run 'git fetch --unshallow' (in CI: fetch-depth: 0)",
            ) from error
        raise


def _name_warnings(base: str, names: list[str]) -> tuple[str, ...]:
    warnings: list[str] = []
    taken = names[0]
    if len(names) > 1:
        others = " and ".join(names[1:])
        warnings.append(f"'{base}' names both {taken} and {others}; {taken} was taken")
    if len(base) >= MIN_ABBREVIATION and _HEX.fullmatch(base):
        warnings.append(f"'{base}' looks like an abbreviated commit; {taken} was taken")
    return tuple(warnings)


def _refusal(text: str, reason: str) -> RepositoryUnavailableError:
    return RepositoryUnavailableError(
        f"revision '{_shown(text)}' {reason}", code="revision-refused", remedy=_ACCEPTED
    )


def _damaged(name: str, error: Exception) -> RepositoryUnavailableError:
    return RepositoryUnavailableError(
        f"reference {_shown(name)} cannot be read: {error}",
        code="reference-corrupt",
        remedy="run 'git fsck' and restore the reference, or name a full commit hash",
    )


def _shown(text: str) -> str:
    return printable(text.encode("utf-8", "surrogateescape"))
