"""Workers that all tests of the folder share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.distribution.dask_processes import DaskProcesses, dask_processes


@pytest.fixture(scope="session")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskProcesses]:
    """Two workers with cache directories of their own, as machines have."""
    folder = tmp_path_factory.mktemp("dask")
    with dask_processes(folder) as started:
        for name in ("one", "two"):
            started.add_worker(name, PERFDB_CACHE_DIR=str(folder / name))
        yield started
