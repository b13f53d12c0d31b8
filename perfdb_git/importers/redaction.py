"""What must never be stored: secrets, user names and host names in the texts of other tools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from perfdb_git.model.values import JsonValue

_SECRET_WORD = (
    r"[\w-]*(?:token|(?:secret|passw(?:or)?d|passphrase|api[-_]?key|access[-_]?key|credential)s?)"
)
# A count of tokens is no secret, and neither is a name in a namespace: max_token=512, Token::parse.
_SECRET_VALUE = r"(?!\d{1,6}\b)(\"[^\"]*\"|'[^']*'|[^\s\"',;]+)"
# From the start of a word alone: mangled kernel names are words of thousands of letters.
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(rf"(?i)(?<![\w-])(--?{_SECRET_WORD}\s+){_SECRET_VALUE}"), r"\1[redacted]"),
    (
        re.compile(rf"(?i)(?<![\w-])({_SECRET_WORD}[\"']?\s*(?:=|:(?!:))\s*){_SECRET_VALUE}"),
        r"\1[redacted]",
    ),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"), r"\1 [redacted]"),
    (re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^/\s@]+@"), r"\1[redacted]@"),
    (
        re.compile(
            r"\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|hf_\w{20,}|sk-[\w-]{20,}|xox[abprs]-[\w-]{10,}"
            r"|AKIA[0-9A-Z]{16}|glpat-[\w-]{20,}|eyJ[\w-]+\.[\w-]+\.[\w-]+)"
        ),
        "[redacted]",
    ),
    (re.compile(r"(?<![\w.])/(?:home|Users)/[^/\s\"']+"), "~"),
    (re.compile(r"(?i)\b[a-z]:\\Users\\[^\\\s\"']+"), "~"),
    (re.compile(r"(?<![\w.])/root(?=/)"), "~"),
    # Mail addresses and ssh targets, but not versions such as pkg@1.2.3.
    (
        re.compile(r"(?<![\w.+-])[A-Za-z_][\w.+-]*@(?=[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b)"),
        "[user]@",
    ),
)


class Redactor:
    """Replaces secrets, home folders, and the names that a file states of its user and host.

    Parameters
    ----------
    users, hosts : iterable of str
        Names that the file gives; they are removed wherever they stand as a word.
    """

    def __init__(self, *, users: Iterable[str] = (), hosts: Iterable[str] = ()) -> None:
        named = [(name, "[user]") for name in users] + [(name, "[host]") for name in hosts]
        # Short names would be found inside other words' neighbours, such as "vm" in "vm-size".
        self._names = tuple(
            (re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])"), word)
            for name, word in named
            if name
        )
        self.count = 0

    def text(self, text: str) -> str:
        """Return the text without what must not be stored, and count what was replaced."""
        for pattern, replacement in (*_RULES, *self._names):
            text, found = pattern.subn(replacement, text)
            self.count += found
        return text

    def value(self, value: JsonValue) -> JsonValue:
        """Return a JSON value whose texts, keys included, are redacted."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(name): self.value(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value
