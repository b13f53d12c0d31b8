"""How many threads numpy's libraries may start here, and what the caller had said of it."""

from __future__ import annotations

import os

_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_added: set[str] = set()


def limit_threads() -> None:
    """Have numpy's libraries use one thread, unless the caller says otherwise.

    They read this when they are loaded. Starting threads costs more than it saves here, and with
    one thread sums come out alike on every machine.
    """
    for name in _VARIABLES:
        if name not in os.environ:
            os.environ[name] = "1"
            _added.add(name)


def caller_environment() -> dict[str, str]:
    """Return the environment as the caller gave it, for programs that are measured."""
    return {name: value for name, value in os.environ.items() if name not in _added}
