"""Taking secrets and names out of text before it is stored: evidence is public and permanent."""

from __future__ import annotations

import getpass
import re
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

REDACTED = "<redacted>"
_USER = "<user>"
_HOST = "<host>"
_DEVICE = "<device>"

# Names that say nothing about a person or a machine, and are words of ordinary command lines.
_IMPERSONAL = frozenset({"", "root", "localhost", "nobody", "user"})

_SECRET_NAME = (
    r"[\w.-]*(?:token|secret|passw(?:or)?d|passphrase|passwd|api[_-]?key|access[_-]?key"
    r"|private[_-]?key|auth(?:orization)?|credentials?|cookie|session[_-]?id)(?:[_-][\w-]+)?"
)
_SECRET_OPTION = re.compile(rf"^-{{0,2}}{_SECRET_NAME}$", re.IGNORECASE)
_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    # A private key, whole or cut off.
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*", re.DOTALL), REDACTED),
    # The user and password of a URL.
    (re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^/\s@]+@", re.IGNORECASE), rf"\1{REDACTED}@"),
    # name=value, name: value and "name": "value"
    (
        re.compile(
            rf"({_SECRET_NAME}[\"']?\s*[=:]\s*)(?:(?:bearer|basic)\s+)?"
            r"(\"[^\"]*\"|'[^']*'|[^\s&;,]+)",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
    (re.compile(r"\b(bearer|basic)\s+[\w.~+/-]{8,}=*", re.IGNORECASE), rf"\1 {REDACTED}"),
    # Keys that their issuers mark with a prefix.
    (
        re.compile(
            r"\b(?:hf_|gh[pousr]_|github_pat_|glpat-|sk-|xox[abprs]-|AKIA|ASIA|AIza|nvapi-|npm_"
            r"|pypi-|eyJ)[\w.~+/-]{8,}=*"
        ),
        REDACTED,
    ),
    (re.compile(r"(/(?:home|Users)/|\\Users\\)[^/\\\s:\"']+"), rf"\1{_USER}"),
    # Devices, boots and machines name themselves by UUIDs.
    (
        re.compile(
            r"(?:\b(?:GPU|MIG|CPU)-)?\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}"
            r"-[0-9a-f]{12}\b",
            re.IGNORECASE,
        ),
        _DEVICE,
    ),
    (
        re.compile(r"\b(serial(?:[ _]?(?:number|no\.?))?\s*[=:#]?\s*)[\w-]*\d[\w-]*", re.I),
        rf"\1{REDACTED}",
    ),
    (re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b"), _USER),
)


@dataclass(frozen=True, slots=True)
class Redactor:
    """Takes secrets, device ids, user names and host names out of text.

    Parameters
    ----------
    users, hosts : tuple of str
        Names to take out wherever they stand as whole words.
    """

    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    @classmethod
    def of_this_machine(cls) -> Redactor:
        """Return a redactor that knows the present user and host."""
        try:
            user = getpass.getuser()
        except (KeyError, OSError):  # no entry for this user id, as in some containers
            user = ""
        host = socket.gethostname()
        return cls(users=_names([user]), hosts=_names([host, host.partition(".")[0]]))

    def text(self, text: str) -> str:
        """Return `text` without what must not be stored."""
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)
        for names, replacement in ((self.hosts, _HOST), (self.users, _USER)):
            for name in names:
                text = re.sub(rf"(?<![\w<]){re.escape(name)}(?![\w>])", replacement, text)
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


def _names(names: Iterable[str]) -> tuple[str, ...]:
    found = {name for name in names if name.lower() not in _IMPERSONAL}
    # The longest first: a host's full name holds its short one.
    return tuple(sorted(found, key=lambda name: (-len(name), name)))
