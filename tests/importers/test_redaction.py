"""What is never stored, and what must not be mistaken for it."""

from __future__ import annotations

import pytest

from perfdb_git.importers.redaction import Redactor


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("run --token abc123 x", "run --token [redacted] x"),
        ("run --api-key=abc", "run --api-key=[redacted]"),
        ('{"password": "x y"}', '{"password": [redacted]}'),
        ("HF_TOKEN=hf_x ./run", "HF_TOKEN=[redacted] ./run"),
        ("AWS_SECRET_ACCESS_KEY='a b' run", "AWS_SECRET_ACCESS_KEY=[redacted] run"),
        ("curl https://me:pw@host/x", "curl https://[redacted]@host/x"),
        ("Authorization: Bearer abcdefgh12", "Authorization: Bearer [redacted]"),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123", "[redacted]"),
        ("AKIAABCDEFGHIJKLMNOP", "[redacted]"),
        ("/home/alice/x /Users/bob/y", "~/x ~/y"),
        (r"C:\Users\carol\x", r"~\x"),
        ("ssh dan@node.example.org", "ssh [user]@node.example.org"),
        ("gemm on node-a with eve", "gemm on [host] with [user]"),
    ],
)
def test_secrets_and_names(text: str, expected: str) -> None:
    redactor = Redactor(users=["eve"], hosts=["node-a"])
    assert redactor.text(text) == expected
    assert redactor.count >= 1


@pytest.mark.parametrize(
    "text",
    [
        "void gemm<(int)128, (int)64>(float *, float *)",
        "tests/test_tokens.py::test_tokenizer[10 tokens]",
        "pkg@1.2.3",
        "BM_copy/4096/repeats:3",
        "never --evening",
        "/homepage/x",
        "tokens/s",
        "decode max_tokens=512 n_token=64",
        "void Token::parse(char *)",
        "sample a token from the list",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    redactor = Redactor(users=["eve"], hosts=["vm"])
    assert redactor.text(text) == text
    assert redactor.count == 0


def test_values_and_keys_of_json() -> None:
    redactor = Redactor(users=["eve"])
    value = {"eve": ["/home/eve/x", 1, None], "n": {"password=x": 2.5}}
    assert redactor.value(value) == {
        "[user]": ["~/x", 1, None],
        "n": {"password=[redacted]": 2.5},
    }
