"""What is never stored, and what must not be mistaken for it."""

from __future__ import annotations

import pytest

from perfdb_git.formats.redaction import REDACTED, Redactor


def redactor() -> Redactor:
    return Redactor(users=["eve", "ada"], hosts=["node17.example.org", "node17", "node-a", "vm"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("run --token abc123 x", "run --token [redacted] x"),
        ("run --api-key=abc", "run --api-key=[redacted]"),
        ("--token=s3cret", "--token=[redacted]"),
        ("password: hunter2", "password: [redacted]"),
        ('{"password": "x y"}', '{"password": [redacted]}'),
        ('{"api_key": "k-12345"}', '{"api_key": [redacted]}'),
        ("HF_TOKEN=hf_x ./run", "HF_TOKEN=[redacted] ./run"),
        ("AWS_SECRET_ACCESS_KEY='a b' run", "AWS_SECRET_ACCESS_KEY=[redacted] run"),
        ("curl https://me:pw@host/x", "curl https://[redacted]@host/x"),
        ("Authorization: Bearer abc.def.ghi", "Authorization: [redacted]"),
        ("-H Bearer abcdefgh12", "-H Bearer [redacted]"),
        ("ghp_0123456789abcdef", "[redacted]"),
        ("AKIAABCDEFGHIJKLMNOP", "[redacted]"),
        ("eyJhbGciOi.eyJzdWIi.sig", "[redacted]"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n", "[redacted]"),
        ("/home/alice/x /Users/bob/y /root/z", "~/x ~/y ~/z"),
        (r"C:\Users\carol\x", r"~\x"),
        ("ssh dan@node.example.org", "ssh [user]"),
        ("gemm on node-a with eve", "gemm on [host] with [user]"),
        ("node17.example.org", "[host]"),
        ("GPU-0a1b2c3d-1111-2222-3333-0123456789ab", "[device]"),
        ("Serial Number: 1650522009999", "Serial Number: [redacted]"),
    ],
)
def test_secrets_and_names(text: str, expected: str) -> None:
    some = redactor()
    assert some.text(text) == expected
    assert some.count >= 1
    assert some.text(expected) == expected


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
        "limit 390.00 W, default limit 400.00 W",
        "535.54.03",
        "python bench.py --tokens 512 --batch 4",
        "adaptive",
        "scipy-openblas 0.3.31.188.0",
        "--model=/data/models/llama --seed=1",
        "serial 1024, sk-learn-linear-model",
        "vm-size",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    some = redactor()
    assert some.text(text) == text
    assert some.count == 0


def test_the_value_after_a_secret_option_is_taken_out() -> None:
    words = ["bench", "--api-key", "k 123", "--size", "64", "--password", "x", "--", "y"]
    assert redactor().words(words) == (
        *("bench", "--api-key", REDACTED, "--size", "64", "--password", REDACTED, "--", "y"),
    )


def test_values_and_keys_of_json() -> None:
    value = {"eve": ["/home/eve/x", 1, None], "n": {"password=x": 2.5}}
    assert redactor().value(value) == {
        "[user]": ["~/x", 1, None],
        "n": {"password=[redacted]": 2.5},
    }
