"""Taking secrets and names out of text before it is stored: evidence is public and permanent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from perfdb_git.model.values import JsonValue

REDACTED = "[redacted]"
_USER = "[user]"
_HOST = "[host]"
_DEVICE = "[device]"
_HOME = "~"

_SECRET_NAME = (
    r"[\w.-]*(?:token|passphrase|cookie"
    r"|(?:secret|passw(?:or)?d|api[_-]?key|access[_-]?key|private[_-]?key|credential)s?"
    r"|auth(?:orization)?|session[_-]?id)(?:[_-][\w-]+)?"
)
# From the start of a word alone: mangled kernel names are words of thousands of letters.
_NAME = rf"(?<![\w.-])-{{0,2}}{_SECRET_NAME}"
# A count of tokens is no secret, and neither is a name in a namespace: max_token=512, Token::parse.
_VALUE = r"(?!\d{1,6}\b)(?:\"[^\"]*\"|'[^']*'|[^\s\"',;&}]+)"
_SECRET_OPTION = re.compile(rf"-{{0,2}}{_SECRET_NAME}", re.IGNORECASE)

_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    # A private key, whole or cut off.
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*", re.DOTALL), REDACTED),
    # The user and password of a URL.
    (re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^/\s@]+@"), rf"\1{REDACTED}@"),
    (re.compile(rf"(?i)(?<![\w.-])(--?{_SECRET_NAME}\s+){_VALUE}"), rf"\1{REDACTED}"),
    # name=value, name: value and "name": "value"
    (
        re.compile(
            rf"(?i)({_NAME}[\"']?\s*(?:=|:(?!:))\s*)(?:(?:bearer|basic)\s+)?{_VALUE}",
        ),
        rf"\1{REDACTED}",
    ),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}"), rf"\1 {REDACTED}"),
    # Keys that their issuers mark with a prefix.
    (
        re.compile(
            r"\b(?:gh[pousr]_\w{8,}|github_pat_\w{8,}|glpat-[\w-]{8,}|hf_\w{8,}|xox[abprs]-[\w-]{8,}"
            r"|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{30,}|(?:sk|pypi|nvapi)-(?=[\w-]*\d)[\w-]{16,}|npm_\w{16,}"
            r"|eyJ[\w-]{4,}\.[\w-]+(?:\.[\w-]+)?)"
        ),
        REDACTED,
    ),
    (re.compile(r"(?<![\w.])/(?:home|Users)/[^/\s:\"']+"), _HOME),
    (re.compile(r"(?i)\b[a-z]:\\Users\\[^\\\s\"']+"), _HOME),
    (re.compile(r"(?<![\w.])/root(?=/)"), _HOME),
    # Devices, boots and machines name themselves by UUIDs.
    (
        re.compile(
            r"(?i)(?:\b(?:GPU|MIG|CPU)-)?\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}"
            r"-[0-9a-f]{12}\b"
        ),
        _DEVICE,
    ),
    (
        re.compile(
            r"(?i)\b(serial(?:[ _]?(?:number|no\.?)\s*[=:#]?|\s*[=:#])\s*)[\w-]*\d[\w-]*",
        ),
        rf"\1{REDACTED}",
    ),
    # Mail addresses and ssh targets, but not versions such as pkg@1.2.3.
    (
        re.compile(
            r"(?<![\w.+-])[A-Za-z_][\w.+-]*@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b",
        ),
        _USER,
    ),
)


class Redactor:
    """Replaces secrets, device ids, home folders, and the names of users and hosts.

    Parameters
    ----------
    users, hosts : iterable of str
        Names to take out wherever they stand as words.

    Attributes
    ----------
    count : int
        What was replaced so far.
    """

    def __init__(self, *, users: Iterable[str] = (), hosts: Iterable[str] = ()) -> None:
        named = [(name, _HOST) for name in hosts] + [(name, _USER) for name in users]
        # The longest first: a host's full name holds its short one. Names beside a hyphen stay,
        # for short ones would be found inside others, such as "vm" in "vm-size".
        self._names = tuple(
            (re.compile(rf"(?<![\w\[-]){re.escape(name)}(?![\w\]-])"), word)
            for name, word in sorted(named, key=lambda pair: (-len(pair[0]), pair))
            if name
        )
        self.count = 0

    def text(self, text: str) -> str:
        """Return the text without what must not be stored, and count what was replaced."""
        for pattern, replacement in (*_RULES, *self._names):
            replaced, found = pattern.subn(replacement, text)
            self.count += found if replaced != text else 0
            text = replaced
        return text

    def words(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return a command line without secrets; an option's value may be a word of its own."""
        result: list[str] = []
        secret_next = False
        for word in words:
            result.append(REDACTED if secret_next else self.text(word))
            secret_next = (
                not secret_next
                and word.startswith("-")
                and _SECRET_OPTION.fullmatch(word) is not None
            )
        return tuple(result)

    def value(self, value: JsonValue) -> JsonValue:
        """Return a JSON value whose texts, keys included, are redacted."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(name): self.value(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value
