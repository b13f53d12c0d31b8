from dataclasses import replace

import pytest

from perfdb_git.errors import UsageError
from perfdb_git.operations.features.collectives import COLLECTIVE_1
from tests.operations.features.feature_fixtures import H200, features_of, table

QUERY = {"message_bytes": 2**20, "participants": 8, "dtype": "float16", "operation": "all_reduce"}


def test_octaves() -> None:
    assert features_of(COLLECTIVE_1, QUERY) == {
        "message_octaves": 20,
        "participant_octaves": 3,
        "element_octaves": 1,
        "all_reduce": 1,
        "all_gather": 0,
        "reduce_scatter": 0,
        "all_to_all": 0,
    }


@pytest.mark.parametrize(("operation", "passes"), [("all_reduce", 2), ("all_gather", 1)])
def test_base_is_floors_and_wire_time(operation: str, passes: int) -> None:
    found = COLLECTIVE_1.base(table({**QUERY, "operation": operation}), H200)
    wire = passes * 7 / 8 * 2**20 / (0.75 * 450e9)
    assert found.tolist() == [pytest.approx(8e-6 + wire, rel=1e-12)]


def test_a_device_without_links_is_refused() -> None:
    with pytest.raises(UsageError) as raised:
        COLLECTIVE_1.base(table(QUERY), replace(H200, link_bytes_per_s=None))
    assert raised.value.code == "no-link-bandwidth"
