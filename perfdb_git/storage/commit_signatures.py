"""The signature within a commit, and what it signs, from the commit's raw bytes."""

from __future__ import annotations

from dataclasses import dataclass

_HEADERS = (b"gpgsig ", b"gpgsig-sha256 ")
_CONTINUED = b" "


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedCommit:
    """One commit as its signer saw it.

    Attributes
    ----------
    id : str
        40 hexadecimal digits.
    committer_time : int
        Seconds since 1970-01-01 UTC.
    payload : bytes
        The commit without its signature: the bytes that were signed.
    signature : bytes or None
        In armour; None where there is none.
    """

    id: str
    committer_time: int
    payload: bytes
    signature: bytes | None


def split_signature(raw: bytes) -> tuple[bytes, bytes | None]:
    """Split a commit's raw bytes into what is signed and the signature.

    As git does, the headers ``gpgsig`` and ``gpgsig-sha256`` are taken out and everything else is
    kept; continued lines of another header, such as a merged tag's own signature, stay in it.
    """
    head, separator, message = raw.partition(b"\n\n")
    kept: list[bytes] = []
    signature: list[bytes] | None = None
    header = b""
    for line in head.split(b"\n"):
        if not line.startswith(_CONTINUED):
            header = next((name for name in _HEADERS if line.startswith(name)), b"")
            line = line.removeprefix(header)
            if header == _HEADERS[0]:
                signature = []
        elif header:
            line = line[1:]
        if not header:
            kept.append(line)
        elif header == _HEADERS[0] and signature is not None:
            signature.append(line)
    armour = None if signature is None else b"\n".join(signature) + b"\n"
    return b"\n".join(kept) + separator + message, armour
