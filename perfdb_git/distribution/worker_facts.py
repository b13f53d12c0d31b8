"""What has to be equal on two machines for them to give the same numbers."""

from __future__ import annotations

import functools
import platform
from dataclasses import dataclass, fields

from perfdb_git import __version__
from perfdb_git.errors import ClusterUnavailableError


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFacts:
    """Versions that have to be equal, and ``instructions`` that should be.

    numpy takes other code for the instructions that a processor has; its logarithms and powers then
    may differ in the last bit.
    """

    perfdb: str
    python: str
    numpy: str
    scipy: str
    instructions: str

    def require_versions(self, others: WorkerFacts) -> None:
        """Refuse a worker that has other versions than this process.

        Raises
        ------
        ClusterUnavailableError
            'worker-versions'.
        """
        for field in fields(self):
            ours, theirs = getattr(self, field.name), getattr(others, field.name)
            if ours != theirs and field.name != "instructions":
                raise ClusterUnavailableError(
                    f"a worker has {field.name} {theirs}, and this process {ours}",
                    code="worker-versions",
                    remedy="install the same versions there: others may give other numbers",
                )


@functools.cache
def facts_here() -> WorkerFacts:
    """Return the facts of this process."""
    from importlib.metadata import version

    import numpy as np

    build = np.show_config(mode="dicts")
    assert build is not None
    simd = build.get("SIMD Extensions", {})
    return WorkerFacts(
        perfdb=__version__,
        python=platform.python_version(),
        numpy=np.__version__,
        scipy=version("scipy"),
        instructions=" ".join(
            [platform.machine(), *simd.get("baseline", ()), *simd.get("found", ())]
        ),
    )
