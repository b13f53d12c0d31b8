"""Only known files, in their folders, with names and sizes that every system can hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from perfdb_git.checks.checked_snapshot import CheckedDocument, CheckedSnapshot
from perfdb_git.checks.rules import Check, Rule
from perfdb_git.errors import InvalidInputError
from perfdb_git.model.findings import Finding
from perfdb_git.storage.folders import is_remark
from perfdb_git.storage.git import find_twins

MAX_ENTRIES = 1000
MAX_BYTES = 5_000_000

_RECOMMIT = "recommit the directory with git itself"


def _walk_rule(code: str, documentation: str, remedy: str) -> Rule:
    return Rule(code=code, documentation=documentation, remedy=remedy)


WALK_RULES = (
    _walk_rule(
        "odd-name",
        "Names are 1 to 200 ASCII letters, digits and . _ - + = @.",
        "rename the file",
    ),
    _walk_rule("symlink", "No symbolic links.", "commit the file itself instead of a link"),
    _walk_rule("submodule", "No submodules.", "commit the files instead of a submodule"),
    _walk_rule("odd-mode", "Regular files and directories only.", _RECOMMIT),
    _walk_rule("duplicate-name", "A name stands once in its directory.", _RECOMMIT),
    _walk_rule("unsorted-tree", "Tree objects are sorted as Git sorts them.", _RECOMMIT),
    _walk_rule("tree-malformed", "Tree objects are well-formed.", _RECOMMIT),
    _walk_rule("too-many-entries", "A snapshot's files can be counted.", "remove files"),
    _walk_rule("too-deep", "Directories are nested at most 12 deep.", "use fewer levels"),
    _walk_rule(
        "directory-too-large", "A directory has at most 100,000 entries.", "use more directories"
    ),
    _walk_rule("blob-too-large", "A file has at most 64 MiB.", "split the file"),
)
"""Codes of the strict walk, which stops at the first fault of a folder."""

NOT_WALKED = Rule(
    code="folder-unreadable",
    documentation="Every evidence folder can be walked.",
    remedy="repair the named entry",
)
UNKNOWN_FILE = Rule(
    code="unknown-file",
    documentation="Evidence folders hold known kinds of documents, .md files and .gitkeep only.",
    remedy="move it out of the evidence folders, or to the folder and name of its kind",
)
NAME_TWINS = Rule(
    code="name-twins",
    documentation="No two paths differ in letter case or Unicode normal form alone.",
    remedy="rename one of them",
)
LARGE_DIRECTORY = Rule(
    code="large-directory",
    severity="warning",
    documentation=f"A directory has at most {MAX_ENTRIES} entries.",
    remedy="spread the files over more directories",
)
LARGE_FILE = Rule(
    code="large-file",
    severity="warning",
    documentation="A file has at most 5 MB.",
    remedy="split the record set by session or by a string-valued dimension",
)

_WALK_RULES_BY_CODE = {rule.code: rule for rule in WALK_RULES}


def judge_layout(snapshot: CheckedSnapshot) -> Iterator[Finding]:
    """Yield what is wrong with names, places and numbers of files."""
    for fault in snapshot.walk_faults:
        yield _unread(fault)
    paths = [file.path for file in snapshot.files]
    for first, *others in find_twins(paths):
        for other in others:
            yield NAME_TWINS.broken(
                other, f"some systems cannot tell it from {first}, which is another path"
            )
    for folder, count in sorted(_entries(paths).items()):
        if count > MAX_ENTRIES:
            yield LARGE_DIRECTORY.broken(folder, f"the directory has {count} entries")


def judge_file(_: CheckedSnapshot, document: CheckedDocument) -> Iterator[Finding]:
    """Yield what is wrong with the place and the size of one file."""
    if document.place is None and not is_remark(document.path):
        yield UNKNOWN_FILE.broken(document.path, "no document of this name belongs here")
    if document.content is None:
        if document.fault is not None:
            yield _unread(document.fault)
    elif len(document.content) > MAX_BYTES:
        yield LARGE_FILE.broken(document.path, f"the file has {len(document.content)} bytes")


def _unread(fault: InvalidInputError) -> Finding:
    rule = _WALK_RULES_BY_CODE.get(fault.code, NOT_WALKED)
    return rule.broken(fault.document, fault.reason, pointer=fault.pointer, remedy=fault.remedy)


def _entries(paths: list[str]) -> Counter[str]:
    """Count the files and directories of each directory."""
    counts: Counter[str] = Counter()
    seen: set[str] = set()
    for path in paths:
        here = path
        # Walk up until a directory that was already counted: linear in the number of paths.
        while "/" in here and here not in seen:
            seen.add(here)
            here = here.rpartition("/")[0]
            counts[here] += 1
    return counts


LAYOUT = Check(
    id="layout",
    documentation="Known files in known folders, with portable names and reviewable sizes.",
    rules=(*WALK_RULES, NOT_WALKED, UNKNOWN_FILE, NAME_TWINS, LARGE_DIRECTORY, LARGE_FILE),
    judge_document=judge_file,
    judge_snapshot=judge_layout,
)
