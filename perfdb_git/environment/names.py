"""The names of this machine's user and host, which no evidence may hold."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Iterable

from perfdb_git.formats.redaction import Redactor

# Names that say nothing about a person or a machine, and are words of ordinary command lines.
_IMPERSONAL = frozenset({"", "root", "localhost", "nobody", "user"})


def redactor_of_this_machine() -> Redactor:
    """Return a redactor that knows the present user and host."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # no entry for this user id, as in some containers
        user = ""
    host = socket.gethostname()
    return Redactor(users=_personal([user]), hosts=_personal([host, host.partition(".")[0]]))


def _personal(names: Iterable[str]) -> set[str]:
    return {name for name in names if name.lower() not in _IMPERSONAL}
