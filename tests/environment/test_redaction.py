"""Secrets, device ids and names never pass."""

from __future__ import annotations

import pytest

from perfdb_git.environment.redaction import REDACTED, Redactor

REDACTOR = Redactor(users=("ada",), hosts=("node17.example.org", "node17"))


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("--token=s3cret", "s3cret"),
        ("HF_TOKEN=hf_abcdefghijkl", "abcdefghijkl"),
        ("password: hunter2", "hunter2"),
        ('{"api_key": "k-12345"}', "k-12345"),
        ("AWS_SECRET_ACCESS_KEY='wJalr/XU'", "wJalr"),
        ("Authorization: Bearer abc.def.ghi", "abc.def"),
        ("https://ada:pw@host.org/x", "pw@"),
        ("ghp_0123456789abcdef", "0123456789abcdef"),
        ("eyJhbGciOi.eyJzdWIi.sig", "eyJzdWIi"),
        ("/home/ada/models", "ada"),
        ("/Users/grace/x", "grace"),
        ("ran on node17 as ada", "node17"),
        ("node17.example.org", "node17"),
        ("grace@example.org", "grace"),
        ("GPU-0a1b2c3d-1111-2222-3333-0123456789ab", "0a1b2c3d"),
        ("Serial Number: 1650522009999", "1650522009999"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n", "MIIE"),
    ],
)
def test_it_is_taken_out(text: str, secret: str) -> None:
    assert secret not in REDACTOR.text(text)


@pytest.mark.parametrize(
    "text",
    [
        "limit 390.00 W, default limit 400.00 W",
        "535.54.03",
        "python bench.py --tokens 512 --batch 4",
        "tokens/s",
        "adaptive",
        "scipy-openblas 0.3.31.188.0",
        "--model=/data/models/llama --seed=1",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert REDACTOR.text(text) == text


def test_the_value_after_a_secret_option_is_taken_out() -> None:
    words = ["bench", "--api-key", "k 123", "--size", "64", "--password", "x", "--", "y"]
    assert REDACTOR.words(words) == (
        *("bench", "--api-key", REDACTED, "--size", "64", "--password", REDACTED, "--", "y"),
    )


def test_redacting_twice_changes_nothing() -> None:
    once = REDACTOR.text("--token=s3cret https://ada:pw@h/x /home/ada/x on node17")
    assert REDACTOR.text(once) == once
