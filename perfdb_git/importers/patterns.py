"""Path patterns and texts with variables in braces, such as ``network/{system}/all_reduce.csv``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath

from perfdb_git.model.values import Scalar

_VARIABLE = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_REVISION = re.compile(r"[0-9a-f]{7,64}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._+=@-]+")
_SHORT_REVISION = 7

REVISION_VARIABLES = frozenset({"revision", "revision7"})
"""Variables that every mapping has: the source revision, and its first seven hex digits."""


def variable_names(text: str) -> tuple[str, ...]:
    """Return the variables of a pattern or text, in order of appearance."""
    return tuple(_VARIABLE.findall(text))


def stray_brace(text: str) -> bool:
    """Say whether a brace stands outside ``{variable}``."""
    rest = _VARIABLE.sub("", text)
    return "{" in rest or "}" in rest


def match_path(pattern: str, path: PurePath) -> dict[str, str] | None:
    """Match the end of a path; a variable stands for a part of one path component.

    Parameters
    ----------
    pattern : str
        Such as ``compute/{system}/{organisation}/{model}/mlp.csv``.
    path : PurePath
        The file's path, absolute or not.

    Returns
    -------
    dict[str, str] or None
        The variables, or ``None`` where the path does not fit.
    """
    expression = ""
    end = 0
    seen: set[str] = set()
    for variable in _VARIABLE.finditer(pattern):
        name = variable[1]
        expression += re.escape(pattern[end : variable.start()])
        expression += f"(?P={name})" if name in seen else f"(?P<{name}>[^/]+)"
        seen.add(name)
        end = variable.end()
    expression += re.escape(pattern[end:])
    match = re.search(f"(?:^|/){expression}\\Z", path.as_posix())
    return None if match is None else match.groupdict()


def revision_variables(revision: str | None) -> dict[str, Scalar | None]:
    """Return ``revision`` and ``revision7`` for use in session names."""
    short = revision
    if revision is not None and _REVISION.fullmatch(revision):
        short = revision[:_SHORT_REVISION]
    return {"revision": revision, "revision7": short}


def fill(text: str, variables: Mapping[str, Scalar | bool | None]) -> str | None:
    """Replace the variables of a text.

    A text that is one variable and nothing else takes an unknown value as ``None``; inside a
    longer text it reads ``unknown``.
    """
    whole = _VARIABLE.fullmatch(text)
    if whole is not None and variables[whole[1]] is None:
        return None

    def value(match: re.Match[str]) -> str:
        found = variables[match[1]]
        return "unknown" if found is None else str(found)

    return _VARIABLE.sub(value, text)


def fill_name(text: str, variables: Mapping[str, Scalar | bool | None]) -> str:
    """Replace the variables of a session name, and what does not belong in a name by ``-``."""
    return _NOT_IN_NAMES.sub("-", fill(text, variables) or "unknown").strip("-.") or "unknown"


def fill_all(value: object, variables: Mapping[str, Scalar | bool | None]) -> object:
    """Replace the variables of every text in a JSON value; keys stay as they are."""
    if isinstance(value, str):
        return fill(value, variables)
    if isinstance(value, Mapping):
        return {key: fill_all(item, variables) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [fill_all(item, variables) for item in value]
    return value
