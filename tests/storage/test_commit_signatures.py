"""What a commit's signature is over."""

from __future__ import annotations

from perfdb_git.storage.commit_signatures import split_signature

HEAD = b"tree 1\nparent 2\nauthor A <a> 1 +0000\ncommitter A <a> 1 +0000"
MESSAGE = b"subject\n\ngpgsig this is no header\n"


def test_without_a_signature() -> None:
    raw = HEAD + b"\n\n" + MESSAGE
    assert split_signature(raw) == (raw, None)


def test_the_signature_is_taken_out_and_everything_else_kept() -> None:
    signature = b"\ngpgsig -----BEGIN SSH SIGNATURE-----\n AAAA\n \n -----END SSH SIGNATURE-----"
    tag = b"\nmergetag object 3\n tag v1\n \n gpgsig not ours\n -----END"
    raw = HEAD + tag + signature + b"\nencoding latin-1\n\n" + MESSAGE
    payload, found = split_signature(raw)
    assert payload == HEAD + tag + b"\nencoding latin-1\n\n" + MESSAGE
    assert found == b"-----BEGIN SSH SIGNATURE-----\nAAAA\n\n-----END SSH SIGNATURE-----\n"


def test_a_signature_of_the_other_object_format_is_taken_out_too() -> None:
    raw = HEAD + b"\ngpgsig-sha256 x\n y\n\n" + MESSAGE
    assert split_signature(raw) == (HEAD + b"\n\n" + MESSAGE, None)
